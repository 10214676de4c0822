"""The omniscient racer: a race that knows the means, plans and bets by them, and only has to prove the answer.

No policy that learns the means can be expected to decide sooner, so what an ordinary race needs beyond it is the cost
of learning the means. What the omniscient racer needs beyond the lower bound is the cost of the proof.
"""

from __future__ import annotations

import math

import numpy as np

import spectralbai as sb
from spectralbai.arrays import Vector
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.outlook import Outlook, separable
from spectralbai.noise import Drawing
from spectralbai.sampling.contract import least_block
from spectralbai.sampling.race import AHEAD, GOLDEN, aimed, spread
from spectralbai.stopping.bets import BetTable
from spectralbai.threads import one_thread

CERTAIN = 1e300
"""Evidence, in nats, that makes every bet as large as it can be."""


class Known(Outlook):
    """An outlook that is certain."""

    def strength(self, leader: int, tolerance: float) -> Vector:
        return np.full(self.problem.n_arms, CERTAIN)


def knowing(problem: sb.Problem, mu: Vector, noise: Drawing | None) -> Known:
    """Returns the outlook of a policy that knows the means and the spread of outcomes."""
    best = int(np.argmax(mu))
    outlook = Known(Evidence(problem, Data.none(problem.n_arms), best, 0.0))
    if problem.outcome_range is None:
        variances = problem.sigma**2
    elif isinstance(noise, float):
        variances = np.full(mu.size, noise**2)
    else:  # two outcomes; the rate is half-way to that of the best arm, as in `Binary.variances`
        low, high = problem.outcome_range
        rate = ((mu + mu[best]) / 2 - low) / (high - low)
        variances = rate * (1 - rate) * (high - low) ** 2
    outlook.__dict__.update(
        mu=np.array(mu), variances=variances, radii=problem.radii.copy()
    )  # what would otherwise be learnt
    return outlook


def samples_to_prove(instance: sb.Instance, delta: float, seed: int, noise: Drawing | None = None) -> int:
    """Returns the samples until every rival of the best arm is beaten, in one simulated run."""
    assert instance.mu is not None
    problem, mu = instance.problem, instance.mu
    outlook = knowing(problem, mu, noise)
    best, goal = outlook.evidence.best, -math.log(delta)
    draw, rng = problem.noise.draws(mu, noise), np.random.default_rng(seed)
    wealth = np.zeros(problem.n_arms)  # all of it in bets from the start
    rivals = separable(problem)[best].copy()
    rivals[best] = False
    samples = 0
    with one_thread():
        while rivals.any():
            omega, gain = aimed(outlook, best, np.where(rivals, np.maximum(goal - wealth, 1.0), 0.0))
            least = least_block(problem.n_arms, 0)
            size = max(least, min(least_block(problem.n_arms, samples), math.ceil(AHEAD / gain)))
            arms = spread(omega, size, samples * GOLDEN % 1.0)
            block = Block(arms, draw(rng, arms), outlook.evidence.data, best)
            wealth = wealth + BetTable(block, outlook).against_arms(best, problem.tolerance)
            rivals &= wealth < goal
            samples += size
    return samples
