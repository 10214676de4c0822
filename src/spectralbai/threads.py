"""Threads: BLAS on one of them, a lock for those of one process, and work that is not waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from threading import TIMEOUT_MAX, Lock, Thread
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
_controller = cache(ThreadpoolController)  # cached, because finding the libraries takes milliseconds


def one_thread() -> AbstractContextManager[Any]:
    """Returns a context in which linear algebra runs on one thread: for matrices of our sizes more threads are slower,
    and much slower on a busy machine."""
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits


class ProcessLock:
    """A lock for the threads of one process. In a forked process it is free, whoever held it before: the thread that
    would release it is not there."""

    def __init__(self) -> None:
        self._own = os.getpid(), Lock()

    @property
    def lock(self) -> Lock:
        process, lock = self._own
        if process != os.getpid():
            process, lock = self._own = os.getpid(), Lock()
        return lock


def within(seconds: float, work: Callable[[], T]) -> T | None:
    """Returns what `work` returns, or None after so many seconds; the work then goes on in its thread.

    An error of the work is raised if it comes in time; a later one is reported as those of threads are.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    waiting = True

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            if not waiting:
                raise
            errors.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join(min(max(seconds, 0.0), TIMEOUT_MAX))
    waiting = False
    if errors:
        raise errors[0]
    return results[0] if results else None
