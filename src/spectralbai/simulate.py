"""Simulated runs of a policy on given means: one run for one seed, or many runs on an Executor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from spectralbai.arrays import Vector, check_table, check_vector
from spectralbai.checks import LARGEST_COUNT, check_integer
from spectralbai.drift import Drift
from spectralbai.errors import InvalidInput
from spectralbai.noise import Drawing
from spectralbai.policy import Policy
from spectralbai.tape import TableTape, Tape
from spectralbai.threads import one_thread
from spectralbai.trace import Trace as Trace
from spectralbai.trace import trace as trace

RunStatus = Literal["decided", "truncated", "inconsistent"]


@dataclass(frozen=True, eq=False)
class Run:
    """The result of one stopping rule on one simulated run.

    Examples:
        >>> import spectralbai as sb
        >>> policy = sb.SpectralRace(sb.Problem(sb.Graph.from_edges(2, []), R=0.01), delta=0.05)
        >>> run = sb.simulate.run(policy, mu=[3.0, 0.0], seed=1)
        >>> int(run.counts.sum()) >= run.tau, run.candidates, run.proved
        (True, (0,), True)
    """

    status: RunStatus
    """"decided"; "inconsistent": the data contradicted R; "truncated": `max_samples` was reached first."""
    tau: int
    """Number of samples when the rule ended."""
    arm: int
    """The arm recommended at the end."""
    correct: bool
    """Whether that arm is a right answer."""
    counts: Vector
    """Pulls per arm over the whole run."""
    rule: str
    delta: float
    proved: bool
    seed: int
    candidates: tuple[int, ...] | None = None
    """The arms that may still be best, as in `Verdict`."""


def run(
    policy: Policy,
    mu: ArrayLike,
    seed: int,
    max_samples: int = 1_000_000,
    noise: Drawing | None = None,
    drift: Drift | None = None,
) -> Run:
    """Returns one simulated run of the policy on the true means `mu` (n_arms,).

    `noise` is "gaussian" by default. For `Problem.bounded` it is "bernoulli" (outcomes at the ends of the range, the
    default there), "uniform" (as wide as the range allows around each mean), or a positive number: scores with that
    standard deviation, from Beta distributions. Binary outcomes are always "bernoulli". On fresh items, outcomes of
    different arms on one item are independent; `replay` draws them as a table has them, and takes lists of items.

    With a `drift`, means change with time, and `mu` are those without it; see `spectralbai.drift`.

    Examples:
        >>> import spectralbai as sb
        >>> from spectralbai.drift import Jump
        >>> policy = sb.SpectralRace(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01), delta=0.05)
        >>> run = sb.simulate.run(policy, mu=[3.0, 0.5, 0.6], seed=1)
        >>> run.status, run.arm, run.correct
        ('decided', 0, True)
        >>> sb.simulate.run(policy, mu=[3.0, 0.5, 0.6], seed=1, drift=Jump(5.0, at=10)).arm
        0
    """
    return watch(policy, mu, seed, max_samples, noise, drift)[0]


@dataclass(frozen=True)
class Spread:
    """Mean, deviation and quantiles of how many samples runs took; NaN if there are too few runs."""

    mean: float
    half_width: float
    """Half of the 95 % interval of the mean (Student's)."""
    std: float
    q05: float
    median: float
    q95: float

    @classmethod
    def of(cls, taus: Sequence[int]) -> Spread:
        """Returns the mean, deviation and quantiles of these numbers of samples."""
        tau = np.array(taus, dtype=float)
        if not tau.size:
            return cls(*(math.nan,) * 6)
        std = float(tau.std(ddof=1)) if tau.size > 1 else math.nan
        half = float(stdtrit(tau.size - 1, 0.975)) * std / math.sqrt(tau.size) if tau.size > 1 else math.nan
        return cls(float(tau.mean()), half, std, *(float(q) for q in np.quantile(tau, (0.05, 0.5, 0.95))))


def seed_of(*key: int) -> int:
    """Returns the seed of a run from the numbers that identify it: the user's seed first, then cell and run."""
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0])


def watch(
    policy: Policy,
    mu: ArrayLike,
    seed: int,
    max_samples: int = 1_000_000,
    noise: Drawing | None = None,
    drift: Drift | None = None,
) -> list[Run]:
    """Returns one `Run` per (rule, delta) pair of the policy, all from the same pulls and outcomes.

    The k-th outcome of an arm depends on the seed, the arm and k only: other policies, rules and values of R meet the
    same luck with the same seed, so compare them run by run.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01)
        >>> policy = sb.SpectralTaS(problem, delta=0.1, watching=(("betting", 0.001), ("gk16", 0.1)))
        >>> [(run.rule, run.delta, run.arm) for run in sb.simulate.watch(policy, [3.0, 0.5, 0.6], seed=1)]
        [('betting', 0.1, 0), ('betting', 0.001, 0), ('gk16', 0.1, 0)]
    """
    problem = policy.problem
    seed = check_integer("seed", seed, 0)
    mu = check_vector("mu", mu, problem.n_arms)  # may be rougher than R, to simulate what a wrong R leads to
    return _played(policy, Tape.of(problem, mu, seed, noise, drift), mu, max_samples)


