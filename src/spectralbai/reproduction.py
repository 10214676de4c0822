"""The experiment of the paper [KG20]: how the sample complexity, in theory and in simulation, changes with R."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from spectralbai.allocation import lower_bound, solve_allocation
from spectralbai.checks import check_delta, check_integer
from spectralbai.graph import Graph
from spectralbai.policy import Policy, SpectralRace, SpectralTaS
from spectralbai.problem import Problem
from spectralbai.simulate import Run, Spread, seed_of, watch_many

MEANS = (0.9, 0.5, 0.6)
EDGES = ((1, 2),)
SIGMA = 1.0
RADII = tuple(k / 100 for k in range(1, 11))
"""Values of R; the smallest is S(mu), so that the means are as rough as it allows."""
RULES = ("betting", "paper", "paper-printed")
"""Stopping rules that are read on each run of SpectralTaS; the first is the policy's `stopping`, the others are in
`watching`."""
CURVES = (("spectral-race", "betting"), *(("spectral-tas", rule) for rule in RULES))
"""The (policy, rule) pairs compared; the race needs separate runs, since its pulls depend on its rule."""


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


def reproduce(
    runs: int = 20,
    delta: float = 0.01,
    seed: int = 0,
    executor: Executor | None = None,
    on_run: Callable[[int, int], object] | None = None,
) -> list[CurveRow]:
    """Returns a row per curve and R, in the order of `CURVES` and with R ascending.

    For each R, all rules of SpectralTaS are read on the same `runs` trajectories; the race has as many others, from the
    same seeds. They depend on `seed` but not on the executor. `on_run` is called with (done, total) after each of
    the 2 * `runs` * len(`RADII`) trajectories.
    """
    runs, delta, seed = check_integer("runs", runs, 1), check_delta(delta), check_integer("seed", seed, 0)
    problems = [Problem(Graph.from_edges(len(MEANS), EDGES), R, SIGMA) for R in RADII]
    cells = []
    for cell, problem in enumerate(problems):
        seeds = [seed_of(seed, cell, run) for run in range(runs)]
        cells.append([watch_many(policy, MEANS, seeds, executor) for policy in _policies(problem, delta)])
    theory = [
        (solve_allocation(problem, MEANS).characteristic_time, lower_bound(problem, MEANS, delta))
        for problem in problems
    ]
    watched: list[list[list[Run]]] = [[] for _ in cells]
    done = 0
    for _ in range(runs):  # one run of each cell in turn, so that workers need not wait for the slowest run of a cell
        for cell, policies in enumerate(cells):
            seen: list[Run] = []
            for policy in policies:
                seen += next(policy)
                done += 1
                if on_run is not None:
                    on_run(done, 2 * runs * len(cells))
            watched[cell].append(seen)
    return [
        _row(policy, R, *theory[cell], [seen[index] for seen in watched[cell]])
        for index, (policy, _) in enumerate(CURVES)
        for cell, R in enumerate(RADII)
    ]


def _policies(problem: Problem, delta: float) -> tuple[Policy, Policy]:
    """Returns the policies whose rules, in turn, are the `CURVES`."""
    race = SpectralRace(problem, delta)
    return race, SpectralTaS(problem, delta, RULES[0], watching=tuple((rule, delta) for rule in RULES[1:]))


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
    )
