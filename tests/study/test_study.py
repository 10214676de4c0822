"""The contract of a study, on both kinds of storage."""

from __future__ import annotations

import json
import math
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.journal.events import BlockClosed
from spectralbai.journal.replay import replay
from spectralbai.policy import State
from spectralbai.study import Ticket, ledger, list_studies
from spectralbai.study import upkeep as module
from spectralbai.tape import Tape
from tests.study.storages import ON_SQLITE

GRAPH = sb.Graph.from_edges(5, [(1, 2), (3, 4)])
MU = np.array([0.9, 0.5, 0.51, 0.2, 0.2])
LABELS = ("plain", "warm", "warmer", "cold", "colder")
INSTANCE = sb.Instance(sb.Problem(GRAPH, R=0.01, sigma=0.5), MU, LABELS)
CLICKS = sb.Instance(sb.Problem.bounded(GRAPH, R=0.01), None, LABELS)


def drive(study: sb.Study, seed: int, n: int = 1, sign: float = 1.0, most: int = 10_000) -> int:
    """Asks for n at a time and tells, with the outcomes that `simulate.run` draws; returns the number of results."""
    tape = Tape(INSTANCE.problem.noise.draws(MU, None), MU.size, seed)
    told = 0
    while told < most and (tickets := study.ask(n)):
        for ticket in tickets:
            study.tell(ticket, sign * tape.read(np.array([ticket.arm])).item())
            told += 1
    return told


def fill(study: sb.Study, seed: int, sign: float = 1.0, most: int = 10_000) -> int:
    """Does as `drive`, with up to 20 results told together: for tests of what is said of results, not of telling."""
    rng = np.random.default_rng(seed)
    told = 0
    while told < most and (tickets := study.ask(min(20, most - told))):
        study.tell_many((each, sign * float(MU[each.arm] + 0.5 * rng.standard_normal())) for each in tickets)
        told += len(tickets)
    return told


def fold_of(study: sb.Study) -> State:
    """Returns the state that follows from the log of a study."""
    folded = replay(study.log())
    folded.feed()
    return folded.state


@ON_SQLITE
def test_a_study_stops_exactly_when_a_simulated_run_does(storage: str) -> None:
    seed = 1
    with sb.Study.create("honest", INSTANCE, 0.05, storage) as study:
        run = sb.simulate.run(study.definition.policy, MU, seed)
        assert drive(study, seed) == run.tau
        status = study.status()
    assert (status.state, status.best, status.verdict.stopped_at) == ("decided", LABELS[run.arm], run.tau)
    assert [arm.results for arm in status.arms] == run.counts.tolist()


@ON_SQLITE
def test_a_study_of_the_least_mean_mirrors_one_of_the_largest(storage: str) -> None:
    with (
        sb.Study.create("up", INSTANCE, 0.05, storage) as up,
        sb.Study.create("down", INSTANCE, 0.05, storage, goal="min") as down,
    ):
        assert fill(up, 3) == fill(down, 3, sign=-1.0)
        assert up.snapshot().state.as_dict() == down.snapshot().state.as_dict()
        high, low = up.status(), down.status()
        assert (low.best, low.state) == (high.best, "decided")
        for a, b in zip(high.arms, low.arms, strict=True):
            assert (a.estimate, a.low, a.high) == (-b.estimate, -b.high, -b.low)  # type: ignore[operator]  # all are known


def test_the_range_of_outcomes_is_the_users_whatever_the_goal(storage: str) -> None:
    with sb.Study.create("clicks", CLICKS, 0.05, storage, goal="min") as study:
        ticket = study.ask()[0]
        with pytest.raises(sb.InvalidInput, match=r"`outcome` must lie in \[0, 1\], got -0.5; correct it"):
            study.tell(ticket, -0.5)
        study.tell(ticket, 1.0)
        study.tell(study.ask()[0], 0.0)
        assert sum(arm.results for arm in study.status().arms) == 2


@ON_SQLITE
def test_opened_again_it_goes_on_with_the_same_state(storage: str) -> None:
    with sb.Study.create("again", INSTANCE, 0.05, storage) as study:
        drive(study, 4, most=150)  # beyond the results kept beside the snapshot
        before = study.snapshot().state.as_dict()
    with sb.Study.open("again", storage) as study:
        assert study.snapshot().state.as_dict() == before
        assert before["data"]["counts"]["array"] == [arm.results for arm in study.status().arms]
        records = study.records().observations
        policy = study.definition.policy
    replay = policy.tell(policy.init(), [each.arm for each in records], [each.outcome for each in records])
    assert replay.as_dict() == before


