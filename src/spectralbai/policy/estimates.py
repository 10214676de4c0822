"""What a policy says of the means."""

from __future__ import annotations

from dataclasses import dataclass

from spectralbai.arrays import Vector


@dataclass(frozen=True, eq=False)
class Differences:
    """How much better one arm is than each arm, in the units of the outcomes; vectors are read-only, and 0 at the arm
    itself."""

    reference: int
    """The arm that others are compared with."""
    mean: Vector
    """The estimated mean of the reference minus that of each arm, (n_arms,)."""
    low: Vector
    """Lower ends of intervals for these differences; -inf if nothing is known."""
    high: Vector
    """Upper ends; inf if nothing is known.

    With items, differences of all pairs of arms lie in their intervals at all times at once with probability 1 - delta:
    the reference may be chosen by looking at results. This risk is separate from that of the intervals of the means.
    Without items, the intervals follow from those of the means, and hold whenever they do; those of differences from
    the control of the policy have a risk delta of their own, for all arms and times at once (theory, section 20).
    """
    base: tuple[float, float] | None = None
    """The ends of an interval for the mean of the control, within the risk of these differences; None for other
    references, and before its first result."""


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
    differences: Differences
    """The differences between the mean of the recommended arm, or of the one asked for, and all means."""
    consistent: bool | None
    """Whether all results so far agree with R, at risk delta; None if the rule does not test R, or not yet."""
    drifting: bool = False
    """Whether results of different blocks differ by more than noise. Estimates are then averages over time, of which
    intervals say nothing certain; decisions do not depend on them (theory 18.3)."""
