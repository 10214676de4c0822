"""Threads: BLAS on one of them, and a lock for those of one process."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

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
