"""A status that does not wait, and one update of the state at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import spectralbai as sb
from spectralbai.study import upkeep
from tests.study.contract import SCORES


class Held:
    """A function that waits before it does what it replaces, and counts its calls."""

    def __init__(self, whole: Callable[..., Any]) -> None:
        self.whole, self.calls = whole, 0
        self.begun, self.released = threading.Event(), threading.Event()

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        self.begun.set()
        assert self.released.wait(30)
        return self.whole(*arguments)


@pytest.fixture
def studies(tmp_path: Path) -> Iterator[sb.Studies]:
    with sb.Studies(f"sqlite:///{tmp_path / 'studies.db'}") as studies:
        yield studies


def told(study: sb.Study, n: int) -> None:
    for _ in range(n):
        study.tell_many([(each, 0.1 * each.arm) for each in study.ask(5)])


def test_a_status_leaves_out_what_is_not_computed_in_time(studies: sb.Studies, monkeypatch: pytest.MonkeyPatch) -> None:
    with studies.create("slow", SCORES) as study:
        told(study, 3)
        whole = study.status()
        told(study, 1)
        remaining = Held(sb.SpectralRace.remaining)
        monkeypatch.setattr(sb.SpectralRace, "remaining", lambda *arguments: remaining(*arguments))
        early = study.status(patience=0.05)
        assert early.computing and early.remaining is None
        assert "being computed" in early.answer and early.best == whole.best
        assert remaining.begun.wait(30)
        assert study.status(patience=0.0).arms[0].low is not None  # intervals are there before the forecast
        remaining.released.set()
        late = study.status()
        assert not late.computing and "being computed" not in late.answer
        assert (remaining.calls, study.status(patience=0.0)) == (1, study.status())
        with pytest.raises(sb.InvalidInput, match="`patience` must be a number of seconds"):
            study.status(patience=-1.0)


def test_without_estimates_a_status_says_that_they_are_computed(
    studies: sb.Studies, monkeypatch: pytest.MonkeyPatch
) -> None:
    with studies.create("slow", SCORES) as study:
        told(study, 2)
        estimates = Held(sb.SpectralRace.estimates)
        monkeypatch.setattr(sb.SpectralRace, "estimates", lambda *arguments: estimates(*arguments))
        early = study.status(patience=0.0)
        assert [arm.estimate for arm in early.arms] == [None] * 5 and early.results == study.status(
            patience=0.0
        ).results
        assert early.about_intervals == "The intervals are being computed." and early.agreement == "being computed"
        estimates.released.set()
        assert study.status().has_intervals
        assert estimates.calls == 1


def test_threads_of_one_process_leave_an_update_that_outlasts_its_claim_to_who_does_it(
    studies: sb.Studies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "CLAIM", 0.0)
    study = studies.create("slow", SCORES)
    first, *others = study.ask(3)
    study.tell_many([(each, 0.5) for each in others])
    update = Held(upkeep.Upkeep._advance)
    monkeypatch.setattr(upkeep.Upkeep, "_advance", lambda *arguments: update(*arguments))
    teller = threading.Thread(target=study.tell, args=(first, 0.5))
    teller.start()
    assert update.begun.wait(30)
    study.catch_up()
    early = study.status(patience=0.0)
    assert (early.results, early.best, update.calls) == (3, None, 1)
    update.released.set()
    teller.join(30)
    assert (study.status().best is None, update.calls) == (False, 1)
