"""Tickets that are not told within a window count as an outcome; and studies that are told only of clicks."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import pytest

import spectralbai as sb
from spectralbai.cli.study.lifecycle import _seconds
from spectralbai.study import export_study, import_study
from spectralbai.study.storage import Storage
from tests.study.storages import ON_SQLITE

PAGES = sb.Instance(
    sb.Problem.bounded(sb.Graph.from_edges(2, []), math.inf, binary=True, tolerance=0.01), labels=["old", "new"]
)


class Clock:
    """A clock that is set by hand."""

    now = 1e9

    def __call__(self) -> float:
        return self.now


@ON_SQLITE
def test_a_ticket_not_told_within_the_window_counts_once_as_that_outcome(storage: str) -> None:
    clock = Clock()
    with closing(Storage(storage, create=True, clock=clock)) as place:
        study = sb.Study.create("buys", PAGES, 0.05, place, lapse_as=0, window=3 * 86400.0)
        tickets = [*study.ask(4), *study.ask(4)]
        n = len(tickets)
        assert tickets[0].expires == clock.now + 3 * 86400, "the window takes the place of the lease"
        assert study.tell(tickets[0], 1)
        clock.now += 3 * 86400 - 1
        assert study.status().results == 1
        clock.now += 1
        assert study.status().results == n > 2 and study.status().lapsed == 0
        assert [each.outcome for each in study.recent()] == [0.0] * (n - 1) + [1.0]
        with pytest.raises(sb.SpectralBAIError, match="or lapsed.*study correct"):
            study.tell(tickets[1], 1)
        assert not study.tell(tickets[1], 0)
        before = study.revision
        assert study.status().results == n and study.revision == before, "they lapse once"
        more = study.ask(2)
        clock.now += 4 * 86400
        assert study.ask(1)[0].id not in [each.id for each in more] and study.status().results == n + len(more)
        with import_study(export_study(study), "copy", place) as copy:
            assert copy.definition.window == 3 * 86400 and copy.status().results == n + len(more)


@ON_SQLITE
def test_a_study_that_is_told_only_of_clicks_is_warned_about(storage: str) -> None:
    clock = Clock()
    with closing(Storage(storage, create=True, clock=clock)) as place:
        study = sb.Study.create("clicks", PAGES, 0.05, place)
        for _ in range(6):
            study.tell(study.ask(4)[0], 1.0)
        assert not any("only clicks" in each for each in study.status().advice)
        clock.now += 7200
        assert any("perhaps only clicks are told" in each for each in study.status().advice)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"lapse_as": 0}, "go together"),
        ({"window": 5.0}, "go together"),
        ({"lapse_as": 0.5, "window": 5.0}, "must be 0 or 1"),
        ({"lapse_as": 0, "window": -1.0}, "`window` must be a positive number of seconds"),
    ],
)
def test_lapses_that_cannot_be_are_refused(chosen: dict[str, float], message: str, tmp_path: Path) -> None:
    with pytest.raises(sb.InvalidInput, match=message):
        sb.Study.create("refused", PAGES, 0.05, f"sqlite:///{tmp_path}/s.db", **chosen)  # type: ignore[arg-type]


def test_windows_are_times_in_words() -> None:
    assert [_seconds(each) for each in ("90", "30m", "12h", "3d", "5s")] == [90, 1800, 43200, 259200, 5]
    for wrong in ("", "d", "3 days", "x"):
        with pytest.raises(sb.InvalidInput, match="--window must be a time such as"):
            _seconds(wrong)
