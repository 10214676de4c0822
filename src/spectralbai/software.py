"""The versions of all software that results may depend on."""

from __future__ import annotations

import platform
from importlib.metadata import version


def software(*more: str) -> dict[str, str]:
    """Returns the versions of Python, this package, its numerical libraries and `more`, and the type of machine."""
    packages = {name: version(name) for name in ("spectralbai", "numpy", "scipy", "numba", *more)}
    return {"python": platform.python_version(), **packages, "machine": platform.machine()}
