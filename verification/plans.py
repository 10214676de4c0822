"""Plans, measured: `python -m verification.plans [--pilots N] [--workers N]`.

On six instances of at most 12 options, and one of 601 in categories, what a quick plan says of 100 pilots each.
Counted is how often the true expected number of trials, that of 100 fresh races, lies in the range stated; it should in
at least 90 of 100, and the median ratio of the ends of the range should be at most 10. Exit code 1 where that is not
so.

That simulated plans are right where the means are is a test: tests/test_planning.py.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from spectralbai.noise import Drawing

DELTA = 0.05
FRESH = 100
"""Races that tell the true expected number."""
LEAST, WIDEST = 0.9, 10.0


@dataclass(frozen=True)
class Kind:
    """An instance with its true means, how outcomes are drawn, and how often a pilot tries each option."""

    name: str
    instance: sb.Instance
    tries: int
    noise: Drawing | None = None


def kinds() -> list[Kind]:
    """Returns the instances."""
    path = sb.Graph.from_edges(8, [(a, a + 1) for a in range(7)])
    doses = [0.10, 0.22, 0.35, 0.52, 0.60, 0.57, 0.48, 0.40]
    groups = sb.Graph.from_edges(9, [(a, b) for a in range(1, 9) for b in range(1, a) if (a - 1) // 4 == (b - 1) // 4])
    pages = [0.30, 0.12, 0.13, 0.11, 0.14, 0.20, 0.19, 0.21, 0.18]
    ring = sb.Graph.from_edges(12, [(a, (a + 1) % 12) for a in range(12)])
    wave = (0.5 + 0.3 * np.cos(np.arange(12) * math.pi / 6)).tolist()
    rates = [0.55, 0.35, 0.3, 0.2, 0.1]
    apart = sb.Graph.from_edges(5, [])
    return [
        Kind("doses on a path, tolerance", sb.Instance(sb.Problem(path, 0.1, 0.4, 0.1), doses), 20),
        Kind("groups, tolerance", sb.Instance(sb.Problem(groups, 0.01, 0.2, 0.05), pages), 40),
        Kind("groups, clicks, tolerance", sb.Instance(sb.Problem.bounded(groups, 0.01, 0, 1, 0.05, True), pages), 250),
        Kind("no graph, clicks", sb.Instance(sb.Problem.bounded(apart, math.inf, binary=True), rates), 150),
        Kind(
            "ring, scores of spread 0.1, tolerance",
            sb.Instance(sb.Problem.bounded(ring, 0.3, 0, 1, 0.05), wave),
            10,
            0.1,
        ),
        Kind("601 options in categories", sb.instances.catalogue(6, 100, spread=0.01, sigma=0.5), 8),
        Kind("no graph", sb.Instance(sb.Problem(apart, math.inf, 1.0), [1.0, 0.4, 0.3, 0.0, -0.5]), 60),
    ]


def fresh(kind: Kind, seed: int) -> int:
    """Returns how many trials a race with the true means takes."""
    policy = sb.SpectralRace(kind.instance.problem, DELTA)
    assert kind.instance.mu is not None
    return sb.simulate.run(policy, kind.instance.mu, 10**6 + seed, noise=kind.noise).tau


def stated(kind: Kind, seed: int) -> tuple[float, float]:
    """Returns the range that a quick plan states from a pilot."""
    problem, mu = kind.instance.problem, kind.instance.mu
    assert mu is not None
    arms = np.repeat(np.arange(problem.n_arms), kind.tries)
    outcomes = problem.noise.draws(mu, kind.noise)(np.random.default_rng((7, seed)), arms)
    found = sb.plan(sb.Instance(problem), DELTA, arms=arms, outcomes=outcomes, runs=0).range
    assert found is not None, "a plan from a pilot has a range"
    return found.low, found.high


def main() -> int:
    """Prints the table and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pilots", type=int, default=100, help="pilots of each instance")
    parser.add_argument("--only", default="", help="only instances with this in their name")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read by the workers when they start

    table = Table(
        *("instance", "pilot", "fresh races", "in the range", "median range", "median ratio"),
        title=f"Plans at delta = {DELTA}: {options.pilots} pilots, {FRESH} fresh races of each instance",
    )
    console, failed = Console(width=150), []
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
        for kind in (each for each in kinds() if options.only in each.name):
            begin = time.perf_counter()
            true = float(np.mean(list(executor.map(partial(fresh, kind), range(FRESH)))))
            ends = np.array(list(executor.map(partial(stated, kind), range(options.pilots))))
            covered = float(((ends[:, 0] <= true) & (true <= ends[:, 1])).mean())
            width = float(np.median(ends[:, 1] / ends[:, 0]))
            low, high = np.median(ends, axis=0)
            size = kind.instance.problem.n_arms * kind.tries
            table.add_row(
                kind.name, str(size), f"{true:,.0f}", f"{covered:.0%}", f"{low:,.0f} - {high:,.0f}", f"{width:.1f}"
            )
            if covered < LEAST or width > WIDEST:
                failed.append(kind.name)
            seconds = time.perf_counter() - begin
            console.print(
                f"{kind.name}: {covered:.0%}, ratio {width:.1f}, {seconds:.0f} s", style="dim", highlight=False
            )
    console.print(table)
    console.print(
        f"[red]Not as it should be: {', '.join(failed)}[/red]" if failed else "All plans are as they should be.",
        highlight=False,
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
