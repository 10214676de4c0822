"""Connected graphs of thousands of options: the time to close a block and plan the next, and the memory.

`python -m benchmarks.large [--quick]` races on graphs of 5 nearest neighbours in 2 and 3 dimensions, each in a process
of its own, on one core. Times are of the processor, of blocks in the middle of a race. Exit code 1 if a target is
missed.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from spectralbai.threads import one_thread

BLOCKS, FIRST = 24, 12
"""Blocks of each race, and the first of those that are timed."""
TARGETS = {2000: 0.5, 10_000: 3.0}
"""Seconds, by the number of options."""
MEMORY, EXPONENT = 1000.0, 1.4
"""Megabytes for 10,000 options, and the growth of time from 1,000 to 10,000."""


class Measured(NamedTuple):
    """Seconds and megabytes of one race."""

    n_arms: int
    dimensions: int
    opening: float
    """Until the first block is open, without making the graph."""
    closing: float
    """Median of the blocks timed."""
    slowest: float
    memory: float


def measured(n_arms: int, dimensions: int) -> Measured:
    """Returns the times of a race on a random graph."""
    made = sb.instances.smooth_instance(
        lambda rng: sb.Graph.from_features(rng.random((n_arms, dimensions)), 5), lead=0.5
    )
    assert made.mu is not None
    rng, draw, seconds = np.random.default_rng(0), made.problem.noise.draws(made.mu), []
    with one_thread():
        began = time.process_time()
        policy = sb.SpectralRace(made.problem, 0.01)
        state = policy.init()
        opening = time.process_time() - began
        for _ in range(BLOCKS):
            arms = policy.ask(state, policy.horizon(state))
            if not arms.size:
                break
            outcomes = draw(rng, arms)
            began = time.process_time()
            state = policy.tell(state, arms, outcomes)
            seconds.append(time.process_time() - began)
    middle = seconds[FIRST:]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return Measured(n_arms, dimensions, opening, float(np.median(middle)), max(middle), memory)


def main() -> None:
    """Prints a table, and whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the sizes that have a target")
    quick = parser.parse_args().quick
    cases = [(n, d) for d in (2, 3) for n in (1000, 2000, 10_000)]
    cases += [] if quick else [(30_000, 2), (5000, 8)]
    table, console = Table("options", "dimensions", "first block", "a block", "slowest", "MB"), Console()
    found: dict[tuple[int, int], Measured] = {}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for case in cases:
            found[case] = one = pool.submit(measured, *case).result()
            numbers = (f"{one.opening:.2f} s", f"{one.closing:.2f} s", f"{one.slowest:.2f} s", f"{one.memory:,.0f}")
            table.add_row(f"{one.n_arms:,}", str(one.dimensions), *numbers)
    console.print(table)
    missed = []
    for (n, d), one in found.items():
        if one.closing > TARGETS.get(n, math.inf) or (n == 10_000 and one.memory > MEMORY):
            missed.append(f"{n:,} options in {d} dimensions")
    for d in (2, 3):
        exponent = math.log10(found[10_000, d].closing / found[1000, d].closing)
        console.print(f"in {d} dimensions time grows as the number of options to the power of {exponent:.2f}")
        if exponent > EXPONENT:
            missed.append(f"growth in {d} dimensions")
    console.print(f"missed: {', '.join(missed)}" if missed else "all targets are met")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
