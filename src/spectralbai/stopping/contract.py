"""The contract of a stopping rule: what it remembers, how it learns from results, and how its reading is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from spectralbai.arrays import Vector
from spectralbai.errors import InvalidInput
from spectralbai.evidence.blocks import Block
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.stopping.reading import Reading

M = TypeVar("M", bound=Memory)


@dataclass(frozen=True)
class StoppingRule(ABC, Generic[M]):
    """A named stopping rule; M is the type of its memory.

    A rule has settings only; what it learns is in its memory, which `observe` brings up to date after each block.
    Reading changes nothing, and one reading serves every risk.
    """

    bets: ClassVar[bool] = False
    """Whether the rule bets, so that pulls come in blocks, whose results stay sealed until all have arrived."""
    tests_R: ClassVar[bool] = False
    """Whether the rule tests if the data agree with R, once it has enough of them (see `Reading.tests_R`)."""

    on_items: ClassVar[bool] = False
    """Whether the rule is right for results on items, where results of one item may depend on each other."""

    version: ClassVar[int] = 1
    """Raised when the rule would say something else on the same results: the log of a study says which one decided."""

    name: str
    reference: str
    """Where the rule comes from."""
    proved: bool
    """Whether its risk is proved to be at most delta."""

    def check(self, problem: Problem) -> None:
        """Raises InvalidInput for problems that the rule cannot handle."""

    @abstractmethod
    def start(self, problem: Problem) -> M:
        """Returns the memory before any result."""

    def observe(self, memory: M, block: Block | None, evidence: Evidence, decided: bool = False) -> M:
        """Returns the memory after a closed block; `evidence` includes its results.

        `block` is None if pulls do not come in blocks. After the rule has `decided` at all its risks, only the part
        that tests R goes on learning.
        """
        return memory

    @abstractmethod
    def read(self, memory: M, evidence: Evidence) -> Reading:
        """Returns the reading of the evidence; every component must have a result."""

    def contradicts_R(self, memory: M, evidence: Evidence, delta: float) -> bool:
        """Returns whether the data contradict R at this risk; also called after the decision, for proved rules."""
        reading = self.read(memory, evidence)
        return reading.tests_R and not reading.consistent(delta)

    def withdraw(self, memory: M, arm: int) -> M:
        """Returns the memory after an arm is withdrawn: from then on the question is which of the others is best."""
        raise InvalidInput(f"the rule {self.name} cannot go on without an arm; only a race with the rule betting can")

    def join(self, memory: M, problem: Problem, before: Problem) -> M:
        """Returns the memory after arms have joined: `problem` has them at the end, after the arms of `before`."""
        raise InvalidInput(f"no arm can join with the rule {self.name}; only in a race with the rule betting")

    def growth(self, problem: Problem, mu: Vector, best: int, allocation: Vector) -> float:
        """Returns how much the statistic gains per trial at means `mu` and an allocation (n_arms,); nan if it does not
        grow in proportion to the trials."""
        return float("nan")
