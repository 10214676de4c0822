"""The contract of noise: everything that depends on which outcomes are possible."""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectralbai.arrays import Indices, Vector
from spectralbai.checks import check_number, subject
from spectralbai.errors import InvalidInput

LEAST_SIGMA, LARGEST = 1e-75, 1e75
"""The least sigma, and the largest sigma, outcome or mean: squares of outcomes divided by sigma must not overflow."""
PSEUDO_COUNTS = 3.0
"""Weight of the first guess of a variance, as a number of outcomes."""

Drawing = Literal["gaussian", "bernoulli", "uniform"] | float
"""How a simulation draws outcomes: a name, or the standard deviation of scores in a range."""
Divergence = Literal["gaussian", "binary"]
"""How the distance between two means is measured: between Gaussian outcomes, or between outcomes of two values."""
Draw = Callable[[np.random.Generator, Indices], Vector]
"""Draws one outcome for each of the given arms."""


@dataclass(frozen=True, eq=False)
class Pools:
    """Groups of arms whose results are averaged, fixed before any result; an arm may be in several groups."""

    members: Indices
    """The arms of all pools, one pool after the other."""
    starts: Indices
    """Where each pool begins in `members`, (n_pools,)."""
    shares: Vector
    """Share of each pool in the risk, (n_pools,); they sum to 1."""

    def __iter__(self) -> Iterator[Indices]:
        return iter(np.split(self.members, self.starts[1:]))

    @property
    def sizes(self) -> Indices:
        """Number of arms of each pool."""
        return np.diff(self.starts, append=self.members.size)

    def totals(self, x: Vector) -> Vector:
        """Returns the sum of `x` (n_arms,) over the arms of each pool."""
        return np.add.reduceat(x[self.members], self.starts)


class Noise(ABC):
    """What the outcomes of all arms are known to be like before any trial."""

    @property
    @abstractmethod
    def outcome_range(self) -> tuple[float, float] | None:
        """Interval that contains every outcome, and so every mean; None if no such interval is known."""

    @property
    @abstractmethod
    def divergence(self) -> Divergence | None:
        """How lower bounds on the samples measure alternatives; None if the means give no lower bound."""

    @abstractmethod
    def sigmas(self, n_arms: int) -> Vector:
        """Returns the sub-Gaussian constant of each arm, (n_arms,), read-only."""

    @abstractmethod
    def described(self) -> str:
        """Returns the noise in a few words, such as "sigma 0.5"."""

    @abstractmethod
    def variances(self, counts: Vector, sums: Vector, squares: Vector, origin: float, leader: int) -> Vector:
        """Returns the present estimate of the variance of one outcome of each arm, (n_arms,), positive.

        `sums` and `squares` are sums over the outcomes of each arm minus `origin`. If variances are unknown, the value
        is half-way between the estimates for the arm and for the `leader`: with its estimate alone, an arm whose first
        outcomes happened to be equal would look certain and be neglected. The estimates are not proved; they may guide
        bets and plans, but no conclusion may rest on them.
        """

    def shares(self, means: Vector) -> Vector | None:
        """Returns the shares of the larger outcome that give these means; None unless there are just two outcomes."""
        return None

    @abstractmethod
    def pooled_ends(
        self, pools: Pools, counts: Vector, sums: Vector, squares: Vector, origin: float, delta: float
    ) -> tuple[Vector, Vector]:
        """Returns the ends, (n_pools,) each, of intervals for the average mean of each pool, minus `origin`.

        The average of a pool has the weights counts / sigma^2. With probability 1 - delta all intervals hold at all
        times at once, however arms are chosen from earlier results (theory, section 14). They are infinite for pools
        without results.
        """

    @abstractmethod
    def draws(self, mu: Vector, kind: Drawing | None = None) -> Draw:
        """Returns a function that draws outcomes with means `mu` (n_arms,) for simulations; `kind` says how."""

    @abstractmethod
    def negated(self) -> Noise:
        """Returns the noise of outcomes multiplied by -1."""

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Returns the entries of an instance file for this noise; `noise_from_dict` reads them."""

    @abstractmethod
    def allows(self, values: float | Vector) -> Any:
        """Returns whether each of the values can be an outcome; False for nan."""

    @property
    @abstractmethod
    def rule(self) -> tuple[str, str]:
        """The end of the sentence "an outcome must ...", and what to do about an outcome that does not."""

    def check_outcome(self, name: str, outcome: Any) -> float:
        """Returns one outcome as a number; raises InvalidInput if the noise does not allow it."""
        value = check_number(name, outcome, "a finite number", low=-math.inf, strict=True)
        if not self.allows(value):
            rule, remedy = self.rule
            raise InvalidInput(f"{subject(name)} must {rule}, got {_shown(value)}; {remedy}")
        return value

    def check_outcomes(self, name: str, outcomes: ArrayLike) -> Vector:
        """Returns outcomes as numbers; raises InvalidInput if the noise does not allow one of them."""
        try:
            given = np.atleast_1d(np.asarray(outcomes))
        except (TypeError, ValueError):  # ragged
            given = np.array(None)
        if given.dtype.kind not in "biuf" or given.ndim != 1:  # numpy would turn strings and None into numbers
            raise InvalidInput(
                f"{subject(name)} must be numbers, got {reprlib.repr(outcomes)}; leave missing results out"
            )
        values = given.astype(np.float64)
        allowed: NDArray[np.bool_] = self.allows(values)
        if not allowed.all():
            at = int(np.argmin(allowed))
            rule, remedy = self.rule
            if not math.isfinite(values[at]):
                rule, remedy = "be finite", "leave missing results out"
            raise InvalidInput(f"{subject(name)} must {rule}, got {_shown(values[at])} at position {at}; {remedy}")
        return values

    def check_means(self, name: str, mu: Vector) -> Vector:
        """Returns the finite means (n_arms,); raises InvalidInput if outcomes cannot have them."""
        low, high = self.outcome_range or (-LARGEST, LARGEST)
        inside = (low <= mu) & (mu <= high)
        if not inside.all():
            arm = int(np.argmin(inside))
            remedy = "measure in other units" if self.outcome_range is None else "change it or widen the range"
            raise InvalidInput(
                f"{subject(name)} must lie in [{low:g}, {high:g}] as the outcomes do, got {_shown(mu[arm])} at arm "
                f"{arm}; {remedy}"
            )
        return mu


def _shown(value: float) -> str:
    """Returns a number with six digits, or with all of them if six would show a different number."""
    short = f"{value:g}"
    return short if float(short) == value or math.isnan(value) else repr(float(value))
