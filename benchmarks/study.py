"""What asking and telling cost: `python -m benchmarks.study [--quick]`. K = 100 on SQLite, with few and many results
stored.

A result that closes a block pays for bets and the next plan; those are reported apart.
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
TRIALS = 2_000


def fill(url: str, results: int) -> None:
    """Makes a study with that many results, shared evenly: it must not decide."""
    problem = sb.Problem(INSTANCE.problem.graph, INSTANCE.problem.R, sigma=100.0)  # nothing is decided for long
    rng = np.random.default_rng(0)
    with sb.Study.create("bench", sb.Instance(problem), 0.05, url) as study:
        arms = np.arange(results) % problem.n_arms
        outcomes = 100.0 * rng.standard_normal(results)
        study.add([str(arm) for arm in arms], outcomes.tolist(), "before")


def opened(url: str) -> tuple[sb.Study, float]:
    """Returns the study, and the seconds until it was ready to ask."""
    begin = time.perf_counter()
    study = sb.Study.open("bench", url)
    study.snapshot()
    return study, time.perf_counter() - begin


def trial(study: sb.Study, outcome: float, spent: dict[str, list[float]], before: list[sb.study.Ticket]) -> None:
    """Asks and tells once, and writes down the milliseconds; `before` holds the ticket told last, if any.

    Nothing else is read in between, because the caches of the processor would then be cold. A result has closed its
    block if the next ticket is of another one, so its time moves to the other list then.
    """
    begin = time.perf_counter()
    ticket = study.ask()[0]
    asked = time.perf_counter()
    study.tell(ticket, outcome)
    told = time.perf_counter()
    if before and ticket.block != before.pop().block:
        spent["tell that closes"].append(spent["tell"].pop())
    before.append(ticket)
    spent["ask"].append(1e3 * (asked - begin))
    spent["tell"].append(1e3 * (told - asked))


def main() -> None:
    many = 5_000 if "--quick" in sys.argv else 100_000
    console = Console(width=110)
    table = Table(
        "results stored",
        "open (s)",
        "operation",
        "number",
        "median (ms)",
        "p99 (ms)",
        "max (ms)",
        title="K = 100, SQLite",
    )
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        urls = {results: f"sqlite:///{Path(folder) / f'{results}.db'}" for results in (1_000, many)}
        for results, url in urls.items():
            fill(url, results)
        studies = {results: opened(url) for results, url in urls.items()}
        spent: dict[int, dict[str, list[float]]] = {
            results: {"ask": [], "tell": [], "tell that closes": []} for results in urls
        }
        last: dict[int, list[sb.study.Ticket]] = {results: [] for results in urls}
        for _ in range(TRIALS):  # in turn, so that the noise of the machine is the same for both
            for results, (study, _) in studies.items():
                trial(study, 100.0 * float(rng.standard_normal()), spent[results], last[results])
        for study, _ in studies.values():
            study.close()
    for results, by_name in spent.items():
        for name, values in by_name.items():
            if values:
                numbers = (f"{each:.2f}" for each in (np.median(values), np.quantile(values, 0.99), max(values)))
                table.add_row(f"{results:,}", f"{studies[results][1]:.3f}", name, str(len(values)), *numbers)
    console.print(table)
    for name in ("ask", "tell"):
        median, p99 = (np.quantile(spent[many][name], q) / np.quantile(spent[1_000][name], q) for q in (0.5, 0.99))
        console.print(f"{name}: {many:,} results against 1,000: {median:.2f} times the median, {p99:.2f} times the p99")


if __name__ == "__main__":
    main()
