"""What sampling and stopping rules may look at: the results seen, and what is computed from them, once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from spectralbai.arrays import Vector
from spectralbai.estimation import closest_smooth
from spectralbai.evidence.blocks import Data
from spectralbai.problem import Problem
from spectralbai.spectral import Decomposition, Responses, decompose
from spectralbai.ties import first_largest


@dataclass(frozen=True, eq=False)
class Evidence:
    """The results seen up to some time, and the leader: the arm whose claim to be the best is tested."""

    problem: Problem
    data: Data
    best: int
    """The leader: the best arm of the constrained estimate."""
    origin: float
    """What was subtracted from every outcome."""

    @classmethod
    def with_leader(cls, problem: Problem, data: Data, origin: float, before: int) -> Evidence:
        """Returns the evidence with the arm that it recommends; `before` is the arm that was recommended last.

        Every component must have a result. With a tolerance, `before` is kept while it looks close to the best:
        switching between two right answers only costs samples.
        """
        mu_tilde = _estimated(problem, data)
        best = first_largest(mu_tilde)
        if problem.tolerance > 0 and mu_tilde[before] >= mu_tilde[best] - 0.5 * problem.tolerance:
            best = before
        return cls(problem, data, best, origin)

    def defending(self, best: int) -> Evidence:
        """Returns the same evidence with another leader."""
        return self if best == self.best else replace(self, best=best)

    @property
    def samples(self) -> int:
        return self.data.samples

    @property
    def mu_tilde(self) -> Vector:
        """The constrained estimate minus the origin."""
        return _estimated(self.problem, self.data)

    @property
    def decomposition(self) -> Decomposition:
        """The decomposition for the counts of all results seen."""
        return _decomposed(self.problem, self.data)

    @cached_property
    def responses(self) -> Responses:
        """The costs of all challengers, from all results seen."""
        means = self.data.means
        radii = self.decomposition.components.effective(self.problem.room_for(means))
        return self.decomposition.respond(means, self.best, radii, self.problem.tolerance)


@lru_cache(maxsize=4)  # problems and data are immutable and compared by identity
def _estimated(problem: Problem, data: Data) -> Vector:
    return closest_smooth(problem, data.counts, data.means, lambda: _decomposed(problem, data))


@lru_cache(maxsize=4)
def _decomposed(problem: Problem, data: Data) -> Decomposition:
    return decompose(problem, data.counts)
