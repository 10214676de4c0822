"""Counts of trials and successes, a day at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import chisquare

import spectralbai as sb
from spectralbai.study import export_study, import_study
from spectralbai.study.traffic import in_order
from tests.study.storages import ON_SQLITE
from tests.study.test_durable_blocks import check_replay

RATES = np.array([0.25, 0.05, 0.07, 0.06])
INSTANCE = sb.Instance(
    sb.Problem.bounded(sb.Graph.from_edges(4, [(1, 2), (2, 3)]), 0.002, binary=True), RATES, labels=list("abcd")
)


def traffic(shares: dict[str, float], n: int, rng: np.random.Generator) -> dict[str, tuple[int, int]]:
    """A day's visitors and clicks."""
    visitors = rng.multinomial(n, list(shares.values()))
    return {
        label: (int(v), int(rng.binomial(v, p))) for label, v, p in zip(shares, visitors.tolist(), RATES, strict=True)
    }


@ON_SQLITE
def test_days_of_counts_lead_to_a_decision_that_the_records_replay(storage: str) -> None:
    rng = np.random.default_rng(1)
    with sb.Study.create("days", INSTANCE, 0.05, storage) as study:
        assert study.shares() == dict.fromkeys("abcd", 0.25), "even before there is a plan"
        for day in range(100):
            counts = traffic(study.shares(), 150, rng)
            assert study.tell_counts(counts, f"day {day}") == 150
            check_replay(study)
            if study.status().state == "decided":
                break
        status = study.status()
        assert (status.state, status.best, status.results) == ("decided", "a", 150 * (day + 1))
        assert len(study.records().openings) > 2 * day, "bets learn within a day"
        assert study.shares() == {"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}
        assert study.tell_counts({"b": (10, 1)}, "one more") == 10, "results after the decision are kept"
        check_replay(study)
        with import_study(export_study(study), "copy", storage) as copy:
            assert copy.snapshot().state.as_dict() == study.snapshot().state.as_dict()
            assert copy.tell_counts({"b": (10, 1)}, "one more later") == 10


def test_an_id_counts_once_and_other_numbers_under_it_are_refused(storage: str) -> None:
    with sb.Study.create("ids", INSTANCE, 0.05, storage) as study:
        counts = [("a", 20, 5), ("c", 30, 2)]
        assert study.tell_counts(counts, "Monday") == 50
        assert study.tell_counts(list(reversed(counts)), "Monday") == 0
        for other in ([("a", 20, 6), ("c", 30, 2)], [("a", 20, 5)], [("a", 20, 5), ("b", 30, 2)]):
            with pytest.raises(sb.InvalidInput, match='"Monday" are recorded already, and differ'):
                study.tell_counts(other, "Monday")
        assert study.tell_counts(counts, "Tuesday") == 50
        assert study.status().results == 100
        check_replay(study)


def test_several_servers_tell_their_counts_at_once(storage: str) -> None:
    sb.Study.create("many", INSTANCE, 1e-9, storage).close()

    def tell(server: int) -> int:
        rng = np.random.default_rng(server)
        with sb.Study.open("many", storage) as study:
            return sum(study.tell_counts(traffic(study.shares(), 40, rng), f"{server} {day}") for day in range(4))

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(tell, range(4))) == 4 * 4 * 40
    with sb.Study.open("many", storage) as study:
        assert study.status().results == 640
        check_replay(study)


@ON_SQLITE
def test_past_counts_only_inform(storage: str) -> None:
    with sb.Study.create("past", INSTANCE, 0.05, storage) as study:
        assert study.tell_counts({"a": (2000, 1000), "b": (2000, 0), "c": (2000, 0), "d": (2000, 0)}, "2025", True)
        assert study.status().state == "running" and study.status().arms[0].results == 2000
        assert study.tell_counts(traffic(study.shares(), 50, np.random.default_rng(0)), "today") == 50
        assert study.snapshot().state.data.samples == 8050, "they are seen from the next block on"
        check_replay(study)


@ON_SQLITE
def test_counts_and_tickets_take_turns(storage: str) -> None:
    with sb.Study.create("both", INSTANCE, 0.05, storage) as study:
        tickets = study.ask(100)
        with pytest.raises(sb.InvalidInput, match=rf"give back the {len(tickets)} tickets that are out"):
            study.tell_counts({"a": (5, 1)}, "day")
        study.tell(tickets[0], 1)
        for ticket in tickets[1:]:
            study.abandon(ticket)
        with pytest.raises(sb.InvalidInput, match=rf": ask for the {len(tickets) - 1} trials? left in it"):
            study.tell_counts({"a": (5, 1)}, "day")
        assert study.status().results == 1
        study.tell_many((ticket, 0) for ticket in tickets[1:])
        assert study.tell_counts({"a": (5, 1), "b": (5, 1)}, "day") == 10
        more = study.ask(100)
        study.tell_many((ticket, 0) for ticket in more)
        check_replay(study)


