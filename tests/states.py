"""Data and checks of states that several test files use."""

from __future__ import annotations

import json

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.evidence.blocks import Data
from spectralbai.policy import State
from spectralbai.stopping.accounts import Accounts


def sums_only(counts: Vector, sums: Vector) -> Data:
    """Returns data whose squares are not known."""
    return Data(counts, sums, np.full(counts.size, np.nan))


def written(state: State) -> str:
    return json.dumps(state.as_dict(), allow_nan=False)


def accounts(state: State) -> Accounts:
    memory = state.stopping["betting"]
    assert isinstance(memory, Accounts)
    return memory
