"""Noise of outcomes that lie in a known range, such as scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.checks import check_ends, check_number
from spectralbai.errors import InvalidInput
from spectralbai.noise.contract import LARGEST, LEAST_SIGMA, PSEUDO_COUNTS, Divergence, Draw, Drawing, Noise, Pools
from spectralbai.noise.unit import least_mean

LEAST_VARIANCE = 1e-6
"""Least variance assumed, in squared widths of the range: if all outcomes so far are equal, later ones may differ."""
SHARPEST = 1e30
"""Largest sum of the parameters of a Beta distribution; its spread is then smaller than rounding errors."""


@dataclass(frozen=True)
class Bounded(Noise):
    """Outcomes lie in [low, high]: they are sub-Gaussian with sigma = (high - low)/2 by Hoeffding's lemma."""

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = check_ends(self.low, self.high)
        if not (LEAST_SIGMA <= (high - low) / 2 and max(-low, high) <= LARGEST):
            raise InvalidInput(
                f"`low` and `high` must be 2e-75 or more apart and between -1e75 and 1e75, got {low:g} and {high:g}; "
                "measure in other units"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def outcome_range(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def divergence(self) -> Divergence | None:
        return None  # scores with given means can have arbitrarily small variances, so there is no lower bound

    def sigmas(self, n_arms: int) -> Vector:
        sigma = np.full(n_arms, (self.high - self.low) / 2)
        sigma.setflags(write=False)
        return sigma

    def described(self) -> str:
        return f"outcomes in [{self.low:g}, {self.high:g}]"

    def variances(self, counts: Vector, sums: Vector, squares: Vector, origin: float, leader: int) -> Vector:
        """Returns empirical variances, shrunk towards the variance within all arms together and then moved half-way to
        that of the leader.

        If `squares` is nan, which means not known, the largest possible variance is assumed.
        """
        freedom = np.maximum(counts - 1, 0.0)
        most = (self.high - self.low) ** 2 / 4  # the largest variance of any distribution on the range
        within = np.maximum(squares - sums**2 / np.maximum(counts, 1), 0.0)
        deviations = np.where(np.isnan(squares), freedom * most, within)
        pooled = deviations.sum() / freedom.sum() if freedom.any() else most
        pooled = max(pooled, LEAST_VARIANCE * 4 * most)
        shrunk = (deviations + PSEUDO_COUNTS * pooled) / (freedom + PSEUDO_COUNTS)
        between: Vector = (shrunk + shrunk[leader]) / 2
        return np.minimum(between, most)

    def pooled_ends(
        self, pools: Pools, counts: Vector, sums: Vector, squares: Vector, origin: float, delta: float
    ) -> tuple[Vector, Vector]:
        width = self.high - self.low
        n = pools.totals(counts)
        seen = n > 0
        each, shifted = n[seen], pools.totals(sums)[seen]
        total = (shifted + each * (origin - self.low)) / width
        deviations = self.deviations(each, shifted, pools.totals(squares)[seen])
        goal = -np.log(delta * pools.shares[seen] / 2)  # a half for each end
        # The upper end is the mirror image of the lower end for mirrored outcomes, which have the same deviations; one
        # search finds both.
        both = None if deviations is None else np.tile(deviations, 2)
        ends = least_mean(np.tile(each, 2), np.append(total, each - total), both, np.tile(goal, 2))
        below, above = np.split(ends, 2)
        low, high = np.full(n.size, -np.inf), np.full(n.size, np.inf)
        low[seen] = self.low - origin + width * below
        high[seen] = self.high - origin - width * above
        return low, high

    def deviations(self, n: Vector, sums: Vector, squares: Vector) -> Vector | None:
        """Returns the sums of squared deviations, in squared widths of the range; None if the mean determines them."""
        return np.maximum(squares - sums**2 / n, 0.0) / (self.high - self.low) ** 2

    def draws(self, mu: Vector, kind: Drawing | None = None) -> Draw:
        """Returns a function that draws outcomes: only the ends of the range ("bernoulli", the default), "uniform" ones
        around each mean, as wide as the range allows, or, if `kind` is a number, scores with that standard
        deviation."""
        low, high = self.outcome_range
        self.check_means("mu", mu)
        if kind is None or kind == "bernoulli":
            return lambda rng, arms: np.where(rng.random(arms.size) * (high - low) < mu[arms] - low, high, low)
        if kind == "uniform":
            width = np.minimum(mu - low, high - mu)
            return lambda rng, arms: mu[arms] + width[arms] * rng.uniform(-1, 1, arms.size)
        if isinstance(kind, str):
            raise InvalidInput(
                f"`noise` must be bernoulli, uniform or the standard deviation of the scores, got {kind!r}"
            )
        return self._scores(mu, check_number("noise", kind, "a positive standard deviation", low=0.0, strict=True))

    def _scores(self, mu: Vector, spread: float) -> Draw:
        """Returns a function that draws from Beta distributions with means `mu` and standard deviation `spread`."""
        low, high, width = self.low, self.high, self.high - self.low
        share, most = (mu - low) / width, np.sqrt((mu - low) * (high - mu))
        if not (spread < most).all():
            arm = int(np.argmin(most))
            raise InvalidInput(
                f"`noise` must be below {most[arm]:.6g}, the largest spread of outcomes in [{low:g}, {high:g}] "
                f"with mean {mu[arm]:g} at arm {arm}, got {spread:g}; lower it"
            )
        ratio = np.minimum(most / spread, math.sqrt(SHARPEST))
        sharpness = (ratio - 1) * (ratio + 1)  # a + b, from spread^2 = (mu - low)(high - mu) / (a + b + 1)
        a, b = share * sharpness, (1 - share) * sharpness
        return lambda rng, arms: np.minimum(low + width * rng.beta(a[arms], b[arms]), high)

    def negated(self) -> Self:
        return type(self)(-self.high, -self.low)

    def as_dict(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high}

    def allows(self, values: float | Vector) -> Any:
        return (self.low <= values) & (values <= self.high)

    @property
    def rule(self) -> tuple[str, str]:
        return f"lie in [{self.low:g}, {self.high:g}]", "correct it or widen the range"
