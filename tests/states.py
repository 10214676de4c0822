"""Checks of states that several test files use."""

from __future__ import annotations

import json

from spectralbai.policy import State
from spectralbai.stopping.accounts import Accounts


def written(state: State) -> str:
    return json.dumps(state.as_dict(), allow_nan=False)


def accounts(state: State) -> Accounts:
    memory = state.stopping["betting"]
    assert isinstance(memory, Accounts)
    return memory
