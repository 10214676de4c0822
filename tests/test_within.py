"""Work that is not waited for longer than wanted."""

from __future__ import annotations

from threading import Event

import pytest

from spectralbai.threads import within


def test_what_is_done_in_time_is_returned() -> None:
    assert within(30.0, lambda: 7) == 7


def test_an_error_in_time_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        within(30.0, lambda: 1 / 0)


def test_work_that_takes_longer_goes_on() -> None:
    go, done = Event(), Event()

    def work() -> int:
        go.wait(30.0)
        done.set()
        return 7

    assert within(0.01, work) is None and not done.is_set()
    go.set()
    assert done.wait(30.0)
