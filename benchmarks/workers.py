"""What working at the same time costs: the samples of eight workers against those of one.

`python -m benchmarks.workers [--runs N] [--jobs N]`. Each worker asks for one trial, which takes a random time that
does not depend on its outcome, and tells its result. As in a study, a block is opened ahead only when every slot is
handed out. Both runs of a pair see the same outcomes: the k-th pull of an arm is the same number in both.

Times are between 0.5 and 1.5 ("alike"), or exponential ("unlike"): then some results come so late that about twenty
others have to wait for them, because blocks close in order.
"""

from __future__ import annotations

import argparse
import heapq
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from spectralbai.policy import Policy

WORKERS = 8
TIMES: dict[str, Callable[[np.random.Generator], float]] = {
    "alike": lambda rng: rng.uniform(0.5, 1.5),
    "unlike": lambda rng: rng.exponential(),
}
MOST = 100_000
"""Results after which a run is given up."""


def instances() -> dict[str, sb.Instance]:
    paper = sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01)
    return {
        "paper's example": sb.Instance(paper, [0.9, 0.5, 0.6]),
        "4 x 4 grid": sb.instances.grid(4, 4, lead=0.2),
        "21 arms, cliques": sb.instances.cliques(4, 5, seed=0),
        "51 arms, cliques": sb.instances.cliques(5, 10, seed=0),
    }


def samples(policy: Policy, mu: np.ndarray, workers: int, times: str, seed: int) -> int:
    """Returns the number of results told until the decision."""
    draw = policy.problem.noise.draws(mu, None)
    streams = [np.random.default_rng((seed, arm)) for arm in range(mu.size)]
    delays = np.random.default_rng((seed, mu.size))
    state, now = policy.init(), 0.0
    out: list[tuple[float, int, int]] = []  # when a trial ends, its arm, its block
    while state.samples < MOST:
        while len(out) < workers:
            pending = np.bincount([arm for _, arm, _ in out], minlength=mu.size)
            arms, blocks = policy.ask_slots(state, 1, pending)
            if not arms.size:
                ahead = policy.open(state)
                if ahead is state or len(ahead.blocks) == len(state.blocks):
                    break
                state = ahead
                continue
            heapq.heappush(out, (now + TIMES[times](delays), int(arms[0]), int(blocks[0])))
        if not out:
            return int(policy.verdict(state).stopped_at or state.samples)
        now, arm, block = heapq.heappop(out)
        state = policy.tell(state, [arm], draw(streams[arm], np.array([arm])), [block])
        if policy.verdict(state).stopped_at is not None:
            return state.samples
    raise RuntimeError(f"no decision after {MOST} results")


def row(instance: sb.Instance, runs: int, executor: ProcessPoolExecutor) -> list[str]:
    """Returns the mean of one worker, and for each kind of times the ratio to it with two standard errors."""
    assert instance.mu is not None
    run = partial(samples, sb.SpectralRace.on(instance, delta=0.05), instance.mu)

    def taken(workers: int, times: str) -> np.ndarray:
        return np.array(list(executor.map(partial(run, workers, times), range(runs))), dtype=float)

    one, cells = taken(1, "alike"), []
    for times in TIMES:
        many = taken(WORKERS, times)
        ratio = many.mean() / one.mean()
        error = (many - ratio * one).std(ddof=1) / np.sqrt(runs) / one.mean()
        cells.append(f"{ratio:.3f} ± {2 * error:.3f}")
    return [f"{one.mean():,.0f}", *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    columns = (f"{WORKERS} workers, times {times}" for times in TIMES)
    table = Table("instance", "one worker", *columns, title="Samples until the decision; ratios ± two standard errors")
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as executor:
        for name, instance in instances().items():
            table.add_row(name, *row(instance, options.runs, executor))
            print(f"{name}: done", file=sys.stderr, flush=True)
    Console().print(table)


if __name__ == "__main__":
    main()
