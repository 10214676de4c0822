"""What a stopping rule may look at: results received, and the results up to the split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import chdtri

from spectralbai.checks import Vector
from spectralbai.problem import Problem
from spectralbai.spectral import Decomposition, Responses, decompose

SPLIT_EVIDENCE = 1.5
"""The mixture's prior is frozen at the first check with this much evidence against every challenger."""

SUSPICION = 0.2
"""Where the misfit is larger than it would be with this probability if R were right and every direction rough, the
challengers get the benefit of the doubt: they are tested at the roughness of the data instead. This can only delay a
decision. It makes decisions on the strength of a wrong R rare; nothing can exclude them before R is refuted."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Counts and sums of the results received up to some time."""

    counts: Vector
    sums: Vector

    @property
    def means(self) -> Vector:
        """Empirical means, 0 where there are no results."""
        return np.divide(self.sums, self.counts, out=np.zeros_like(self.sums), where=self.counts > 0)

    def since(self, earlier: Snapshot) -> Snapshot:
        """Returns the results received after `earlier`."""
        return Snapshot(self.counts - earlier.counts, self.sums - earlier.sums)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a stopping rule may look at: results received, the arm to defend, and the results up to the split."""

    problem: Problem
    data: Snapshot
    best: int
    """The arm recommended: the best of the constrained estimate."""
    split: Snapshot | None
    """Results up to the time the mixture's prior was frozen; None before."""
    origin: float
    """What was subtracted from every outcome."""

    @property
    def samples(self) -> float:
        return float(self.data.counts.sum())

    @cached_property
    def decomposition(self) -> Decomposition:
        """The decomposition for the counts of all results."""
        return decompose(self.problem, self.data.counts)

    @cached_property
    def responses(self) -> Responses:
        """Costs of all challengers on all results."""
        means = self.data.means
        return self.decomposition.respond(means, self.best, self.problem.room_for(means), self.problem.tolerance)

    @property
    def doubtful_roughness(self) -> float:
        """The roughness of the results where it makes R doubtful; 0 where it does not."""
        rank = self.decomposition.components.rank
        if rank == 0 or self.responses.misfit <= 0.5 * float(chdtri(rank, SUSPICION)):
            return 0.0
        return self.decomposition.roughness(self.data.means)

    @property
    def splits_here(self) -> bool:
        """Whether the mixture's prior should be frozen now. Any stopping time will do: the rule is valid for all."""
        lead = self.responses.value - self.responses.misfit
        return lead > SPLIT_EVIDENCE or self.responses.misfit > self.problem.n_arms + 10
