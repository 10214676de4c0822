"""Answers of runs that end with their budget, measured: `python -m verification.ended [--runs N] [--workers N]`.

Eight instances, 300 runs each, at delta = 0.2, cut short at a budget that decides few of them. Counted is how often the
best arm is not among the candidates, and how often the limits of the lead, that of the arm recommended over the next,
do not hold the true one. Both rates are at most delta. Exit code 1 if an exact one-sided 99.9 % lower limit of one
exceeds it, or if a budget decides most runs, since then the check shows nothing.
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
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from verification.coverage import CONFIDENCE, limits

DELTA = 0.2


@dataclass(frozen=True)
class Kind:
    """A problem, its true means, of which the first is the largest, and the trials of a run."""

    name: str
    problem: sb.Problem
    mu: tuple[float, ...]
    budget: int


class Seen(NamedTuple):
    """What one run showed."""

    left: int
    """How many candidates there were."""
    missed: bool
    """The best arm is not among them."""
    outside: bool
    """The true lead is outside its limits."""


def kinds() -> list[Kind]:
    """Returns the instances: near ties, where bets go wrong as often as they can, and some that are far from it."""
    pairs = sb.Graph.from_edges(4, [(0, 1), (2, 3)])
    path = sb.Graph.from_edges(6, [(a, a + 1) for a in range(5)])
    apart = sb.Graph.from_edges(3, [])
    return [
        Kind("near ties", sb.Problem(pairs, 0.02, 0.5), (0.5, 0.45, 0.0, 0.05), 120),
        Kind("as rough as R allows", sb.Problem(pairs, 0.1, 0.5), (0.9, 0.6, 0.5, 0.4), 60),
        Kind("clicks", sb.Problem.bounded(pairs, 0.01, binary=True), (0.3, 0.25, 0.05, 0.02), 250),
        Kind("a tolerance", sb.Problem(pairs, 0.1, 0.5, 0.1), (0.9, 0.8, 0.1, 0.0), 60),
        Kind("all tied", sb.Problem(path, 0.1, 0.5), (0.5,) * 6, 120),
        Kind("no graph, tied", sb.Problem(apart, math.inf, 1.0), (0.0, 0.0, -1.0), 120),
        Kind("rare clicks", sb.Problem.bounded(apart, math.inf, binary=True), (0.05, 0.04, 0.03), 400),
        Kind("scores", sb.Problem.bounded(path, 0.05), (0.6, 0.55, 0.45, 0.3, 0.2, 0.15), 250),
    ]


def run(kind: Kind, seed: int) -> Seen:
    """Returns what one run showed when its budget was spent, or when it decided before."""
    policy, mu = sb.SpectralRace(kind.problem, DELTA), np.array(kind.mu)
    draw, rng, state = kind.problem.noise.draws(mu, None), np.random.default_rng(seed), policy.init()
    while state.samples < kind.budget:
        arms = policy.ask(state, min(policy.horizon(state), kind.budget - state.samples))
        if not arms.size:
            break
        state = policy.tell(state, arms, draw(rng, arms))
    verdict, known = policy.verdict(state), policy.estimates(state)
    assert verdict.candidates is not None
    best = verdict.arm
    following = int(np.argmax(np.where(np.arange(mu.size) == best, -np.inf, known.mean)))
    lead = mu[best] - mu[following]
    low, high = known.low[best] - known.high[following], known.high[best] - known.low[following]
    return Seen(len(verdict.candidates), 0 not in verdict.candidates, not low <= lead <= high)


def main() -> int:
    """Prints the table and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300, help="runs of each instance")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read by the workers when they start

    table = Table(
        *("instance", "trials", "candidates left", "best not among them", "at most", "lead outside", "at most"),
        title=f"Runs cut short, delta = {DELTA}, {options.runs} runs each; exact {CONFIDENCE:.1%} limits",
    )
    console, failed, begin = Console(width=150), [], time.perf_counter()
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
        for kind in kinds():
            seen = list(executor.map(partial(run, kind), range(options.runs), chunksize=10))
            counts = [sum(each.missed for each in seen), sum(each.outside for each in seen)]
            left = float(np.mean([each.left for each in seen]))
            cells = [
                text for count in counts for text in (f"{count / len(seen):.4f}", f"{limits(count, len(seen))[1]:.4f}")
            ]
            table.add_row(kind.name, f"{kind.budget:,}", f"{left:.1f} of {len(kind.mu)}", *cells)
            short = np.mean([each.left > 1 for each in seen])
            if short < 0.5 or any(limits(count, len(seen))[0] > DELTA for count in counts):
                failed.append(kind.name)
    console.print(table)
    console.print(f"{time.perf_counter() - begin:.0f} s.", highlight=False)
    console.print(
        f"[red]Not as it should be: {', '.join(failed)}[/red]" if failed else f"No rate is above {DELTA}.",
        highlight=False,
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
