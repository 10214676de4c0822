"""The answer of every allocation solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spectralbai.checks import Vector

Status = Literal["certified", "unfinished"]


@dataclass(frozen=True, eq=False)
class Allocation:
    """An allocation omega with proved bounds: lower <= f(omega) <= 1/T* <= upper, whatever the status."""

    omega: Vector
    """Proportions of pulls per arm: non-negative, summing to one."""
    best: int
    """The answer that omega is for: the best arm or, with a tolerance, the right answer that is easiest to prove."""
    lower: float
    """Certified lower bound of 1/T*; f(omega) reaches it."""
    upper: float
    """Certified upper bound of 1/T*."""
    iterations: int
    """Calls of the best-response oracle."""
    status: Status
    """"certified": gap <= tol. "unfinished": the bounds are valid but further apart than asked."""
    solver: str
    """Name of the solver that found omega."""

    @property
    def gap(self) -> float:
        """Relative gap of the bounds, upper/lower - 1."""
        return self.upper / self.lower - 1 if self.lower > 0 else float("inf")

    @property
    def characteristic_time(self) -> float:
        """1/lower: omega needs at most this many samples per unit of log(1/delta), and T* is within `gap` of it."""
        return 1 / self.lower if self.lower > 0 else float("inf")
