"""Time to a certified allocation, against peers run in the same process. `python -m benchmarks.allocation [--peers N]`.

All six seeds of a kind are solved and certified; the peer, which takes minutes, solves the first N of them (all by
default).

Times are the best of three for this package (the first call in a process also loads compiled code) and one run for
the peers. The certificate is asserted before a time is printed.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from benchmarks.peers import cone_program, paper_algorithm, paper_oracle

Maker = Callable[[int], sb.Instance]


def clock(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def certified(instance: sb.Instance, tol: float) -> tuple[sb.Allocation, float]:
    """Returns an allocation certified to `tol` and the seconds it takes."""
    problem, mu = instance.problem, instance.mu
    assert mu is not None
    allocation = sb.solve_allocation(problem, mu, tol=tol)
    assert allocation.status == "certified" and allocation.gap <= tol, allocation
    value = sb.closest_alternative(problem, mu, allocation.omega, best=allocation.best).cost
    assert abs(value / allocation.lower - 1) < 1e-9, "f(omega) recomputed must agree"
    return allocation, min(clock(lambda: sb.solve_allocation(problem, mu, tol=tol)) for _ in range(3))


def against_cone_program(console: Console, n_peers: int) -> None:
    kinds: list[tuple[str, Maker]] = [
        ("100 arms, 5 nearest neighbours", lambda seed: sb.instances.nearest_neighbors(100, 5, seed=seed)),
        ("100 arms, five cliques", lambda seed: sb.instances.cliques(5, 20, lone_best=False, seed=seed)),
        ("200 arms, 5 nearest neighbours", lambda seed: sb.instances.nearest_neighbors(200, 5, seed=seed)),
        ("200 arms, ten cliques", lambda seed: sb.instances.cliques(10, 20, lone_best=False, seed=seed)),
    ]
    headers = ("instance", "seed", "steps", "gap", "T*", "seconds", "CVXPY seconds", "ratio")
    table = Table(*headers, title="Certified to 1e-6, against CVXPY + Clarabel")
    for name, make in kinds:
        for seed in range(6):
            instance = make(seed)
            assert instance.mu is not None
            allocation, seconds = certified(instance, 1e-6)
            cells = [
                f"{allocation.iterations}",
                f"{allocation.gap:.0e}",
                f"{allocation.characteristic_time:.1f}",
                f"{seconds:.3f}",
            ]
            if seed < n_peers:
                begin = time.perf_counter()
                peer = cone_program(instance.problem, instance.mu)
                peer_seconds = time.perf_counter() - begin
                assert abs(peer / allocation.characteristic_time - 1) < 1e-3, (peer, allocation.characteristic_time)
                cells += [f"{peer_seconds:.1f}", f"{peer_seconds / seconds:.0f}"]
            table.add_row(name, str(seed), *cells)
            print(f"  {name}, seed {seed}: {' '.join(cells)}", file=sys.stderr)
    console.print(table)


def against_the_paper(console: Console) -> None:
    headers = ("instance", "one step", "as printed", "ratio", "f(omega) after 200 calls / optimum")
    table = Table(*headers, title="The paper's algorithm, written literally")
    for n_arms in (10, 30, 100):
        instance = sb.instances.nearest_neighbors(n_arms, 5, seed=0)
        problem, mu = instance.problem, instance.mu
        assert mu is not None
        omega = np.full(n_arms, 1 / n_arms)
        expected = sb.closest_alternative(problem, mu, omega).lam
        assert np.allclose(paper_oracle(problem, mu, omega), expected, atol=1e-6)
        ours = min(clock(lambda p=problem, m=mu, o=omega: sb.closest_alternative(p, m, o)) for _ in range(3))  # type: ignore[misc]
        peer = clock(lambda p=problem, m=mu, o=omega: paper_oracle(p, m, o))  # type: ignore[misc]
        reached = "-"
        if n_arms <= 30:
            average = paper_algorithm(problem, mu, 200)
            optimum = sb.solve_allocation(problem, mu).lower
            reached = f"{sb.closest_alternative(problem, mu, average).cost / optimum:.2f}"
        table.add_row(
            f"{n_arms} arms, nearest neighbours", f"{ours:.5f} s", f"{peer:.3f} s", f"{peer / ours:.0f}", reached
        )
    console.print(table)


def growth(console: Console, sizes: tuple[int, ...], title: str, make: Maker, tol: float) -> None:
    table = Table("arms", "steps", "gap", "seconds", "exponent", title=title)
    previous: tuple[int, float] | None = None
    for size in sizes:
        instance = make(size)
        allocation, seconds = certified(instance, tol)
        n_arms = instance.problem.n_arms
        exponent = "" if previous is None else f"{math.log(seconds / previous[1]) / math.log(n_arms / previous[0]):.1f}"
        table.add_row(str(n_arms), str(allocation.iterations), f"{allocation.gap:.0e}", f"{seconds:.3f}", exponent)
        previous = n_arms, seconds
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time to a certified allocation")
    parser.add_argument("--peers", type=int, default=6, help="how many of the six instances of a kind CVXPY solves too")
    n_peers = parser.parse_args().peers
    console = Console(width=120)
    growth(
        console,
        (3, 5, 10, 25, 50),
        "Cliques of 20 and a lone best arm, to 1e-6",
        lambda n: sb.instances.cliques(n, 20, seed=0),
        1e-6,
    )
    growth(
        console,
        (50, 100, 200, 400),
        "5 nearest neighbours, to 1e-6",
        lambda n: sb.instances.nearest_neighbors(n, 5, seed=0),
        1e-6,
    )
    against_the_paper(console)
    against_cone_program(console, n_peers)


if __name__ == "__main__":
    main()
