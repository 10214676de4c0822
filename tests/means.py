"""The means of instances that have some."""

from __future__ import annotations

from spectralbai import Instance
from spectralbai.arrays import Vector


def mu_of(instance: Instance) -> Vector:
    """Returns the means of an instance made with means."""
    assert instance.mu is not None
    return instance.mu
