"""How long the page of a study of 2,000 options takes to appear: `python -m benchmarks.page`. One process of the
service on SQLite, and Chromium on the same machine, without a window."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from benchmarks.service import SPAWN, serve
from tests.service.chromium import MISSING, Page, chromium

OPTIONS, CATEGORIES, RESULTS = 2000, 40, 6000
ROWS_OF_GRID, FEW_RESULTS = 40, 1200
TIMES = 5
ROWS = "return document.querySelectorAll('.options tbody tr').length"
FORECAST = "return !document.querySelector('.figures').textContent.includes('being computed')"
DRAWN = "return document.querySelector('.race path.line') && document.querySelector('.graph .node')"


def catalogue(storage: str) -> None:
    """Makes a study of many options, with results."""
    rng = np.random.default_rng(1)
    rates = np.clip(rng.uniform(0.1, 0.9, CATEGORIES)[np.arange(OPTIONS) % CATEGORIES], 0, 1)
    graph = sb.Graph.from_categories([f"category {arm % CATEGORIES:02d}" for arm in range(OPTIONS)])
    problem = sb.Problem.bounded(graph, np.full(CATEGORIES, 0.05), 0.0, 1.0, 0.02, binary=True)
    labels = tuple(f"option {arm:04d}" for arm in range(OPTIONS))
    with sb.Studies(storage) as studies:
        study = studies.create("catalogue", sb.Instance(problem, labels=labels), 0.05)
        while (told := study.status().results) < RESULTS:
            tickets = study.ask(min(2000, RESULTS - told))
            study.tell_many([(each, float(rng.random() < rates[each.arm])) for each in tickets])


def connected(storage: str) -> None:
    """Makes a study of as many options on a grid, with results of its first blocks."""
    rng = np.random.default_rng(1)
    instance = sb.instances.grid(ROWS_OF_GRID, OPTIONS // ROWS_OF_GRID, lead=0.5, sigma=0.5)
    assert instance.mu is not None
    with sb.Studies(storage) as studies:
        study = studies.create("connected", sb.Instance(instance.problem), 0.05)
        told = 0
        while told < FEW_RESULTS:
            tickets = study.ask(FEW_RESULTS - told)
            told += study.tell_many([(each, instance.mu[each.arm] + 0.5 * rng.standard_normal()) for each in tickets])


def measure(page: Page, url: str, name: str) -> dict[str, list[float]]:
    """Returns the seconds until each part is there, for each time; the first time the service has just started."""
    seconds: dict[str, list[float]] = {
        "answer and options": [],
        "found by a search": [],
        "race and graph": [],
        "forecast": [],
    }
    for _ in range(TIMES):
        begun = time.perf_counter()
        page.open(f"{url}/#/study/{name}")
        seconds["answer and options"].append(waited(page, begun, lambda: page.js(ROWS) == 25))
        searched = time.perf_counter()
        page.fill("#find", "1999")
        seconds["found by a search"].append(waited(page, searched, lambda: page.js(ROWS) == 1))
        seconds["race and graph"].append(waited(page, begun, lambda: page.js(DRAWN)))
        seconds["forecast"].append(waited(page, begun, lambda: page.js(FORECAST)))
    return seconds


def waited(page: Page, begun: float, what: Callable[[], object]) -> float:
    """Returns the seconds since `begun` once something is true."""
    page.until(what, "the page", seconds=120)
    return time.perf_counter() - begun


def main() -> None:
    """Prints a table of each kind of study."""
    if MISSING:
        print(f"The page is not measured; not installed: {', '.join(MISSING)}")
        return
    for name, make in (("catalogue", catalogue), ("connected", connected)):
        with tempfile.TemporaryDirectory() as folder:
            storage = f"sqlite:///{Path(folder) / 'studies.db'}"
            make(storage)
            ours, theirs = SPAWN.Pipe()
            process = SPAWN.Process(target=serve, args=(storage, theirs), daemon=True)
            process.start()
            with chromium() as page:
                seconds = measure(page, ours.recv(), name)
            process.terminate()
            process.join()
        table = Table("seconds", "first", "median", "worst", title=f"A page of {OPTIONS:,} options: {name}")
        for part, each in seconds.items():
            table.add_row(part, f"{each[0]:.2f}", f"{np.median(each):.2f}", f"{max(each):.2f}")
        Console().print(table)


if __name__ == "__main__":
    main()
