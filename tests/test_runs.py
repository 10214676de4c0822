"""Long lists in JSON: what was written is what is read."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectralbai import run_lengths as runs
from spectralbai.evidence.memory import Memory


@given(st.lists(st.tuples(st.sampled_from([0.0, -1.5, math.inf, 1e-300]), st.integers(1, 900)), max_size=6))
def test_numbers_survive(parts: list[tuple[float, int]]) -> None:
    values = [value for value, times in parts for _ in range(times)]
    assert runs.from_json(json.loads(json.dumps(runs.as_json(values)))) == values


@given(st.lists(st.integers(0, 5000), min_size=0, max_size=40), st.integers(0, 3000))
def test_ascending_whole_numbers_survive(left_out: list[int], n: int) -> None:
    values = [number for number in range(n) if number not in set(left_out)]
    assert runs.from_json(json.loads(json.dumps(runs.as_json(values)))) == values


def test_long_lists_of_few_values_are_short_and_others_are_lists() -> None:
    assert runs.as_json([0.5] * 20_000) == {"runs": [(0.5, 20_000)]}
    assert runs.as_json(list(range(3, 5_000))) == {"ranges": [(3, 4_999)]}
    assert runs.as_json([0.5] * 100) == [0.5] * 100
    different = np.random.default_rng(0).random(2000).tolist()
    assert runs.as_json(different) == different


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.25])
def test_arrays_of_memories_survive(value: float) -> None:
    from spectralbai.evidence.blocks import Data

    data = Data(np.full(3000, value), np.arange(3000.0), np.repeat([1.0, np.nan, 2.0], 1000))
    read = Memory.from_dict(json.loads(json.dumps(data.as_dict())))
    assert isinstance(read, Data)
    for one, other in ((read.counts, data.counts), (read.sums, data.sums), (read.squares, data.squares)):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_zeros_keep_their_signs() -> None:
    values = [0.0] * 800 + [-0.0] * 800
    assert runs.as_json(values) == {"runs": [(0.0, 800), (-0.0, 800)]}
    np.testing.assert_array_equal(np.signbit(runs.from_json(runs.as_json(values))), np.signbit(values))
