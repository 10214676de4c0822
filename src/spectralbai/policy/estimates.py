"""What a policy says of the means."""

from __future__ import annotations

from dataclasses import dataclass

from spectralbai.arrays import Vector


@dataclass(frozen=True, eq=False)
class Estimates:
    """What is known of all means at some time, in the units of the outcomes; vectors are read-only."""

    mean: Vector
    """The constrained estimate; nan until every component has a result."""
    low: Vector
    """Lower ends of intervals that contain all means at all times at once with probability 1 - delta; -inf if nothing
    is known. For rules that bet, this risk comes in addition to that of the decision; for others both are one risk."""
    high: Vector
    """Upper ends; inf if nothing is known."""
    consistent: bool | None
    """Whether all results so far agree with R, at risk delta; None if the rule does not test R, or not yet."""
    drifting: bool = False
    """Whether results of different blocks differ by more than noise. Estimates are then averages over time, of which
    intervals say nothing certain; decisions do not depend on them (theory 18.3)."""
