"""Compiled functions: numba's `njit`, with compiled code kept on disk if there is a folder to write to.

numba is imported when the first function is made, so that importing this module is fast.
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

    The compiled code is kept next to the source, or in the user's cache folder. If neither can be written to, every
    process compiles again, which is slow but works. NUMBA_CACHE_DIR names another folder. Compiled code releases
    Python's lock, so that other threads can run: one that shows progress, or one that ends an interrupted command.
    """
    import numba

    _listen()
    try:
        compiled: Callable[P, T] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder for the cache can be written to
        compiled = numba.njit(nogil=True)(function)
    return compiled


def on_compiling(hear: Callable[[bool], object] | None) -> None:
    """Sets a function that is called each time compiling begins; None removes it.

    Its argument says whether the compiled code will be kept on disk. Loading code from disk is not compiling.
    """
    global _hearer
    _hearer = hear


def compiling(kept: bool) -> None:
    """Calls the function set by `on_compiling`: compiling begins, in this process or in one of its workers."""
    if _hearer is not None:
        _hearer(kept)


@cache
def _listen() -> None:
    """Makes numba report when it begins to compile."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            compiling(event.data["dispatcher"].stats.cache_path is not None)

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]  # numba's
