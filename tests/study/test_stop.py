"""Studies that are stopped by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spectralbai as sb
from spectralbai.study import Definition, changes, export_study, import_study, replay
from spectralbai.study.standing import HEAD
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
        whole = changes.handed_out

        def stopped_meanwhile(*arguments: object) -> tuple[int, ...]:
            monkeypatch.setattr(changes, "handed_out", whole)
            found = whole(*arguments)  # type: ignore[arg-type]
            stops.append(arguments)
            return found

        stops: list[object] = []
        monkeypatch.setattr(changes, "handed_out", stopped_meanwhile)
        advance: Callable[..., object] = replay.advance

        def stop_first(*arguments: Any) -> object:
            if stops:
                stops.clear()
                assert other.stop() is True
            return advance(*arguments)

        monkeypatch.setattr(changes, "advance", stop_first)
        with pytest.raises(sb.Conflict, match="has ended, and nothing could be tried"):
            study.join(SIX)
        assert other.status().state == "ended"


def test_the_limits_stand_where_a_change_is_noticed() -> None:
    definition = Definition(
        SLOW, 1e-300, "min", "betting", 10**9, 2000000000.1234567, -1.2345678901234567e-70, by_hand=True
    )
    assert json.dumps(definition.as_dict()).index('"instance"') < HEAD
