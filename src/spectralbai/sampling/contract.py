"""The contract of a sampling rule: it says which arms to pull next, and what it needs to remember for that."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np

from spectralbai.arrays import Indices, Mask, Vector
from spectralbai.checks import check_matrices
from spectralbai.errors import InvalidInput
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.spectral import Catalogue, Network
from spectralbai.spectral.components import BYTES_PER_PAIR

LEAST_BLOCK, BLOCK_PER_ARM, BLOCK_SHARE = 4, 1 / 3, 0.04
"""The number of pulls in a block is the largest of three: a minimum, a number per arm, and a part of all pulls before
the block (theory 13.4). With a part of 3 %, SpectralTaS takes as many samples and a quarter more time."""


def least_block(n_arms: int, samples: int, share: float = BLOCK_SHARE) -> int:
    """Returns the number of pulls in a block opened after `samples` pulls.

    Small blocks let later ones learn from their results; a block must still have pulls for all arms that matter.
    """
    return max(LEAST_BLOCK, math.ceil(BLOCK_PER_ARM * n_arms), math.ceil(share * samples))


@dataclass(frozen=True, eq=False)
class View:
    """What a sampling rule may look at."""

    evidence: Evidence
    deltas: tuple[float, ...]
    """The risks at which the run shall decide; the first one is the `delta` of the policy."""
    lacking: Vector | None = None
    """What the policy's first stopping rule still lacks to eliminate each arm, in nats; at most 0 for eliminated arms.
    None if the rule does not eliminate arms, and before its first reading."""
    withdrawn: tuple[int, ...] = ()
    """Arms that must not be pulled any more."""
    needed: Mask | None = None
    """The arms on which a comparison depends that the first stopping rule has not settled yet; None as above."""

    @property
    def problem(self) -> Problem:
        return self.evidence.problem


M = TypeVar("M", bound=Memory)
Rng = np.random.Generator | None
"""Where randomised rules get their random numbers; None for all other rules."""


@dataclass(frozen=True)
class SamplingRule(ABC, Generic[M]):
    """A rule that says which arms to pull; M is the type of its memory.

    A rule has settings only; what it learns is in its memory. `plan` is called after the stopping rules were read,
    `pulls` when pulls are needed.
    """

    uses_delta: ClassVar[bool] = False
    """Whether the pulls depend on delta; if not, one run can be read at several risks."""
    most_at_once: ClassVar[int | None] = None
    """How many pulls can be asked for at once before new results would change the choice; None: all pulls until the
    stopping rules are read next."""
    on_items: ClassVar[bool] = False
    """Whether the rule can plan trials on items."""
    reads_every_result: ClassVar[bool] = False
    """Whether stopping rules are read, and pulls planned, after every single result, instead of at growing steps."""

    def check(self, problem: Problem) -> None:
        """Raises InvalidInput if the rule cannot be used for a problem: here if its matrices do not fit in memory."""
        network = Network.of(problem)
        if network is not None:
            network.check()
        elif Catalogue.of(problem) is None:
            check_matrices(problem.n_arms, BYTES_PER_PAIR)

    @abstractmethod
    def start(self, problem: Problem) -> M:
        """Returns the memory before any result."""

    def plan(self, memory: M, view: View) -> M:
        """Returns the memory after looking at new evidence; every component must have a result."""
        return memory

    def block_size(self, memory: M, view: View, issued: int) -> int:
        """Returns the number of pulls in the next block; used if pulls come in blocks."""
        return least_block(view.problem.n_arms, issued)

    def trials(self, memory: M, view: View, issued: Vector, drawn: int) -> tuple[Indices, Indices]:
        """Returns the arms of the trials of the next block, and the draws of their items, if the problem has items.

        `issued` (n_arms,) counts the trials so far, and `drawn` the items; later draws are new items.
        """
        raise InvalidInput("this sampling rule cannot try options on items; only a race can")

    @abstractmethod
    def pulls(self, memory: M, view: View, issued: Vector, n: int, rng: Rng = None) -> Indices:
        """Returns the next n arms to pull. `issued` (n_arms,) counts the pulls so far, at least one per component."""

    def without(self, memory: M, arm: int) -> M:
        """Returns the memory after an arm is withdrawn: it must not be pulled any more."""
        raise InvalidInput("this sampling rule cannot go on without an arm; only a race can")

    def join(self, memory: M, n_arms: int) -> M:
        """Returns the memory after new arms have joined at the end, `n_arms` in all."""
        raise InvalidInput("no arm can join with this sampling rule; only in a race")

    def shares(self, memory: M, view: View) -> Vector:
        """Returns the shares of the arms in future pulls, as far as they are known: here the shares so far."""
        return view.evidence.data.counts / view.evidence.samples
