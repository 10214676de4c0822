"""Studies where every statement may fail, disks are full, and others are faster."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event

import spectralbai as sb
from spectralbai.errors import StorageError
from spectralbai.study.storage import Storage
from spectralbai.study.upkeep import Upkeep
from tests.study.storages import ON_SQLITE
from tests.study.test_durable_blocks import check_replay
from tests.study.test_join import NEW, OLD
from tests.study.test_withdraw import INSTANCE, MU

LATER = 3601.0
"""Seconds after which every claim and every lease of the usual length has run out."""


class Lost(Exception):
    """The worker is gone."""


@contextmanager
def lost_at(study: sb.Study, number: int) -> Iterator[None]:
    """Fails at the statement or commit with this number, counted from 0."""
    left = [number]

    def strike(*_: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Lost

    engine = study._upkeep.storage._engine
    for name in ("before_cursor_execute", "commit"):
        event.listen(engine, name, strike)
    try:
        yield
    finally:
        for name in ("before_cursor_execute", "commit"):
            event.remove(engine, name, strike)


def test_a_worker_lost_at_any_statement_of_any_call_leaves_a_study_that_goes_on(storage: str) -> None:
    """Each call is tried with a fault at its first statement, its second, and so on, until it comes through; an hour
    passes between. What was lost in this way must leave nothing that the records do not say."""
    now = [1e9]
    place = Storage(storage, create=True, clock=lambda: now[0])
    rng = np.random.default_rng(0)
    struck = 0

    def outcome(ticket: sb.study.Ticket) -> float:
        return float(MU[ticket.arm % MU.size] + 0.5 * rng.standard_normal())

    def call(study: sb.Study, work: Callable[[], Any]) -> Any:
        nonlocal struck
        for number in range(1000):
            now[0] += LATER
            try:
                with lost_at(study, number):
                    return work()
            except Lost:
                struck += 1
        raise AssertionError("a call of a thousand statements")

    def trial(study: sb.Study) -> None:
        (ticket,) = call(study, lambda: study.ask(1, lease=1e9))
        value = outcome(ticket)
        call(study, lambda: study.tell(ticket, value))

    with sb.Study.create("lost", INSTANCE, 1e-9, place) as study:
        for _ in range(12):
            trial(study)
        held = [ticket for _ in range(4) for ticket in call(study, lambda: study.ask(3, lease=1e9))]  # blocks ahead
        assert len({ticket.block for ticket in held}) > 1
        call(study, lambda: study.abandon(held[0]))
        told = [(ticket, outcome(ticket)) for ticket in held[1:]]
        call(study, lambda: study.tell_many(told))
        call(study, lambda: study.tell(held[0], None))
        call(study, lambda: study.add(["a", "b"], [0.5, 0.25], "before"))
        assert call(study, lambda: study.withdraw("d")) is True
        trial(study)
        assert call(study, study.stop) is True
        state = study.snapshot().state
        assert state.samples == 12 + len(told) + 3 and state.withdrawn == (3,)
        assert study.status().state == "ended"
        check_replay(study)
    with sb.Study.create("more", OLD, 1e-9, place) as study:
        for _ in range(5):
            trial(study)
        call(study, lambda: study.join(NEW))
        trial(study)
        assert study.definition.instance.labels == NEW.labels
        check_replay(study)
    assert struck > 200
    place.close()


@ON_SQLITE
@pytest.mark.parametrize(
    "change", [lambda study: study.withdraw("b"), lambda study: study.join(NEW)], ids=["withdraw", "join"]
)
def test_a_change_comes_through_while_others_keep_telling(
    change: Callable[[sb.Study], object], storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result that others tell while the new state is computed comes after the change; it need not begin again."""
    with sb.Study.create("busy", OLD, 0.05, storage) as study:
        for _ in range(3):
            study.tell_many([(ticket, float(ticket.arm)) for ticket in study.ask(10)])
        tickets = study.ask(3)
        computed = []
        honest = Upkeep.up_to_date

        def slow(upkeep: Upkeep) -> Any:
            computed.append(True)
            current = honest(upkeep)
            study.tell(tickets.pop(), 0.5)
            return current

        monkeypatch.setattr(Upkeep, "up_to_date", slow)
        assert change(study)
        assert len(computed) == 1
        check_replay(study)
        study.tell_many([(ticket, 0.5) for ticket in (*tickets, *study.ask(20))])
        check_replay(study)


def test_a_full_disk_is_said_to_be_and_nothing_told_before_is_lost(tmp_path: Path) -> None:
    with sb.Study.create("full", INSTANCE, 1e-9, f"sqlite:///{tmp_path / 's.db'}") as study:
        for _ in range(5):
            study.tell_many([(ticket, 0.5) for ticket in study.ask(10)])
        told, tickets = study.records().observations, study.ask(3)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "s.db-wal").stat().st_size, limits[1]))
        try:
            with pytest.raises(StorageError, match="s.db: the disk cannot be written to or read; is it full"):
                study.tell_many([(ticket, 0.5) for ticket in tickets])
            assert study.records().observations == told
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert study.tell_many([(ticket, 0.5) for ticket in tickets]) == 3
        check_replay(study)


@ON_SQLITE
def test_a_trial_that_holds_up_many_results_is_named_with_what_to_do(storage: str) -> None:
    with sb.Study.create("held up", INSTANCE, 1e-9, storage) as study:
        (lost, *others) = study.ask(10)
        study.tell_many([(ticket, 0.5) for ticket in others])
        while study.status().sealed < 50:
            assert study.status().advice == ()
            study.tell_many([(ticket, 0.5) for ticket in study.ask(10)])
        status = study.status()
        assert status.sealed == sum(each.block != lost.block for each in study.records().tickets)
        (advice,) = status.advice
        assert advice.startswith(
            f"{status.sealed} results wait for 1 trial that is still out, such as ticket {lost.id} of"
        )
        assert advice.endswith(f"spectralbai study abandon 'held up' {lost.id}")
        study.abandon(lost)
        (again,) = study.ask(1)
        assert (again.block, again.arm) == (lost.block, lost.arm)
        study.tell(again, 0.5)
        assert (study.status().sealed, study.status().advice) == (0, ())
