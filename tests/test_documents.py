"""Documents write numbers that JSON does not have in one way."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

import spectralbai as sb
from spectralbai.documents import number, plain


def test_infinite_and_unknown_numbers_are_written_in_one_way() -> None:
    value = {"a": (math.inf, -math.inf, math.nan, 1.5), "b": np.array([np.inf, 2.0]), "c": [np.float64("nan"), 3, None]}
    assert plain(value) == {"a": ["inf", "-inf", None, 1.5], "b": ["inf", 2.0], "c": [None, 3, None]}


def test_numbers_are_read_as_they_are_written() -> None:
    others: list[Any] = ["many", [1.0], True]
    assert [number(each) for each in others] == others
    for value in (math.inf, -math.inf, 1.5, 0, -2):
        assert number(plain(value)) == value
    assert math.isnan(number(plain(math.nan)))


def test_a_verdict_is_a_document_with_its_format() -> None:
    policy = sb.SpectralRace(sb.Problem(sb.Graph.from_edges(2, []), R=0.01), delta=0.05)
    state = policy.init()
    document = json.loads(json.dumps(policy.verdict(state).as_dict(), allow_nan=False))
    assert document["format"] == "spectralbai-verdict/2"
    assert document["state"] == "running" and document["decided"] is False and document["samples"] == 0
    while (arms := policy.ask(state, 4)).size:
        state = policy.tell(state, arms, [30.0 * (arm == 1) for arm in arms])
    document = policy.verdict(state).as_dict()
    assert document["state"] == "decided" and document["arm"] == 1 and document["candidates"] == [1]
    json.dumps(document, allow_nan=False)
