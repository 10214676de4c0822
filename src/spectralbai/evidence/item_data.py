"""Results of trials on items: what is kept of them, so that options can be compared on the items they share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from spectralbai.arrays import Indices, Matrix
from spectralbai.evidence.blocks import Block, Data


class Panel(NamedTuple):
    """Some items of a block that were tried with the same arms."""

    arms: Indices
    draws: Indices
    """How many items were drawn before each of these items."""
    outcomes: Matrix
    """One row per arm, one column per item, in the order of drawing."""


def panels(block: Block) -> Iterator[Panel]:
    """Returns the items of a block, grouped by the arms that they were tried with; the groups with the earliest items
    come first."""
    assert block.draws is not None, "the block has items"
    by_item: dict[int, list[int]] = {}
    for slot in np.lexsort((block.arms, block.draws)).tolist():
        by_item.setdefault(int(block.draws[slot]), []).append(slot)
    groups: dict[tuple[int, ...], list[list[int]]] = {}
    for row in by_item.values():
        groups.setdefault(tuple(block.arms[row].tolist()), []).append(row)
    for arms, rows in groups.items():
        slots = np.array(rows)
        yield Panel(np.array(arms, dtype=np.intp), block.draws[slots[:, 0]], block.outcomes[slots].T)


@dataclass(frozen=True, eq=False)
class ItemData(Data):
    """Counts and sums of each arm's results, and of each pair of arms over the items that both were tried on.

    Of a list, an arm that was tried `counts` times was tried on the first so many items in the order of drawing. Items
    count for a pair of arms if both were tried on them when they were drawn; those by which arms catch up do not,
    because that they are tried may be decided by what others did there (theory 18.12). All count for an arm itself, on
    the diagonals.
    """

    kind: ClassVar[str] = "item data"

    drawn: int
    """Number of items drawn."""
    n_items: int | None
    """Number of items of the list; None if items are fresh."""
    together: Matrix
    """Number of items that both arms were tried on."""
    crossed: Matrix
    """Sum of the row's arm over the items that the column's arm was tried on, too."""
    distances: Matrix
    """Sum of the squared differences of both arms over the items that both were tried on."""
    weights: Matrix
    """Sum over the items that both were tried on of N/(N - t), t the number of items drawn before; t = 0 if items are
    fresh."""
    spent: Matrix
    """Sum over the items that both were tried on of what the row's arm had won on earlier items, divided by N - t; 0 if
    items are fresh."""

    @classmethod
    def none(cls, n_arms: int, n_items: int | None = None) -> Self:
        vector, matrix = np.zeros(n_arms), np.zeros((n_arms, n_arms))
        return cls(vector, vector, vector, 0, n_items, *(matrix,) * 5)

    def after(self, block: Block) -> ItemData:
        """Returns the data with the results of a block that has closed.

        An arm that catches up is compared with others on the items of this block only: what others did on the earlier
        items is not kept item by item.
        """
        counts, sums, squares = self.counts.copy(), self.sums.copy(), self.squares.copy()
        together, crossed, distances, weights, spent = (matrix.copy() for matrix in self._by_pair)
        drawn = self.drawn
        for arms, draws, outcomes in panels(block):
            pairs = np.ix_(arms, arms)
            counted = np.ones((arms.size, arms.size)) if draws[0] >= block.drawn else np.eye(arms.size)
            total, squared = outcomes.sum(axis=1), (outcomes**2).sum(axis=1)
            together[pairs] += counted * draws.size
            crossed[pairs] += counted * total[:, None]
            distances[pairs] += counted * np.maximum(squared[:, None] + squared - 2 * outcomes @ outcomes.T, 0.0)
            if self.n_items is None:
                weights[pairs] += counted * draws.size
            else:
                left = self.n_items - draws
                before = sums[arms, None] + np.cumsum(outcomes, axis=1) - outcomes
                weights[pairs] += counted * (self.n_items / left).sum()
                spent[pairs] += counted * (before / left).sum(axis=1)[:, None]
            counts[arms] += draws.size
            sums[arms] += total
            squares[arms] += squared
            drawn = max(drawn, int(draws.max()) + 1)
        by_pair = together, crossed, distances, weights, spent
        return ItemData(counts, sums, squares, drawn, self.n_items, *by_pair)

    def padded(self, n_arms: int) -> ItemData:
        added = n_arms - self.counts.size
        if not added:
            return self
        counts, sums, squares = (np.pad(values, (0, added)) for values in (self.counts, self.sums, self.squares))
        by_pair = (np.pad(matrix, ((0, added), (0, added))) for matrix in self._by_pair)
        return ItemData(counts, sums, squares, self.drawn, self.n_items, *by_pair)

    @property
    def _by_pair(self) -> tuple[Matrix, ...]:
        return self.together, self.crossed, self.distances, self.weights, self.spent
