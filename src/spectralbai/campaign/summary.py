"""The summary of a campaign: one line per cell, with an interval for every rate and mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from scipy.special import betaincinv

from spectralbai.campaign.results import Results
from spectralbai.documents import Rows
from spectralbai.simulate import Spread

CONFIDENCE = 0.95
"""The confidence of every interval."""


@dataclass(frozen=True)
class Cell:
    """The results of one policy on one instance at one risk.

    Stopping times are of all runs; if some runs reached the limit on samples, they are too small.
    """

    instance: str
    policy: str
    delta: float
    n_arms: int
    R: float | tuple[float, ...]
    """One for all components, or one for each."""
    tolerance: float
    rule: str
    proved: bool
    runs: int
    decided: int
    inconsistent: int
    """Number of runs in which the data contradicted R."""
    truncated: int
    """Number of runs that reached the limit on samples."""
    mean_tau: float
    mean_tau_low: float
    mean_tau_high: float
    std_tau: float
    q05_tau: float
    median_tau: float
    q95_tau: float
    errors: int
    """Number of wrong decisions."""
    error_rate: float
    """Share of wrong decisions among all runs."""
    error_rate_low: float
    error_rate_high: float
    lower_bound: float
    """Lower bound on the mean number of samples of every policy that knows the graph and has this risk; 0 if no bound
    is known: R is below S(mu), outcomes are scores in a range, or options are tried on the items of a table."""
    ratio: float
    """mean_tau / lower_bound; NaN if the bound is 0."""
    ratio_low: float
    ratio_high: float
    seconds: float
    """Mean time of a run; all risks share a run if its pulls do not depend on the risk."""


def summarise(results: Results) -> Rows[Cell]:
    """Returns a line per cell with at least one run, in the order of the campaign file."""
    instances = {each.name: each.instance for each in results.campaign.instances}
    cells = Rows(Cell)
    for (name, policy, delta), group in groupby(results.rows(), key=lambda row: (row.instance, row.policy, row.delta)):
        rows = list(group)
        problem = instances[name].problem
        took = Spread.of([row.tau for row in rows])
        ends = took.mean, took.mean - took.half_width, took.mean + took.half_width
        errors = sum(row.status == "decided" and not row.correct for row in rows)
        error_rate_low, error_rate_high = exact_limits(errors, len(rows))
        bound = results.lower_bound(name, delta)
        ratios = [value / bound if bound > 0 else math.nan for value in ends]
        statuses = [row.status for row in rows]
        cells.append(
            Cell(
                instance=name,
                policy=policy,
                delta=delta,
                n_arms=problem.n_arms,
                R=tuple(problem.radii.tolist()) if problem.by_component else float(problem.radii[0]),
                tolerance=problem.tolerance,
                rule=rows[0].rule,
                proved=rows[0].proved,
                runs=len(rows),
                decided=statuses.count("decided"),
                inconsistent=statuses.count("inconsistent"),
                truncated=statuses.count("truncated"),
                mean_tau=ends[0],
                mean_tau_low=ends[1],
                mean_tau_high=ends[2],
                std_tau=took.std,
                q05_tau=took.q05,
                median_tau=took.median,
                q95_tau=took.q95,
                errors=errors,
                error_rate=errors / len(rows),
                error_rate_low=error_rate_low,
                error_rate_high=error_rate_high,
                lower_bound=bound,
                ratio=ratios[0],
                ratio_low=ratios[1],
                ratio_high=ratios[2],
                seconds=float(np.mean([row.seconds for row in rows])),
            )
        )
    return cells


def exact_limits(failures: int, runs: int) -> tuple[float, float]:
    """Returns the exact limits of a rate at `CONFIDENCE`, from a number of failures (Clopper and Pearson)."""
    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(failures, runs - failures + 1, tail)) if failures else 0.0
    high = float(betaincinv(failures + 1, runs - failures, 1 - tail)) if failures < runs else 1.0
    return low, high
