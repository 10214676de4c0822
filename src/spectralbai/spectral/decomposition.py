"""One decomposition for every best response, as a type: factorised once, used for any means, best arm and R.

With u = omega / sigma^2 >= 0 there is a basis B with B' diag(u) B = diag(theta) and B' L B = diag(rough), so that
M(gamma) = diag(u) + 2 gamma L becomes diag(theta + 2 gamma rough) for every gamma at once (docs/theory.md, section 3).
Everything that depends on the weights alone is in B, theta and rough. Vectors come and go arm by arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spectralbai.checks import Indices, Matrix, Vector
from spectralbai.problem import Problem
from spectralbai.spectral import secular
from spectralbai.spectral.components import Components
from spectralbai.spectral.diagonalise import diagonalise


class Factors(NamedTuple):
    """What the compiled kernels take, in this order; arms stand in component order."""

    u: Vector
    basis: Matrix
    theta: Vector
    rough: Vector
    offsets: Indices


@dataclass(frozen=True, eq=False)
class Decomposition:
    """diag(u) and the Laplacian, diagonalised together (theory 3.2).

    A *coordinate* is a column of the basis. Coordinates are grouped by component, the constant vector of the component
    first; component c holds the coordinates components.offsets[c] to components.offsets[c + 1] - 1.
    """

    components: Components
    omega: Vector
    """Weight of each arm: an allocation or counts; zeros are allowed."""
    sigma: Vector
    u: Vector
    """omega / sigma^2."""
    factors: Factors
    """The decomposition as the compiled kernels take it: for them only."""

    @classmethod
    def of(cls, components: Components, omega: Vector, sigma: Vector) -> Decomposition:
        """Returns the decomposition for the weights `omega` and noise `sigma` of the arms."""
        u = omega / sigma**2
        ordered = components.ordered(u)
        basis, theta, rough = diagonalise(
            ordered, components.offsets, components.ends, components.weights, components.edge_offsets
        )
        return cls(components, omega, sigma, u, Factors(ordered, basis, theta, rough, components.offsets))

    @property
    def theta(self) -> Vector:
        """Weight of each coordinate."""
        return self.factors.theta

    @property
    def rough(self) -> Vector:
        """Roughness of each coordinate."""
        return self.factors.rough

    @cached_property
    def basis(self) -> Matrix:
        """B: one row per arm, one column per coordinate."""
        return self.components.restored(self.factors.basis)

    def combine(self, coef: Matrix) -> Matrix:
        """Returns B coef: values of the arms from those of the coordinates, one column or several."""
        return self.components.restored(self.factors.basis @ coef)

    def diagonal(self, x: Matrix) -> Matrix:
        """Returns the diagonal of B diag(x) B', such as that of M(gamma)^-1 (theory 3.3)."""
        return self.components.restored(self.factors.basis**2 @ x)

    def coordinates(self, means: Vector) -> tuple[Vector, Vector]:
        """Returns (level, y): the weighted mean of each arm's component, and B' diag(u) (means - level)."""
        u, basis, theta, _, offsets = self.factors
        ordered = self.components.ordered(means)
        centre, _, y = secular.centre_means(ordered, u, basis, theta, offsets)
        return centre[self.components.of_arm] + ordered[0], y

    def project(self, means: Vector, R: float) -> Vector:
        """Returns the closest means with S <= R, the least rough where weights of 0 leave a choice (theory 3.10)."""
        return self.components.restored(secular.project(R, self.components.ordered(means), *self.factors))

    def misfit(self, means: Vector, R: float) -> float:
        """Returns the least cost of means with S <= R (theory 6.1)."""
        return float(secular.misfit(R, self.components.ordered(means), *self.factors))

    def roughness(self, means: Vector) -> float:
        """Returns the least S of means that cost nothing: S(means) if every arm has weight."""
        return float(secular.roughness(self.components.ordered(means), *self.factors))

    def respond(self, means: Vector, best: int, R: float, tolerance: float, start: Vector | None = None) -> Responses:
        """Returns the best responses of all challengers of `best`; `start` holds guesses of their gammas."""
        to = self.components
        gamma, nu, coef, gap, cost, misfit = secular.respond_all(
            int(to.position[best]),
            R,
            tolerance,
            to.ordered(means),
            *self.factors,
            to.component,
            np.zeros(means.size) if start is None else to.ordered(start),
        )
        return Responses(
            self,
            means,
            best,
            R,
            tolerance,
            to.restored(gamma),
            to.restored(nu),
            to.restored(coef),
            to.restored(gap, axes=2),
            to.restored(cost),
            misfit,
        )

    def respond_pairs(self, means: Vector, best: int, R: float, tolerance: float) -> tuple[Vector, Vector]:
        """Returns (cost, misfit) of each challenger when only its own component and that of `best` count (theory 6.8).

        The cost is infinite for a challenger that cannot win, and for `best`.
        """
        to = self.components
        cost, misfit = secular.respond_pairs(
            int(to.position[best]), R, tolerance, to.ordered(means), *self.factors, to.component
        )
        return to.restored(cost), to.restored(misfit)


@dataclass(frozen=True, eq=False)
class Responses:
    """The best responses of every challenger to one allocation: row i belongs to challenger i.

    A challenger that cannot win (its set of alternatives is empty) has infinite cost, and its row no other meaning.
    The row of the best arm holds the closest smooth means; its cost is infinite too.
    """

    decomposition: Decomposition
    means: Vector
    best: int
    R: float
    tolerance: float
    gamma: Vector
    """Price of smoothness of each challenger: the multiplier of S(lam) <= R."""
    nu: Vector
    """Multiplier of lam_best + tolerance <= lam_i."""
    coef: Matrix
    """Coordinates of the alternatives, levels of the components apart."""
    gap: Matrix
    """means - lam, one row per challenger."""
    cost: Vector
    """f_i(omega)."""
    misfit: float
    """The least cost of any smooth means: 0 if the means are smooth."""

    @property
    def omega(self) -> Vector:
        """The allocation responded to."""
        return self.decomposition.omega

    @property
    def value(self) -> float:
        """f(omega), the least cost; inf if no challenger can win."""
        return float(self.cost.min())

    @property
    def challengers(self) -> Indices:
        """The challengers that can win."""
        return np.flatnonzero(np.isfinite(self.cost))

    @cached_property
    def gradient(self) -> Matrix:
        """d^i = k(mu, lam^i), the gradient of f_i, one row per challenger (theory 2.5)."""
        return 0.5 * (self.gap / self.decomposition.sigma) ** 2


def decompose(problem: Problem, omega: Vector) -> Decomposition:
    """Returns the decomposition for the weights `omega` (n_arms,) of the arms of a problem."""
    return Decomposition.of(Components.from_problem(problem), omega, problem.sigma)
