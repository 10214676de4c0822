"""Compiled functions: numba's `njit`, with compiled code kept on disk where there is a place for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
T = TypeVar("T")


def njit(function: Callable[P, T]) -> Callable[P, T]:
    """Returns the function, compiled when it is first called.

    The code is kept beside the source, or in the user's cache. Where neither can be written to, every process compiles
    anew: slow, but it works. NUMBA_CACHE_DIR names another place. Compiled code lets go of Python's lock, so that other
    threads go on: one that shows progress, or one that ends an interrupted command.
    """
    try:
        compiled: Callable[P, T] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no place for a cache
        compiled = numba.njit(nogil=True)(function)
    return compiled
