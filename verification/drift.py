"""Means that drift, measured: `python -m verification.drift [--runs N] [--workers N]`.

Every case is run by the betting rule and by gk16, which averages over time, at delta = 0.1, with the same sampling rule
and means whose best arm stays best. The theorem (theory 18.3) is about means that change between blocks; here they
change at any time, as they do in practice, and the random order of the slots of a block has to protect betting, too.
gk16 errs more often in some cases, which shows that the drift matters. Exit code 1 if an exact one-sided 99.9 % lower
limit of a rate of betting exceeds delta, or gk16 does not err far more often where it should.
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

from rich.console import Console
from rich.table import Table

import spectralbai as sb
from spectralbai import simulate
from spectralbai.drift import Drift, Jump, Rise, Sine, Swing, Walk
from spectralbai.policy import Policy, SpectralTaS
from verification.coverage import CONFIDENCE, limits

DELTA, SAMPLES = 0.1, 400
RULES = ("betting", "gk16")


@dataclass(frozen=True)
class Case:
    """One kind of drift."""

    name: str
    drift: Drift
    misleads: bool = False
    """Whether gk16 errs far above delta."""
    mu: tuple[float, ...] = (0.3, 0.0, 0.0)
    rates: bool = False


def cases() -> list[Case]:
    """Returns the cases; all move by more than the lead of the best arm."""
    return [
        Case("a jump", Jump(6.0, at=12)),
        Case("swings", Swing(6.0, every=12)),
        Case("slow swings", Sine(6.0, period=60.0), misleads=True),
        Case("a walk", Walk(3.0, limit=100.0, every=8), misleads=True),
        Case("a common trend", Rise((30.0, 30.0, 30.0), over=400)),
        Case("a trend that differs", Rise((20.2, 20.0, 20.1), over=400)),
        Case("rates that rise", Rise((0.6, 0.6, 0.6), over=300), mu=(0.2, 0.1, 0.1), rates=True),
    ]


def run(case: Case, seed: int) -> tuple[tuple[bool, bool], ...]:
    """Returns (decided, wrong) for each rule."""
    graph = sb.Graph.from_edges(3, [])
    problem = sb.Problem.bounded(graph, math.inf, binary=True) if case.rates else sb.Problem(graph, math.inf)
    policies: list[Policy] = [SpectralTaS(problem, DELTA, rule) for rule in RULES]
    ends = [simulate.run(policy, case.mu, seed, SAMPLES, drift=case.drift) for policy in policies]
    return tuple((end.status == "decided", end.status == "decided" and not end.correct) for end in ends)


def main() -> int:
    """Prints the table and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="runs per case")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read by the workers when they start

    table = Table(
        *("drift", *(f"{rule}, {what}" for rule in RULES for what in ("decided", "wrong", "limits"))),
        title=f"Answers after {SAMPLES} trials, delta = {DELTA}, {options.runs} runs; exact {CONFIDENCE:.1%} limits",
    )
    console, failed, begin = Console(width=150), [], time.perf_counter()
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
        for case in cases():
            ends = list(executor.map(partial(run, case), range(options.runs), chunksize=max(1, options.runs // 200)))
            wrong = [sum(end[k][1] for end in ends) for k in range(len(RULES))]
            cells = []
            for k, count in enumerate(wrong):
                low, high = limits(count, len(ends))
                cells += [str(sum(end[k][0] for end in ends)), str(count), f"{low:.3f} to {high:.3f}"]
            table.add_row(case.name, *cells)
            if limits(wrong[0], len(ends))[0] > DELTA:
                failed.append(f"betting, {case.name}")
            if case.misleads and limits(wrong[1], len(ends))[0] <= DELTA:
                failed.append(f"gk16 is not misled, {case.name}")
    console.print(table)
    console.print(f"{time.perf_counter() - begin:.0f} s.", highlight=False)
    console.print(
        f"[red]Not as it should be: {', '.join(failed)}[/red]" if failed else f"No rate of betting is above {DELTA}.",
        highlight=False,
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
