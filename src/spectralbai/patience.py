"""Work that its caller does not wait for longer than it wants."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


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
    thread.join(max(seconds, 0.0))
    waiting = False
    if errors:
        raise errors[0]
    return results[0] if results else None
