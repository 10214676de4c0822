"""What asking and telling cost: `python -m benchmarks.study [--quick]`. K = 100 on SQLite, with few and many results stored.

A result that makes a check due pays for the new allocation; those are reported apart.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb

INSTANCE = sb.instances.cliques(10, 10)
TRIALS = 1_000


def fill(url: str, results: int) -> None:
    """Makes a study with that many results, shared evenly: it must not decide."""
    problem = sb.Problem(INSTANCE.problem.graph, INSTANCE.problem.R, sigma=100.0)  # nothing is decided for long
    rng = np.random.default_rng(0)
    with sb.Study.create("bench", sb.Instance(problem), 0.05, url) as study:
        arms = np.arange(results) % problem.n_arms
        outcomes = 100.0 * rng.standard_normal(results)
        study.add([str(arm) for arm in arms], outcomes.tolist(), "before")


def timed(url: str) -> tuple[float, dict[str, np.ndarray]]:
    """Returns the seconds to open the study and be ready to ask, and milliseconds of each ask and tell, with re-solves apart."""
    begin = time.perf_counter()
    study = sb.Study.open("bench", url)
    study.snapshot()
    opening = time.perf_counter() - begin
    rng = np.random.default_rng(1)
    spent: dict[str, list[float]] = {"ask": [], "tell": [], "tell with re-solve": []}
    with study:
        for _ in range(TRIALS):
            begin = time.perf_counter()
            ticket = study.ask()[0]
            asked = time.perf_counter()
            checks = study.snapshot().state.next_check
            before = time.perf_counter()
            study.tell(ticket, 100.0 * float(rng.standard_normal()))
            told = time.perf_counter()
            solved = study.snapshot().state.next_check != checks
            spent["ask"].append(1e3 * (asked - begin))
            spent["tell with re-solve" if solved else "tell"].append(1e3 * (told - before))
    return opening, {name: np.array(values) for name, values in spent.items()}


def main() -> None:
    many = 5_000 if "--quick" in sys.argv else 100_000
    console = Console(width=110)
    table = Table("results stored", "open (s)", "operation", "number", "median (ms)", "p99 (ms)", "max (ms)", title="K = 100, SQLite")
    p99: dict[tuple[int, str], float] = {}
    medians: dict[tuple[int, str], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        urls = {results: f"sqlite:///{Path(folder) / f'{results}.db'}" for results in (1_000, many)}
        for results, url in urls.items():
            fill(url, results)
        timed(urls[1_000])  # compiled code is loaded, files are in memory
        for results, url in urls.items():
            opening, spent = timed(url)
            for name, values in spent.items():
                if values.size:
                    medians[results, name], p99[results, name] = np.median(values), np.quantile(values, 0.99)
                    numbers = (f"{each:.2f}" for each in (medians[results, name], p99[results, name], values.max()))
                    table.add_row(f"{results:,}", f"{opening:.3f}", name, str(values.size), *numbers)
    console.print(table)
    for name in ("ask", "tell"):
        ratios = (each[many, name] / each[1_000, name] for each in (medians, p99))
        console.print(f"{name}: {many:,} results against 1,000: {next(ratios):.2f} times the median, {next(ratios):.2f} times the p99")


if __name__ == "__main__":
    main()
