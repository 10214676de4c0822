"""The means that a plan assumes: those of a pilot, else a guess, else random smooth signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.arrays import Vector
from spectralbai.errors import InvalidInput
from spectralbai.instance import Instance
from spectralbai.instances import smooth_signal
from spectralbai.noise import SubGaussian
from spectralbai.planning.pilot import MANY_ARMS, Pilot
from spectralbai.problem import Problem

SIGNALS = 8
"""Number of random signals that are drawn if no means are given."""
MOST_MEANS = 40_000
"""Most means in all signals together: with more than 5,000 arms there are fewer signals, but at least two."""

Source = Literal["guess", "observations", "random signals"]


@dataclass(frozen=True, eq=False)
class Means:
    """What is assumed about the means, and about the spread of scores, before any trial."""

    source: Source
    signals: tuple[Vector, ...]
    """One vector of means, or several random signals; the numbers of a plan are averages over them."""
    pilot: Pilot | None = None
    """The observations, if there were any."""

    @classmethod
    def of(cls, instance: Instance, arms: ArrayLike | None, outcomes: ArrayLike | None, seed: int) -> Means:
        """Returns the means of past observations, smoothed to R; else those of the instance; else random signals."""
        if not isinstance(instance, Instance):
            raise InvalidInput(f"`instance` must be a spectralbai.Instance, got {type(instance).__name__}")
        if arms is not None or outcomes is not None:
            pilot = Pilot.of(instance, arms, outcomes)
            return cls("observations", (pilot.mu,), pilot)
        if instance.mu is not None:
            instance.problem.noise.check_means("mu", instance.mu)
            return cls("guess", (instance.mu,))
        return cls("random signals", _random_signals(instance.problem, seed))

    def in_theory(self, problem: Problem) -> Problem:
        """Returns the problem whose characteristic time says most about the number of samples.

        If the spread of scores is known, it is the Gaussian problem with that spread. For many arms with binary
        outcomes, it is the Gaussian problem with the variances between each arm and the best, because the solver for
        binary outcomes can handle only few arms.
        """
        if problem.noise.divergence == "binary" and problem.n_arms > MANY_ARMS:
            assert problem.outcome_range is not None
            low, high = problem.outcome_range
            between = (np.array(self.signals) + np.max(self.signals, axis=1, keepdims=True)) / 2
            variances = ((between - low) * (high - between)).mean(axis=0)
            return replace(problem, noise=SubGaussian.of(np.sqrt(variances), problem.n_arms))
        if self.pilot is None or self.pilot.spread is None:
            return problem
        return replace(problem, noise=SubGaussian.of(self.pilot.spread, problem.n_arms))

    @property
    def spread(self) -> float:
        """The difference between the best and the worst mean."""
        return float(np.mean([mu.max() - mu.min() for mu in self.signals]))

    def check_told_apart(self, problem: Problem, labels: Sequence[str]) -> None:
        """Raises InvalidInput if best arms are tied and there is no tolerance."""
        for mu in self.signals:
            if problem.tolerance == 0 and tied(mu):
                first, second = (labels[arm] for arm in np.flatnonzero(mu == mu.max())[:2])
                raise InvalidInput(
                    f'"{first}" and "{second}" are tied at {mu.max():g}, so no trials tell them apart: set a tolerance'
                )


def tied(mu: Vector) -> bool:
    """Whether there are several best arms."""
    return bool((mu == mu.max()).sum() > 1)


def _random_signals(problem: Problem, seed: int) -> tuple[Vector, ...]:
    """Returns random smooth signals with S = R, or S_c = R_c in each component if each has an R.

    The components get random levels with standard deviation sigma; all means are moved into the range of the outcomes.
    """
    if np.isinf(problem.radii).any() or problem.rigid:
        raise InvalidInput(
            f'"mu" is missing, and {problem.described_R()} tells nothing: guess mu, give observations, or choose R'
        )
    graph = problem.graph
    if graph.n_edges == 0:
        raise InvalidInput(
            '"mu" is missing and the graph has no edges to draw smooth means on; guess mu, or give observations'
        )
    signals = []
    for k in range(min(SIGNALS, max(MOST_MEANS // problem.n_arms, 2))):
        rng = np.random.default_rng((seed, k))
        mu = smooth_signal(graph, rng)
        rough = problem.roughness(mu)
        scale = np.sqrt(np.divide(problem.radii, rough, out=np.zeros_like(rough), where=rough > 0))
        mu = mu * (scale[graph.components] if problem.by_component else scale) * (1 - 1e-9)
        if graph.n_components > 1:
            level = rng.standard_normal(graph.n_components) * float(problem.sigma.mean())
            centres = np.bincount(graph.components, mu) / np.bincount(graph.components)
            mu = mu + (level - centres)[graph.components]
        if problem.outcome_range is not None:
            low, high = problem.outcome_range
            mu = mu - mu.mean() + (low + high) / 2
            excess = max(1.0, float(np.abs(mu - (low + high) / 2).max()) / ((high - low) / 2) * (1 + 1e-9))
            mu = (mu - (low + high) / 2) / excess + (low + high) / 2
        signals.append(mu)
    return tuple(signals)
