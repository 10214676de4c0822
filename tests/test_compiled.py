"""Compiled functions where nothing can be written."""

from __future__ import annotations

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
    assert asked[0] == {"cache": True} and len(asked) > 1


def test_compiled_code_is_kept() -> None:
    @njit
    def triple(x: float) -> float:
        return 3 * x

    assert triple(1.0) == 3.0
    assert triple.stats.cache_path  # type: ignore[attr-defined]
