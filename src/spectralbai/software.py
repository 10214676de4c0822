"""The versions of everything that a result may depend on."""

from __future__ import annotations

import platform
from importlib.metadata import version


def software(*more: str) -> dict[str, str]:
    """Returns the versions of Python, this package, what it computes with and the packages named, and the kind of
    machine."""
    packages = {name: version(name) for name in ("spectralbai", "numpy", "scipy", "numba", *more)}
    return {"python": platform.python_version(), **packages, "machine": platform.machine()}
