"""What sampling and stopping rules may look at: the results seen, and what follows from them, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import chdtri

from spectralbai.checks import Vector
from spectralbai.estimation import closest_smooth
from spectralbai.evidence.blocks import Data
from spectralbai.problem import Problem
from spectralbai.spectral import Decomposition, Responses, decompose

SUSPICION = 0.2
"""Where the misfit is larger than it would be with this probability if R were right and every direction rough, the
challengers get the benefit of the doubt: they are tested at the roughness of the data instead. This can only delay a
decision. It makes decisions on the strength of a wrong R rare; nothing can exclude them before R is refuted."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The results seen up to some time, and the arm to defend."""

    problem: Problem
    data: Data
    best: int
    """The arm recommended: the best of the constrained estimate."""
    origin: float
    """What was subtracted from every outcome."""

    @classmethod
    def weighed(cls, problem: Problem, data: Data, origin: float, before: int) -> Evidence:
        """Returns the evidence with the arm that it recommends; `before` is the arm recommended last.

        Every component has a result. Among right answers, changing one's mind only costs samples.
        """
        evidence = cls(problem, data, before, origin)
        mu_tilde = evidence.mu_tilde
        best = int(np.argmax(mu_tilde))
        if problem.tolerance > 0 and mu_tilde[before] >= mu_tilde[best] - 0.5 * problem.tolerance:
            best = before
        return evidence.defending(best)

    def defending(self, best: int) -> Evidence:
        """Returns the same evidence with another arm to defend; what does not depend on that arm is kept."""
        if best == self.best:
            return self
        other = Evidence(self.problem, self.data, best, self.origin)
        if "mu_tilde" in self.__dict__:
            other.__dict__["mu_tilde"] = self.mu_tilde
        return other

    @property
    def samples(self) -> int:
        return self.data.samples

    @cached_property
    def mu_tilde(self) -> Vector:
        """The constrained estimate, less the origin."""
        return closest_smooth(self.problem, self.data.counts, self.data.means, lambda: self.decomposition)

    @cached_property
    def decomposition(self) -> Decomposition:
        """The decomposition for the counts of all results."""
        return _decomposed(self.problem, self.data)

    @cached_property
    def responses(self) -> Responses:
        """Costs of all challengers on all results."""
        means = self.data.means
        radii = self.decomposition.components.effective(self.problem.room_for(means))
        return self.decomposition.respond(means, self.best, radii, self.problem.tolerance)

    @cached_property
    def doubtful_roughness(self) -> float:
        """The roughness of the results where it makes R, one for all components, doubtful; 0 where it does not."""
        components = self.decomposition.components
        rank = components.rank
        if rank == 0 or self.responses.misfit <= 0.5 * float(chdtri(rank, SUSPICION)):
            return 0.0
        return float(self.decomposition.roughness(self.data.means, components.radii).sum())


@lru_cache(maxsize=4)  # problems and data are immutable and compared by identity
def _decomposed(problem: Problem, data: Data) -> Decomposition:
    return decompose(problem, data.counts)