def test_a_result_is_counted_once_however_often_it_is_told(storage: str) -> None:
    with sb.Study.create("once", INSTANCE, 0.05, storage) as study:
        ticket = study.ask()[0]
        assert study.tell(ticket, 0.25) is True
        assert study.tell(ticket, 0.25) is False
        assert study.tell(ticket.id, 0.25) is False
        with pytest.raises(
            sb.InvalidInput, match=f'"{ticket.id}" has the outcome 0.25 already, got 0.5; results are never changed'
        ):
            study.tell(ticket, 0.5)
        assert [each.outcome for each in study.records().observations] == [0.25]


def test_many_results_are_told_all_or_none(storage: str) -> None:
    with sb.Study.create("all", INSTANCE, 0.05, storage) as study:
        a, b = study.ask(2)
        wrong: list[list[tuple[Ticket | str, float]]] = [
            [(a, 0.1), ("unknown", 0.2)],
            [(a, 0.1), (a, 0.2)],
            [(a, 0.1), (b, math.nan)],
        ]
        for bad in wrong:
            with pytest.raises(sb.InvalidInput):
                study.tell_many(bad)
            assert study.records().observations == ()
        assert study.tell_many([(a, 0.1), (b, 0.2), (a, 0.1)]) == 2
        assert study.tell_many([]) == 0
        for nonsense in (None, [5], [("a",)]):
            with pytest.raises(sb.InvalidInput, match="`results` must be pairs of a ticket and an outcome"):
                study.tell_many(nonsense)  # type: ignore[arg-type]
        assert [each.ticket for each in study.records().observations] == [a.id, b.id]


@ON_SQLITE
def test_tickets_that_others_hold_are_taken_into_account(storage: str) -> None:
    """Three asks of one are one ask of three, and all arms of a batch told late are as good as told one by one."""
    with (
        sb.Study.create("one", INSTANCE, 0.05, storage) as one,
        sb.Study.create("three", INSTANCE, 0.05, storage) as three,
    ):
        for study in (one, three):
            fill(study, 0, most=40)
        apart = [one.ask(worker=str(worker))[0].arm for worker in range(6)]
        assert apart == [ticket.arm for ticket in (*three.ask(6), *three.ask(6))][:6]
        assert len(set(apart)) > 1
        assert [ticket.worker for ticket in one.status().pending] == ["0", "1", "2", "3", "4", "5"]


def test_an_expired_ticket_is_not_pending_and_its_late_result_is_welcome_once(storage: str) -> None:
    now = time.time()
    with sb.Studies(storage, clock=lambda: now) as studies:
        study = studies.create("late", INSTANCE, 0.05)
        ticket = study.ask(lease=600)[0]
        assert [each.id for each in study.status().pending] == [ticket.id]
        now += 601
        assert study.status().pending == ()
        assert study.ask()[0].arm == ticket.arm  # its turn comes again
        assert study.tell(ticket, 0.3) is True
        assert study.tell(ticket, 0.3) is False
        assert [each.ticket for each in study.records().observations] == [ticket.id]


def test_a_ticket_given_back_is_not_pending(storage: str) -> None:
    with sb.Study.create("back", INSTANCE, 0.05, storage) as study:
        a, b = study.ask(2)
        study.abandon(a)
        study.abandon(a)  # once more does no harm
        assert [each.id for each in study.status().pending] == [b.id]
        assert study.ask()[0].arm == a.arm
        study.tell(b, 0.1)
        with pytest.raises(sb.InvalidInput, match="has its result already and cannot be given back"):
            study.abandon(b)
        assert study.tell(a, 0.2) is True  # a result is a result


