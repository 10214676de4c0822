"""One decomposition for all best responses, as a type: factorised once, then used for any means, best arm and R.

It is a basis B with B' diag(u) B = diag(theta) and B' L B = diag(rough), for u = omega / sigma^2; see `diagonalise`.
Methods take and return vectors in the problem's order of arms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.checks import check_matrices
from spectralbai.errors import InvalidInput
from spectralbai.problem import Problem
from spectralbai.spectral import secular
from spectralbai.spectral.components import BYTES_PER_PAIR, Components
from spectralbai.spectral.large_components import diagonalise_all
from spectralbai.spectral.secular import Factors, Question


@dataclass(frozen=True, eq=False)
class Decomposition:
    """diag(u) and the Laplacian, diagonalised together (theory 3.2).

    A *coordinate* is a column of the basis. Coordinates are grouped by component, and the constant vector of each
    component is its first; component c has the coordinates components.offsets[c] to components.offsets[c + 1] - 1.
    """

    components: Components
    omega: Vector
    """Weight of each arm: an allocation or counts; zeros are allowed."""
    sigma: Vector
    u: Vector
    """omega / sigma^2."""
    factors: Factors
    """The decomposition in the form that the compiled kernels take; no other code should use it."""

    @classmethod
    def of(cls, components: Components, omega: Vector, sigma: Vector) -> Decomposition:
        """Returns the decomposition for the weights `omega` and noise `sigma` of the arms."""
        check_matrices(omega.size, BYTES_PER_PAIR)
        u = omega / sigma**2
        ordered = components.ordered(u)
        try:
            basis, theta, rough = diagonalise_all(ordered, components.edges)
        except np.linalg.LinAlgError:  # an edge that is lost in rounding errors leaves a group of arms unconnected
            low, high = components.weights.min(initial=np.inf), components.weights.max(initial=0.0)
            raise InvalidInput(
                f"the edges of the graph have weights from {low:g} to {high:g}, too different for floating-point "
                "arithmetic; leave out those that are many orders of magnitude below the others"
            ) from None
        return cls(
            components, omega, sigma, u, Factors(ordered, basis, theta, rough, components.offsets, components.component)
        )

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
        """Returns B coef, the values at the arms, from coordinates in one column or several."""
        return self.components.restored(self.factors.basis @ coef)

    def diagonal(self, x: Matrix) -> Matrix:
        """Returns the diagonal of B diag(x) B', for example the diagonal of M(gamma)^-1 (theory 3.3)."""
        return self.components.restored(self.factors.basis**2 @ x)

    def coordinates(self, means: Vector) -> tuple[Vector, Vector]:
        """Returns (level, y): the weighted mean of each arm's component, and B' diag(u) (means - level)."""
        ordered = self.components.ordered(means)
        centre, _, y = secular.centre_means(ordered, self.factors)
        return centre[self.components.of_arm] + ordered[0], y

    def project(self, means: Vector, radii: Vector) -> Vector:
        """Returns the closest means with S <= R; of several, because weights are 0, the least rough (theory 3.10).

        Here and below `radii` is R in the form of `Components.radii`.
        """
        return self.components.restored(secular.project(radii, self.components.ordered(means), self.factors))

    def misfit(self, means: Vector, radii: Vector) -> float:
        """Returns the least cost of means with S <= R (theory 6.1)."""
        _, y = self.coordinates(means)
        coef = secular.rest(radii, y, self.factors)[1]
        return float(0.5 * self.theta @ (coef - self._per_weight(y)) ** 2)

    def roughness(self, means: Vector, radii: Vector) -> Vector:
        """Returns, for each of `radii`, the least S of means at cost 0: S(means) if every arm has weight."""
        return self.smoothness(self._per_weight(self.coordinates(means)[1]), radii)

    def smoothness(self, coef: Matrix, radii: Vector) -> Matrix:
        """Returns S of means with these coordinates, along the last axis: one number for each of `radii`."""
        squares = coef**2 * self.rough
        if radii.size == 1:
            return np.asarray(squares.sum(axis=-1, keepdims=True))
        return np.asarray(np.add.reduceat(squares, self.components.offsets[:-1], axis=-1))

    def _per_weight(self, y: Vector) -> Vector:
        """Returns the coordinates of the means from `y` of `coordinates`; 0 where the weight is 0."""
        return np.divide(y, self.theta, out=np.zeros_like(y), where=self.theta > 0)

    def respond(
        self, means: Vector, best: int, radii: Vector, tolerance: float, start: Matrix | None = None
    ) -> Responses:
        """Returns the best responses of all challengers of `best`; `start` (n_arms, 2) guesses their gammas."""
        to = self.components
        question = Question(int(to.position[best]), radii, tolerance, to.ordered(means))
        guesses = np.zeros((means.size, 2)) if start is None else to.ordered(start)
        gamma, nu, coef, gap, cost, misfit, rests = secular.respond_all(question, self.factors, guesses)
        gamma, nu, coef, gap, cost = (*map(to.restored, (gamma, nu, coef)), to.restored(gap, axes=2), to.restored(cost))
        return Responses(self, means, best, radii, tolerance, gamma, nu, coef, gap, cost, misfit, rests)


