"""Noise with two possible outcomes, such as clicks and cures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spectralbai.arrays import Vector
from spectralbai.errors import InvalidInput
from spectralbai.noise.bounded import Bounded
from spectralbai.noise.contract import PSEUDO_COUNTS, Divergence, Draw, Drawing


@dataclass(frozen=True)
class Binary(Bounded):
    """Outcomes are `low` or `high` and nothing between, so the mean of an arm determines its distribution."""

    @property
    def divergence(self) -> Divergence | None:
        return "binary"

    def described(self) -> str:
        return f"outcomes {self.low:g} or {self.high:g}"

    def shares(self, means: Vector) -> Vector | None:
        return (means - self.low) / (self.high - self.low)

    def variances(self, counts: Vector, sums: Vector, squares: Vector, origin: float, leader: int) -> Vector:
        """Returns p(1 - p)(high - low)^2, where p is the share of `high`, shrunk towards the share of all arms together
        and then moved half-way to the share of the leader."""
        width = self.high - self.low
        highs = (sums + counts * (origin - self.low)) / width
        pooled = (highs.sum() + PSEUDO_COUNTS / 2) / (counts.sum() + PSEUDO_COUNTS)  # never 0 or 1
        p: Vector = (highs + PSEUDO_COUNTS * pooled) / (counts + PSEUDO_COUNTS)
        p = (p + p[leader]) / 2
        return p * (1 - p) * width**2

    def deviations(self, n: Vector, sums: Vector, squares: Vector) -> None:
        return None

    def draws(self, mu: Vector, kind: Drawing | None = None) -> Draw:
        if kind not in (None, "bernoulli"):
            raise InvalidInput(
                f"`noise` must be bernoulli where only {self.low:g} and {self.high:g} occur, got {kind!r}; leave out "
                "binary for scores between them"
            )
        return super().draws(mu, "bernoulli")

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), "binary": True}

    def allows(self, values: float | Vector) -> Any:
        return (values == self.low) | (values == self.high)

    @property
    def rule(self) -> tuple[str, str]:
        return f"be {self.low:g} or {self.high:g}", "correct it, or leave out binary for scores between them"
