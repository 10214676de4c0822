"""Budgets, ends by date, and trials that fail."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.journal.definition import Goal
from spectralbai.study import Failure, export_study, import_study, list_studies
from spectralbai.text.wording import as_time, in_full
from tests.study.storages import ON_SQLITE
from tests.study.test_durable_blocks import check_replay, outcome
from tests.study.test_study import INSTANCE, LABELS


@ON_SQLITE
def test_a_budget_is_never_exceeded_and_ends_the_study_with_an_honest_answer(storage: str) -> None:
    rng = np.random.default_rng(0)
    with sb.Study.create("short", INSTANCE, 1e-6, storage, budget=40) as study:
        held = study.ask(15)
        while tickets := study.ask(7):
            held += tickets
        assert len(held) == 40, "no more than the budget is handed out"
        assert study.ask(1) == [] and study.status().state == "running"
        study.abandon(held.pop())
        (again,) = study.ask(5)
        held.append(again)
        study.tell_many((ticket, outcome(ticket, rng)) for ticket in held)
        status = study.status()
        assert (status.state, status.results, status.best is not None) == ("ended", 40, True)
        assert study.ask(1) == []
        assert "Ended with the budget, after 40 results, without a decision." in status.answer
        assert f'Recommended: "{status.best}"' in status.answer
        assert (
            status.candidates is not None and f"{len(status.candidates)} of 5 options may be the best" in status.answer
        )
        runner_up = next(arm for arm in status.ranked if arm.label != status.best)
        assert f'that of "{runner_up.label}", the next' in status.answer
        assert study.shares()[str(status.best)] == pytest.approx(1 / len(status.candidates or ()))
        assert [each.state for each in list_studies(storage)] == ["ended"]
        check_replay(study)
        with import_study(export_study(study), "copy", storage) as copy:
            assert copy.status().state == "ended" and copy.definition.budget == 40


@ON_SQLITE
def test_an_answer_at_the_end_names_the_difference_and_its_limits(storage: str) -> None:
    rng = np.random.default_rng(0)
    with sb.Study.create("gap", INSTANCE, 0.05, storage, budget=30) as study:
        while tickets := study.ask(5):
            study.tell_many((ticket, outcome(ticket, rng)) for ticket in tickets)
        status = study.status()
    best = next(arm for arm in status.arms if arm.label == status.best)
    rival = next(arm for arm in status.ranked if arm is not best)
    assert best.estimate is not None and rival.estimate is not None
    assert best.low is not None and rival.high is not None
    words = status.answer.split("the next, is about ")[1]
    assert float(words.split(" (")[0]) == pytest.approx(best.estimate - rival.estimate, abs=0.06)
    low = float(words.split("(")[1].split(" to ")[0])
    assert low == pytest.approx(best.low - rival.high, abs=0.06)


@pytest.mark.parametrize("goal", ["max", "min"])
def test_an_answer_says_when_results_since_the_last_check_have_put_another_arm_ahead(storage: str, goal: Goal) -> None:
    rng, sign = np.random.default_rng(0), 1.0 if goal == "max" else -1.0
    with sb.Study.create("overtaken", INSTANCE, 0.05, storage, goal=goal) as study:
        for _ in range(3):
            study.tell_many([(each, sign * outcome(each, rng)) for each in study.ask(1000)])
        *tickets, _ = study.ask(1000)  # one stays pending, and with it the block open
        assert study.status().best == "plain"
        study.tell_many((each, sign * (-9.0 if each.label == "plain" else 1.0)) for each in tickets)
        status = study.status()
        ahead = status.ranked[0].label
        assert status.best == "plain" != ahead
        study.stop()
        answer = study.status().answer
    assert f'Recommended: "plain", which led at the last check; its mean minus that of "{ahead}", ahead' in answer
    gap = float(answer.split("told since, is about ")[1].split(" (")[0])
    assert sign * gap < 0


def test_a_study_ends_at_its_time_and_later_results_are_kept(storage: str) -> None:
    now = time.time()
    with sb.Studies(storage, clock=lambda: now) as studies:
        study = studies.create("dated", INSTANCE, 0.05, until=now + 3600)
        tickets = study.ask(4)
        assert study.status().state == "running"
        now += 3601
        assert study.ask(1) == [] and study.status().state == "ended"
        assert f"Ended on {in_full(as_time(now - 1))}, after 0 results" in study.status().answer
        assert study.tell(tickets[0], 0.3) is True and study.status().results == 1
    with pytest.raises(sb.InvalidInput, match="`until` must be in the future"):
        sb.Study.create("gone", INSTANCE, 0.05, storage, until=now - 3700)
    assert [each.name for each in list_studies(storage)] == ["dated"]


@ON_SQLITE
def test_a_budget_that_is_too_small_is_reported(storage: str) -> None:
    rng = np.random.default_rng(0)
    close = sb.Instance(sb.Problem(INSTANCE.problem.graph, 1.0, 0.5), labels=LABELS)
    with sb.Study.create("close", close, 0.01, storage, budget=60) as study:
        assert study.status().advice == ()
        for _ in range(4):
            study.tell_many((ticket, 0.5 * rng.standard_normal()) for ticket in study.ask(10))
        (sentence,) = study.status().advice
        assert "the budget of 60 trials is not enough" in sentence and study.report().status.advice == (sentence,)


@ON_SQLITE
@pytest.mark.parametrize("budget", [None, 10**6])
def test_a_time_that_is_too_short_is_reported(storage: str, budget: int | None) -> None:
    now, rng = 1.7e9, np.random.default_rng(0)
    close = sb.Instance(sb.Problem(INSTANCE.problem.graph, 1.0, 0.5), labels=LABELS)
    with sb.Studies(storage, clock=lambda: now) as studies:
        study = studies.create("close", close, 0.01, budget=budget, until=now + 3600)
        for _ in range(4):
            study.tell_many((ticket, 0.5 * rng.standard_normal()) for ticket in study.ask(10))
        now += 3000
        (sentence,) = study.status().advice
        assert f"the time until {in_full(as_time(now + 600))} is not enough" in sentence


@ON_SQLITE
def test_failed_trials_are_handed_out_again_and_three_of_them_bring_advice(storage: str) -> None:
    with sb.Study.create("fails", INSTANCE, 0.05, storage) as study:
        first = study.ask(100)
        bad = first[0]
        assert study.tell(bad, Failure("no power")) is True
        assert study.status().results == 0 and study.status().advice == ()
        for reason in ("no power", None):
            (again,) = study.ask(100)
            assert (again.arm, again.block) == (bad.arm, bad.block)
            study.tell(again, None if reason is None else Failure(reason))
        (advice,) = study.status().advice
        assert f'3 trials of "{bad.label}" failed' in advice and "study withdraw fails" in advice
        (again,) = study.ask(100)
        assert study.tell_many([(again, 0.5), (first[1], None), (first[2], 0.1)]) == 3
        reasons = Counter(ticket.failed for ticket in study.records().tickets)
        assert reasons == {None: len(first) - 1, "no power": 2, "no outcome": 2}
        with pytest.raises(sb.InvalidInput, match="has the outcome 0.5 already; it did not fail"):
            study.tell(again, None)
        with pytest.raises(sb.InvalidInput, match="`reason` must be one line"):
            study.tell(first[1], Failure("two\nlines"))
        check_replay(study)
        with import_study(export_study(study), "copy", storage) as copy:
            assert copy.records() == study.records()


def test_failures_may_count_as_an_outcome(storage: str) -> None:
    with sb.Study.create("counts", INSTANCE, 0.05, storage, failed_as=-1.0) as study:
        ticket = study.ask(1)[0]
        assert study.tell(ticket, Failure("broke")) is True and study.tell(ticket, Failure("broke")) is False
        assert [each.outcome for each in study.records().observations] == [-1.0]
        assert study.status().arms[ticket.arm].failures == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": 0}, "`budget` must be"),
        ({"budget": 1.5}, "`budget` must be"),
        ({"until": "soon"}, "`until` must be"),
        ({"failed_as": "x"}, "`failed_as` must be"),
    ],
)
def test_bad_limits_are_refused_before_anything_is_written(
    storage: str, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(sb.InvalidInput, match=message):
        sb.Study.create("bad", INSTANCE, 0.05, storage, **settings)  # type: ignore[arg-type]
    with pytest.raises((sb.InvalidInput, sb.StorageError), match="holds no|no such|not there|there is no"):
        sb.Study.open("bad", storage)


@ON_SQLITE
def test_an_ask_comes_back_empty_while_others_have_the_last_trials_of_a_list(storage: str) -> None:
    problem = sb.Problem.bounded(sb.Graph.from_edges(2, []), float("inf"), items=sb.Items.listed(5))
    instance = sb.Instance(problem, labels=["old", "new"])
    with sb.Study.create("list", instance, storage=storage) as study:
        out = [ticket for _ in range(10) for ticket in study.ask()]
        assert len({(ticket.label, ticket.item) for ticket in out}) == 10 and study.ask() == []
        study.abandon(out[3])
        assert [(ticket.label, ticket.item) for ticket in study.ask(2)] == [(out[3].label, out[3].item)]
        assert study.tell_many((ticket, 0.5) for ticket in out) == 10
        assert study.ask() == [] and study.status().state == "decided"
