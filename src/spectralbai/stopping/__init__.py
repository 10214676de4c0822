"""Stopping rules: when the evidence that an arm is right is worth a risk delta, and which rules are proved.

A rule compares a statistic per challenger with a threshold; one reading of the data serves all risks.
"""

from __future__ import annotations

from typing import Protocol

from spectralbai.checks import Vector
from spectralbai.problem import Problem
from spectralbai.stopping.evidence import Evidence, Snapshot
from spectralbai.stopping.interval_rule import Intervals
from spectralbai.stopping.likelihood_ratio import LikelihoodRatio, PrintedRule
from spectralbai.stopping.mixture import Mixture
from spectralbai.stopping.reading import IntervalReading, LikelihoodReading, Reading

__all__ = [
    "RULES",
    "Evidence",
    "IntervalReading",
    "LikelihoodReading",
    "Mixture",
    "Reading",
    "Snapshot",
    "StoppingRule",
]


class StoppingRule(Protocol):
    """A named stopping rule."""

    @property
    def name(self) -> str: ...
    @property
    def proved(self) -> bool:
        """Whether its risk is proved to be at most delta."""
        ...

    @property
    def reference(self) -> str: ...

    def read(self, evidence: Evidence) -> Reading:
        """Returns what the rule makes of the evidence."""
        ...

    def growth(self, problem: Problem, mu: Vector, best: int, allocation: Vector) -> float:
        """Returns what the statistic gains per trial at means `mu` and an allocation (n_arms,); nan if that is no
        rate."""
        ...


RULES: dict[str, StoppingRule] = {
    rule.name: rule
    for rule in (
        Mixture(),
        LikelihoodRatio("paper", "[KG20]: constrained statistic, log(2t(K-1)/delta)", iterated_logarithm=False),
        PrintedRule(),
        LikelihoodRatio("gk16", "[GK16], heuristic: log((1 + log t)/delta)", iterated_logarithm=True),
        Intervals("intervals", "mixtures per arm; docs/theory.md, section 8", with_graph=False),
        Intervals("graph-intervals", "self-normalised bound; docs/theory.md, section 8", with_graph=True),
    )
}
"""The stopping rules by name."""
