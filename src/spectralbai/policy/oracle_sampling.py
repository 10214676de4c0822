"""Sampling by omega*(mu) of the true means: what not knowing them costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from spectralbai.allocation import solve_allocation
from spectralbai.checks import Vector
from spectralbai.errors import InvalidInput
from spectralbai.instance import Instance
from spectralbai.policy.tracker import Tracker


@dataclass(frozen=True, eq=False)
class OracleSampling(Tracker):
    """Tracks the optimal allocation of the true means from the start; the stopping rule does not know them."""

    mu: Vector = field(kw_only=True)
    """The true means."""

    @classmethod
    def on(cls, instance: Instance, **settings: Any) -> Self:
        if instance.mu is None:
            raise InvalidInput("`mu` must be given for the oracle to sample by, got an instance without means")
        policy = cls(instance.problem, mu=instance.mu, **settings)
        policy._omega  # noqa: B018  # means that R forbids are refused here, before any work
        return policy

    @cached_property
    def _omega(self) -> Vector:
        return solve_allocation(self.problem, self.mu, tol=1e-3).omega

    def _allocation(self, mu_tilde: Vector, best: int) -> Vector:
        return np.array(self._omega)
