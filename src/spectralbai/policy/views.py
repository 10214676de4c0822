"""What a policy says about a state: verdicts and estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from spectralbai.arrays import Vector
from spectralbai.documents import plain

FORMAT = "spectralbai-verdict/1"


@dataclass(frozen=True)
class Verdict:
    """What a policy says at some time, for one stopping rule and one risk."""

    decided: bool
    """Whether to stop: if the rule is proved, `arm` is a wrong answer with probability at most delta."""
    arm: int
    """The arm recommended now, decided or not."""
    statistic: float
    """Evidence against the challenger that is closest to winning, when the rule was last read."""
    threshold: float
    """What the statistic must exceed."""
    samples: int
    """Results received so far."""
    stopped_at: int | None
    """Number of results seen at the decision, or when the data were found to contradict R."""
    consistent: bool
    """False once the data contradict R or every arm is eliminated, each at risk delta; then nothing is decided."""
    proved: bool
    """Whether the risk of the stopping rule is proved."""
    candidates: tuple[int, ...] | None = None
    """The arms that may still be best: with probability 1 - delta they include the best arm at all times at once.
    None for rules that do not eliminate arms, and before the first reading."""

    doubted: bool = False
    """Whether results that came after the decision contradict R, at risk delta. The decision stands, but its risk is
    guaranteed only if R holds."""

    lacking: tuple[float, ...] | None = None
    """What the account against each arm lacked, in nats, when the rule was last read; 0 for eliminated arms. None for
    rules without accounts, and before the first reading."""

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready: a document of the format spectralbai-verdict/1."""
        return {"format": FORMAT, "state": self.state, **plain(self)}

    @property
    def state(self) -> Literal["running", "decided", "inconsistent"]:
        """The verdict in one word."""
        return "running" if self.stopped_at is None else "decided" if self.decided else "inconsistent"


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
