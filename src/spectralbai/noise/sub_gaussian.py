"""Noise with light tails: Gaussian, or with tails no heavier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.arrays import Vector, check_vector
from spectralbai.checks import check_number
from spectralbai.errors import InvalidInput
from spectralbai.noise.contract import LARGEST, LEAST_SIGMA, Divergence, Draw, Drawing, Noise, Pools

FIRST_RESULTS = 5.0
"""Tuning constant: the intervals of pools are closest to the best possible after about ten times this many results."""


@dataclass(frozen=True, eq=False)
class SubGaussian(Noise):
    """Outcomes are any numbers; E exp(x (outcome - mean)) <= exp(x^2 sigma^2 / 2) for every x."""

    sigma: Vector
    """The standard deviation, or sub-Gaussian constant, of one outcome of each arm, (n_arms,)."""

    def __post_init__(self) -> None:
        sigma = check_vector("sigma", self.sigma, np.size(self.sigma))
        if not (sigma > 0).all():
            arm = int(np.argmin(sigma))
            raise InvalidInput(f"`sigma` must be positive, got {sigma[arm]} at arm {arm}")
        for arm in (int(np.argmin(sigma)), int(np.argmax(sigma))):
            if not LEAST_SIGMA <= sigma[arm] <= LARGEST:
                raise InvalidInput(
                    f"`sigma` must be between 1e-75 and 1e75, got {sigma[arm]:g} at arm {arm}; measure in other units"
                )
        object.__setattr__(self, "sigma", sigma)

    @classmethod
    def of(cls, sigma: ArrayLike, n_arms: int) -> SubGaussian:
        """Returns the noise of `n_arms` arms; a single number is used for all of them."""
        if isinstance(sigma, str) or not hasattr(sigma, "__len__"):
            rule = "a finite positive number, or one per arm"
            sigma = np.full(n_arms, check_number("sigma", sigma, rule, low=0.0, strict=True))
        return cls(check_vector("sigma", sigma, n_arms))

    @property
    def outcome_range(self) -> None:
        return None

    @property
    def divergence(self) -> Divergence | None:
        return "gaussian"

    def sigmas(self, n_arms: int) -> Vector:
        return check_vector("sigma", self.sigma, n_arms)

    def described(self) -> str:
        low, high = float(self.sigma.min()), float(self.sigma.max())
        return f"sigma {low:g}" if low == high else f"sigma {low:g} to {high:g}"

    def variances(self, counts: Vector, sums: Vector, squares: Vector, origin: float, leader: int) -> Vector:
        return self.sigma**2

    def pooled_ends(
        self, pools: Pools, counts: Vector, sums: Vector, squares: Vector, origin: float, delta: float
    ) -> tuple[Vector, Vector]:
        precision = 1 / self.sigma**2
        T = pools.totals(counts * precision)
        T0 = FIRST_RESULTS * pools.totals(precision) / pools.sizes
        seen = T > 0
        each = np.where(seen, T, 1.0)
        centre = pools.totals(sums * precision) / each
        radius = np.sqrt((T + T0) * (-2 * np.log(delta * pools.shares) + np.log1p(T / T0))) / each  # (14.2)
        radius = np.where(seen, radius, np.inf)
        return centre - radius, centre + radius

    def draws(self, mu: Vector, kind: Drawing | None = None) -> Draw:
        if kind not in (None, "gaussian"):
            raise InvalidInput(
                f"`noise` must be gaussian, with spread sigma, got {kind!r}; use Problem.bounded for scores in a range"
            )
        self.check_means("mu", mu)
        return lambda rng, arms: mu[arms] + self.sigma[arms] * rng.standard_normal(arms.size)

    def negated(self) -> SubGaussian:
        return self

    def as_dict(self) -> dict[str, Any]:
        sigma = self.sigma
        return {"sigma": float(sigma[0]) if (sigma == sigma[0]).all() else sigma.tolist()}

    def allows(self, values: float | Vector) -> Any:
        return (-LARGEST <= values) & (values <= LARGEST)

    @property
    def rule(self) -> tuple[str, str]:
        return "be between -1e75 and 1e75", "measure in other units"
