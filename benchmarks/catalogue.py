"""Catalogues: how time and memory grow with the number of options, and how many trials they take.

`python -m benchmarks.catalogue [--quick]` drives studies on SQLite with 20 categories, a lone best option at .9 and
R_c = 1.5 S_c, from 500 to 20,001 options, each size in a process of its own; solves the allocation of catalogues of
other shapes; and races the target instances and others.
"""

from __future__ import annotations

import argparse
import math
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from spectralbai.planning import plan

CATEGORIES = 20
TRIALS = 150
SHAPES = ((50, 100), (5, 1000))
"""Categories, and options of each, whose allocation is solved; a lone best option is added, or is one of them."""


class Measured(NamedTuple):
    """Seconds, and megabytes, for one number of options."""

    n_arms: int
    first_ask: float
    ask: float
    """The slowest of a hundred, the first one apart."""
    tell: float
    """The same of results that close no block."""
    closing: float
    """The slowest result that closes a block: bets are settled, and the next block is planned."""
    status: float
    quick_plan: float
    solve: float
    gap: float
    """Relative gap of the bounds of T*."""
    memory: float
    storage: float


def measured(size: int, spread: float) -> Measured:
    """Returns the times of a study of 20 categories of `size` options, and of a plan for it."""
    made = sb.instances.catalogue(CATEGORIES, size, spread=spread)
    assert made.mu is not None
    mean_of = dict(zip(made.labels, made.mu.tolist(), strict=True))
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "studies.db")
        started = time.perf_counter()
        study = sb.Study.create("shop", sb.Instance(made.problem), delta=0.01, storage=f"sqlite:///{file}")
        tickets = study.ask(1)
        first = time.perf_counter() - started
        asked: list[float] = []
        told: list[float] = []
        closed: list[float] = []
        for _ in range(TRIALS):
            outcome = mean_of[tickets[0].label] + float(rng.standard_normal())
            before = study.snapshot().state.data.samples
            now = time.perf_counter()
            study.tell(tickets[0], outcome)
            took = time.perf_counter() - now
            (closed if study.snapshot().state.data.samples > before else told).append(took)
            now = time.perf_counter()
            tickets = study.ask(1)
            asked.append(time.perf_counter() - now)
        now = time.perf_counter()
        study.status()
        status = time.perf_counter() - now
        storage = file.stat().st_size / 1e6
        study.close()
    now = time.perf_counter()
    plan(made, 0.01, runs=0)
    quick_plan = time.perf_counter() - now
    now = time.perf_counter()
    solved = sb.solve_allocation(made.problem, made.mu, tol=1e-3)
    solve = time.perf_counter() - now
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    slowest = (np.quantile(told, 0.99), np.quantile(asked, 0.99), max(closed))
    return Measured(
        made.problem.n_arms, first, slowest[1], slowest[0], slowest[2], status, quick_plan, solve, solved.gap, memory,
        storage,
    )  # fmt: skip


def solved(n: int, size: int, lone: bool, noisy: bool) -> tuple[int, float, sb.Allocation]:
    """Returns (options, seconds, allocation) of a catalogue; if `noisy`, sigma is uniform in [.5, 2]."""
    sigma = np.random.default_rng(1).uniform(0.5, 2.0, n * size + lone) if noisy else 1.0
    made = sb.instances.catalogue(n, size, lone_best=lone, spread=0.003, sigma=sigma)
    assert made.mu is not None
    now = time.perf_counter()
    found = sb.solve_allocation(made.problem, made.mu, tol=1e-3)
    return made.problem.n_arms, time.perf_counter() - now, found


def race(size: int, spread: float, R: float | None, seed: int) -> tuple[int, bool, int]:
    """Returns (samples, whether the answer is right, options tried) of one race; `R` stands in for those of the
    categories."""
    made = sb.instances.catalogue(CATEGORIES, size, spread=spread)
    assert made.mu is not None
    problem = made.problem if R is None else sb.Problem(made.problem.graph, R)
    run = sb.simulate.run(sb.SpectralRace(problem, 0.01), made.mu, seed)
    return run.tau, run.correct, int((run.counts > 0).sum())


def binary(levels: tuple[float, float], spread: float, lead: float, lone: bool) -> sb.Instance:
    """Returns 20 categories of 50 options with binary outcomes; the best one, by `lead`, is inside one or alone."""
    rng = np.random.default_rng(0)
    labels = [f"category {c}" for c in range(CATEGORIES) for _ in range(50)] + ["alone"] * lone
    mu = np.repeat(rng.uniform(*levels, CATEGORIES), 50) + spread * rng.standard_normal(CATEGORIES * 50)
    mu = np.clip(mu, 0.002, 0.998)
    best = mu.size if lone else int(rng.integers(mu.size))
    others = np.delete(mu, best) if best < mu.size else mu
    mu = np.insert(others, best, others.max() + lead)
    graph = sb.Graph.from_categories(labels)
    R = 1.5 * graph.roughness_by_component(mu)
    return sb.Instance(sb.Problem.bounded(graph, R, low=0, high=1, binary=True), mu)


def five_good() -> sb.Instance:
    """Returns 20 categories of 50 options, five of them good, and the best option inside one of these."""
    rng = np.random.default_rng(5)
    level = np.concatenate([rng.uniform(0.2, 0.5, CATEGORIES - 5), np.linspace(0.55, 0.6, 5)])
    mu = np.repeat(level, 50) + 0.01 * rng.standard_normal(CATEGORIES * 50)
    mu[(CATEGORIES - 1) * 50 + 3] = 0.9
    graph = sb.Graph.from_categories([f"category {c}" for c in range(CATEGORIES) for _ in range(50)])
    return sb.Instance(sb.Problem(graph, 1.5 * graph.roughness_by_component(mu)), mu)


