"""Picking an option by a function: what is tried, what fails, and what is found again."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.picking import Pick, Progress
from spectralbai.picking.trials import LEASE, own_name

OPTIONS = ("plain", "brief", "kind", "strict")
RNG = np.random.default_rng(5)
OUTCOMES = np.clip(0.5 + 0.2 * RNG.standard_normal(150) + np.array([[0.0], [0.05], [0.25], [-0.1]]), 0, 1)
ITEMS = tuple(f"item {j}" for j in range(150))


def score(option: str, item: str) -> float:
    return float(OUTCOMES[OPTIONS.index(option), int(item.split()[1])])


Fails = Callable[[str, str, Counter[tuple[str, str]]], bool]


class Counting:
    """A score that remembers its calls, and fails where it is told to."""

    def __init__(self, fails: Fails = lambda option, item, calls: False) -> None:
        self.fails = fails
        self.calls: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def __call__(self, option: str, item: str) -> float:
        with self._lock:
            self.calls[option, item] += 1
        if self.fails(option, item, self.calls):
            raise RuntimeError("no answer")
        return score(option, item)


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_best_option_is_found_and_no_pair_is_tried_twice(jobs: int) -> None:
    counting = Counting()
    best = sb.pick(OPTIONS, ITEMS, counting, low=0, high=1, tolerance=0.05, jobs=jobs, seed=1)
    assert (best.option, best.decided, best.held_back) == ("kind", True, {})
    assert best.trials == len(counting.calls) == counting.calls.total() < best.pairs == 600
    assert best.status.state == "decided" and best.status.best == "kind"
    for (a, j), outcome in np.ndenumerate(best.table.outcomes):
        tried = (best.table.options[a], best.table.items[j])
        assert (outcome == score(*tried)) if tried in counting.calls else math.isnan(outcome)


def test_processes_and_values_other_than_labels() -> None:
    with ProcessPoolExecutor(1) as executor:
        best = sb.pick({"less": 0, "more": 1}, range(12), max, low=0, high=11, executor=executor, jobs=2, seed=0)
    assert (best.option, best.value) in (("less", 0), ("more", 1)) and best.decided  # they differ on item 0 only


def test_a_storage_keeps_the_study_and_a_second_call_only_reads_it(tmp_path: Path) -> None:
    storage, counting = f"sqlite:///{tmp_path}/picks.db", Counting()
    first = sb.pick(OPTIONS, ITEMS, counting, low=0, high=1, tolerance=0.05, storage=storage, seed=1)
    again = sb.pick(OPTIONS, ITEMS, counting, low=0, high=1, tolerance=0.05, storage=storage)
    assert (again.option, again.trials) == (first.option, first.trials) == ("kind", counting.calls.total())
    np.testing.assert_array_equal(again.table.outcomes, first.table.outcomes)
    for change, word in (({"tolerance": 0.1}, "tolerance"), ({"delta": 0.01}, "delta"), ({"fresh": True}, "fresh")):
        with pytest.raises(sb.Conflict, match=word):
            sb.pick(OPTIONS, ITEMS, counting, **{**dict(low=0, high=1, tolerance=0.05, storage=storage), **change})  # type: ignore[arg-type]  # only one argument changes
    with pytest.raises(sb.Conflict, match="with other items"):
        sb.pick(OPTIONS, ("other", *ITEMS[1:]), counting, low=0, high=1, tolerance=0.05, storage=storage)
    assert counting.calls.total() == first.trials


def test_a_search_goes_on_with_a_study_that_another_one_creates_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, opened, late = f"sqlite:///{tmp_path}/picks.db", sb.Study.open, [sb.NotFound("not yet")]

    def pick() -> Pick:
        return sb.pick(OPTIONS, ITEMS, score, low=0, high=1, tolerance=0.05, storage=storage)

    def open_late(name: str, storage: str) -> sb.Study:
        if late:
            raise late.pop()
        return opened(name, storage)

    first = pick()
    monkeypatch.setattr(sb.Study, "open", open_late)
    assert pick().trials == first.trials and not late


def test_an_interrupt_gives_back_what_is_under_way_and_the_next_call_goes_on_as_if_nothing_had_happened(
    tmp_path: Path,
) -> None:
    undisturbed = sb.pick(OPTIONS, ITEMS, score, low=0, high=1, tolerance=0.05, seed=1)
    storage, counting = f"sqlite:///{tmp_path}/picks.db", Counting()

    def interrupted(option: str, item: str) -> float:
        if counting.calls.total() in (20, 60):
            counting.calls["interrupted", str(counting.calls.total())] += 1
            raise KeyboardInterrupt
        return counting(option, item)

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            sb.pick(OPTIONS, ITEMS, interrupted, low=0, high=1, tolerance=0.05, storage=storage, seed=1)
        with sb.Study.open("pick", storage) as study:
            assert study.pending() == ()
    best = sb.pick(OPTIONS, ITEMS, interrupted, low=0, high=1, tolerance=0.05, storage=storage, seed=1)
    assert (best.option, best.trials) == (undisturbed.option, undisturbed.trials)
    assert max(counting.calls.values()) == 1
    np.testing.assert_array_equal(best.table.outcomes, undisturbed.table.outcomes)


def test_trials_of_a_run_that_died_are_given_back_and_those_of_a_living_one_are_not(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/picks.db"
    problem = sb.Problem.bounded(sb.Graph.from_edges(4, []), math.inf, 0, 1, 0.05, items=sb.Items.listed(150))

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    dead = f"{own_name()}0"  # this process, begun at another time: its number was used again
    with sb.Study.create("pick", sb.Instance(problem, labels=OPTIONS), storage=storage, items=ITEMS) as study:
        lost = study.ask(2, worker=dead, lease=LEASE)
        others = study.ask(2, worker=own_name()) + study.ask(2, worker="somebody else")
        with pytest.raises(KeyboardInterrupt):
            sb.pick(OPTIONS, ITEMS, score, low=0, high=1, tolerance=0.05, storage=storage, on_progress=interrupt)
        others = others[2:]  # those of this process were given back when it was interrupted
        assert {ticket.id for ticket in study.pending()} == {ticket.id for ticket in others}
        study.tell_many((ticket, score(ticket.label, str(ticket.item))) for ticket in others)
        best = sb.pick(OPTIONS, ITEMS, score, low=0, high=1, tolerance=0.05, storage=storage)
        assert best.decided and all(ticket.id not in {t.ticket for t in study.recent()} for ticket in lost)


@pytest.mark.parametrize("broken_from", [0, 40])  # from the first trial on, or later
def test_what_fails_is_repeated_and_then_its_option_is_held_back(broken_from: int) -> None:
    counting = Counting(lambda option, item, calls: option == "kind" and calls.total() > broken_from)
    best = sb.pick(OPTIONS, ITEMS, counting, low=0, high=1, tolerance=0.05, retries=1, seed=1)
    assert best.held_back == {"kind": "no answer"} and best.option in ("brief", "plain") and best.decided
    failed = [pair for pair, calls in counting.calls.items() if calls > 1]
    assert len(failed) == 1 and counting.calls[failed[0]] == 2
    row = best.table.outcomes[OPTIONS.index("kind")]
    known = ~np.isnan(row)
    np.testing.assert_array_equal(row[known], OUTCOMES[2][known])  # nothing that was made up
    assert broken_from or next(arm.mean for arm in best.status.arms if arm.label == "kind") == 0  # the worst
    assert 'since their runs failed: "kind" (no answer)' in str(best)


def test_a_failure_that_passes_costs_nothing() -> None:
    counting = Counting(lambda option, item, calls: calls[option, item] == 1 and item == "item 7")
    best = sb.pick(OPTIONS, ITEMS, counting, low=0, high=1, tolerance=0.05, retries=1, seed=1)
    assert best.held_back == {} and best.option == "kind"


def test_what_fails_counts_as_what_one_says() -> None:
    counting = Counting(lambda option, item, calls: option == "kind")
    best = sb.pick(OPTIONS, ITEMS, counting, low=0, high=1, tolerance=0.05, failed_as=0.0, seed=1)
    assert best.held_back == {} and best.decided and best.option in ("brief", "plain")
    assert np.nanmax(best.table.outcomes[2]) == 0


def test_if_nothing_succeeds_the_call_ends_and_no_option_is_held_back(tmp_path: Path) -> None:
    storage, down = f"sqlite:///{tmp_path}/picks.db", True
    counting = Counting(lambda option, item, calls: down and calls.total() > 30)
    with pytest.raises(sb.SpectralBAIError, match="nothing succeeds: .* failed one after the other"):
        sb.pick(OPTIONS, ITEMS, counting, low=0, high=1, tolerance=0.05, storage=storage)
    down = False
    best = sb.pick(OPTIONS, ITEMS, counting, low=0, high=1, tolerance=0.05, storage=storage)
    assert (best.option, best.held_back) == ("kind", {})


@pytest.mark.parametrize(("outcome", "end"), [(1.5, "above `high`, 1"), (-0.25, "below `low`, 0")])
def test_an_outcome_out_of_the_range_ends_the_call(outcome: float, end: str) -> None:
    with pytest.raises(sb.InvalidInput, match=end):
        sb.pick(OPTIONS, ITEMS, lambda option, item: outcome, low=0, high=1)


@pytest.mark.parametrize("value", [None, "0.5", math.nan, [1]])
def test_what_is_no_number_fails(value: object) -> None:
    with pytest.raises(sb.SpectralBAIError, match="which is no number"):
        sb.pick(OPTIONS, ITEMS, lambda option, item: value, low=0, high=1)  # type: ignore[arg-type,return-value]  # wrong on purpose


def test_known_outcomes_are_not_run_again() -> None:
    before = sb.pick(OPTIONS, ITEMS, score, low=0, high=1, tolerance=0.05, seed=1)
    counting = Counting()
    best = sb.pick(OPTIONS, ITEMS, counting, low=0, high=1, tolerance=0.02, known=before.table, seed=2)
    known = {
        (before.table.options[a], before.table.items[j])
        for a, j in np.argwhere(~np.isnan(before.table.outcomes)).tolist()
    }
    assert best.decided and best.option == "kind" and not known & set(counting.calls)
    assert best.trials == counting.calls.total()


def test_of_a_random_sample_a_cluster_is_one_item() -> None:
    counting = Counting()
    clusters = [f"document {j // 3}" for j in range(150)]
    best = sb.pick(
        OPTIONS, ITEMS, counting, low=0, high=1, tolerance=0.15, fresh=True, clusters=clusters, seed=1, delta=0.2
    )
    assert best.pairs == 200 and counting.calls.total() == 3 * best.trials
    known = sb.Table(OUTCOMES[:, :5], OPTIONS, ITEMS[:5])  # a cluster in full, and two items of another
    again = sb.pick(
        OPTIONS,
        ITEMS,
        score,
        low=0,
        high=1,
        tolerance=0.15,
        fresh=True,
        clusters=clusters,
        seed=1,
        delta=0.2,
        known=known,
    )
    np.testing.assert_allclose(again.table.outcomes, best.table.outcomes)
    assert again.option == best.option and again.trials <= best.trials
    a, j = np.argwhere(~np.isnan(best.table.outcomes))[0]
    of_cluster = [k for k in range(150) if clusters[k] == best.table.items[j]]
    assert best.table.outcomes[a, j] == pytest.approx(OUTCOMES[a, of_cluster].mean())


def test_a_budget_ends_the_search() -> None:
    best = sb.pick(OPTIONS, ITEMS, score, low=0, high=1, tolerance=0.001, budget=50)
    assert (best.trials, best.decided, best.status.state) == (50, False, "ended")


def test_progress_and_what_a_notebook_shows() -> None:
    states: list[Progress] = []
    best = sb.pick(OPTIONS, ITEMS[:8], score, low=0, high=1, on_progress=states.append)
    assert states[0].trials == 0 and states[0].pairs == 32 and states[0].options == 4
    shown = best._repr_html_()
    assert "kind *" in shown and "Little can be saved on a list as short as 8 items" in shown
    assert best.as_dict()["option"] == best.option


def test_while_nothing_works_a_run_that_began_before_does_not_put_the_blame_on_an_option(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/picks.db"
    down, all_begun = threading.Event(), threading.Barrier(4)

    def unreliable(option: str, item: str) -> float:
        if not down.is_set():
            all_begun.wait(10)
            if option != "brief":
                time.sleep(0.3)  # so that the failure is seen first
                return score(option, item)
        down.set()  # from now on, everything that begins fails
        raise ConnectionError("no network")

    with pytest.raises(sb.SpectralBAIError, match="nothing succeeds: .*no network"):
        sb.pick(OPTIONS, ITEMS, unreliable, low=0, high=1, tolerance=0.05, jobs=4, storage=storage)
    with sb.Study.open("pick", storage) as study:
        assert study.pending() == () and not any(ticket.failed for ticket in study.records().tickets)
