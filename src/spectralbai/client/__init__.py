"""Studies of a service (`spectralbai serve`), used from Python in the same way as studies in a database."""

from spectralbai.client.client import Client
from spectralbai.client.study import RemoteReport, RemoteStudy

__all__ = ["Client", "RemoteReport", "RemoteStudy"]
