"""How fast blocks, runs and the reproduction are, against targets and against the literal algorithm.

`python -m benchmarks.speed [--quick]`. Times are of the processor, which other work on the machine changes less than
those of the clock; `spectralbai reproduce` is timed by the clock, and its target is for two cores that do nothing else.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from spectralbai.sampling.tracking import floor, next_pulls, project_on_floor
from spectralbai.threads import one_thread

PAPER, MU = sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), 0.01), np.array([0.9, 0.5, 0.6])
SIZES = ((2, 10), (5, 10), (5, 20), (10, 20), (25, 20))
"""Cliques: how many, and of how many arms."""
BLOCK_TARGETS, RUN_TARGETS = {51: 0.015, 501: 0.5}, {51: 0.6, 501: 60.0}
"""Seconds, by the number of arms."""


def literal_seconds_per_sample(samples: int) -> float:
    """Times the loop of [KG20, Algorithm 1] with the functions of this package: at every step an estimate, 100
    iterations of mirror ascent, one pull, one check."""
    rng = np.random.default_rng(0)
    counts, sums, targets = np.ones(3), MU + rng.standard_normal(3), np.zeros(3)
    begin = time.process_time()
    for t in range(samples):
        means = sums / counts
        mu_tilde = sb.estimate(PAPER, counts, means)
        omega = sb.solve_allocation(PAPER, mu_tilde, solver="mirror-ascent", tol=1e-15, max_iterations=100).omega
        sb.closest_alternative(PAPER, means, counts, int(np.argmax(mu_tilde)))  # the statistic
        rate = project_on_floor(omega, floor(3, t))
        arm = next_pulls(targets, rate, counts, 1)[0]
        targets += rate
        counts[arm] += 1
        sums[arm] += MU[arm] + rng.standard_normal()
    return (time.process_time() - begin) / samples


def block_seconds(instance: sb.Instance, blocks: int) -> float:
    """Returns the median time of closing a block and planning the next, of blocks in the middle of a race."""
    assert instance.mu is not None
    policy, rng = sb.SpectralRace(instance.problem, 0.01), np.random.default_rng(0)
    draw = instance.problem.noise.draws(instance.mu)
    state, seconds = policy.init(), []
    with one_thread():
        for _ in range(2 * blocks):
            arms = policy.ask(state, policy.horizon(state))
            if not arms.size:
                break
            outcomes = draw(rng, arms)
            begin = time.process_time()
            state = policy.tell(state, arms, outcomes)
            seconds.append(time.process_time() - begin)
    return float(np.median(seconds[len(seconds) // 2 :]))


def timed_runs(instance: sb.Instance, seeds: int) -> tuple[float, float]:
    """Returns (mean samples, mean seconds) of races to a decision."""
    assert instance.mu is not None
    policy = sb.SpectralRace(instance.problem, 0.01)
    sb.simulate.run(policy, instance.mu, seed=10**6, max_samples=4 * instance.problem.n_arms)  # compiles
    begin = time.process_time()
    runs = [sb.simulate.run(policy, instance.mu, seed) for seed in range(seeds)]
    seconds = (time.process_time() - begin) / seeds
    assert all(run.status == "decided" and run.correct for run in runs)
    return float(np.mean([run.tau for run in runs])), seconds


def judged(seconds: float, target: float) -> str:
    return f"{target:g} s" + ("" if seconds <= target else " MISSED")


def main() -> None:
    quick = "--quick" in sys.argv
    console = Console(width=110)
    cliques = {(n, size): sb.instances.cliques(n, size, seed=0) for n, size in (SIZES[:2] if quick else SIZES)}
    table = Table("arms", "seconds a block", "target", title="Closing a block and planning the next, one core")
    for n, size in cliques:
        seconds = block_seconds(cliques[n, size], 40)
        target = BLOCK_TARGETS.get(n * size + 1)
        table.add_row(str(n * size + 1), f"{seconds:.4f}", "" if target is None else judged(seconds, target))
    console.print(table)

    table = Table(
        *("instance", "arms", "mean samples", "seconds a run", "µs a sample", "target"),
        title="Races to a decision, delta = 0.01, one core",
    )
    runs = [("paper's example", sb.Instance(PAPER, MU), 50)]
    runs += [(f"{n} cliques of {size}", made, 10 if n * size < 100 else 1) for (n, size), made in cliques.items()]
    for name, instance, seeds in runs:
        tau, seconds = timed_runs(instance, seeds)
        target = RUN_TARGETS.get(instance.problem.n_arms)
        table.add_row(
            *(name, str(instance.problem.n_arms), f"{tau:.0f}", f"{seconds:.2f}", f"{seconds / tau * 1e6:.0f}"),
            "" if target is None else judged(seconds, target),
        )
        if name == "paper's example":
            ours = seconds / tau
    console.print(table)

    with one_thread():
        literal = literal_seconds_per_sample(50 if quick else 200)
    console.print(
        f"literal algorithm: {literal * 1e6:.0f} µs a sample, ours {ours * 1e6:.0f}: {literal / ours:.0f} times as fast"
    )
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "spectralbai", "reproduce", "--out", folder],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        seconds = time.perf_counter() - begin
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    console.print(
        f"spectralbai reproduce: {seconds:.0f} s including start-up, target {judged(seconds, 25.0)}; "
        f"{usage.ru_utime + usage.ru_stime:.0f} s of the processors"
    )


if __name__ == "__main__":
    main()
