"""The intervals of differences from a control, measured: `python -m verification.control [--runs N] [--workers N]`.

Races with a control at delta = 0.2, past their decision: what is counted is how often the interval of some difference,
or that of the mean of the control, misses at the closing of some block. Exit code 1 if an exact one-sided 99.9 % lower
limit of a rate exceeds delta.

Then the pages of `docs/control.md`: how many visitors a control costs, and how often the winner is known to be better
than it when the race decides.
"""

from __future__ import annotations

import argparse
import math
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from spectralbai.policy import SpectralRace, Verdict
from spectralbai.stopping import AgainstControl, Contrasts
from spectralbai.tape import Tape
from verification.coverage import CONFIDENCE, limits, missed
from verification.intervals import Kind

DELTA = 0.2


def kinds() -> list[Kind]:
    """Returns the instances. The control is arm 0."""
    pair, four = sb.Graph.from_edges(2, []), sb.Graph.from_edges(4, [(0, 1), (1, 2)])
    return [
        Kind("two equal rates", sb.Problem.bounded(pair, math.inf, binary=True, tolerance=0.1), (0.3, 0.3), 300),
        Kind("two equal means", sb.Problem(pair, math.inf, tolerance=0.3), (1.0, 1.0), 300),
        Kind("scores", sb.Problem.bounded(pair, math.inf, tolerance=0.02), (0.70, 0.72), 200, 0.05),
        Kind("rates near 0", sb.Problem.bounded(pair, math.inf, binary=True, tolerance=0.02), (0.03, 0.05), 600),
        Kind("four rates, a graph", sb.Problem.bounded(four, 0.05, binary=True), (0.5, 0.6, 0.7, 0.5), 300),
        Kind("sigma per arm", sb.Problem(four, 0.3, [1.0, 0.2, 3.0, 1.0], 0.2), (0.0, 0.2, 0.5, 0.0), 300),
    ]


def misses(kind: Kind, seed: int) -> bool:
    """Whether a difference, or the mean of the control, is outside of its interval at some closing in a run, which
    goes on past decisions."""
    policy, mu = SpectralRace(kind.problem, DELTA, control=0), np.array(kind.mu)
    against = AgainstControl(control=0, delta=DELTA)
    draw = kind.problem.noise.draws(mu, kind.noise)
    rng, state = np.random.default_rng(seed), policy.init()
    while state.samples < kind.samples:
        state = replace(state, verdicts=(Verdict(),)) if state.settled else state
        state = state if state.blocks else policy.open(state)
        arms = policy.ask(state, policy.horizon(state))
        state = policy.tell(state, arms, draw(rng, arms))
        memory = state.stopping[against.name]
        assert isinstance(memory, Contrasts), "the memory of this rule"
        if missed(mu - mu[0], *memory.ends):
            return True
        low, high = against.base(policy.reader.evidence(state))
        if state.data.counts[0] and not low <= mu[0] - state.origin <= high:
            return True
    return False


PAGES = (0.050, 0.065, *np.linspace(0.040, 0.058, 10).tolist())
"""The control, the best page, and ten others."""


def raced(with_control: bool, seed: int) -> tuple[int, bool, bool]:
    """Returns the visitors of a race on the pages, whether its answer is right, and whether the interval of the
    winner's difference from the control excludes 0."""
    problem = sb.Problem.bounded(sb.Graph.from_edges(12, []), math.inf, tolerance=0.003, binary=True)
    policy = SpectralRace(problem, 0.05, control=0 if with_control else None)
    state = policy.play(Tape.of(problem, np.array(PAGES), seed), 10**6)
    arm = policy.verdict(state).arm
    better = with_control and bool(policy.estimates(state, reference=0).differences.high[arm] < 0)
    return state.samples, PAGES[arm] >= max(PAGES) - problem.tolerance, better


def main() -> int:
    """Prints the tables and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="runs per kind of instance")
    parser.add_argument("--races", type=int, default=20, help="races on the pages, with and without control")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read by the workers when they start
    table = Table(
        *("instance", "missed", "at most"),
        title=f"Runs with a miss, delta = {DELTA}, {options.runs} runs each; exact {CONFIDENCE:.1%} limits",
    )
    visitors = Table("pages", "visitors", "right", "better than the control", title=f"{options.races} races")
    console, failed = Console(width=120), []
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
        for kind in kinds():
            failures = sum(executor.map(partial(misses, kind), range(options.runs), chunksize=10))
            low, high = limits(failures, options.runs)
            table.add_row(kind.name, f"{failures / options.runs:.4f}", f"{high:.4f}")
            if low > DELTA:
                failed.append(kind.name)
        for name, controlled in (("with a control", True), ("without", False)) if options.races > 1 else ():
            found = list(executor.map(partial(raced, controlled), range(options.races)))
            samples, right, better = np.array(found).T
            error = samples.std(ddof=1) / math.sqrt(options.races)
            known = f"{better.sum()}" if controlled else ""
            visitors.add_row(name, f"{samples.mean():,.0f} ± {error:,.0f}", f"{right.sum()}", known)
    console.print(table)
    console.print(visitors)
    words = f"[red]Not as it should be: {', '.join(failed)}[/red]" if failed else f"No rate is above {DELTA}."
    console.print(words, highlight=False)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
