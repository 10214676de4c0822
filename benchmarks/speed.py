"""How fast runs are: against the literal algorithm, and against K. `python -m benchmarks.speed [--quick]`."""

from __future__ import annotations

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


def literal_seconds_per_sample(samples: int) -> float:
    """Times [KG20, Algorithm 1] as printed: at every step an estimate, 100 iterations of mirror ascent, one pull,
    one check."""
    rng = np.random.default_rng(0)
    counts, sums, targets = np.ones(3), MU + rng.standard_normal(3), np.zeros(3)
    begin = time.perf_counter()
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
    return (time.perf_counter() - begin) / samples


def timed_runs(instance: sb.Instance, seeds: int) -> tuple[float, float]:
    """Returns (mean samples, mean seconds) of runs to a decision."""
    assert instance.mu is not None
    policy = sb.SpectralTaS(instance.problem, 0.01)
    sb.simulate.run(policy, instance.mu, seed=10**6, max_samples=100)  # compiles
    begin = time.perf_counter()
    runs = [sb.simulate.run(policy, instance.mu, seed) for seed in range(seeds)]
    seconds = (time.perf_counter() - begin) / seeds
    assert all(run.status == "decided" for run in runs)
    return float(np.mean([run.tau for run in runs])), seconds


def main() -> None:
    quick = "--quick" in sys.argv
    console = Console(width=110)
    table = Table(
        "instance",
        "arms",
        "mean samples",
        "seconds a run",
        "µs a sample",
        title="Runs to a decision, delta = 0.01, one core",
    )
    cases = [("paper's example", sb.Instance(PAPER, MU), 50)]
    sizes = ((2, 10), (5, 10)) if quick else ((2, 10), (5, 10), (5, 20), (10, 20), (25, 20))
    cases += [
        (f"{n} cliques of {size}", sb.instances.cliques(n, size, seed=0), 5 if n * size < 100 else 1)
        for n, size in sizes
    ]
    for name, instance, seeds in cases:
        tau, seconds = timed_runs(instance, seeds)
        table.add_row(name, str(instance.problem.n_arms), f"{tau:.0f}", f"{seconds:.2f}", f"{seconds / tau * 1e6:.0f}")
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
            [sys.executable, "-m", "spectralbai.cli", "reproduce", "--out", folder],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        console.print(f"spectralbai reproduce: {time.perf_counter() - begin:.0f} s including start-up")


if __name__ == "__main__":
    main()
