"""Trials on items: how many of a real table's trials the race makes, against races without items and against rivals.

`python -m benchmarks.items [--orders N] [--jobs N]`; rows are also printed to stderr as soon as they are known. The
tables are those of `benchmarks.tables`, fetched or computed once, and generated ones whose correlation is known.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from multiprocessing import get_context
from typing import Literal, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table as Printed
from scipy.stats import binom

import spectralbai as sb
from benchmarks.rivals_items import RIVALS, choices, is_wrong
from benchmarks.samples import said, standard_error
from benchmarks.tables import lcdb, svm_digits
from spectralbai.arrays import Matrix
from spectralbai.threads import one_thread

DELTA = 0.05
ROOM = 1.5
"""R is so many times the smoothness of the table's means."""
SURE = 1e-4
"""The number of wrong answers is refused if a risk of `DELTA` would give so many with at most this probability."""
GENERATED_ITEMS = 20_000
DEVIATIONS = (0.12, 0.25)
"""Standard deviations of their outcomes: with the first the range limits bets, with the second pairing can pay."""
SIZES = {10: 12, 50: 6, 200: 3}
"""Options of the generated tables, and how many runs of each are made."""
CORRELATIONS = (0.0, 0.5, 0.9, 0.99)
LONGEST = 200_000
"""Runs without items end after so many trials."""
Source = Literal["learners", "data sets", "support-vector machines"]
Reading = Literal["list", "fresh", "none"]


@dataclass(frozen=True)
class Case:
    """A table, how its items are read, and what the race should not exceed on it."""

    source: Source
    tolerance: float
    reading: Reading
    graph: bool = False
    target: float = math.inf
    """Mean number of trials."""

    def runs(self, orders: int) -> int:
        """Returns the number of runs: what takes long is done on a quarter of the orders."""
        slow = self.reading == "none" or self.source == "support-vector machines"
        return max(orders // 4, 2) if slow else orders

    @property
    def name(self) -> str:
        reading = {"list": "the list", "fresh": "fresh items", "none": "without items"}[self.reading]
        related = {"learners": "modules", "data sets": "modules", "support-vector machines": "grid"}[self.source]
        return f"{reading}, {related}" if self.graph else reading


class Outcome(NamedTuple):
    """What a run came to."""

    trials: int
    items: int
    wrong: bool
    decided: bool


def cases() -> list[Case]:
    """Returns what is run, table by table."""
    learners = [
        *(Case("learners", tolerance, "list", target=most) for tolerance, most in ((0.01, 2250), (0.02, 1750))),
        *(Case("learners", tolerance, "fresh", target=most) for tolerance, most in ((0.01, 2300), (0.02, 1750))),
        *(Case("learners", tolerance, "list", graph=True) for tolerance in (0.01, 0.02)),
        *(Case("learners", tolerance, "fresh", graph=True) for tolerance in (0.01, 0.02)),
        *(Case("learners", tolerance, "none", graph) for tolerance in (0.01, 0.02) for graph in (False, True)),
        *(Case("data sets", tolerance, "list") for tolerance in (0.01, 0.02)),
        *(Case("data sets", tolerance, "none") for tolerance in (0.01, 0.02)),
    ]
    readings: tuple[tuple[Reading, bool], ...]
    readings = (("list", False), ("list", True), ("fresh", False), ("fresh", True), ("none", False))
    machines = [
        Case("support-vector machines", tolerance, *reading) for tolerance in (0.005, 0.02) for reading in readings
    ]
    return sorted([*learners, *machines], key=lambda case: (case.source, case.tolerance))


@cache
def outcomes_of(source: Source) -> tuple[Matrix, sb.Graph]:
    """Returns the outcomes of a table, and its graph."""
    table, graph = svm_digits() if source == "support-vector machines" else lcdb()
    return (table.by_cluster() if source == "data sets" else table).outcomes, graph


@cache
def policy_of(case: Case) -> sb.SpectralRace:
    outcomes, graph = outcomes_of(case.source)
    R: float | np.ndarray = math.inf
    if case.graph:
        means = outcomes.mean(axis=1)
        R = ROOM * (
            graph.smoothness(means) if case.source.startswith("support") else graph.roughness_by_component(means)
        )
    items = {"list": sb.Items.listed(outcomes.shape[1]), "fresh": sb.Items.fresh(), "none": None}[case.reading]
    return sb.SpectralRace(sb.Problem.bounded(graph, R, tolerance=case.tolerance, items=items), DELTA)


def replayed(case: Case, seed: int) -> Outcome:
    """Returns what the race does on the table in one order of its items."""
    return _replayed(policy_of(case), outcomes_of(case.source)[0], seed)


def _replayed(policy: sb.SpectralRace, outcomes: Matrix, seed: int) -> Outcome:
    run = sb.simulate.replay(policy, outcomes, seed, LONGEST)
    return Outcome(run.tau, int(run.counts.max()), not run.correct, run.status == "decided")


def measured(case: Case, orders: int, executor: Executor) -> tuple[float, list[str]]:
    """Returns the mean number of trials, and a row of the table of runs."""
    outcomes, orders = outcomes_of(case.source)[0], case.runs(orders)
    runs = [*executor.map(partial(replayed, case), range(orders))]
    trials, wrong = np.array([run.trials for run in runs], dtype=float), sum(run.wrong for run in runs)
    assert all(run.decided for run in runs), case
    assert wrong <= binom.isf(SURE, orders, DELTA), (case, wrong)
    assert case.reading != "list" or trials.max() <= outcomes.size, (case, trials.max())
    mean, error = float(trials.mean()), standard_error(trials)
    target = ""
    if math.isfinite(case.target):
        target = f"{case.target:,.0f}" + (" MISSED" if mean - 2 * error > case.target else "")
    return mean, [
        case.source,
        f"{case.tolerance:g}",
        case.name,
        str(orders),
        f"{mean:,.0f} ({error:,.0f})",
        f"{trials.max():,.0f}",
        f"{mean / outcomes.size:.0%}",
        f"{np.mean([run.items for run in runs]):,.0f}",
        str(wrong),
        target,
    ]


def rivals(case: Case, trials: int, orders: int, executor: Executor) -> Iterator[list[str]]:
    """Yields a row for each rival with so many trials."""
    outcomes = outcomes_of(case.source)[0]
    made = [*executor.map(partial(choices, outcomes, trials), range(orders))]
    for rival in RIVALS:
        of_rival = [choice[rival] for choice in made]
        wrong = sum(is_wrong(outcomes, choice.option, case.tolerance) for choice in of_rival)
        used = np.mean([choice.trials for choice in of_rival])
        yield [case.source, f"{case.tolerance:g}", rival, f"{used:,.0f}", f"{wrong} of {orders}"]


@cache
def generated(n_options: int, correlation: float, deviation: float, n_items: int = GENERATED_ITEMS) -> Matrix:
    """Returns normal outcomes in [0, 1], in which every two options have this correlation over items: one option leads
    by .08, and the others are spread evenly over .15."""
    rng = np.random.default_rng(0)
    means = 0.5 + np.array([0.08, 0.0, *(-0.15 * np.arange(n_options - 2) / (n_options - 2))])
    common, own = rng.standard_normal(n_items), rng.standard_normal((n_options, n_items))
    apart = math.sqrt(correlation) * common + math.sqrt(1 - correlation) * own
    outcomes: Matrix = np.clip(means[:, None] + deviation * apart, 0.0, 1.0)
    return outcomes


def on_generated(n_options: int, correlation: float, deviation: float, items: sb.Items | None, seed: int) -> Outcome:
    """Returns what the race does on a generated table."""
    problem = sb.Problem.bounded(sb.Graph.from_edges(n_options, []), math.inf, items=items)
    return _replayed(sb.SpectralRace(problem, DELTA), generated(n_options, correlation, deviation), seed)


def correlated(n_options: int, correlation: float, deviation: float, executor: Executor) -> list[str]:
    """Returns a row on a generated table, with fresh items and without."""
    means, cells = [], []
    for items in (sb.Items.fresh(), None):
        job = partial(on_generated, n_options, correlation, deviation, items)
        runs = [*executor.map(job, range(SIZES[n_options]))]
        assert all(run.decided for run in runs)
        trials = np.array([run.trials for run in runs], dtype=float)
        means.append(trials.mean())
        cells += [f"{trials.mean():,.0f} ({standard_error(trials):,.0f})", str(sum(run.wrong for run in runs))]
    sizes = [str(n_options), f"{deviation:g}", f"{correlation:g}", str(SIZES[n_options])]
    return [*sizes, *cells, f"{means[0] / means[1]:.2f}"]


def closings(n_options: int, n_items: int, items: sb.Items, related: bool, blocks: int) -> list[float]:
    """Returns the processor time of one thread, in seconds, to close each of the first blocks and to plan the next."""
    outcomes = generated(n_options, 0.5, DEVIATIONS[0], n_items)
    graph = sb.Graph.from_categories([str(option // 10) for option in range(n_options)])
    R = ROOM * graph.roughness_by_component(outcomes.mean(axis=1)) if related else math.inf
    problem = sb.Problem.bounded(graph, R, tolerance=0.01, items=items)
    policy = sb.SpectralRace(problem, DELTA)
    seconds: list[float] = []
    with one_thread():
        state = policy.init(seed=0)
        arms, those = policy.ask_items(state, policy.horizon(state))
        while arms.size and len(seconds) < blocks:
            results = outcomes[arms, those % n_items]
            start = time.process_time()
            state = policy.tell(state, arms, results, items=those)
            arms, those = policy.ask_items(state, policy.horizon(state))
            seconds.append(time.process_time() - start)
    return seconds


def timed(n_options: int, n_items: int, items: sb.Items, related: bool) -> list[str]:
    """Returns a row on the time to close blocks; the first includes what is computed once."""
    seconds = closings(n_options, n_items, items, related, 30)
    slowest, median = max(seconds[1:]), float(np.median(seconds[1:]))
    return [
        str(n_options),
        items.described(),
        "of ten" if related else "none",
        str(len(seconds)),
        f"{1e3 * median:,.0f}",
        f"{1e3 * slowest:,.0f}",
    ]


def printed(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Printed:
    table = Printed(*headings, title=title)
    for row in rows:
        table.add_row(*row)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=40, help="orders of the items of each real table")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    runs, others, generic = [], [], []
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as executor:
        for case in cases():
            mean, row = measured(case, options.orders, executor)
            runs.append(said(row))
            if case.reading == "list" and not case.graph and case.source != "data sets":
                others += [said(row) for row in rivals(case, round(mean), case.runs(options.orders), executor)]
        for n_options, deviation, correlation in product(SIZES, DEVIATIONS, CORRELATIONS):
            generic.append(said(correlated(n_options, correlation, deviation, executor)))
    times = [
        said(timed(*row))
        for row in (
            (50, 1000, sb.Items.fresh(), False),
            (50, 1000, sb.Items.fresh(), True),
            (200, 1000, sb.Items.fresh(), False),
            (200, 1000, sb.Items.fresh(), True),
            (50, 1000, sb.Items.listed(1000), False),
            (50, 100_000, sb.Items.listed(100_000), False),
        )
    ]
    console = Console(width=140)
    of_runs = ("table", "tolerance", "read as", "orders", "trials (s.e.)", "largest", "of the table", "items", "wrong")
    console.print(printed(f"Trials until the decision, delta = {DELTA:g}", (*of_runs, "target"), runs))
    of_rivals = ("table", "tolerance", "method", "trials", "wrong")
    console.print(printed("Rivals with as many trials as the race on the list", of_rivals, others))
    console.print("Rivals that compare means guarantee nothing: few errors on a table say nothing of the next one.\n")
    of_generic = ("options", "deviation", "correlation", "runs", "fresh items", "wrong", "without", "wrong", "ratio")
    console.print(printed("Generated tables: trials until the decision (s.e.)", of_generic, generic))
    of_times = ("options", "items", "categories", "blocks", "median, ms", "slowest, ms")
    console.print(printed("Processor time to close a block and to plan the next", of_times, times))


if __name__ == "__main__":
    main()
