"""How many samples the race takes: against targets, the lower bound, the omniscient racer, and without the graph.

`python -m benchmarks.samples [--quick] [--jobs N]`; every row is also printed to stderr as soon as it is known.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from benchmarks.omniscient import samples_to_prove
from spectralbai.campaign import Campaign
from spectralbai.noise import Drawing
from spectralbai.policy import Policy, Race
from spectralbai.simulate import watch_many

STUDY = Path(__file__).parent.parent / "examples" / "study.toml"
QUICK = 10
"""--quick does one run in so many."""
PAIRED = 50
"""Runs with and without the graph."""


@dataclass(frozen=True)
class Case:
    """An instance, and what the race should not exceed on it."""

    name: str
    instance: sb.Instance
    target: float
    """Mean samples, or with `of_bound` their ratio to the lower bound."""
    delta: float = 0.01
    runs: int = 200
    noise: Drawing | None = None
    of_bound: bool = False


def paper(R: float) -> sb.Instance:
    return sb.Instance(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R), [0.9, 0.5, 0.6])


def clicks() -> sb.Instance:
    graph = sb.Graph.from_edges(3, [(1, 2)])
    return sb.Instance(sb.Problem.bounded(graph, 0.01, binary=True), [0.15, 0.05, 0.07])


def pages() -> sb.Instance:
    """Returns thirty pages with three features: click rates from 2 to 7 %, and the best one 2 points above."""
    features = np.random.default_rng(3).random((30, 3))
    graph = sb.Graph.from_features(features, 4)
    y = features @ np.array([1, 0.5, 0.3])
    mu = 0.02 + 0.05 * (y - y.min()) / (y.max() - y.min())
    mu[mu.argmax()] += 0.02
    return sb.Instance(sb.Problem.bounded(graph, 1.5 * graph.smoothness(mu), binary=True), mu)


def ranked_pages() -> sb.Instance:
    """Returns thirty pages in a row, joined to their neighbours: the best three close together, the others below."""
    mu = np.array([0.08, 0.0753, 0.0745, *np.linspace(0.073, 0.02, 27)])
    graph = sb.Graph.from_edges(30, [(page, page + 1) for page in range(29)])
    return sb.Instance(sb.Problem.bounded(graph, 1.5 * graph.smoothness(mu), tolerance=0.01, binary=True), mu)


def scores() -> sb.Instance:
    """Returns a 6 x 8 grid of scores between .7 and .8."""
    made = sb.instances.grid(6, 8, lead=0.05, seed=2)
    assert made.mu is not None
    mu = 0.7 + 0.1 * (made.mu - made.mu.min()) / (made.mu.max() - made.mu.min())
    graph = made.problem.graph
    return sb.Instance(sb.Problem.bounded(graph, 1.5 * graph.smoothness(mu), tolerance=0.01), mu)


def without_graph(instance: sb.Instance) -> sb.Instance:
    return sb.Instance(replace(instance.problem, R=math.inf), instance.mu)


def cases() -> list[Case]:
    """Returns the table of targets, cheap rows first."""
    made, cliques, example = sb.instances, sb.instances.cliques(5, 10, seed=0), paper(0.01)
    return [
        Case("paper's example, R = .01", example, 700),
        Case("the same, R = .1", paper(0.1), 880),
        Case("the same, R = .01", example, 1.4, delta=1e-4, of_bound=True),
        Case("the same, R = .01", example, 1.28, delta=1e-8, of_bound=True),
        Case("the same, R = .01", example, 1.15, delta=1e-16, of_bound=True),
        Case("clicks, rates .15, .05, .07", clicks(), 950, delta=0.05),
        Case("51 arms, cliques", cliques, 1300),
        Case("karate club", made.karate_club(lead=0.2), 2000),
        Case("5 x 5 grid", made.grid(5, 5, lead=0.2), 1850),
        Case("51 arms, R = inf", without_graph(cliques), 5600),
        Case("5 x 5 grid, tolerance .2", made.grid(5, 5, lead=0.2, tolerance=0.2), 1200),
        Case("path of 12, tolerance .1", made.path(12, tolerance=0.1), 4500),
        Case("5 x 5 grid, lead .05, tolerance .1", made.grid(5, 5, lead=0.05, tolerance=0.1), 2800),
        Case("scores of spread .02, tolerance .01", scores(), 1300, delta=0.05, noise=0.02),
        Case("30 pages, clicks", pages(), 30_000, delta=0.05, runs=20),
        Case("30 pages in a row, clicks, tolerance .01", ranked_pages(), 40_000, delta=0.05, runs=20),
        Case("501 arms, cliques", made.cliques(25, 20, seed=0), 33_000, runs=5),
    ]


def taus(policy: Policy, case: Case, runs: int, executor: Executor) -> np.ndarray:
    """Returns the samples of each run; every answer is asserted to be right."""
    assert case.instance.mu is not None
    results = [each[0] for each in watch_many(policy, case.instance.mu, range(runs), executor, noise=case.noise)]
    assert all(run.status == "decided" and run.correct for run in results), case.name
    return np.array([run.tau for run in results], dtype=float)


def measured(case: Case, runs: int, executor: Executor) -> list[str]:
    """Returns a row of the table of targets; those exceeded by more than two standard errors are marked."""
    tau = taus(sb.SpectralRace.on(case.instance, delta=case.delta), case, runs, executor)
    prove = partial(samples_to_prove, case.instance, case.delta, noise=case.noise)
    known = float(np.mean(list(executor.map(prove, range(runs)))))
    mean, error = float(tau.mean()), standard_error(tau)
    bound = math.nan
    if case.instance.problem.noise.divergence is not None:
        assert case.instance.mu is not None
        bound = sb.lower_bound(case.instance.problem, case.instance.mu, case.delta)
    missed = mean - 2 * error > case.target * (bound if case.of_bound else 1.0)
    return [
        case.name,
        f"{case.delta:g}",
        str(runs),
        f"{mean:,.0f} ± {2 * error:,.0f}",
        "" if math.isnan(bound) else f"{bound:,.0f}",
        "" if math.isnan(bound) else f"{mean / bound:.2f}",
        f"{known:,.0f}",
        f"{mean / known:.2f}",
        (f"ratio {case.target:g}" if case.of_bound else f"{case.target:,.0f}") + (" MISSED" if missed else ""),
    ]


def compared(case: Case, runs: int, executor: Executor) -> list[str]:
    """Returns a row on the race with and without the graph, from the same seeds."""
    aware, blind = (
        taus(kind.on(case.instance, delta=case.delta), case, runs, executor) for kind in (sb.SpectralRace, Race)
    )
    saved = blind - aware
    return [
        case.name,
        str(runs),
        *(f"{each.mean():,.0f} ± {2 * standard_error(each):,.0f}" for each in (aware, blind, saved)),
        "the graph costs" if saved.mean() + 2 * standard_error(saved) < 0 else "",
    ]


def standard_error(tau: np.ndarray) -> float:
    return float(tau.std(ddof=1) / math.sqrt(tau.size))


def said(row: Sequence[str]) -> Sequence[str]:
    """Returns the row after showing it: the whole table takes long."""
    print("  " + " | ".join(row), file=sys.stderr, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help=f"one run in {QUICK}")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    share = QUICK if options.quick else 1
    targets = Table(
        *("instance", "delta", "runs", "mean ± 2 s.e.", "bound", "ratio", "omniscient", "ratio", "target"),
        title="Samples of the race until the decision; no answer was wrong",
    )
    graph = Table(
        *("instance", "runs", "with the graph", "without it", "saved ± 2 s.e.", ""),
        title="The race with and without the graph, delta = 0.01, same seeds; no answer was wrong",
    )
    study = Campaign.from_toml(STUDY.read_text())
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as executor:
        for case in cases():
            targets.add_row(*said(measured(case, max(case.runs // share, 3), executor)))
        for each in study.instances:
            case = Case(each.name, each.instance, math.inf, noise=each.noise)
            graph.add_row(*said(compared(case, max(PAIRED // share, 3), executor)))
    console = Console(width=140)
    console.print(targets)
    console.print(graph)


if __name__ == "__main__":
    main()
