"""Errors keep their kind, and sizes that no machine can handle are refused in a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import spectralbai as sb
from spectralbai.checks import check_memory
from spectralbai.errors import about
from spectralbai.noise import Binary


@pytest.mark.parametrize("kind", [sb.InvalidInput, sb.NotFound, sb.Conflict])
def test_a_place_before_a_message_does_not_change_its_kind(kind: type[sb.InvalidInput]) -> None:
    with pytest.raises(sb.InvalidInput) as refusal, about("pages.csv"):
        raise kind("no such label")
    assert type(refusal.value) is kind and str(refusal.value) == "pages.csv: no such label"


def test_a_budget_that_no_study_reaches_is_refused(tmp_path: Path) -> None:
    instance = sb.Instance(sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1))
    with pytest.raises(sb.InvalidInput, match="`budget` must be at most 1,000,000,000,000,000, got 1000000"):
        sb.Study.create("large", instance, storage=f"sqlite:///{tmp_path}/studies.db", budget=10**390)


def test_counts_that_no_float_holds_are_refused(tmp_path: Path) -> None:
    instance = sb.Instance(sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, noise=Binary(0.0, 1.0)))
    with (
        sb.Study.create("large", instance, storage=f"sqlite:///{tmp_path}/studies.db") as study,
        pytest.raises(sb.InvalidInput, match='trials of "0" must be at most 1,000,000,000,000,000, got 10000'),
    ):
        study.tell_counts({"0": (10**390, 1)}, "May")


def test_nothing_is_too_large_where_the_memory_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: 1000)
    with pytest.raises(sb.InvalidInput, match="GB of memory"):
        check_memory("this", 1e12, "use less")
    monkeypatch.delattr(os, "sysconf")
    check_memory("this", 1e12, "use less")
