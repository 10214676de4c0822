"""BLAS on one thread: for matrices of our sizes more threads are slower, and much slower on a busy machine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_controller = cache(ThreadpoolController)  # cached, because finding the libraries takes milliseconds


def one_thread() -> AbstractContextManager[Any]:
    """Returns a context in which linear algebra runs on one thread."""
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits
