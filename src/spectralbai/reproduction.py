"""The experiment of the paper [KG20]: how the sample complexity, in theory and in simulation, changes with R."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from spectralbai.allocation import lower_bound, solve_allocation
from spectralbai.checks import check_delta, check_integer
from spectralbai.documents import Rows
from spectralbai.graph import Graph
from spectralbai.instance import Instance
from spectralbai.policy import POLICIES
from spectralbai.problem import Problem
from spectralbai.simulate import Run, Spread, seed_of, watch_many

MEANS = (0.9, 0.5, 0.6)
EDGES = ((1, 2),)
SIGMA = 1.0
RADII = tuple(k / 100 for k in range(1, 11))
"""Values of R; the smallest is S(mu), so that the means are as rough as it allows."""
CURVES = (("spectral-race", "betting"), ("spectral-tas", "paper"), ("spectral-tas-printed", "paper-printed"))
"""The (policy, rule) pairs compared: ours; the paper's sampling with its allocation solved to the end, and its
threshold for the constrained statistic; Algorithm 1 as printed."""
RUNS = 30
"""Runs of each curve per R, which take about a minute on two cores."""


@dataclass(frozen=True)
class CurveRow:
    """The results of one policy and stopping rule at one R."""

    policy: str
    rule: str
    R: float
    characteristic_time: float
    """T_R*."""
    lower_bound: float
    """T_R* kl(delta, 1 - delta), in samples: no method of risk delta needs fewer on average."""
    runs: int
    """Number of runs that decided; the numbers below are about these runs."""
    mean_tau: float
    """Mean number of samples; NaN without a run."""
    std_tau: float
    """Standard deviation over the runs; NaN with fewer than two."""
    errors: int
    """Number of wrong decisions."""
    proved: bool
    """Whether the risk of the rule is proved to be at most delta."""
    undecided: int = 0
    """Number of runs that did not decide: the data contradicted R, or the limit on samples was reached."""
    taus: tuple[int | None, ...] = ()
    """Number of samples of each run, None if undecided, in the order of the seeds, which are the same in all rows."""


def reproduce(
    runs: int = RUNS,
    delta: float = 0.01,
    seed: int = 0,
    executor: Executor | None = None,
    on_run: Callable[[int, int], object] | None = None,
) -> Rows[CurveRow]:
    """Returns a row per curve and R, in the order of `CURVES` and with R ascending.

    Each row has `runs` runs, from the same seeds and so on the same outcomes of each arm. They depend on `seed` but not
    on the executor. `on_run` is called with (done, total) after each of the `runs` * len(`CURVES`) * len(`RADII`) runs.
    """
    runs, delta, seed = check_integer("runs", runs, 1), check_delta(delta), check_integer("seed", seed, 0)
    problems = [Problem(Graph.from_edges(len(MEANS), EDGES), R, SIGMA) for R in RADII]
    cells = [(policy, rule, problem) for policy, rule in CURVES for problem in problems]
    seeds = [seed_of(seed, run) for run in range(runs)]
    waiting = [
        watch_many(POLICIES[policy].on(Instance(problem), delta=delta, stopping=rule), MEANS, seeds, executor)
        for policy, rule, problem in cells
    ]
    theory = [
        (solve_allocation(problem, MEANS).characteristic_time, lower_bound(problem, MEANS, delta))
        for problem in problems
    ]
    results: list[list[Run]] = [[] for _ in cells]
    total = runs * len(cells)
    for done in range(total):  # one run of each cell in turn, so that workers need not wait for the slowest of a cell
        results[done % len(cells)] += next(waiting[done % len(cells)])
        if on_run is not None:
            on_run(done + 1, total)
    rows = (
        _row(policy, float(problem.radii[0]), *theory[cell % len(RADII)], results[cell])
        for cell, (policy, _, problem) in enumerate(cells)
    )
    return Rows(CurveRow, rows)


def paired_saving(rows: Sequence[CurveRow], policy: str = CURVES[0][0]) -> tuple[float, float]:
    """Returns how many samples fewer a policy takes at the smallest R than at the largest, run by run on the same
    outcomes: the mean and its standard error, over the runs that decided at both; NaN if these are too few."""
    own = sorted((row for row in rows if row.policy == policy), key=lambda row: row.R)
    pairs = zip(own[-1].taus, own[0].taus, strict=True)
    savings = [large - small for large, small in pairs if large is not None and small is not None]
    spread = Spread.of(savings)
    return spread.mean, spread.std / math.sqrt(max(len(savings), 1))


def _row(policy: str, R: float, characteristic_time: float, bound: float, runs: list[Run]) -> CurveRow:
    decided = [run for run in runs if run.status == "decided"]
    took = Spread.of([run.tau for run in decided])
    return CurveRow(
        policy=policy,
        rule=runs[0].rule,
        R=R,
        characteristic_time=characteristic_time,
        lower_bound=bound,
        runs=len(decided),
        mean_tau=took.mean,
        std_tau=took.std,
        errors=sum(not run.correct for run in decided),
        proved=runs[0].proved,
        undecided=len(runs) - len(decided),
        taus=tuple(run.tau if run.status == "decided" else None for run in runs),
    )
