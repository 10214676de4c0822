"""The race on items: which options are tried on which items next (theory, section 18)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectralbai.arrays import Indices, Mask, Vector
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.sampling.contract import Rng, SamplingRule, View

LEAST_ITEMS, ITEM_SHARE = 4, 0.06
"""The number of items in a block is the larger of two: a minimum, and a part of all items before the block."""


@dataclass(frozen=True, eq=False)
class ItemPlan(Memory):
    """The arms that the next items are tried with."""

    kind: ClassVar[str] = "item plan"

    arms: Mask


@dataclass(frozen=True)
class ItemRacing(SamplingRule[ItemPlan]):
    """Tries every item with all arms that are still needed (the full design).

    These are the leaders that have accounts, and the arms that one of them has not beaten yet.
    """

    uses_delta: ClassVar[bool] = True
    on_items: ClassVar[bool] = True

    def start(self, problem: Problem) -> ItemPlan:
        return ItemPlan(np.ones(problem.n_arms, dtype=bool))

    def plan(self, memory: ItemPlan, view: View) -> ItemPlan:
        assert view.needed is not None, "a race has a rule that says which arms it needs"
        needed = view.needed.copy()
        needed[list(view.withdrawn)] = False
        return ItemPlan(needed)

    def trials(self, memory: ItemPlan, view: View, issued: Vector, drawn: int) -> tuple[Indices, Indices]:
        items = view.problem.items
        assert items is not None, "only called where the problem has items"
        size = max(LEAST_ITEMS, math.ceil(ITEM_SHARE * drawn))
        arms = np.flatnonzero(memory.arms)
        if items.n is None:
            return _crossed(arms, np.arange(drawn, drawn + size))
        # Of a list, only arms that were tried on every item drawn so far can be bet on (theory 18.4).
        complete = arms[issued[arms] == drawn]
        if complete.size > 1 and drawn < items.n:
            return _crossed(complete, np.arange(drawn, min(drawn + size, items.n)))
        behind = arms[issued[arms] < drawn]
        draws = [np.arange(int(issued[arm]), drawn) for arm in behind.tolist()]
        return np.repeat(behind, [len(those) for those in draws]), np.concatenate([np.empty(0, dtype=np.intp), *draws])

    def pulls(self, memory: ItemPlan, view: View, issued: Vector, n: int, rng: Rng = None) -> Indices:
        raise NotImplementedError("trials on items come from `trials`")

    def without(self, memory: ItemPlan, arm: int) -> ItemPlan:
        arms = memory.arms.copy()
        arms[arm] = False
        return ItemPlan(arms)

    def join(self, memory: ItemPlan, n_arms: int) -> ItemPlan:
        return ItemPlan(np.concatenate([memory.arms, np.ones(n_arms - memory.arms.size, dtype=bool)]))

    def shares(self, memory: ItemPlan, view: View) -> Vector:
        arms = memory.arms.astype(np.float64)
        shares: Vector = arms / max(arms.sum(), 1.0)
        return shares


def _crossed(arms: Indices, draws: Indices) -> tuple[Indices, Indices]:
    """Returns every arm with every draw."""
    return np.repeat(arms, draws.size), np.tile(draws, arms.size)
