"""The hypotheses of a best-arm problem: graph, smoothness, noise and tolerance, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.checks import Indices, Vector, check_number, check_vector
from spectralbai.errors import InvalidInput
from spectralbai.graph import Graph

ROUNDING = 1e-12
"""Relative slack within which S(mu) = R counts as S(mu) <= R."""


@dataclass(frozen=True, eq=False, init=False)
class Problem:
    """What is known before any trial: mu' L mu <= R, noise of standard deviation sigma, and which answers are right."""

    graph: Graph
    R: float
    """Bound on the smoothness mu' L mu, from 0 to `math.inf` (ignore the graph)."""
    sigma: Vector
    """Standard deviation (or sub-Gaussian constant) of one outcome, one per arm; a single number stands for all
    arms."""
    tolerance: float
    """Any arm whose mean is within `tolerance` of the best is a right answer."""
    outcome_range: tuple[float, float] | None
    """Interval known to hold every outcome, hence every mean, if any; set by `Problem.bounded`."""

    def __init__(
        self,
        graph: Graph,
        R: float,
        sigma: ArrayLike = 1.0,
        tolerance: float = 0.0,
        outcome_range: tuple[float, float] | None = None,
    ) -> None:
        if not isinstance(graph, Graph):
            raise InvalidInput(f"`graph` must be a spectralbai.Graph, got {type(graph).__name__}; use Graph.from_edges")
        R = check_number("R", R, "non-negative (math.inf ignores the graph)", low=0.0, strict=False, allow_inf=True)
        tolerance = check_number("tolerance", tolerance, "a finite non-negative number", low=0.0, strict=False)
        if isinstance(sigma, str) or not hasattr(sigma, "__len__"):
            sigma = np.full(
                graph.n_arms,
                check_number("sigma", sigma, "a finite positive number, or one per arm", low=0.0, strict=True),
            )
        sigma = check_vector("sigma", sigma, graph.n_arms)
        if not (sigma > 0).all():
            arm = int(np.argmin(sigma))
            raise InvalidInput(f"`sigma` must be positive, got {sigma[arm]} at arm {arm}")
        for arm in (int(np.argmin(sigma)), int(np.argmax(sigma))):
            if not 1e-75 <= sigma[arm] <= 1e75:
                raise InvalidInput(
                    f"`sigma` must be between 1e-75 and 1e75, got {sigma[arm]:g} at arm {arm}; measure in other units"
                )
        if outcome_range is not None:
            if not isinstance(outcome_range, tuple | list) or len(outcome_range) != 2:
                raise InvalidInput(f"`outcome_range` must be (low, high), got {outcome_range!r}")
            outcome_range = _check_range(*outcome_range)
        for name, value in (
            ("graph", graph),
            ("R", R),
            ("sigma", sigma),
            ("tolerance", tolerance),
            ("outcome_range", outcome_range),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def bounded(cls, graph: Graph, R: float, low: float = 0.0, high: float = 1.0, tolerance: float = 0.0) -> Problem:
        """Returns the problem of outcomes in [low, high]: sigma = (high - low)/2 by Hoeffding's lemma, means in the
        range."""
        low, high = _check_range(low, high)
        return cls(graph, R, sigma=(high - low) / 2, tolerance=tolerance, outcome_range=(low, high))

    @property
    def n_arms(self) -> int:
        return self.graph.n_arms

    @property
    def unstructured(self) -> bool:
        """Whether the graph says nothing: no edges, or R infinite."""
        return math.isinf(self.R) or self.graph.n_edges == 0

    @property
    def components(self) -> Indices:
        """The component of each arm, (n_arms,); its own where the graph says nothing."""
        return np.arange(self.n_arms) if self.unstructured else self.graph.components

    def smoothness(self, mu: ArrayLike) -> float:
        """Returns S(mu) = mu' L mu."""
        return self.graph.smoothness(mu)

    def check_smooth(self, mu: ArrayLike) -> Vector:
        """Returns `mu` as a vector of means that satisfies the hypothesis S(mu) <= R."""
        mu = check_vector("mu", mu, self.n_arms)
        smoothness = self.smoothness(mu)
        if smoothness > self.R * (1 + ROUNDING):
            raise InvalidInput(
                f"`mu` must satisfy S(mu) <= R, got S(mu) = {smoothness:.6g} and R = {self.R:.6g}; raise R or smooth mu"
            )
        return mu

    def room_for(self, mu: Vector) -> float:
        """Returns R, raised to S(mu) where rounding alone makes mu rougher than R."""
        smoothness = self.smoothness(mu)
        return smoothness if self.R < smoothness <= self.R * (1 + ROUNDING) else self.R

    def best_arm(self, mu: Vector) -> int:
        """Returns the best arm; with tolerance 0 it must be unique."""
        best = int(np.argmax(mu))
        ties = np.flatnonzero(mu == mu[best])
        if self.tolerance == 0 and ties.size > 1:
            raise InvalidInput(
                f"`mu` must have a unique best arm when tolerance is 0, got arms {ties[0]} and {ties[1]} tied at "
                f"{mu[best]}; "
                "set a tolerance > 0 if either will do"
            )
        return best


def _check_range(low: float, high: float) -> tuple[float, float]:
    low, high = (
        check_number(name, value, "a finite number", low=-math.inf, strict=True)
        for name, value in (("low", low), ("high", high))
    )
    if not 0 < (high - low) / 2 < math.inf:
        raise InvalidInput(f"`low` must be below `high` by a finite amount, got low = {low!r} and high = {high!r}")
    return low, high
