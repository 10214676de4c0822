"""Stopping rules: they say when the results suffice to name an arm at risk delta.

A rule compares a statistic of each challenger with a threshold. One reading of the data serves all risks.
"""

from __future__ import annotations

from typing import Any

from spectralbai.stopping.against_control import AgainstControl, Contrasts
from spectralbai.stopping.betting import Betting
from spectralbai.stopping.contract import StoppingRule
from spectralbai.stopping.interval_rule import Intervals
from spectralbai.stopping.likelihood_ratio import LikelihoodRatio, PrintedRule
from spectralbai.stopping.reading import IntervalReading, LikelihoodReading, Reading

__all__ = [
    "RULES",
    "AgainstControl",
    "Betting",
    "Contrasts",
    "IntervalReading",
    "LikelihoodReading",
    "Reading",
    "StoppingRule",
]

RULES: dict[str, StoppingRule[Any]] = {
    rule.name: rule
    for rule in (
        Betting(),
        LikelihoodRatio("paper", "[KG20]: constrained statistic, log(2t(K-1)/delta)", iterated_logarithm=False),
        PrintedRule("paper-printed", "[KG20], eq. (5): log(2t(K-1)/delta)", iterated_logarithm=False),
        LikelihoodRatio("gk16", "[GK16], heuristic: log((1 + log t)/delta)", iterated_logarithm=True),
        Intervals("intervals", "mixtures per arm; docs/theory.md, section 8", with_graph=False),
        Intervals("graph-intervals", "self-normalised bound; docs/theory.md, section 8", with_graph=True),
    )
}
"""The stopping rules by name."""
