"""The risk of the default stopping rule, measured: `python -m verification.risk [--runs N] [--workers N]`.

Every kind of instance is run to its decision at delta = 0.1. Besides wrong answers, which are much rarer than delta, it
counts the failures of the event the proof rests on: that results after the split never cost the true means more than
the threshold, at any check up to the decision. Exit code 1 if an exact one-sided 99.9 % lower limit of either rate
exceeds delta.
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
from spectralbai.evidence.blocks import Data
from spectralbai.noise import Drawing
from spectralbai.policy import State
from spectralbai.stopping import Mixture
from spectralbai.stopping.mixture import Split
from verification.coverage import CONFIDENCE, limits, uncovered

DELTA = 0.1
MAX_SAMPLES = 100_000


@dataclass(frozen=True)
class Kind:
    """One kind of instance: a problem, its true means, and how outcomes are drawn."""

    name: str
    problem: sb.Problem
    mu: tuple[float, ...]
    noise: Drawing | None = None


class Seen(NamedTuple):
    """What one run showed."""

    tau: int
    decided: bool
    wrong: bool
    refuted: bool
    uncovered: bool


def _problem(
    n_arms: int, edges: list[tuple[int, int]], R: float, sigma: float | list[float] = 1.0, tolerance: float = 0.0
) -> sb.Problem:
    return sb.Problem(sb.Graph.from_edges(n_arms, [(a, b, 1.0) for a, b in edges]), R, sigma, tolerance)


def _triangle(first: int) -> list[tuple[int, int]]:
    return [(first, first + 1), (first, first + 2), (first + 1, first + 2)]


def kinds() -> list[Kind]:
    """Returns the instances: small, with large gaps, so that a run is short and thousands of runs are cheap."""
    chain = [(a, a + 1) for a in range(4)]
    slope = (0.0, 1.0, 2.0, 3.0, 5.0)
    joined = [(1, 2)]
    bounded = sb.Problem.bounded(sb.Graph.from_edges(3, [(1, 2, 1.0)]), R=0.05)
    return [
        Kind("paper's example", _problem(3, joined, R=0.01), (0.9, 0.5, 0.6)),
        Kind(
            "cliques, lone best arm",
            _problem(7, _triangle(1) + _triangle(4), R=0.2),
            (2.5, 0.2, 0.3, 0.1, 0.5, 0.4, 0.6),
        ),
        Kind(
            "cliques, best arm inside one",
            _problem(6, _triangle(0) + _triangle(3), R=16.0),
            (3.0, 0.5, 0.6, 0.2, 0.3, 0.1),
        ),
        Kind("path", _problem(5, chain, R=12.0), slope),
        Kind("path, S(mu) = R", _problem(5, chain, R=7.0), slope),
        Kind("ring", _problem(5, [*chain, (4, 0)], R=20.0), (4.0, 2.0, 0.4, 0.0, 1.6)),
        Kind("star", _problem(5, [(0, a) for a in range(1, 5)], R=12.0), (1.0, 3.5, 0.4, 0.8, 1.2)),
        Kind("edgeless", _problem(4, [], R=1.0), (2.5, 0.5, 0.2, 0.0)),
        Kind("R infinite", _problem(3, joined, R=math.inf), (2.5, 0.5, 0.2)),
        Kind("two arms", _problem(2, [(0, 1)], R=1.0), (1.0, 0.0)),
        Kind("sigma per arm", _problem(4, [(0, 1), (2, 3)], R=6.0, sigma=[1.0, 0.5, 2.0, 0.3]), (2.5, 0.5, 0.0, 0.6)),
        Kind("Bernoulli", bounded, (0.9, 0.3, 0.4)),
        Kind("bounded, uniform", bounded, (0.8, 0.2, 0.3), "uniform"),
        Kind("ties within the tolerance", _problem(4, [(0, 1), (2, 3)], R=4.0, tolerance=1.5), (2.0, 2.0, 1.8, 0.6)),
        Kind("wrong by just over the tolerance", _problem(3, [], R=1.0, tolerance=0.8), (0.0, 0.81, 0.0)),
        Kind("near tie", _problem(3, joined, R=0.04), (0.5, 0.0, 0.05)),
    ]


def split_of(state: State) -> Data | None:
    """Returns the results before the split; None if there was none yet."""
    memory = state.stopping["mixture"]
    assert isinstance(memory, Split)
    return memory.data


def _uncovered(kind: Kind, state: State) -> bool:
    split = split_of(state)
    if split is None:
        return False
    level = Mixture()._level(kind.problem, state.origin)
    return uncovered(kind.problem, np.array(kind.mu) - state.origin, split, state.data, DELTA, level)


def run(kind: Kind, seed: int) -> Seen:
    """Returns what the run of one seed shows; coverage is looked at whenever the rule looks."""
    policy = sb.SpectralTaS(kind.problem, DELTA, stopping="mixture")
    mu = np.array(kind.mu)
    draw = kind.problem.noise.draws(mu, kind.noise)
    rng, state, failed = np.random.default_rng(seed), policy.init(), False
    while state.samples < MAX_SAMPLES and (arms := policy.ask(state, state.next_reading - state.samples)).size:
        before = split_of(state)
        state = policy.tell(state, arms, draw(rng, arms))
        failed = failed or (before is not None and _uncovered(kind, state))
    verdict = policy.verdict(state)
    right = mu[verdict.arm] >= mu.max() - kind.problem.tolerance
    return Seen(state.samples, verdict.decided, verdict.decided and not right, not verdict.consistent, failed)


def main() -> int:
    """Prints the table and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, help="runs per kind of instance")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read by the workers when they start

    headers = (
        "instance",
        "T*",
        "wrong",
        "at most",
        "uncovered",
        "at most",
        "refuted",
        "undecided",
        "mean tau",
        "x bound",
        "ms a run",
    )
    table = Table(
        *headers, title=f"Mixture rule, delta = {DELTA}, {options.runs} runs each; exact {CONFIDENCE:.1%} limits"
    )
    console, failed, total = Console(width=150), [], 0.0
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
        for kind in kinds():
            begin = time.perf_counter()
            seen = list(executor.map(partial(run, kind), range(options.runs), chunksize=max(1, options.runs // 200)))
            seconds = time.perf_counter() - begin
            total += seconds
            wrong, lost, refuted = (
                sum(getattr(one, name) for one in seen) for name in ("wrong", "uncovered", "refuted")
            )
            tau = float(np.mean([one.tau for one in seen]))
            known = kind.problem.noise.divergence is not None  # scores in a range have no lower bound
            bound = sb.lower_bound(kind.problem, np.array(kind.mu), DELTA) if known else np.nan
            hardness = sb.solve_allocation(kind.problem, np.array(kind.mu)).characteristic_time
            rates = [
                f"{text}"
                for count in (wrong, lost)
                for text in (f"{count / len(seen):.4f}", f"{limits(count, len(seen))[1]:.4f}")
            ]
            undecided = sum(not one.decided and not one.refuted for one in seen)
            cells = [
                f"{refuted / len(seen):.4f}",
                str(undecided),
                f"{tau:.0f}",
                f"{tau / bound:.2f}" if known else "-",
                f"{1e3 * seconds / len(seen):.0f}",
            ]
            table.add_row(kind.name, f"{hardness:.0f}", *rates, *cells)
            console.print(
                f"{kind.name}: {wrong} wrong, {lost} uncovered of {len(seen)}, {seconds:.0f} s",
                style="dim",
                highlight=False,
            )
            if any(limits(count, len(seen))[0] > DELTA for count in (wrong, lost, refuted)):
                failed.append(kind.name)
    console.print(table)
    console.print(
        f"{total:.0f} s. Bounds of Bernoulli and bounded outcomes are those of Gaussian ones of the same sigma.",
        highlight=False,
    )
    console.print(
        f"[red]Risk above {DELTA}: {', '.join(failed)}[/red]" if failed else f"No rate is above {DELTA}.",
        highlight=False,
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
