"""A kind of noise: outcomes are spread evenly around their mean, as readings of a coarse scale are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.checks import check_number
from spectralbai.errors import InvalidInput
from spectralbai.noise import Divergence, Draw, Drawing, Noise, Pools, SubGaussian, register_noise

LARGEST = 1e75
"""The largest outcome: its square over sigma must still be a number."""


@dataclass(frozen=True)
class Even(Noise):
    """An outcome is its mean plus a number between -width and width, all of them equally likely."""

    width: float

    def __post_init__(self) -> None:
        check_number("width", self.width, "a finite positive number", low=0.0, strict=True)

    @property
    def outcome_range(self) -> None:
        return None  # none that is known before the means are

    @property
    def divergence(self) -> Divergence | None:
        return None  # the lower bound for Gaussian outcomes does not hold for these

    def sigmas(self, n_arms: int) -> Vector:
        """Even noise is sub-Gaussian with its own standard deviation, the width over the root of 3."""
        sigma = np.full(n_arms, self.width / math.sqrt(3))
        sigma.setflags(write=False)
        return sigma

    def described(self) -> str:
        return f"outcomes within {self.width:g} of their means"

    def variances(self, counts: Vector, sums: Vector, squares: Vector, origin: float, leader: int) -> Vector:
        return self.sigmas(counts.size) ** 2

    def pooled_ends(
        self, pools: Pools, counts: Vector, sums: Vector, squares: Vector, origin: float, delta: float
    ) -> tuple[Vector, Vector]:
        return SubGaussian(self.sigmas(counts.size)).pooled_ends(pools, counts, sums, squares, origin, delta)

    def draws(self, mu: Vector, kind: Drawing | None = None) -> Draw:
        if kind is not None:
            raise InvalidInput(f"`noise` must be left out, since outcomes are drawn evenly, got {kind!r}")
        self.check_means("mu", mu)
        return lambda rng, arms: mu[arms] + rng.uniform(-self.width, self.width, arms.size)

    def negated(self) -> Even:
        return self

    def as_dict(self) -> dict[str, Any]:
        return {"noise": {"kind": "even", "width": self.width}}

    def allows(self, values: float | Vector) -> Any:
        return (-LARGEST <= values) & (values <= LARGEST)

    @property
    def rule(self) -> tuple[str, str]:
        return "be between -1e75 and 1e75", "measure in other units"


def read(document: Mapping[str, Any], n_arms: int) -> Even:
    """Returns the noise that a file describes."""
    return Even(check_number("$.noise.width", document.get("width"), "a positive number", low=0.0, strict=True))


register_noise("even", read)
