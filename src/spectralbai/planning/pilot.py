"""Estimates from past observations: means, sigma, roughness, spread of scores, and which other means are plausible."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.allocation import solve_allocation
from spectralbai.arrays import Vector
from spectralbai.checks import check_arm
from spectralbai.errors import InvalidInput
from spectralbai.estimation import estimate
from spectralbai.evidence.blocks import Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.outlook import Outlook
from spectralbai.inputs.history import RoughnessEstimate, SigmaEstimate, roughness_from, sigma_from
from spectralbai.instance import Instance
from spectralbai.noise import SubGaussian
from spectralbai.problem import Problem

MANY_ARMS = 500
"""With more arms than this, plans leave out what takes long."""
PLAUSIBLE, PLAUSIBLE_OF_MANY = 100, 10
"""How many vectors of means are drawn, and how many if arms are many, because an allocation is solved for each."""
COVERED = 0.8
"""The part of the plausible means that the range of the expected number of samples covers. With the margins added, the
range contains the true number for more than nine of ten pilots (`verification/plans.py`)."""
UNKNOWN = 100.0
"""If the ratio of the ends of the range is larger than this, the pilot is too small to give an upper end."""


@dataclass(frozen=True)
class Range:
    """A range for the expected number of samples, from a pilot."""

    low: float
    high: float
    """inf if the pilot does not exclude that the best arms are tied, or nearly tied: any number would be misleading."""
    covered: float = COVERED
    """The part of the plausible means that the range covers."""


@dataclass(frozen=True, eq=False)
class Pilot:
    """Past observations of every arm."""

    problem: Problem
    data: Data
    """The observations, minus the origin."""
    origin: float
    mu: Vector
    """The means, smoothed to R."""
    sigma: SigmaEstimate | None
    """The standard deviation within arms; None if no arm was observed twice."""
    roughness: RoughnessEstimate | None
    spread: float | None
    """The standard deviation of scores in a range, if it is known and smaller than the range allows; else None."""
    at_ends: bool
    """Whether all outcomes are ends of their range."""

    @classmethod
    def of(cls, instance: Instance, arms: ArrayLike | None, outcomes: ArrayLike | None) -> Pilot:
        """Returns the pilot with these outcomes of these arms."""
        problem = instance.problem
        given = [] if arms is None else np.atleast_1d(np.asarray(arms)).tolist()
        pulled = np.array([check_arm("arms", arm, problem.n_arms) for arm in given], dtype=np.intp)
        if outcomes is None or not pulled.size:
            raise InvalidInput("`arms` and `outcomes` must be two lists of one length, at least 1")
        values = problem.noise.check_outcomes("outcomes", outcomes)
        if values.size != pulled.size:
            raise InvalidInput(
                f"`arms` and `outcomes` must be two lists of one length, got {pulled.size} and {values.size}"
            )
        origin = float(values[0])
        data = Data.none(problem.n_arms).plus(pulled, values - origin)
        missing = np.flatnonzero(data.counts == 0)
        if missing.size:
            raise InvalidInput(
                f'every option needs an observation, got none of "{instance.labels[missing[0]]}"; observe it, or guess '
                '"mu"'
            )
        if problem.rigid:
            raise InvalidInput("`R` must be positive to plan from observations, got 0; choose another")
        sigma = sigma_from(pulled, values) if (data.counts >= 2).any() else None
        roughness = None
        if not (problem.by_component and problem.n_arms > MANY_ARMS):  # one sum would say little of so many components
            roughness = roughness_from(problem.graph, problem.sigma, data.counts, data.means + origin, instance.labels)
        mu = _allowed(problem, estimate(problem, data.counts, data.means) + origin)
        at_ends = problem.outcome_range is not None and bool(np.isin(values, problem.outcome_range).all())
        spread = None if at_ends or sigma is None else _spread(problem, mu, sigma)
        return cls(problem, data, origin, mu, sigma, roughness, spread, at_ends)

    @cached_property
    def plausible(self) -> tuple[Vector, ...]:
        """Means drawn from the graph posterior; means rougher than R are smoothed."""
        problem, data = self.problem, self.data
        outlook = Outlook.on(Evidence(problem, data, int(np.argmax(self.mu)), self.origin))
        drawn = []
        for mu in outlook.draws[:, : PLAUSIBLE_OF_MANY if problem.n_arms > MANY_ARMS else PLAUSIBLE].T:
            smooth = mu if problem.smooth(mu) else estimate(problem, data.counts, mu)
            drawn.append(_allowed(problem, smooth + self.origin))
        return tuple(drawn)

    @property
    def time(self) -> float:
        """The characteristic time of the estimated means, computed as in `range`."""
        return _rough_time(self.problem, self.mu, self.spread)

    def range(self, expected: Callable[[float], float], margins: tuple[float, float]) -> Range:
        """Returns the range of `expected`, a function of the characteristic time, over the plausible means.

        `margins` are factors for its two ends, because `expected` is inexact.
        """
        factors = np.ones(len(self.plausible))
        if self.spread is not None and self.sigma is not None:  # the spread is uncertain too: draw from its posterior
            freedom = self.sigma.degrees_of_freedom
            factors = np.sqrt(freedom / np.random.default_rng(0).chisquare(freedom, factors.size))
        samples = [
            expected(_rough_time(self.problem, mu, None if self.spread is None else self.spread * factor))
            for mu, factor in zip(self.plausible, factors.tolist(), strict=True)
        ]
        tail = (1 - COVERED) / 2
        low, high = np.quantile(samples, (tail, 1 - tail), method="nearest").tolist()
        low, high = low * margins[0], high * margins[1]
        return Range(low, high if high <= UNKNOWN * low else math.inf)

    def as_dict(self) -> dict[str, Any]:
        """Returns the estimates, JSON-ready."""
        return {
            "observations": self.data.samples,
            "sigma": None if self.sigma is None else asdict(self.sigma),
            "roughness": None if self.roughness is None else asdict(self.roughness),
            "spread": self.spread,
        }


def _allowed(problem: Problem, mu: Vector) -> Vector:
    """Returns the means, moved into the range of the outcomes."""
    return np.clip(mu, *(problem.outcome_range or (-math.inf, math.inf)))


def _spread(problem: Problem, mu: Vector, sigma: SigmaEstimate) -> float | None:
    """Returns the standard deviation of scores in a range; None if outcomes at the ends have no larger one."""
    if problem.outcome_range is None or problem.noise.divergence is not None or sigma.sigma == 0:
        return None
    low, high = problem.outcome_range
    return sigma.sigma if sigma.sigma < float(np.sqrt((mu - low) * (high - mu)).min()) else None


def _rough_time(problem: Problem, mu: Vector, spread: float | None) -> float:
    """Returns the characteristic time of Gaussian outcomes with about the variances of the true ones; inf for ties.

    It takes milliseconds, while relative entropy would take a tenth of a second.
    """
    sigma = problem.sigma
    if spread is not None:
        sigma = np.full(problem.n_arms, spread)
    elif problem.outcome_range is not None:
        low, high = problem.outcome_range
        between = (mu + mu.max()) / 2
        sigma = np.sqrt(np.maximum((between - low) * (high - between), 1e-6 * (high - low) ** 2))
    gaussian = replace(problem, noise=SubGaussian.of(sigma, problem.n_arms), R=problem.room_for(mu))
    if problem.tolerance == 0 and (mu == mu.max()).sum() > 1:
        return math.inf
    try:
        return solve_allocation(gaussian, mu, tol=0.05).characteristic_time
    except InvalidInput:  # with this tolerance every arm is a right answer
        return 0.0
