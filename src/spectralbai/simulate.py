"""Simulated runs: one policy, one vector of means, one seed; or many, on an Executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.checks import Indices, Vector, check_integer, check_vector
from spectralbai.errors import InvalidInput
from spectralbai.policy import Policy
from spectralbai.threads import one_thread

Noise = Literal["gaussian", "bernoulli", "uniform"]
Status = Literal["decided", "truncated", "inconsistent"]


@dataclass(frozen=True, eq=False)
class Run:
    """How one stopping rule fared on one simulated run."""

    status: Status
    """"decided"; "inconsistent": the data contradicted R; "truncated": `max_samples` came first."""
    tau: int
    """Samples when it ended."""
    arm: int
    """The arm recommended then."""
    correct: bool
    """Whether that arm is a right answer."""
    counts: Vector
    """Pulls per arm over the whole run."""
    rule: str
    delta: float
    proved: bool
    seed: int


def run(policy: Policy, mu: ArrayLike, seed: int, max_samples: int = 1_000_000, noise: Noise | None = None) -> Run:
    """Returns one simulated run of the policy on the true means `mu` (n_arms,).

    `noise` is Gaussian by default; for `Problem.bounded` it is "bernoulli" (outcomes at the ends of the range, the
    default there) or "uniform" (as wide as the range allows around each mean).
    """
    return watch(policy, mu, seed, max_samples, noise)[0]


def watch(
    policy: Policy, mu: ArrayLike, seed: int, max_samples: int = 1_000_000, noise: Noise | None = None
) -> list[Run]:
    """Returns one `Run` per (rule, delta) the policy watches, all read off one trajectory."""
    problem = policy.problem
    mu = check_vector("mu", mu, problem.n_arms)  # rougher than R will do: what then happens is worth a simulation
    max_samples = check_integer("max_samples", max_samples, 1)
    draw = _noise(policy, mu, noise)
    rng, choices = (
        np.random.default_rng(seed),
        np.random.default_rng((seed, 1)),
    )  # outcomes; what a randomised policy draws
    state = policy.init()
    with one_thread():
        while state.samples < max_samples:
            arms = policy.ask(state, min(policy.horizon(state), max_samples - state.samples), rng=choices)
            if not arms.size:
                break
            state = policy.tell(state, arms, draw(rng, arms))
    runs = []
    for index, (rule, delta) in enumerate(policy.rules):
        seen = policy.verdict(state, index)
        status: Status = "decided" if seen.decided else "truncated" if seen.consistent else "inconsistent"
        correct = bool(mu[seen.arm] >= mu.max() - problem.tolerance)
        runs.append(
            Run(
                status,
                seen.stopped_at or state.samples,
                seen.arm,
                correct,
                state.counts,
                rule,
                delta,
                seen.proved,
                seed,
            )
        )
    return runs


def watch_many(
    policy: Policy,
    mu: ArrayLike,
    seeds: Sequence[int],
    executor: Executor | None = None,
    max_samples: int = 1_000_000,
    noise: Noise | None = None,
) -> Iterator[list[Run]]:
    """Yields `watch` of every seed, in order; on the workers of `executor` if there is one. The runs do not depend
    on it."""
    job = partial(watch, policy, mu, max_samples=max_samples, noise=noise)
    yield from (executor.map(job, seeds) if executor is not None else map(job, seeds))


def _noise(policy: Policy, mu: Vector, noise: Noise | None) -> Callable[[np.random.Generator, Indices], Vector]:
    problem = policy.problem
    noise = noise or ("gaussian" if problem.outcome_range is None else "bernoulli")
    if noise == "gaussian" and problem.outcome_range is None:
        return lambda rng, arms: mu[arms] + problem.sigma[arms] * rng.standard_normal(arms.size)
    if noise not in ("bernoulli", "uniform") or problem.outcome_range is None:
        raise InvalidInput(f"`noise` must be gaussian, or bernoulli or uniform on a Problem.bounded, got {noise!r}")
    low, high = problem.outcome_range
    if mu.min() < low or mu.max() > high:
        raise InvalidInput(
            f"`mu` must lie in the range [{low:g}, {high:g}] of the outcomes, got {mu.min():g} to {mu.max():g}"
        )
    if noise == "bernoulli":
        return lambda rng, arms: np.where(rng.random(arms.size) * (high - low) < mu[arms] - low, high, low)
    width = np.minimum(mu - low, high - mu)
    return lambda rng, arms: mu[arms] + width[arms] * rng.uniform(-1, 1, arms.size)
