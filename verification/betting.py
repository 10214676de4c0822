"""The betting rule, measured: `python -m verification.betting [--runs N] [--workers N]`.

Every kind of instance is run for some thousand samples at most, at delta = 0.1, past its decision: what is counted is
how often the wealth against a best arm, or against R, ever reaches 1/delta. With a tolerance the wealth of a wrong
leader against the best arm counts too. Both rates are at most delta for each best arm, by Ville's inequality; wrong
answers are rarer. Then a hundred and more runs with an R that is wrong: most must end in a refutation, hardly any in a
wrong answer. Exit code 1 if an exact one-sided 99.9 % lower limit of a rate exceeds delta, or a wrong R is believed.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from spectralbai import simulate
from spectralbai.noise import Drawing
from spectralbai.policy import Policy, SpectralRace, Uniform, Verdict
from spectralbai.stopping.accounts import Accounts
from verification.coverage import CONFIDENCE, limits

DELTA = 0.1
NEVER = 1e-12
"""The risk at which a race goes on after it would have decided."""


@dataclass(frozen=True)
class Kind:
    """One kind of instance: a problem, its true means, how outcomes are drawn, and the samples of a run."""

    name: str
    problem: sb.Problem
    mu: tuple[float, ...]
    samples: int = 200
    noise: Drawing | None = None
    uniform: bool = False
    """Whether all arms are pulled equally often, instead of a race."""


class Seen(NamedTuple):
    """What one run showed."""

    crossed: bool
    """The wealth against the first best arm reached 1/delta."""
    refuted: bool
    """The wealth against R did."""
    wrong: bool
    """Some wrong leader had beaten the first best arm."""


def _problem(
    n_arms: int, edges: list[tuple[int, int]], R: float, sigma: float | list[float] = 1.0, tolerance: float = 0.0
) -> sb.Problem:
    return sb.Problem(sb.Graph.from_edges(n_arms, [(a, b, 1.0) for a, b in edges]), R, sigma, tolerance)


def _triangle(first: int) -> list[tuple[int, int]]:
    return [(first, first + 1), (first, first + 2), (first + 1, first + 2)]


def kinds() -> list[Kind]:
    """Returns the instances: small, near or at a null, so that bets go wrong as often as they can."""
    chain = [(a, a + 1) for a in range(4)]
    pair = sb.Graph.from_edges(2, [])
    joined = sb.Graph.from_edges(3, [(1, 2, 1.0)])
    rates = sb.Problem.bounded(pair, math.inf, binary=True)
    return [
        Kind("two tied arms", _problem(2, [], R=1.0), (0.0, 0.0)),
        Kind("two tied arms, uniform", _problem(2, [], R=1.0), (0.0, 0.0), uniform=True),
        Kind("near tie", _problem(2, [], R=1.0), (0.0, 0.1)),
        Kind("five tied arms", _problem(5, [], R=1.0), (0.0,) * 5),
        Kind("two joined arms, tied", _problem(2, [(0, 1)], R=0.1), (0.0, 0.0)),
        Kind("two joined arms, S(mu) = R", _problem(2, [(0, 1)], R=0.09), (0.0, 0.3)),
        Kind("path, S(mu) = R", _problem(5, chain, R=0.44), (0.0, 0.2, 0.4, 0.6, 0.6 + math.sqrt(0.32))),
        Kind("path, near tie, S(mu) = R", _problem(5, chain, R=2.0025), (0.0, 1.0, 0.95, 0.95, -0.05)),
        Kind("components of two arms", _problem(6, [(0, 1), (2, 3), (4, 5)], R=0.02), (0.1, 0.0, 0.1, 0.0, 0.1, 0.1)),
        Kind("cliques, lone best arm", _problem(7, _triangle(1) + _triangle(4), R=0.2), (0.3, *(0.2,) * 6)),
        Kind("sigma per arm, tied", _problem(3, [(1, 2)], R=0.1, sigma=[1.0, 0.2, 3.0]), (0.5, 0.5, 0.5)),
        Kind("rates of a half, tied", rates, (0.5, 0.5)),
        Kind("rates near 0, tied", rates, (0.03, 0.03), samples=600),
        Kind("rates near 1", sb.Problem.bounded(joined, R=0.01, binary=True), (0.97, 0.96, 0.96), samples=400),
        Kind("rates, S(mu) = R", sb.Problem.bounded(joined, R=0.0225, binary=True), (0.5, 0.35, 0.5)),
        Kind("scores", sb.Problem.bounded(joined, R=0.01), (0.75, 0.7, 0.75), noise=0.05),
        Kind("scores at the ends", sb.Problem.bounded(pair, math.inf), (0.5, 0.5), noise=0.45),
        Kind(
            "tolerance, leaders change", _problem(4, [(0, 1), (2, 3)], R=0.2, tolerance=0.3), (0.31, 0.0, 0.0, 0.0), 200
        ),
        Kind("just over the tolerance", _problem(3, [], R=1.0, tolerance=0.5), (0.0, 0.51, 0.0), 200),
        Kind(
            "rates, tolerance",
            sb.Problem.bounded(joined, R=0.01, binary=True, tolerance=0.1),
            (0.61, 0.5, 0.5),
            200,
        ),
    ]


def run(kind: Kind, seed: int) -> Seen:
    """Returns what the run of one seed shows: it goes on whatever the accounts say.

    The plans are those of a race at a risk that is never reached, and nothing is ever settled.
    """
    policy: Policy = (Uniform if kind.uniform else SpectralRace)(kind.problem, NEVER)
    mu = np.array(kind.mu)
    draw = kind.problem.noise.draws(mu, kind.noise)
    rng, state = np.random.default_rng(seed), policy.init()
    while state.samples < kind.samples:
        state = replace(state, verdicts=(Verdict(),)) if state.settled else state
        state = state if state.blocks else policy.open(state)
        arms = policy.ask(state, policy.horizon(state))
        state = policy.tell(state, arms, draw(rng, arms))
    accounts = state.stopping["betting"]
    assert isinstance(accounts, Accounts)
    goal, best = -math.log(DELTA), int(np.argmax(mu))
    wrong = False
    if accounts.leaders is not None:
        over = mu[best] >= mu[accounts.leaders.leaders] + kind.problem.tolerance  # leaders who are wrong
        wrong = bool((accounts.leaders.peak[over, best] >= goal).any())
    return Seen(bool(accounts.arms.peak[best] >= goal), bool(accounts.R.peak[0] >= goal), wrong)


class Belief(NamedTuple):
    """A wrong R, and how runs with it may end."""

    mu: tuple[float, ...]
    least_refuted: float
    most_wrong: float


BELIEFS = (Belief((0.9, 0.4, 0.8), 0.75, 0.0), Belief((1.4, 0.4, 1.5), 0.9, 0.01))
WRONG_R = 0.01


def believe(mu: tuple[float, ...], seed: int) -> tuple[str, bool]:
    """Returns (status, whether the answer is right) of one race with R = 0.01."""
    problem = _problem(3, [(1, 2)], R=WRONG_R)
    ended = simulate.run(SpectralRace(problem, 0.01), mu, seed, max_samples=50_000)
    return ended.status, ended.correct


def main() -> int:
    """Prints the tables and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="runs per kind of instance")
    parser.add_argument("--beliefs", type=int, default=200, help="runs per wrong R")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read by the workers when they start

    table = Table(
        *("instance", "best arm", "at most", "R", "at most", "wrong leader", "at most", "ms a run"),
        title=f"Wealth that reaches 1/delta, delta = {DELTA}, {options.runs} runs each; exact {CONFIDENCE:.1%} limits",
    )
    console, failed, total = Console(width=150), [], 0.0
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
        for kind in kinds():
            begin = time.perf_counter()
            seen = list(executor.map(partial(run, kind), range(options.runs), chunksize=max(1, options.runs // 200)))
            seconds = time.perf_counter() - begin
            total += seconds
            counts = [sum(getattr(one, name) for one in seen) for name in Seen._fields]
            cells = [
                text for count in counts for text in (f"{count / len(seen):.4f}", f"{limits(count, len(seen))[1]:.4f}")
            ]
            table.add_row(kind.name, *cells, f"{1e3 * seconds / len(seen):.0f}")
            console.print(
                f"{kind.name}: {counts[0]}, {counts[1]} and {counts[2]} of {len(seen)}, {seconds:.0f} s",
                style="dim",
                highlight=False,
            )
            if any(limits(count, len(seen))[0] > DELTA for count in counts):
                failed.append(kind.name)
        console.print(table)
        for mu, least_refuted, most_wrong in BELIEFS:
            ends = list(executor.map(partial(believe, mu), range(options.beliefs), chunksize=5))
            refuted = sum(status == "inconsistent" for status, _ in ends)
            wrong = sum(status == "decided" and not right for status, right in ends)
            console.print(
                f"R = {WRONG_R} and means {mu}: {refuted} refuted, {wrong} wrong, of {len(ends)}", highlight=False
            )
            if refuted < least_refuted * len(ends) or wrong > math.ceil(most_wrong * len(ends)):
                failed.append(f"wrong R, means {mu}")
    console.print(f"{total:.0f} s.", highlight=False)
    console.print(
        f"[red]Not as it should be: {', '.join(failed)}[/red]" if failed else f"No rate is above {DELTA}.",
        highlight=False,
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
