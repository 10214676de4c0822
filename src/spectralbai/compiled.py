"""Compiled functions: numba's `njit`, with compiled code kept on disk where there is a place for it.

numba is imported when the first function is made, so that this module is free to import.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_hearer: Callable[[bool], object] | None = None


def njit(function: Callable[P, T]) -> Callable[P, T]:
    """Returns the function, compiled when it is first called.

    The code is kept beside the source, or in the user's cache. Where neither can be written to, every process compiles
    anew: slow, but it works. NUMBA_CACHE_DIR names another place. Compiled code lets go of Python's lock, so that other
    threads go on: one that shows progress, or one that ends an interrupted command.
    """
    import numba

    _listen()
    try:
        compiled: Callable[P, T] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no place for a cache
        compiled = numba.njit(nogil=True)(function)
    return compiled


def on_compiling(hear: Callable[[bool], object] | None) -> None:
    """Sets what is called each time compiling begins, with whether the code will be kept; None: nothing, as at first.

    Code that is loaded from where it was kept is not compiled.
    """
    global _hearer
    _hearer = hear


def compiling(kept: bool) -> None:
    """Calls what `on_compiling` set: compiling begins, here or in a process that works for this one."""
    if _hearer is not None:
        _hearer(kept)


@cache
def _listen() -> None:
    """Has numba say when it begins to compile."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            compiling(event.data["dispatcher"].stats.cache_path is not None)

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]  # numba's
