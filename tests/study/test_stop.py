"""Studies that are stopped by hand."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest

import spectralbai as sb
from spectralbai.journal.fold import Fold
from spectralbai.study import export_study, import_study
from tests.study.contract import LABELS, SCORES, SIX, SLOW, drive
from tests.study.storages import ON_SQLITE


def test_who_has_it_open_elsewhere_hands_out_nothing_more(storage: str) -> None:
    with sb.Study.create("s", SLOW, 0.05, storage) as study, sb.Study.open("s", storage) as other:
        drive(study, 10)
        assert other.ask()
        assert study.stop() is True
        assert other.ask() == []
        assert other.status().state == "ended"
        assert other.stop() is False


@ON_SQLITE
def test_an_export_of_it_is_stopped_too(storage: str, tmp_path: Path) -> None:
    with sb.Study.create("s", SLOW, 0.05, storage) as study:
        drive(study, 10)
        study.stop()
        document = json.loads(json.dumps(export_study(study)))
        before = study.snapshot().state.as_dict()
    with import_study(document, "copy", f"sqlite:///{tmp_path / 'copy.db'}") as copy:
        assert copy.snapshot().state.as_dict() == before
        assert (copy.status().state, copy.ask()) == ("ended", [])
        assert copy.status().by_hand and copy.status().answer.startswith("Stopped by hand on ")


@ON_SQLITE
def test_results_of_tickets_that_are_out_may_still_decide(storage: str) -> None:
    with sb.Study.create("s", SCORES, 0.05, storage) as study:
        drive(study, 5)
        while study.status().state == "running" and (tickets := study.ask(20)):
            if len(study.pending()) > 60:
                break
        assert study.stop() is True
        study.tell_many((ticket, (0.9, 0.5, 0.51, 0.2, 0.2)[ticket.arm]) for ticket in study.pending())
        assert (study.status().state, study.status().best) == ("decided", "plain")
        assert tickets


def test_options_that_joined_before_stay(storage: str) -> None:
    with sb.Study.create("s", SCORES, 0.05, storage) as study, sb.Study.open("s", storage) as other:
        study.join(SIX)
        assert other.stop() is True
        assert study.definition.history[0].instance.labels == LABELS
        assert study.ask() == []
        assert (study.status().state, len(study.status().arms)) == ("ended", 6)


def test_a_stop_during_a_join_is_not_lost(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with sb.Study.create("s", SCORES, 0.05, storage) as study, sb.Study.open("s", storage) as other:
        join = Fold.join

        def stop_first(fold: Fold, blocks: Collection[int]) -> None:
            monkeypatch.setattr(Fold, "join", join)
            assert other.stop() is True
            join(fold, blocks)

        monkeypatch.setattr(Fold, "join", stop_first)
        with pytest.raises(sb.Conflict, match="has ended, and nothing could be tried"):
            study.join(SIX)
        assert other.status().state == "ended"


def test_a_clock_that_goes_back_does_not_undo_it(storage: str) -> None:
    now = [2e9]
    with sb.Studies(storage, clock=lambda: now[0]) as studies:
        study = studies.create("s", SLOW, 0.05, budget=10**14)
        drive(study, 5)
        other = studies.open("s")
        assert study.stop() is True
        now[0] = 1e9
        assert study.status().state == other.status().state == "ended"
        assert other.ask() == [] and [each.state for each in studies.list()] == ["ended"]
