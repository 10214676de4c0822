"""Studies of a service (`spectralbai serve`), used from Python as those of a database are."""

from spectralbai.client.client import Client
from spectralbai.client.study import RemoteReport, RemoteStudy

__all__ = ["Client", "RemoteReport", "RemoteStudy"]
