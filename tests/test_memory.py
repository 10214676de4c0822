"""What rules remember, and its JSON form."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from spectralbai import InvalidInput
from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.memory import Memory
from spectralbai.stopping.accounts import Account, Accounts, Leaders


@dataclass(frozen=True, eq=False)
class Odds(Memory):
    kind: ClassVar[str] = "odds and ends, for tests"

    floats: Vector
    whole: Indices
    table: Matrix
    nothing_yet: Matrix
    none_of_them: Indices
    number: float
    word: str
    inner: tuple[Memory, ...]
    missing: Memory | None


def through_json(memory: Memory) -> Any:
    return Memory.from_dict(json.loads(json.dumps(memory.as_dict(), allow_nan=False)))


ODDS = Odds(
    np.array([0.1 + 0.2, 1e-310, -0.0, math.inf, -math.inf, math.nan]),
    np.array([3, 1, 2]),
    np.array([[1.0, -math.inf], [math.nan, 1 / 3]]),
    np.zeros((0, 4)),
    np.zeros(0, dtype=np.intp),
    math.inf,
    "word",
    (Data.none(2), Block.opened(np.array([1, 0]), Data.none(2), 1)),
    None,
)


def test_every_kind_of_value_survives_json_bit_for_bit() -> None:
    loaded = through_json(ODDS)
    assert loaded.as_dict() == ODDS.as_dict()
    for name in ("floats", "whole", "table", "nothing_yet", "none_of_them"):
        before, after = getattr(ODDS, name), getattr(loaded, name)
        assert (before.dtype, before.shape) == (after.dtype, after.shape)
        np.testing.assert_array_equal(before, after)
        np.testing.assert_array_equal(np.signbit(before), np.signbit(after))
    assert (loaded.number, loaded.word, loaded.missing) == (math.inf, "word", None)
    assert [type(each) for each in loaded.inner] == [Data, Block]
    assert loaded.inner[1].arms.dtype == np.intp


def test_accounts_that_nobody_led_yet_can_be_used_after_json() -> None:
    fresh = Accounts(Account.opened(3), Account.opened(1), Leaders.opened(3), np.zeros(3, dtype=bool))
    loaded = through_json(fresh)
    joined = loaded.leaders.joined(np.array([2]))
    settled = joined.settled(np.array([0.0, 0.0, 0.8]), np.zeros(3), np.zeros((1, 3)))
    assert settled.leaders.tolist() == [2] and settled.leaders.dtype == np.intp
    assert settled.own.shape == settled.peak.shape == (1, 3)


def test_arrays_of_a_memory_are_read_only() -> None:
    for memory in (ODDS, through_json(ODDS)):
        for name in ("floats", "whole", "table"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(memory, name)[0] = 1


def test_a_memory_of_an_unknown_or_another_kind_is_refused() -> None:
    with pytest.raises(InvalidInput, match="memories of known kinds, got 'martian'; import the module"):
        Memory.from_dict({"kind": "martian"})
    with pytest.raises(InvalidInput, match="got 'data'"):
        Block.from_dict(Data.none(2).as_dict())


def test_an_empty_memory_is_a_memory() -> None:
    assert type(through_json(Memory())) is Memory
