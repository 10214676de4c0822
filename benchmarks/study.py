"""What asking and telling cost: `python -m benchmarks.study [--quick]`. K = 100 on SQLite, with few and many results
stored, and on a list of 100,000 items.

A result that closes a block pays for bets and the next plan; those are reported apart.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb

INSTANCE = sb.instances.cliques(10, 10)
TRIALS, ITEMS = 2_000, 100_000


def fill(url: str, results: int) -> None:
    """Makes a study with that many results, shared evenly: it must not decide."""
    graph, R = INSTANCE.problem.graph, INSTANCE.problem.R
    problem = sb.Problem(graph, R, sigma=100.0, tolerance=0.1)  # nothing is decided for long
    rng = np.random.default_rng(0)
    with sb.Study.create("bench", sb.Instance(problem), 0.05, url) as study:
        arms = np.arange(results) % problem.n_arms
        outcomes = 100.0 * rng.standard_normal(results)
        study.add([str(arm) for arm in arms], outcomes.tolist(), "before")


def fill_items(url: str, items: int) -> None:
    """Makes a study on a list of that many items."""
    problem = sb.Problem.bounded(sb.Graph.from_edges(100, []), math.inf, tolerance=0.001, items=sb.Items.listed(items))
    names = [f"question {number}" for number in range(items)]
    sb.Study.create("bench", sb.Instance(problem), 0.05, url, items=names).close()


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
    table = Table("study", "operation", "number", "median (ms)", "p99 (ms)", "max (ms)", title="K = 100, SQLite")
    rng = np.random.default_rng(1)
    few, stored, listed = "1,000 results", f"{many:,} results", f"{ITEMS:,} items"
    makers = {few: (fill, 1_000), stored: (fill, many), listed: (fill_items, ITEMS)}
    spent: dict[str, dict[str, list[float]]] = {name: {} for name in makers}
    with tempfile.TemporaryDirectory() as folder:
        studies: dict[str, sb.Study] = {}
        for name, (make, n) in makers.items():
            url = f"sqlite:///{Path(folder) / name}.db"
            begin = time.perf_counter()
            make(url, n)
            spent[name]["create and fill"] = [1e3 * (time.perf_counter() - begin)]
            studies[name], seconds = opened(url)
            spent[name]["open"] = [1e3 * seconds]
            spent[name] |= {each: [] for each in ("ask", "tell", "tell that closes", "status")}
        last: dict[str, list[sb.study.Ticket]] = {name: [] for name in studies}
        for number in range(TRIALS):  # in turn, so that the noise of the machine is the same for all
            for name, study in studies.items():
                noise = float(rng.standard_normal())
                outcome = 100.0 * noise if name != listed else float(np.clip(0.5 + 0.2 * noise, 0.0, 1.0))
                trial(study, outcome, spent[name], last[name])
                if number % 50 == 49:
                    begin = time.perf_counter()
                    study.status()
                    spent[name]["status"].append(1e3 * (time.perf_counter() - begin))
        for study in studies.values():
            study.close()
    for name, by_operation in spent.items():
        for operation, values in by_operation.items():
            if values:
                numbers = (f"{each:.2f}" for each in (np.median(values), np.quantile(values, 0.99), max(values)))
                table.add_row(name, operation, str(len(values)), *numbers)
    console.print(table)
    for name in (stored, listed):
        for operation in ("ask", "tell", "status"):
            median, p99 = (
                np.quantile(spent[name][operation], q) / np.quantile(spent[few][operation], q) for q in (0.5, 0.99)
            )
            console.print(f"{operation}: {name} against {few}: {median:.2f} times the median, {p99:.2f} times the p99")


if __name__ == "__main__":
    main()