@dataclass(frozen=True, eq=False)
class Responses:
    """The best responses of every challenger to one allocation: row i belongs to challenger i.

    A challenger that cannot win (its set of alternatives is empty) has infinite cost; the rest of its row has no
    meaning. The row of the best arm holds the closest smooth means; its cost is infinite too.
    """

    decomposition: Decomposition
    means: Vector
    best: int
    radii: Vector
    """R in the form of `Components.radii`."""
    tolerance: float
    gamma: Matrix
    """Price of smoothness, the multiplier of S(lam) <= R, in the component of the best arm and in that of each
    challenger: (n_arms, 2). The two are equal if all components share one R, or if the components are the same."""
    nu: Vector
    """Multiplier of lam_best + tolerance <= lam_i."""
    coef: Matrix
    """Coordinates of the alternatives, without the levels of the components."""
    gap: Matrix
    """means - lam, one row per challenger."""
    cost: Vector
    """f_i(omega)."""
    misfit: float
    """The least cost of any smooth means: 0 if the means are smooth."""
    rests: Vector
    """Price of smoothness of the closest smooth means in each component. If each component has an R, this is also the
    price in components that a challenger does not move."""

    @property
    def omega(self) -> Vector:
        """The allocation that these are responses to."""
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
    def prices(self) -> Matrix:
        """Multipliers of all constraints S <= R, one row per challenger and one column for each of `radii`."""
        if self.radii.size == 1:
            return self.gamma[:, :1]
        component, rows = self.decomposition.components.of_arm, np.arange(self.means.size)
        prices = np.tile(self.rests, (rows.size, 1))
        prices[rows, component] = self.gamma[:, 1]
        prices[:, component[self.best]] = self.gamma[:, 0]
        return prices

    @property
    def smoothness(self) -> Matrix:
        """S of the alternatives, from their coordinates: one row per challenger, one column for each of `radii`."""
        return self.decomposition.smoothness(self.coef, self.radii)

    def at_coordinates(self, values: Matrix) -> Matrix:
        """Returns `values`, with a column per entry of `radii`, with a column per coordinate, or one for all."""
        return values if self.radii.size == 1 else values[:, self.decomposition.components.component]

    def at_arms(self, values: Matrix) -> Matrix:
        """Returns `values`, with a column per entry of `radii`, with a column per arm, or one for all."""
        return values if self.radii.size == 1 else values[:, self.decomposition.components.of_arm]

    @cached_property
    def gradient(self) -> Matrix:
        """d^i = k(mu, lam^i), the gradient of f_i, one row per challenger (theory 2.5)."""
        return 0.5 * (self.gap / self.decomposition.sigma) ** 2


def decompose(problem: Problem, omega: Vector) -> Decomposition:
    """Returns the decomposition for the weights `omega` (n_arms,) of the arms of a problem."""
    return Decomposition.of(Components.from_problem(problem), omega, problem.sigma)
