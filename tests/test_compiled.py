"""Compiled functions where nothing can be written."""

from __future__ import annotations

import threading
import time
from typing import Any

import numba
import pytest

from spectralbai.compiled import njit


def test_a_function_is_compiled_even_where_there_is_no_place_for_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, asked = numba.njit, []

    def no_cache(*arguments: Any, **options: Any) -> Any:
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return plain(*arguments, **options)

    monkeypatch.setattr(numba, "njit", no_cache)

    @njit
    def double(x: float) -> float:
        return 2 * x

    assert double(4.0) == 8.0
    assert asked[0] == {"cache": True, "nogil": True} and len(asked) > 1


def test_other_threads_go_on_while_compiled_code_runs() -> None:
    @njit
    def spin(steps: int) -> float:
        total = 0.0
        for step in range(steps):
            total += (step % 7) ** 0.5
        return total

    spin(1)
    ticks: list[float] = []
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(0.01):
            ticks.append(time.monotonic())

    other = threading.Thread(target=tick)
    other.start()
    start = time.monotonic()
    spin(300_000_000)
    end = time.monotonic()
    ended.set()
    other.join()
    assert len([at for at in ticks if start < at < end]) > 3


def test_compiled_code_is_kept() -> None:
    @njit
    def triple(x: float) -> float:
        return 3 * x

    assert triple(1.0) == 3.0
    assert triple.stats.cache_path  # type: ignore[attr-defined]
