"""Best responses: for each challenger, the closest smooth means under which it beats the best arm."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.arrays import Matrix, Vector, check_vector, check_weights_of_arms
from spectralbai.checks import check_arm
from spectralbai.errors import InvalidInput
from spectralbai.problem import Problem
from spectralbai.spectral import Catalogue, Components, Decomposition, Responses
from spectralbai.threads import one_thread


@dataclass(frozen=True, eq=False)
class Alternative:
    """The closest means under which some challenger beats the best arm.

    Examples:
        >>> import numpy as np
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(2, []), R=np.inf)
        >>> closest = sb.closest_alternative(problem, [0.7, 0.2], omega=[0.5, 0.5])
        >>> closest.lam.round(3).tolist(), round(closest.cost, 5)
        ([0.45, 0.45], 0.03125)
    """

    lam: Vector
    """The alternative: smooth, and lam[challenger] >= lam[best] + tolerance."""
    challenger: int
    """The arm that beats the best one in `lam`."""
    gamma: float | Vector
    """Price of smoothness: the multiplier of lam' L lam <= R; one for each component of the graph if each has an R."""
    cost: float
    """f(omega) = sum_a omega_a (mu_a - lam_a)^2 / (2 sigma_a^2)."""


class Responder:
    """Best responses to any allocation, for one problem, one vector of means and one best arm."""

    def __init__(
        self, problem: Problem, mu: Vector, best: int, sigma: Vector | None = None, radii: Vector | None = None
    ) -> None:
        """`sigma` and `radii` (as `Components.radii`), if given, replace those of the problem: plans estimate them."""
        self.problem = problem
        self.mu = mu
        self.sigma = problem.sigma if sigma is None else sigma
        self.best = best
        self.tolerance = problem.tolerance
        if radii is not None:
            self.radii = radii
        self.noise = problem.noise
        self.catalogue = Catalogue.of(problem)

    @cached_property
    def components(self) -> Components:
        """The components of the graph, with all their edges."""
        return Components.from_problem(self.problem)

    @cached_property
    def radii(self) -> Vector:
        """R, in the form of `Components.radii`."""
        return self.components.effective(self.problem.room_for(self.mu))

    @property
    def unbeatable(self) -> bool:
        """Whether under all smooth means no other arm beats the best one by more than the tolerance."""
        low, high = self.noise.outcome_range or (-math.inf, math.inf)
        if self.tolerance >= high - low:
            return True
        if self.catalogue is not None:
            wide = self.tolerance**2 < 2 * self.catalogue.room[self.catalogue.of_arm[self.best]] * (1 - 1e-9)
            return self.tolerance > 0 and self.catalogue.n_categories == 1 and not wide
        return self.tolerance > 0 and not self.respond(np.ones(self.mu.size)).challengers.size

    def respond(self, omega: Vector, start: Matrix | None = None) -> Responses:
        """Returns the best responses to `omega`; `start` (n_arms, 2) holds guesses of the gammas."""
        decomposition = Decomposition.of(self.components, omega, self.sigma)
        return decomposition.respond(self.mu, self.best, self.radii, self.tolerance, start)

    def tolerating(self, tolerance: float) -> Responder:
        """Returns the same best responses for another tolerance."""
        other = copy(self)
        other.tolerance = tolerance
        return other

    def renumbered(self) -> Responder:
        """Returns the same best responses, with arms numbered in component order.

        Solvers use this: arms need no translation at every step, and results do not depend on how the arms of
        different components are interleaved. To translate vectors, use `components.ordered` and `components.restored`
        of the original object.
        """
        if self.components.in_order:
            return self
        other = copy(self)
        other.components, other.radii = self.components.renumbered, self.radii
        other.mu = self.components.ordered(self.mu)
        other.sigma = self.components.ordered(self.sigma)
        other.best = int(self.components.position[self.best])
        return other


def closest_alternative(problem: Problem, mu: ArrayLike, omega: ArrayLike, best: int | None = None) -> Alternative:
    """Returns the closest alternative to `mu` under the allocation `omega` (theory 2.3):

        argmin over lam of sum_a omega_a (mu_a - lam_a)^2 / (2 sigma_a^2)
        subject to lam' L lam <= R and lam_i >= lam_best + tolerance for some i != best.

    If each component c has an R, S_c(lam) <= R_c replaces lam' L lam <= R (theory, section 16).

    `mu` (n_arms,) may be rougher than R. `omega` (n_arms,) is non-negative, may contain zeros and need not sum to one,
    so that counts can be given. `best` is by default the arm with the largest mean.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01)
        >>> closest = sb.closest_alternative(problem, [0.9, 0.5, 0.6], omega=[0.5, 0.25, 0.25])
        >>> closest.challenger, closest.lam.round(2).tolist()
        (2, [0.75, 0.65, 0.75])
    """
    mu = check_vector("mu", mu, problem.n_arms)
    omega = check_weights_of_arms("omega", omega, problem.n_arms)
    best = problem.best_arm(mu) if best is None else check_arm("best", best, problem.n_arms)
    responder = Responder(problem, mu, best)
    with one_thread():
        responses = responder.respond(omega)
    # Challengers can have equal costs, for example if omega has zeros; take the first in component order.
    winner = int(responder.components.order[np.argmin(responder.components.ordered(responses.cost))])
    if not np.isfinite(responses.cost[winner]):
        raise InvalidInput(
            f"`tolerance` = {problem.tolerance:g} with {problem.described_R()} lets no other arm beat arm {best}: "
            "there is no alternative; lower the tolerance or raise R"
        )
    gamma: float | Vector = float(responses.gamma[winner, 0])
    if problem.by_component:
        gamma = np.zeros(problem.graph.n_components)
        gamma[responder.components.whole] = responses.prices[winner]  # 0 for components with infinite R
    return Alternative(mu - responses.gap[winner], winner, gamma, float(responses.cost[winner]))
