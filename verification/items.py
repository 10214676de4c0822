"""Bets on items, measured: `python -m verification.items [--runs N] [--workers N]`.

Every kind of instance is a table of outcomes, replayed many times at delta = 0.1. Fresh items are columns drawn with
replacement, a list is all of them in a random order. What is counted is how often the answer is wrong, and how often a
best arm is eliminated. Options are tied, or apart by just more than the tolerance, or as rough as R; outcomes of an
item go together, or against each other, or one item in thirty decides. Exit code 1 if an exact one-sided 99.9 % lower
limit of a rate exceeds delta.
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
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from spectralbai import simulate
from spectralbai.arrays import Matrix, Vector
from spectralbai.policy import SpectralRace
from verification.coverage import CONFIDENCE, limits

DELTA = 0.1
MOST_TRIALS = 240
"""Trials of a run on fresh items: near ties go on for ever."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Kind:
    """One kind of instance: a problem and its table of outcomes."""

    name: str
    problem: sb.Problem
    outcomes: Matrix


class Outcome(NamedTuple):
    """What one run showed."""

    wrong: bool
    """The answer is further below the best arm than the tolerance."""
    eliminated: bool
    """The first best arm is no candidate."""
    open: bool
    """Nothing is decided."""
    trials: int


def _pair(correlation: float, n: int = 40) -> Matrix:
    """Returns 0/1 outcomes of two tied arms with about this correlation; half of each row are 1."""
    same = round(n * (1 + correlation) / 4)
    first = np.repeat([1.0, 0.0], n // 2)
    return np.array([first, np.roll(first, n // 2 - same)])


def _scores(n_arms: int, n: int = 40) -> Matrix:
    """Returns scores of tied arms that share most of what makes an item hard."""
    rng = np.random.default_rng(n_arms)
    ease, own = rng.uniform(0.3, 0.6, n), rng.uniform(-0.1, 0.1, (n_arms, n))
    scores: Matrix = ease + own - own.mean(axis=1, keepdims=True)
    return scores


def _heavy(n: int = 60) -> Matrix:
    """Returns scores of two tied arms that are nearly equal but on two items, each of which decides."""
    table = 0.5 + 0.01 * np.array([np.ones(n), -np.ones(n)]) * np.where(np.arange(n) % 2, 1, -1)
    table[:, 0], table[:, 1] = (1.0, 0.0), (0.0, 1.0)
    return table


def _contrary(n_arms: int) -> Matrix:
    """Returns every combination of noise of +-1, on items that are easy or hard: sub-Gaussian with sigma = 1."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * n_arms)).reshape(n_arms, -1)
    return np.concatenate([signs + effect for effect in (-5.0, 0.0, 20.0)], axis=1)


def kinds() -> list[Kind]:
    """Returns the instances."""
    pair, path = sb.Graph.from_edges(2, []), sb.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)])
    groups = sb.Graph.from_categories(["a", "a", "b", "b"])
    slope = np.array([[0.3], [0.2], [0.1], [0.0]])
    apart = np.array([[0.06], [0.0], [0.06], [0.0]])
    gap = np.array([[0.06], [0.0]])
    scores, two = _scores(4), _scores(2)
    R_path = path.smoothness((scores + slope).mean(axis=1)) * (1 + ROUNDING)
    R_groups = groups.roughness_by_component((scores + apart).mean(axis=1)) * (1 + ROUNDING)
    binary = (scores + slope > 0.5).astype(float)
    R_binary = path.smoothness(binary.mean(axis=1)) * (1 + ROUNDING)
    opposed = np.clip(0.9 * _pair(-0.9) + gap, 0, 1)
    ranged: list[tuple[str, sb.Graph, float | Vector, Matrix, float]] = [
        ("tied, together", pair, math.inf, _pair(0.9), 0.0),
        ("tied, opposed", pair, math.inf, _pair(-0.9), 0.0),
        ("tied, one item decides", pair, math.inf, _heavy(), 0.0),
        ("scores, tied", pair, math.inf, two, 0.0),
        ("opposed, just over the tolerance", pair, math.inf, opposed, 0.05),
        ("scores, just over the tolerance", pair, math.inf, two + gap, 0.055),
        ("path, scores, S(mu) = R", path, R_path, scores + slope, 0.0),
        ("path, 0 or 1, S(mu) = R", path, R_binary, binary, 0.0),
        ("path, tolerance", path, R_path, scores + slope, 0.095),
        ("categories, S(mu) = R", groups, R_groups, scores + apart, 0.0),
        ("categories, tolerance", groups, R_groups, scores + apart, 0.055),
    ]
    made = []
    for place in ("fresh", "list"):
        for name, graph, R, table, tolerance in ranged:
            items = sb.Items.fresh() if place == "fresh" else sb.Items.listed(table.shape[1])
            problem = sb.Problem.bounded(
                graph, R, tolerance=tolerance, binary=bool(np.isin(table, (0, 1)).all()), items=items
            )
            made.append(Kind(f"{place}, {name}", problem, table))
    signs = sb.Problem(pair, math.inf, 1.0, items=sb.Items.fresh())
    made.append(Kind("fresh, sigma known, tied", signs, _contrary(2)))
    made.append(
        Kind("fresh, sigma known, tolerance", replace(signs, tolerance=0.5), _contrary(2) + np.array([[0.51], [0.0]]))
    )
    return made


def run(kind: Kind, seed: int) -> Outcome:
    """Returns what the run of one seed shows."""
    end = simulate.replay(SpectralRace(kind.problem, DELTA), kind.outcomes, seed, MOST_TRIALS)
    mu = kind.outcomes.mean(axis=1)
    wrong = bool(mu[end.arm] < mu.max() - kind.problem.tolerance - ROUNDING)
    best = int(np.argmax(mu >= mu.max() - ROUNDING))
    decided = end.status == "decided"
    eliminated = end.candidates is not None and best not in end.candidates
    return Outcome(wrong and decided, eliminated, not decided, end.tau)


def main() -> int:
    """Prints the table and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="runs per kind of instance")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read by the workers when they start

    table = Table(
        *("instance", "wrong", "at most", "best eliminated", "at most", "undecided", "trials", "table", "ms a run"),
        title=f"Bets on items, delta = {DELTA}, {options.runs} runs each; exact {CONFIDENCE:.1%} limits",
    )
    console, failed, total = Console(width=150), [], 0.0
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
        for kind in kinds():
            begin = time.perf_counter()
            runs = list(executor.map(partial(run, kind), range(options.runs), chunksize=max(1, options.runs // 100)))
            seconds = time.perf_counter() - begin
            total += seconds
            wrong, eliminated = (sum(getattr(one, name) for one in runs) for name in ("wrong", "eliminated"))
            cells = [
                text
                for count in (wrong, eliminated)
                for text in (f"{count / len(runs):.4f}", f"{limits(count, len(runs))[1]:.4f}")
            ]
            undecided = sum(one.open for one in runs) / len(runs)
            trials = sum(one.trials for one in runs) / len(runs)
            size = "" if kind.problem.items == sb.Items.fresh() else str(kind.outcomes.size)
            table.add_row(
                kind.name, *cells, f"{undecided:.3f}", f"{trials:.0f}", size, f"{1e3 * seconds / len(runs):.0f}"
            )
            console.print(
                f"{kind.name}: {wrong} wrong, {eliminated} eliminated of {len(runs)}, {seconds:.0f} s",
                style="dim",
                highlight=False,
            )
            if any(limits(count, len(runs))[0] > DELTA for count in (wrong, eliminated)):
                failed.append(kind.name)
    console.print(table)
    console.print(f"{total:.0f} s.", highlight=False)
    console.print(
        f"[red]Not as it should be: {', '.join(failed)}[/red]" if failed else f"No rate is above {DELTA}.",
        highlight=False,
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
