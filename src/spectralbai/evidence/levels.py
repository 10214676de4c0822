"""Results of blocks whose levels differ: the average of all means in a block may change from block to block.

Proofs need the means during a block only, so weekdays and trends cannot hurt as long as the best arm stays best
(theory, section 18). But averages over all blocks then say little, because arms that were tried more often on good days
look better. Where blocks differ by more than noise, beliefs therefore use results minus the levels of their blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from scipy.special import chdtri

from spectralbai.arrays import Vector
from spectralbai.compiled import njit
from spectralbai.evidence.blocks import Block, Data, extended

STRICT = 1e-4
"""Blocks differ if, without drift, so large differences would occur with about this probability. It is small because
the question is asked at every closing, and because results minus levels are the worse estimates without drift."""


@dataclass(frozen=True, eq=False)
class BlockData(Data):
    """Counts, sums and sums of squares of each arm's results, also of results minus the levels of their blocks.

    The level of a block is how far the results of its arms are, on average, above what these arms showed in earlier
    blocks. Sums need no more memory than an entry per arm, since levels are not estimated again later.
    """

    kind: ClassVar[str] = "block data"

    level_sums: Vector
    """Sums of results minus levels."""
    level_squares: Vector
    """Sums of squares of results minus levels."""
    unrest: float
    """Sum over blocks of the squared difference from earlier blocks, divided by the most that it is on average without
    drift, if outcomes have variance 1 (theory 18.15)."""
    compared: int
    """Number of blocks in this sum: those with an arm that earlier blocks have, too."""

    @classmethod
    def none(cls, n_arms: int) -> Self:
        zeros = np.zeros(n_arms)
        return cls(zeros, zeros, zeros, zeros, zeros, 0.0, 0)

    def after(self, block: Block) -> BlockData:
        return self._with(self.plus(block.arms, block.outcomes))

    def __add__(self, other: Data) -> BlockData:
        """Returns the data with results that only inform. They are taken for a block if they are of several arms; those
        of a single arm say nothing of differences, and no level is taken off them."""
        total = super().__add__(other)
        if np.count_nonzero(other.counts) > 1:
            return self._with(total)
        sums, squares = self.level_sums + other.sums, self.level_squares + other.squares
        return BlockData(total.counts, total.sums, total.squares, sums, squares, self.unrest, self.compared)

    def _with(self, total: Data) -> BlockData:
        """Returns the data after one more block, given the counts, sums and squares of all."""
        before = self.counts, self.sums, self.squares, self.level_sums, self.level_squares
        sums, squares, unrest, compared = _levelled(before, (total.counts, total.sums, total.squares))
        return BlockData(
            total.counts, total.sums, total.squares, sums, squares, self.unrest + unrest, self.compared + compared
        )

    def padded(self, n_arms: int) -> BlockData:
        if n_arms == self.counts.size:
            return self
        total = super().padded(n_arms)
        sums, squares = (extended(each, n_arms, 0.0) for each in (self.level_sums, self.level_squares))
        return BlockData(total.counts, total.sums, total.squares, sums, squares, self.unrest, self.compared)

    def differs(self, variances: Vector) -> bool:
        """Returns whether blocks differ by more than noise, if outcomes of the arms have these variances.

        Without drift, the sum is at most about chi-squared (theory 18.15).
        """
        if not self.compared:
            return False
        return self.unrest > float(variances[self.counts > 0].max()) * float(chdtri(self.compared, STRICT))

    @cached_property
    def levelled(self) -> Data:
        """The results minus the levels of their blocks, plus what the levels are on average."""
        level = (self.sums.sum() - self.level_sums.sum()) / self.counts.sum()
        squares = self.level_squares + level * (2 * self.level_sums + level * self.counts)
        return Data(self.counts, self.level_sums + level * self.counts, squares)


@njit
def _levelled(
    before: tuple[Vector, Vector, Vector, Vector, Vector], total: tuple[Vector, Vector, Vector]
) -> tuple[Vector, Vector, float, int]:
    """Returns (level_sums, level_squares, unrest, compared) after a block: the last two are what the block adds."""
    counts, sums, squares, level_sums, level_squares = before
    weight, shift, level, own, earlier = 0.0, 0.0, 0.0, 0.0, 0.0
    for a in range(counts.size):
        n = total[0][a] - counts[a]
        if n > 0.0 and counts[a] > 0.0:
            precision = n * counts[a] / (n + counts[a])  # of the average in the block minus that before
            average = (total[1][a] - sums[a]) / n
            weight += precision
            shift += precision * (average - sums[a] / counts[a])
            level += precision * (average - level_sums[a] / counts[a])
            own += precision**2 / n
            earlier += precision / np.sqrt(counts[a])
    if weight > 0.0:
        level /= weight
    new_sums, new_squares = level_sums.copy(), level_squares.copy()
    for a in range(counts.size):
        n = total[0][a] - counts[a]
        if n > 0.0:
            s = total[1][a] - sums[a]
            new_sums[a] += s - n * level
            new_squares[a] += total[2][a] - squares[a] - level * (2 * s - n * level)
    if weight == 0.0:
        return new_sums, new_squares, 0.0, 0
    # Arms are tried again because they looked good, so the errors of earlier averages may all have the same sign.
    return new_sums, new_squares, shift**2 / (own + earlier**2), 1  # (18.15)