@ON_SQLITE
def test_a_decided_study_gives_no_tickets_still_takes_results_and_never_changes_its_mind(storage: str) -> None:
    with sb.Study.create("decided", INSTANCE, 0.05, storage) as study:
        spare = study.ask(3, lease=1e-9)
        drive(study, 5)
        assert study.ask(10) == []
        before = study.status()
        study.tell_many((ticket, 0.0) for ticket in spare)
        study.add(["plain"] * 200, [-3.0] * 200, "doubtful")
        after = study.status()
        assert after.results == before.results + 203
        assert (after.state, after.best, after.verdict.stopped_at) == (
            before.state,
            before.best,
            before.verdict.stopped_at,
        )
        assert {arm.omega for arm in after.arms} == {None}, "no trials are to come"


@ON_SQLITE
def test_nothing_is_claimed_of_a_race_whose_data_contradict_R(storage: str) -> None:
    mu, rng = {"warm": 3.0, "warmer": -3.0, "plain": 0.9, "cold": 0.2, "colder": 0.2}, np.random.default_rng(0)
    with sb.Study.create("wrong R", INSTANCE, 0.05, storage) as study:
        while tickets := study.ask(5):
            study.tell_many((each, mu[each.label] + 0.5 * rng.standard_normal()) for each in tickets)
        status, page = study.status(), study.report().as_html()
    assert (status.state, status.consistent, status.best) == ("inconsistent", False, None)
    assert (status.candidates, status.evidence) == (None, "nothing is claimed")
    for arm in status.arms:
        assert (arm.low, arm.high, arm.omega, arm.out_at, arm.lacking) == (None,) * 5 and status.account(arm) == "-"
    assert "may be best" not in page and "But the data contradict R, and nothing is claimed." in page


def test_past_results_need_an_origin_and_count_once(storage: str) -> None:
    with sb.Study.create("past", INSTANCE, 0.05, storage) as study:
        assert study.add(["plain", "cold"], [0.8, 0.1], "pilot of May") == 2
        assert study.add(["plain", "cold"], [0.8, 0.1], "pilot of May") == 0
        for labels, outcomes in ((["plain", "cold"], [0.8, 0.2]), (["plain"], [0.8]), (["cold", "plain"], [0.8, 0.1])):
            with pytest.raises(
                sb.InvalidInput, match='results of the origin "pilot of May" are recorded already, and differ'
            ):
                study.add(labels, outcomes, "pilot of May")
        refused: tuple[tuple[Any, Any, str, str], ...] = (
            (["plain"], [0.8], " ", "`origin` must be one line"),
            (["plane"], [0.8], "x", 'did you mean "plain"?'),
            (["plain"], [math.inf], "x", "`outcome` must be a finite number"),
            (["plain", "cold"], [0.8], "x", "two lists of one length"),
            (None, None, "x", "two lists of one length"),
            (["plain"], 0.5, "x", "two lists of one length"),
            ([], [], "x", "two lists of one length"),
        )
        for labels, outcomes, origin, message in refused:
            with pytest.raises(sb.InvalidInput, match=message.replace("?", r"\?")):
                study.add(labels, outcomes, origin)
        assert [each.origin for each in study.records().observations] == ["pilot of May"] * 2


