"""Pools: groups of arms whose results are averaged, and how the risk is shared among the groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spectralbai.arrays import Indices, Vector


@dataclass(frozen=True, eq=False)
class Pools:
    """Groups of arms that are fixed before any result; an arm may be in several groups."""

    members: Indices
    """The arms of all pools, one pool after the other."""
    starts: Indices
    """Where each pool begins in `members`, (n_pools,)."""
    shares: Vector
    """Share of each pool in the risk, (n_pools,); they sum to 1."""

    def __iter__(self) -> Iterator[Indices]:
        return iter(np.split(self.members, self.starts[1:]))

    @property
    def sizes(self) -> Indices:
        """Number of arms of each pool."""
        return np.diff(self.starts, append=self.members.size)

    def totals(self, x: Vector) -> Vector:
        """Returns the sum of `x` (n_arms,) over the arms of each pool."""
        return np.add.reduceat(x[self.members], self.starts)