OTHERS: dict[str, tuple[Callable[[], sb.Instance], float, range]] = {
    "20 x 100, inside": (
        partial(sb.instances.catalogue, 20, 100, lone_best=False, spread=0.003),
        0.01,
        range(100, 125),
    ),
    "20 x 50, inside": (partial(sb.instances.catalogue, 20, 50, lone_best=False), 0.01, range(20)),
    "20 x 50, five good": (five_good, 0.01, range(32)),
    "2,001 alone": (partial(sb.instances.catalogue, 2000, 1), 0.01, range(6)),
    "binary, .02 to .06, inside": (partial(binary, (0.02, 0.06), 0.001, 0.03, False), 0.05, range(40)),
    "binary, .2 to .6, inside": (partial(binary, (0.2, 0.6), 0.005, 0.2, False), 0.05, range(30)),
    "binary, .02 to .06, alone": (partial(binary, (0.02, 0.06), 0.001, 0.03, True), 0.05, range(30)),
    "binary, .2 to .6, alone": (partial(binary, (0.2, 0.6), 0.005, 0.2, True), 0.05, range(40)),
}
"""Other instances: how they are made, the risk, and the seeds of the runs."""


def other_race(name: str, seed: int) -> tuple[int, bool]:
    """Returns (samples, whether the answer is right) of one race on one of `OTHERS`."""
    make, delta, _ = OTHERS[name]
    made = make()
    assert made.mu is not None
    run = sb.simulate.run(sb.SpectralRace(made.problem, delta), made.mu, seed)
    return run.tau, run.correct


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 2,001 options, and few races")
    quick = parser.parse_args().quick
    console = Console()
    sizes = ((25, 0.006), (100, 0.003)) if quick else ((25, 0.006), (100, 0.003), (400, 0.002), (1000, 0.002))
    rows = []
    for size, spread in sizes:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:  # memory of one size only
            rows.append(pool.submit(measured, size, spread).result())
    table = Table(title="seconds; p99 of ask and tell, the slowest closing", box=None)
    names = (
        "options",
        "first ask",
        "ask",
        "tell",
        "closing",
        "status",
        "plan --quick",
        "solve",
        "gap",
        "MB",
        "MB stored",
    )
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            f"{row.n_arms:,}", *(f"{value:.3f}" for value in row[1:9]), *(f"{value:.1f}" for value in row[9:])
        )
    growth = [
        math.log(last / first) / math.log(rows[-1].n_arms / rows[0].n_arms)
        for first, last in zip(rows[0][1:], rows[-1][1:], strict=True)
    ]
    table.add_row("growth", *(f"{each:.2f}" for each in growth))
    console.print(table)
    console.print("growth: the exponent e of options^e between the first and the last row")

    table = Table(title="allocations, tol = 1e-3, spread .003", box=None)
    for name in ("categories", "best option", "sigma", "options", "seconds", "steps", "gap", "T*"):
        table.add_column(name, justify="right")
    for n, size in SHAPES:
        for lone, noisy in ((True, False), (False, False), (True, True), (False, True)):
            n_arms, took, found = solved(n, size, lone, noisy)
            table.add_row(
                f"{n} x {size:,}",
                "alone" if lone else "inside",
                ".5 to 2" if noisy else "1",
                f"{n_arms:,}",
                f"{took:.1f}",
                str(found.iterations),
                f"{found.gap:.1e}",
                f"{found.characteristic_time:,.1f}",
            )
    console.print(table)

    table = Table(title="samples to a decision, delta = .01", box=None)
    for name in ("instance", "R", "bound, at least", "samples", "se", "wrong", "options tried"):
        table.add_column(name, justify="right")
    targets = [(100, 0.003, None, 5 if quick else 20), (100, 0.003, math.inf, 1 if quick else 2)]
    targets += [] if quick else [(1000, 0.002, None, 5)]
    for size, spread, R, runs in targets:
        made = sb.instances.catalogue(CATEGORIES, size, spread=spread)
        assert made.mu is not None
        problem = made.problem if R is None else sb.Problem(made.problem.graph, R)
        bound = sb.lower_bound(problem, made.mu, 0.01)
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            ended = list(pool.map(race, *zip(*((size, spread, R, seed) for seed in range(runs)), strict=True)))
        taus = np.array([tau for tau, _, _ in ended])
        error = taus.std(ddof=1) / math.sqrt(runs) if runs > 1 else math.nan
        table.add_row(
            f"20 x {size:,}, spread {spread:g}",
            "1.5 S each" if R is None else f"{R:g}",
            f"{bound:,.0f}",
            f"{taus.mean():,.0f}",
            f"{error:,.0f}",
            str(sum(not right for _, right, _ in ended)),
            f"{np.mean([tried for _, _, tried in ended]):,.0f}",
        )
    console.print(table)

    table = Table(title="other instances", box=None)
    for name in ("instance", "bound, at least", "samples", "se", "wrong", "runs"):
        table.add_column(name, justify="right")
    for name, (make, delta, seeds) in OTHERS.items():
        made = make()
        assert made.mu is not None
        tried = seeds[:2] if quick else seeds
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            races = list(pool.map(other_race, [name] * len(tried), tried))
        taus = np.array([tau for tau, _ in races])
        table.add_row(
            name,
            f"{sb.lower_bound(made.problem, made.mu, delta):,.0f}",
            f"{taus.mean():,.0f}",
            f"{taus.std(ddof=1) / math.sqrt(taus.size):,.0f}",
            str(sum(not right for _, right in races)),
            str(taus.size),
        )
    console.print(table)


if __name__ == "__main__":
    main()