def test_results_wait_while_a_worker_computes(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that claims the computation and dies holds the others up for the length of its claim, and no longer."""
    with sb.Study.create("claimed", INSTANCE, 0.05, storage) as study:
        monkeypatch.setattr(study._upkeep, "_update", lambda *_: None)  # claims, and dies
        monkeypatch.setattr(module, "CLAIM", 30.0)
        tickets = study.ask(8)
        ahead = study.ask(2)
        study.tell_many((ticket, 0.4) for ticket in tickets)
        with sb.Study.open("claimed", storage) as other:
            status = other.status()  # it keeps to the claim
            assert (status.results, status.unprocessed) == (len(tickets), len(tickets))
            assert other.tell(ahead[0], 0.3), "others go on telling"
            monkeypatch.setattr(module, "CLAIM", 0.0)  # as if it had run out
            status = other.status()  # any reader brings the state up to date once the claim has run out
            assert (status.results, status.unprocessed) == (len(tickets) + 1, 0)
            state = fold_of(other)
            assert other.snapshot().state.as_dict() == state.as_dict()


def test_a_claim_made_with_a_clock_that_is_ahead_holds_nobody_up(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with sb.Studies(storage, clock=lambda: time.time() + 86_400) as ahead:
        study = ahead.create("clock", INSTANCE, 0.05)
        ticket = study.ask()[0]
        monkeypatch.setattr(study._upkeep, "_update", lambda *_: None)
        study.tell(ticket, 0.3)
    with sb.Study.open("clock", storage) as other:
        assert other.status().unprocessed == 0


@ON_SQLITE
def test_the_state_is_kept_up_to_date_between_closings_too(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has come since the last closing is read by every ask, and must stay short."""
    monkeypatch.setattr(ledger, "TAIL", 3)
    with sb.Study.create("tail", INSTANCE, 1e-9, storage) as study:
        drive(study, 1, most=8)
        held, *tickets = [ticket for _ in range(6) for ticket in study.ask(100)]
        verdicts = study.snapshot().verdicts
        for ticket in tickets:
            study.tell(ticket, 0.4)
            with study._upkeep.reading() as rows:
                standing, folded = study._upkeep.read(rows)
            assert folded.state is not None and standing.results - folded.state.samples < 3
        assert study.snapshot().verdicts == verdicts, "no block closed"
        study.tell(held, 0.4)
        assert len(study.snapshot().verdicts) > len(verdicts)
        assert study.snapshot().state.as_dict() == fold_of(study).as_dict()


def test_two_workers_at_one_closing_keep_one_state(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLAIM", -1.0)  # claims that nobody respects: everyone computes
    with (
        sb.Study.create("both", INSTANCE, 0.05, storage) as study,
        sb.Study.open("both", storage) as other,
    ):
        tickets = study.ask(100)
        advance = study.definition.policy.advance
        ahead: list[int] = []

        def slow(*arguments: object) -> object:
            if not ahead:  # while this one computes, the other does the same, and is faster
                ahead.append(1)
                other.catch_up()
            return advance(*arguments)  # type: ignore[arg-type]

        object.__setattr__(study.definition.policy, "advance", slow)
        study.tell_many((ticket, 0.9) for ticket in tickets)
        assert ahead
        object.__delattr__(study.definition.policy, "advance")
        assert study.snapshot().state.as_dict() == fold_of(study).as_dict()
        closed = [entry.event.block for entry in study.log() if isinstance(entry.event, BlockClosed)]
        assert closed == [0]


@ON_SQLITE
def test_what_the_rule_said_is_kept_at_every_closing(storage: str) -> None:
    with sb.Study.create("closings", INSTANCE, 0.05, storage) as study:
        tau = drive(study, 6)
        verdicts, state = study.snapshot().verdicts, study.snapshot().state
        assert verdicts[-1] == study.definition.policy.verdict(state)
    assert verdicts[-1].samples == tau and [each.samples for each in verdicts] == sorted(
        {each.samples for each in verdicts}
    )
    with sb.Study.create("at once", INSTANCE, 0.05, storage) as study:
        fill(study, 6)
        assert [each.stopped_at for each in study.snapshot().verdicts][:-1] == [None] * (len(study.verdicts()) - 1)


def test_studies_of_one_storage_are_apart(storage: str) -> None:
    with (
        sb.Study.create("a", INSTANCE, 0.05, storage) as a,
        sb.Study.create("b", CLICKS, 0.1, storage, goal="min") as b,
    ):
        ticket = a.ask()[0]
        with pytest.raises(sb.InvalidInput, match=f'"{ticket.id}" is no ticket of the study "b"'):
            b.tell(ticket, 0.5)
        with pytest.raises(sb.InvalidInput, match="is no ticket of the study"):
            b.abandon(ticket)
        a.tell(ticket, 0.5)
        assert [each.state for each in list_studies(storage)] == ["running", "running"]
        assert [(each.name, each.results, each.goal, each.delta) for each in list_studies(storage)] == [
            ("a", 1, "max", 0.05),
            ("b", 0, "min", 0.1),
        ]


@pytest.mark.parametrize(
    "name",
    [
        "Robert'); DROP TABLE spectralbai_studies;--",
        'quotes " and \\ and %s and :name',
        "<script>alert(1)</script>",
        "日本",
        "x" * 100,
    ],
)
def test_names_and_labels_are_only_ever_data(storage: str, name: str) -> None:
    labels = [name, f"{name}2", "'; DELETE FROM spectralbai_observations", ":id", "?"]
    with sb.Study.create(name, sb.Instance(INSTANCE.problem, None, labels), 0.05, storage) as study:
        ticket = study.ask(worker=name)[0]
        study.tell(ticket, 0.1)
        study.add(labels, [0.0] * 5, origin=name)
        with pytest.raises(sb.InvalidInput, match="is no ticket"):
            study.tell("' OR 1=1 --", 0.1)
    with sb.Study.open(name, storage) as study:
        assert [arm.label for arm in study.status().arms] == labels
        assert len(study.records().observations) == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "`name` must be one line of 1 to 100 printable characters"),
        ({"name": "two\nlines"}, "`name` must be one line"),
        ({"name": "x" * 101}, "`name` must be one line"),
        ({"name": "\x00"}, "`name` must be one line"),
        ({"name": 7}, "`name` must be one line"),
        ({"instance": "file.json"}, "`instance` must be a spectralbai.Instance, got str"),
        ({"delta": 1.5}, "`delta` must be a risk between 0 and 1"),
        ({"goal": "largest"}, "`goal` must be max or min, got 'largest'"),
        ({"instance": sb.Instance(sb.Problem(GRAPH, R=0.0))}, "`R` must be positive"),
        (
            {"instance": sb.Instance(INSTANCE.problem, None, ["two\nlines", "b", "c", "d", "e"])},
            "a label must be one line without blanks",
        ),
        (
            {"instance": sb.Instance(INSTANCE.problem, None, [" a", "b", "c", "d", "e"])},
            "a label must be one line without blanks",
        ),
        ({"instance": sb.Instance(INSTANCE.problem, None, ["\ud800", "b", "c", "d", "e"])}, "a label must be one line"),
    ],
)
def test_a_study_that_cannot_be_is_refused_before_anything_is_written(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    arguments = {
        "name": "x",
        "instance": INSTANCE,
        "delta": 0.05,
        "storage": f"sqlite:///{tmp_path / 'new.db'}",
    } | change
    with pytest.raises(sb.InvalidInput, match=re.escape(message)):
        sb.Study.create(**arguments)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@ON_SQLITE
def test_bad_arguments_are_refused_in_a_sentence(storage: str) -> None:
    with sb.Study.create("bad", INSTANCE, 0.05, storage) as study:
        for n, message in ((0, "at least 1"), (1.5, "whole number"), (10**6, "at most 10000")):
            with pytest.raises(sb.InvalidInput, match=message):
                study.ask(n)  # type: ignore[arg-type]
        for lease in (0.0, -1.0, math.inf, math.nan, "1h"):
            with pytest.raises(sb.InvalidInput, match="`lease` must be a positive number of seconds"):
                study.ask(lease=lease)  # type: ignore[arg-type]
        with pytest.raises(sb.InvalidInput, match="`worker` must be one line"):
            study.ask(worker="a\nb")
        for ticket in (7, None, "x" * 101, "a\x00b"):
            with pytest.raises(sb.InvalidInput, match="`ticket` must be a ticket that ask gave"):
                study.tell(ticket, 0.1)  # type: ignore[arg-type]
        for outcome in ("0.3", True, math.nan, -math.inf, 1e200, [0.1]):
            with pytest.raises(sb.InvalidInput, match="`outcome` must be"):
                study.tell(study.ask()[0], outcome)  # type: ignore[arg-type]
        assert study.records().observations == ()
    with pytest.raises(sb.InvalidInput, match='there is a study "bad" already; choose another name, or go on with it'):
        sb.Study.create("bad", INSTANCE, 0.05, storage)
    with pytest.raises(sb.InvalidInput, match='holds no study "bat"; did you mean "bad"?'):
        sb.Study.open("bat", storage)


def test_the_state_on_disk_is_plain_json_with_a_version(tmp_path: Path) -> None:
    import sqlite3

    with sb.Study.create("plain", INSTANCE, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        drive(study, 7, most=20)
    with sqlite3.connect(tmp_path / "s.db") as connection:
        (state,) = connection.execute("SELECT state FROM spectralbai_states").fetchone()
        (body,) = connection.execute("SELECT body FROM spectralbai_events WHERE kind = 'created'").fetchone()
    assert json.loads(state)["format"].startswith("spectralbai-state/")
    assert json.loads(body)["study"]["format"] == "spectralbai-study/4"
