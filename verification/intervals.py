"""The intervals for all means, measured: `python -m verification.intervals [--runs N] [--workers N]`.

Races on eight kinds of instance, at delta = 0.1, past their decision: what is counted is how often an interval misses
its mean at the closing of some block. Most kinds with a graph have means as rough as R allows. Exit code 1 if an exact
one-sided 99.9 % lower limit of a rate exceeds delta.

Then the widths, from equally many results of each arm.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from benchmarks.samples import pages, scores
from spectralbai.evidence.intervals import pooled_intervals
from spectralbai.noise import Drawing
from spectralbai.policy import SpectralRace, Uniform, Verdict
from verification.betting import DELTA, _problem
from verification.coverage import CONFIDENCE, limits, missed


@dataclass(frozen=True)
class Kind:
    """One kind of instance: a problem, its true means, how outcomes are drawn, and the samples of a run."""

    name: str
    problem: sb.Problem
    mu: tuple[float, ...]
    samples: int = 200
    noise: Drawing | None = None


def kinds() -> list[Kind]:
    """Returns the instances."""
    chain, joined = [(a, a + 1) for a in range(4)], sb.Graph.from_edges(3, [(1, 2, 1.0)])
    pair = sb.Graph.from_edges(2, [])
    return [
        Kind("two arms, no graph", _problem(2, [], R=1.0), (0.0, 0.3)),
        Kind("path, S(mu) = R", _problem(5, chain, R=0.44), (0.0, 0.2, 0.4, 0.6, 0.6 + math.sqrt(0.32))),
        Kind("nearly equal arms, S(mu) = R", _problem(5, chain, R=4e-6), (0.0, 0.001, 0.002, 0.003, 0.004)),
        Kind(
            "components, sigma per arm, S(mu) = R",
            _problem(6, [(0, 1), (2, 3)], R=0.13, sigma=[1.0, 0.2, 3.0, 1.0, 0.5, 1.0]),
            (0.5, 0.2, 0.4, 0.6, 0.3, 0.5),
        ),
        Kind("tolerance", _problem(4, [(0, 1), (2, 3)], R=0.2, tolerance=0.3), (0.31, 0.0, 0.0, 0.0)),
        Kind("rates near 0", sb.Problem.bounded(pair, math.inf, binary=True), (0.03, 0.05)),
        Kind("rates, S(mu) = R", sb.Problem.bounded(joined, R=0.0225, binary=True), (0.5, 0.35, 0.5)),
        Kind("scores of spread .05, S(mu) = R", sb.Problem.bounded(joined, R=0.0025), (0.75, 0.7, 0.75), 100, 0.05),
    ]


def misses(kind: Kind, seed: int) -> bool:
    """Whether an interval misses its mean at some closing in the run of one seed, which goes on past decisions.

    Where the intervals are empty, or the data contradict R, nothing is claimed; that counts as a miss.
    """
    policy, mu = SpectralRace(kind.problem, DELTA), np.array(kind.mu)
    draw = kind.problem.noise.draws(mu, kind.noise)
    rng, state = np.random.default_rng(seed), policy.init()
    while state.samples < kind.samples:
        state = replace(state, verdicts=(Verdict(),)) if state.settled else state
        state = state if state.blocks else policy.open(state)
        arms = policy.ask(state, policy.horizon(state))
        state = policy.tell(state, arms, draw(rng, arms))
        ends = pooled_intervals(kind.problem, state.received, state.origin, DELTA)
        if ends is None or missed(mu - state.origin, *ends):
            return True
    return False


WIDTHS_AT = (5, 50, 500)
"""Results of each arm."""


def widths() -> Table:
    """Returns mean half-widths of the intervals at delta = 0.05."""
    named: list[tuple[str, sb.Instance, Drawing | None]] = [
        ("51 arms, cliques", sb.instances.cliques(5, 10, seed=0), None),
        ("5 x 5 grid", sb.instances.grid(5, 5, lead=0.2), None),
        ("30 pages, clicks", pages(), None),
        ("48 scores of spread .02", scores(), 0.02),
    ]
    table = Table(
        "instance", *map(str, WIDTHS_AT), title="Mean half-widths at so many results of each arm, delta = 0.05"
    )
    for name, instance, noise in named:
        problem, mu = instance.problem, instance.mu
        assert mu is not None
        draw, rng = problem.noise.draws(mu, noise), np.random.default_rng(0)
        policy = Uniform(problem, 0.05)
        state = policy.init()
        cells = []
        for n in range(1, max(WIDTHS_AT) + 1):
            arms = rng.permutation(problem.n_arms)
            state = policy.tell(state, arms, draw(rng, arms))
            if n in WIDTHS_AT:
                found = policy.estimates(state)
                cells.append(f"{float((found.high - found.low).mean()) / 2:.3f}")
        table.add_row(name, *cells)
    return table


def main() -> int:
    """Prints the tables and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="runs per kind of instance")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read by the workers when they start

    table = Table(
        *("instance", "missed", "at most", "ms a run"),
        title=f"Runs with a miss, delta = {DELTA}, {options.runs} runs each; exact {CONFIDENCE:.1%} limits",
    )
    console, failed, total = Console(width=150), [], 0.0
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
        for kind in kinds():
            begin = time.perf_counter()
            found = executor.map(partial(misses, kind), range(options.runs), chunksize=max(1, options.runs // 200))
            failures = sum(found)
            seconds = time.perf_counter() - begin
            total += seconds
            low, high = limits(failures, options.runs)
            table.add_row(
                kind.name, f"{failures / options.runs:.4f}", f"{high:.4f}", f"{1e3 * seconds / options.runs:.0f}"
            )
            console.print(f"{kind.name}: {failures} of {options.runs}, {seconds:.0f} s", style="dim", highlight=False)
            if low > DELTA:
                failed.append(kind.name)
    console.print(table)
    console.print(widths())
    console.print(f"{total:.0f} s.", highlight=False)
    console.print(
        f"[red]Not as it should be: {', '.join(failed)}[/red]" if failed else f"No rate is above {DELTA}.",
        highlight=False,
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
