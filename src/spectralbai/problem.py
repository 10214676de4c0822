"""The hypotheses of a best-arm problem: graph, smoothness, noise and tolerance, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.checks import Indices, Vector, check_number, check_vector
from spectralbai.errors import InvalidInput
from spectralbai.graph import Graph
from spectralbai.noise import Binary, Bounded, Noise, SubGaussian

UNIT = np.float64(1.0)
"""The sigma of a problem that names no noise; known by identity, so that an explicit sigma = 1 is told from it."""
ROUNDING = 1e-12
"""Relative slack within which S(mu) = R counts as S(mu) <= R."""


@dataclass(frozen=True, eq=False, init=False)
class Problem:
    """What is known before any trial: mu' L mu <= R, what outcomes are like, and which answers are right."""

    graph: Graph
    R: float
    """Bound on the smoothness mu' L mu, from 0 to `math.inf` (ignore the graph)."""
    tolerance: float
    """Any arm whose mean is within `tolerance` of the best is a right answer."""
    noise: Noise
    """What outcomes can be; sub-Gaussian unless set by `Problem.bounded`."""

    def __init__(
        self,
        graph: Graph,
        R: float,
        sigma: ArrayLike = UNIT,
        tolerance: float = 0.0,
        noise: Noise | None = None,
    ) -> None:
        """`sigma` is the standard deviation (or sub-Gaussian constant) of one outcome, a number or one per arm;
        `noise`, given instead, says what else outcomes are, and is what `dataclasses.replace` hands on."""
        if not isinstance(graph, Graph):
            raise InvalidInput(f"`graph` must be a spectralbai.Graph, got {type(graph).__name__}; use Graph.from_edges")
        R = check_number("R", R, "non-negative (math.inf ignores the graph)", low=0.0, strict=False, allow_inf=True)
        tolerance = check_number("tolerance", tolerance, "a finite non-negative number", low=0.0, strict=False)
        if noise is None:
            noise = SubGaussian.of(sigma, graph.n_arms)
        elif not isinstance(noise, Noise):
            raise InvalidInput(
                f"`noise` must be a spectralbai.noise.Noise, got {type(noise).__name__}; or give `sigma`"
            )
        elif sigma is not UNIT:  # as dataclasses.replace(problem, sigma=...) has it
            if noise.outcome_range is not None:
                raise InvalidInput(
                    "`sigma` is given by the range of the outcomes; use Problem(graph, R, sigma) instead"
                )
            noise = SubGaussian.of(sigma, graph.n_arms)
        noise.sigmas(graph.n_arms)  # refuses the noise of another number of arms
        for name, value in (("graph", graph), ("R", R), ("tolerance", tolerance), ("noise", noise)):
            object.__setattr__(self, name, value)

    @classmethod
    def bounded(
        cls,
        graph: Graph,
        R: float,
        low: float = 0.0,
        high: float = 1.0,
        tolerance: float = 0.0,
        binary: bool = False,
    ) -> Problem:
        """Returns the problem of outcomes in [low, high]: sigma = (high - low)/2 by Hoeffding's lemma, means in the
        range. `binary` says that only its two ends occur, as with clicks."""
        if not isinstance(binary, bool):
            raise InvalidInput(f"`binary` must be True or False, got {binary!r}")
        return cls(graph, R, tolerance=tolerance, noise=(Binary if binary else Bounded)(low, high))

    @cached_property
    def sigma(self) -> Vector:
        """Standard deviation (or sub-Gaussian constant) of one outcome of each arm, (n_arms,)."""
        return self.noise.sigmas(self.n_arms)

    @property
    def outcome_range(self) -> tuple[float, float] | None:
        """Interval known to hold every outcome, hence every mean, if any."""
        return self.noise.outcome_range

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
        smoothness = self.graph.roughness(mu)
        return smoothness if self.R < smoothness <= self.R * (1 + ROUNDING) else self.R

    def smooth(self, mu: Vector) -> bool:
        """Whether S(mu) <= R, but for rounding."""
        return self.graph.roughness(mu) <= self.R * (1 + ROUNDING)

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
