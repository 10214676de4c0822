"""The contract of a sampling rule: which arms to pull next, and what it remembers for that."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np

from spectralbai.checks import Indices, Vector
from spectralbai.errors import InvalidInput
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem

LEAST_BLOCK, BLOCK_PER_ARM, BLOCK_SHARE = 4, 1 / 3, 0.04
"""Pulls of a block: at least so many, so many per arm, and this part of all pulls before it (theory 13.4).

With a part of 3 % instead of 4 %, SpectralTaS takes as many samples and a third more time.
"""


def least_block(n_arms: int, samples: int, share: float = BLOCK_SHARE) -> int:
    """Returns the pulls of a block after `samples` pulls: few, to learn from, and enough for all arms that matter."""
    return max(LEAST_BLOCK, math.ceil(BLOCK_PER_ARM * n_arms), math.ceil(share * samples))


@dataclass(frozen=True, eq=False)
class View:
    """What a sampling rule may look at."""

    evidence: Evidence
    deltas: tuple[float, ...]
    """The risks at which the run is to decide; the policy's own is the first."""
    lacking: Vector | None = None
    """What the policy's own stopping rule still lacks to eliminate each arm, in nats; at most 0 for eliminated arms.

    None where the rule does not say, and before its first reading.
    """
    withdrawn: tuple[int, ...] = ()
    """Arms that must not be pulled any more."""

    @property
    def problem(self) -> Problem:
        return self.evidence.problem


M = TypeVar("M", bound=Memory)


@dataclass(frozen=True)
class SamplingRule(ABC, Generic[M]):
    """A rule that says which arms to pull; M is the type of its memory.

    A rule has settings only; what it learns is in its memory. `plan` is called when rules were read, `pulls` when
    pulls are wanted.
    """

    uses_delta: ClassVar[bool] = False
    """Whether the pulls depend on delta; if not, several risks can be read off one run."""
    most_at_once: ClassVar[int | None] = None
    """How many pulls can be asked for before results would change them; None: all until rules are read next."""

    @abstractmethod
    def start(self, problem: Problem) -> M:
        """Returns the memory before any result."""

    def plan(self, memory: M, view: View) -> M:
        """Returns the memory after looking at new evidence; every component has a result."""
        return memory

    def block_size(self, memory: M, view: View, issued: int) -> int:
        """Returns how many pulls the next block holds, where pulls come in blocks."""
        return least_block(view.problem.n_arms, issued)

    @abstractmethod
    def pulls(self, memory: M, view: View, issued: Vector, n: int, rng: np.random.Generator | None = None) -> Indices:
        """Returns the next n arms after the pulls `issued` (n_arms,), which hold one of every component."""

    def without(self, memory: M, arm: int) -> M:
        """Returns the memory once an arm is withdrawn: it must not be pulled any more."""
        raise InvalidInput("this sampling rule cannot go on without an arm; only the race can")

    def join(self, memory: M, n_arms: int) -> M:
        """Returns the memory once arms have joined after the others, `n_arms` in all."""
        raise InvalidInput("no arm can join under this sampling rule; only in the race")

    def shares(self, memory: M, view: View) -> Vector:
        """Returns the shares of the arms in the pulls to come, as far as they are known: those of the results so
        far."""
        shares: Vector = view.evidence.data.counts / view.evidence.samples
        return shares
