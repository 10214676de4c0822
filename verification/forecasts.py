"""Forecasts of the trials still needed, measured: `python -m verification.forecasts [--runs N] [--workers N]`.

Races on nine kinds of instance, looked at when about a third, a half, two thirds and four fifths of their trials are
done: how often the forecast is right within a factor of two. Exit code 1 if, at half-time, the exact 99.9 % upper limit
of a rate is below 80 %. Forecasting as many trials as were done would always be right at half-time, and never at four
fifths; so all columns count.
"""

from __future__ import annotations

import argparse
import math
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from verification.coverage import limits

PARTS = (0.35, 0.5, 0.65, 0.8)
LEAST = 0.8


def kinds() -> dict[str, tuple[sb.Instance, float]]:
    """Returns the instances, with their risks."""
    joined = sb.Graph.from_edges(3, [(1, 2)])
    chain = sb.Graph.from_edges(8, [(a, a + 1) for a in range(7)])
    two = sb.Graph.from_edges(6, [(0, 1), (1, 2), (3, 4), (4, 5)])
    rates = [0.05, 0.06, 0.08, 0.10, 0.12, 0.16, 0.12, 0.10]
    apart = sb.Problem(sb.Graph.from_edges(6, []), R=math.inf)
    return {
        "paper's example": (sb.Instance(sb.Problem(joined, R=0.01), [0.9, 0.5, 0.6]), 0.05),
        "same, R = 0.1": (sb.Instance(sb.Problem(joined, R=0.1), [0.9, 0.5, 0.6]), 0.001),
        "21 arms, cliques": (sb.instances.cliques(4, 5, seed=0), 0.05),
        "5 x 5 grid": (sb.instances.grid(5, 5, lead=0.2), 0.01),
        "same, tolerance": (sb.instances.grid(5, 5, lead=0.2, tolerance=0.2), 0.01),
        "karate club": (sb.instances.karate_club(lead=0.2), 0.05),
        "no graph": (sb.Instance(apart, [1.0, 0.8, 0.7, 0.5, 0.5, 0.2]), 0.05),
        "path, clicks": (sb.Instance(sb.Problem.bounded(chain, 0.009, binary=True), rates), 0.05),
        "scores": (sb.Instance(sb.Problem.bounded(two, 0.02), [0.6, 0.65, 0.7, 0.5, 0.52, 0.45]), 0.05),
    }


def right(instance: sb.Instance, delta: float, seed: int) -> list[bool]:
    """Returns, for each part of one race, whether the forecast there was right within a factor of two."""
    policy, mu = sb.SpectralRace.on(instance, delta=delta), instance.mu
    assert mu is not None
    draw, rng, state = policy.problem.noise.draws(mu, None), np.random.default_rng(seed), policy.init()
    seen: list[tuple[int, float]] = []  # trials done, and forecast
    while (arms := policy.ask(state, policy.horizon(state))).size:
        state = policy.tell(state, arms, draw(rng, arms))
        seen.append((state.samples, policy.remaining(state)))
    forecasts = [min(seen, key=lambda at: abs(at[0] - part * state.samples)) for part in PARTS]
    return [0.5 <= forecast / max(state.samples - done, 1) <= 2.0 for done, forecast in forecasts]


def main() -> int:
    """Prints the table and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="races per kind of instance")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    table = Table("instance", *(f"at {part:.0%}" for part in PARTS), title="Forecasts right within a factor of two")
    console, failed = Console(width=110), []
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
        for name, (instance, delta) in kinds().items():
            found = np.array(list(executor.map(partial(right, instance, delta), range(options.runs))))
            table.add_row(name, *(f"{rate:.0%}" for rate in found.mean(axis=0)))
            wrong = int((~found[:, PARTS.index(0.5)]).sum())
            if limits(wrong, options.runs)[0] > 1 - LEAST:
                failed.append(name)
    console.print(table)
    console.print(
        f"[red]Below {LEAST:.0%}: {', '.join(failed)}[/red]"
        if failed
        else f"No rate at half-time is below {LEAST:.0%}."
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