def test_a_ticket_that_ran_out_before_counts_came_only_informs(storage: str) -> None:
    with sb.Study.create("late", INSTANCE, 0.05, storage) as study:
        late = study.ask(1, lease=1e-6)[0]
        assert study.tell_counts({label: (10, 1) for label in "abcd"}, "day") == 40
        assert study.tell(late, 1)
        assert study.snapshot().state.informing.samples == 1
        check_replay(study)


@ON_SQLITE
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"e": (1, 0)}, '"e" is no label'),
        ({"a": (1, 2)}, '"a" has 2 successes in 1 trials'),
        ({"a": (-1, 0)}, 'the trials of "a"'),
        ({"a": (1.5, 0)}, 'the trials of "a"'),
        ({"a": (2, None)}, 'the successes of "a"'),
        ({"a": 1}, "must be rows of a label, trials and successes"),
        ([("a", 1, 0), ("a", 1, 0)], '"a" is there twice'),
        ([("a", 1)], "rows of a label, trials and successes"),
        (3, "rows of a label, trials and successes"),
        ({}, "1 to 1,000,000 trials in all, got 0"),
        ({"a": (2_000_000, 0)}, "got 2,000,000"),
    ],
)
def test_bad_counts_are_refused_and_nothing_is_recorded(storage: str, counts: object, message: str) -> None:
    with sb.Study.create("bad", INSTANCE, 0.05, storage) as study:
        with pytest.raises(sb.InvalidInput, match=message):
            study.tell_counts(counts, "day")  # type: ignore[arg-type]
        with pytest.raises(sb.InvalidInput, match="`id` must be one line"):
            study.tell_counts({"a": (1, 0)}, " ")
        assert study.status().results == 0


def test_counts_need_outcomes_with_two_ends(storage: str) -> None:
    gaussian = sb.Instance(sb.Problem(sb.Graph.from_edges(2, []), 1.0), labels=["x", "y"])
    with (
        sb.Study.create("numbers", gaussian, 0.05, storage) as study,
        pytest.raises(sb.InvalidInput, match="need outcomes of two values"),
    ):
        study.tell_counts({"x": (1, 1)}, "day")


def test_the_order_of_trials_does_not_depend_on_their_outcomes() -> None:
    trials = np.array([40.0, 13.0, 0.0, 7.0])
    few, many = (trials, np.array([1.0, 0, 0, 0]), (0.0, 1.0)), (trials, np.array([39.0, 13, 0, 2]), (0.0, 1.0))
    arms, outcomes = in_order(*few, "seed")
    assert (arms == in_order(*many, "seed")[0]).all() and (np.bincount(arms, minlength=4) == trials).all()
    assert outcomes[arms == 0].sum() == 1 and outcomes.sum() == 1
    first_half = np.bincount(arms[:30], minlength=4)
    assert (np.abs(first_half - trials / 2) <= 1).all(), "arms are evenly mixed"
    # Which of the visitors clicked is uniform: the one click of 40 falls on each place alike.
    places = [
        int(np.flatnonzero(in_order(*few, f"seed {k}")[1][in_order(*few, f"seed {k}")[0] == 0])[0]) for k in range(800)
    ]
    assert chisquare(np.bincount(places, minlength=40)).pvalue > 0.01


@ON_SQLITE
def test_the_first_counts_of_a_catalogue_reach_every_category_however_few_its_trials(storage: str) -> None:
    graph = sb.Graph.from_categories([f"category {arm // 10}" for arm in range(80)])
    items = sb.Instance(sb.Problem.bounded(graph, np.full(8, 0.05), binary=True))
    with sb.Study.create("items", items, 0.05, storage) as study:
        with pytest.raises(sb.InvalidInput, match='got none of 1 of them, such as that of "70"'):
            study.tell_counts({str(arm): (3, 1) for arm in range(70)}, id="Monday")
        assert study.status().results == 0
        # 200 trials of one category, and one of each of the others
        counts = {"0": (200, 20)} | {str(arm): (1, 0) for arm in range(10, 80, 10)}
        assert study.tell_counts(counts, id="Tuesday") == 207
        assert study.tell_counts({"0": (5, 1)}, id="Wednesday") == 5  # later ones may leave some out
        status = study.status()
    assert status.results == 212 and all(arm.estimate is not None for arm in status.arms)
