"""A variant of the betting rule: half of every stake is kept back, so that a block never loses more than half."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.evidence.blocks import Block
from spectralbai.evidence.outlook import CatalogueOutlook, Outlook
from spectralbai.stopping import Betting
from spectralbai.stopping.bets import BetTable
from spectralbai.stopping.category_bets import CategoryTable


@dataclass(frozen=True, eq=False)
class HedgedTable(BetTable):
    """Bets that pay (1 + w)/2 where those of the betting rule pay w: they are as fair as these."""

    def against_arms(self, leader: int, tolerance: float) -> Vector:
        pay: Vector = np.logaddexp(super().against_arms(leader, tolerance), 0.0) - math.log(2)
        return pay

    def against_R(self) -> float:
        return float(np.logaddexp(super().against_R(), 0.0)) - math.log(2)


@dataclass(frozen=True, eq=False)
class HedgedCategoryTable(HedgedTable, CategoryTable):
    """The same where arms are in categories."""

    outlook: CatalogueOutlook


@dataclass(frozen=True)
class HedgedBetting(Betting):
    """The betting rule with half of every stake kept back."""

    name: str = "hedged-betting"
    reference: str = "an example"
    proved: bool = False  # docs/theory.md has no proof of it

    def table(self, block: Block, outlook: Outlook) -> BetTable:
        if isinstance(outlook, CatalogueOutlook):
            return HedgedCategoryTable(block, outlook)
        return HedgedTable(block, outlook)
