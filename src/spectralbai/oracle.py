"""Best responses: for each challenger, the closest smooth means under which it beats the best arm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.checks import Indices, Matrix, Vector, check_arm, check_vector, check_weights_of_arms
from spectralbai.errors import InvalidInput
from spectralbai.problem import Problem
from spectralbai.secular import respond_all
from spectralbai.spectrum import Blocks, decompose
from spectralbai.threads import one_thread


@dataclass(frozen=True, eq=False)
class Alternative:
    """The closest means under which some challenger beats the best arm."""

    lam: Vector
    """The alternative: smooth, and lam[challenger] >= lam[best] + tolerance."""
    challenger: int
    """The arm that beats the best one in `lam`."""
    gamma: float
    """Price of smoothness: the multiplier of lam' L lam <= R."""
    cost: float
    """f(omega) = sum_a omega_a (mu_a - lam_a)^2 / (2 sigma_a^2)."""


@dataclass(frozen=True, eq=False)
class Responses:
    """The best responses of every challenger to one allocation; arms stand in component order.

    Row i belongs to the challenger at position i. A challenger that cannot win (its set of alternatives is empty)
    has infinite cost, and its row no other meaning. The row of the best arm holds the closest smooth means; its cost
    is infinite too.
    """

    oracle: Oracle
    omega: Vector
    basis: Matrix
    theta: Vector
    rough: Vector
    gamma: Vector
    nu: Vector
    coef: Matrix
    """Coordinates of the alternatives in `basis`, centres of the components apart."""
    gap: Matrix
    """mu - lam, one row per challenger."""
    cost: Vector
    """f_i(omega)."""
    misfit: float
    """The least cost of any smooth means: 0 if mu is smooth."""

    @property
    def value(self) -> float:
        """f(omega), the least cost; inf if no challenger can win."""
        return float(self.cost.min())

    @property
    def challengers(self) -> Indices:
        """Positions of the challengers that can win."""
        return np.flatnonzero(np.isfinite(self.cost))

    @cached_property
    def gradient(self) -> Matrix:
        """d^i = k(mu, lam^i), the gradient of f_i, one row per challenger (theory 2.5)."""
        return 0.5 * (self.gap / self.oracle.sigma) ** 2


class Oracle:
    """Best responses to any allocation, for one problem, one vector of means and one best arm."""

    def __init__(self, problem: Problem, mu: Vector, best: int) -> None:
        self.problem = problem
        self.blocks = Blocks.from_problem(problem)
        self.mu = mu[self.blocks.order]
        self.sigma = problem.sigma[self.blocks.order]
        self.best = int(self.blocks.position[best])
        self.R = problem.room_for(mu)

    @property
    def unbeatable(self) -> bool:
        """Whether no smooth means let another arm beat the best one by more than the tolerance."""
        return self.problem.tolerance > 0 and not self.respond(np.ones(self.mu.size)).challengers.size

    def respond(self, omega: Vector, start: Vector | None = None) -> Responses:
        """Returns the best responses to `omega` (in component order); `start` holds guesses of the gammas."""
        blocks = self.blocks
        u = omega / self.sigma**2
        basis, theta, rough = decompose(u, blocks.offsets, blocks.ends, blocks.weights, blocks.edge_offsets)
        if start is None:
            start = np.zeros(omega.size)
        gamma, nu, coef, gap, cost, misfit = respond_all(
            self.best,
            self.R,
            self.problem.tolerance,
            self.mu,
            u,
            basis,
            theta,
            rough,
            blocks.offsets,
            blocks.component,
            start,
        )
        return Responses(self, omega, basis, theta, rough, gamma, nu, coef, gap, cost, misfit)


def closest_alternative(problem: Problem, mu: ArrayLike, omega: ArrayLike, best: int | None = None) -> Alternative:
    """Returns the closest alternative to `mu` under the allocation `omega` (theory 2.3):

        argmin over lam of sum_a omega_a (mu_a - lam_a)^2 / (2 sigma_a^2)
        subject to lam' L lam <= R and lam_i >= lam_best + tolerance for some i != best.

    `mu` (n_arms,) may be rougher than R; `omega` (n_arms,) is non-negative, may hold zeros and need not sum
    to one, so that counts will do; `best` defaults to the arm of largest mean.
    """
    mu = check_vector("mu", mu, problem.n_arms)
    omega = check_weights_of_arms("omega", omega, problem.n_arms)
    best = problem.best_arm(mu) if best is None else check_arm("best", best, problem.n_arms)
    oracle = Oracle(problem, mu, best)
    blocks = oracle.blocks
    with one_thread():
        responses = oracle.respond(omega[blocks.order])
    winner = int(np.argmin(responses.cost))
    if not np.isfinite(responses.cost[winner]):
        raise InvalidInput(
            f"`tolerance` = {problem.tolerance:g} with R = {problem.R:g} lets no other arm beat arm {best}: "
            "there is no alternative; lower the tolerance or raise R"
        )
    lam = (oracle.mu - responses.gap[winner])[blocks.position]
    return Alternative(lam, int(blocks.order[winner]), float(responses.gamma[winner]), float(responses.cost[winner]))