def _played(policy: Policy, tape: Tape, mu: Vector, max_samples: int) -> list[Run]:
    """Returns one `Run` per (rule, delta) pair of the policy, played on a tape whose outcomes have means `mu`."""
    max_samples = check_integer("max_samples", max_samples, 1, LARGEST_COUNT)
    choices = np.random.default_rng((tape.seed, 1))  # for randomised policies
    with one_thread():
        state = policy.play(tape, max_samples, choices)
    runs = []
    for index, (rule, delta) in enumerate(policy.rules):
        seen = policy.verdict(state, index)
        status: RunStatus = "decided" if seen.decided else "truncated" if seen.consistent else "inconsistent"
        correct = bool(mu[seen.arm] >= mu.max() - policy.problem.tolerance)
        answer = status, seen.stopped_at or state.samples, seen.arm, correct
        runs.append(Run(*answer, state.counts, rule, delta, seen.proved, tape.seed, seen.candidates))
    return runs


def replay(policy: Policy, table: ArrayLike, seed: int, max_samples: int = 1_000_000) -> Run:
    """Returns one run of the policy on a table of outcomes, shape (n_arms, n_items), in an order drawn with the seed.

    A list of items is the table itself, tried at most once. Fresh items are columns drawn with replacement, and without
    items every trial is a random entry of its arm's row. The answer is right or wrong by the means of the rows.

    Examples:
        >>> import numpy as np
        >>> import spectralbai as sb
        >>> table = np.random.default_rng(0).random((2, 300)) * 0.5 + [[0.0], [0.3]]
        >>> graph, items = sb.Graph.from_edges(2, []), sb.Items.listed(300)
        >>> policy = sb.SpectralRace(sb.Problem.bounded(graph, R=np.inf, tolerance=0.05, items=items), delta=0.05)
        >>> run = sb.simulate.replay(policy, table, seed=0)
        >>> run.arm, run.correct, run.tau < 600
        (1, True, True)
    """
    return watch_table(policy, table, seed, max_samples)[0]


def watch_table(policy: Policy, table: ArrayLike, seed: int, max_samples: int = 1_000_000) -> list[Run]:
    """Returns one `Run` per (rule, delta) pair of the policy, all from the same trials on a table, as in `replay`.

    The k-th item, or without items the k-th outcome of an arm, depends on the seed but not on the policy.

    Examples:
        >>> import numpy as np
        >>> import spectralbai as sb
        >>> table = np.random.default_rng(0).random((2, 300)) * 0.5 + [[0.0], [0.3]]
        >>> problem = sb.Problem.bounded(sb.Graph.from_edges(2, []), R=np.inf, tolerance=0.05)
        >>> policy = sb.SpectralTaS(problem, delta=0.1, watching=(("betting", 0.01),))
        >>> [(run.delta, run.arm) for run in sb.simulate.watch_table(policy, table, seed=0)]
        [(0.1, 1), (0.01, 1)]
    """
    problem = policy.problem
    outcomes = check_table(table, problem.n_arms)
    seed = check_integer("seed", seed, 0)
    items, n_items = problem.items, outcomes.shape[1]
    if items is not None and items.n not in (None, n_items):
        raise InvalidInput(f"`table` must have {items.n} columns, {items.described()}, got {n_items}")
    problem.noise.check_outcomes("table", outcomes.ravel())
    tape = TableTape(outcomes, items is not None and items.n is None, seed)
    return _played(policy, tape, outcomes.mean(axis=1), max_samples)


def watch_many(
    policy: Policy,
    mu: ArrayLike,
    seeds: Sequence[int],
    executor: Executor | None = None,
    max_samples: int = 1_000_000,
    noise: Drawing | None = None,
    drift: Drift | None = None,
) -> Iterator[list[Run]]:
    """Returns an iterator over the results of `watch` for every seed, in order. The workers of `executor`, if given,
    start at once; results do not depend on the executor.

    Examples:
        >>> import spectralbai as sb
        >>> policy = sb.SpectralRace(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01), delta=0.05)
        >>> [run.arm for (run,) in sb.simulate.watch_many(policy, [3.0, 0.5, 0.6], seeds=range(3))]
        [0, 0, 0]
    """
    job = partial(watch, policy, mu, max_samples=max_samples, noise=noise, drift=drift)
    return executor.map(job, seeds) if executor is not None else map(job, seeds)
