"""How many samples the default rule takes, against the lower bound and without the graph.

`python -m benchmarks.samples [--quick]`.
"""

from __future__ import annotations

import math
import sys
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb

DELTAS = (1e-1, 1e-2, 1e-4, 1e-8, 1e-16)


def read_off(
    table: Table,
    name: str,
    problem: sb.Problem,
    mu: np.ndarray,
    runs: int,
    executor: Executor,
    deltas: tuple[float, ...],
) -> float:
    """Adds a row per delta, read off the same runs; returns the mean tau of the first."""
    policy = sb.SpectralTaS(problem, deltas[0], watching=tuple(("mixture", delta) for delta in deltas[1:]))
    results = list(sb.simulate.watch_many(policy, mu, range(runs), executor))
    means = []
    for index, delta in enumerate(deltas):
        cell = [result[index] for result in results]
        tau = np.array([run.tau for run in cell])
        assert all(run.status == "decided" for run in cell)
        half = 1.96 * tau.std(ddof=1) / math.sqrt(runs)
        bound = sb.lower_bound(problem, mu, delta)
        errors = sum(not run.correct for run in cell)
        mean, ratio = f"{tau.mean():.0f} ± {half:.0f}", f"{tau.mean() / bound:.2f} ± {half / bound:.2f}"
        table.add_row(name, f"{delta:g}", str(runs), mean, f"{np.median(tau):.0f}", f"{bound:.0f}", ratio, str(errors))
        means.append(float(tau.mean()))
        print(f"  {name}, delta {delta:g}: {tau.mean():.0f}", file=sys.stderr)
    return means[0]


def main() -> None:
    few = 10 if "--quick" in sys.argv else 1
    title = "Samples of the default rule (mixture, proved); intervals of 95 %"
    table = Table("instance", "delta", "runs", "mean tau", "median", "lower bound", "ratio", "errors", title=title)
    graph, mu = sb.Graph.from_edges(3, [(1, 2)]), np.array([0.9, 0.5, 0.6])
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        read_off(table, "paper's example, R = 0.01", sb.Problem(graph, 0.01), mu, 500 // few, executor, (0.01,))
        read_off(table, "the same, several risks", sb.Problem(graph, 0.01), mu, 100 // few, executor, DELTAS)
        cliques = sb.instances.cliques(5, 10, seed=0)
        assert cliques.mu is not None
        problem = cliques.problem
        with_graph = read_off(table, "51 arms in cliques", problem, cliques.mu, 50 // few, executor, (0.01,))
        without = sb.Problem(problem.graph, math.inf)
        alone = read_off(table, "the same without the graph", without, cliques.mu, 20 // few, executor, (0.01,))
    console = Console(width=130)
    console.print(table)
    console.print(
        f"51 arms: {alone / with_graph:.1f} times fewer samples with the graph than without it, same proved rule"
    )


if __name__ == "__main__":
    main()
