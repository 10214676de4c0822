"""What a policy says: verdicts and estimates, read off a state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from spectralbai.checks import Vector
from spectralbai.documents import plain

FORMAT = "spectralbai-verdict/1"


@dataclass(frozen=True)
class Verdict:
    """What a policy says at some time, for one stopping rule and one risk."""

    decided: bool
    """Whether to stop: `arm` is right with risk at most delta, if the rule is proved."""
    arm: int
    """The arm recommended, at any time."""
    statistic: float
    """Evidence against the challenger least beaten, when the rule was last read."""
    threshold: float
    """What the statistic must exceed."""
    samples: int
    """Results received so far."""
    stopped_at: int | None
    """Results seen when the decision fell, or when the data contradicted R."""
    consistent: bool
    """False once the data contradict R, or every arm is eliminated, each at risk delta; nothing is decided then."""
    proved: bool
    """Whether the risk of the stopping rule is proved."""
    candidates: tuple[int, ...] | None = None
    """The arms that may still be best: at all times at once they hold the best arm with probability 1 - delta.

    None for rules that keep no such set, and before the first reading.
    """

    doubted: bool = False
    """Whether results that came after the decision contradict R, at risk delta: the decision stands, but its risk
    rests on R."""

    lacking: tuple[float, ...] | None = None
    """What the account against each arm still lacked to eliminate it, in nats, when the rule was last read; 0 once it
    did. None for rules that keep no accounts, and before the first reading."""

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready: a document of the format spectralbai-verdict/1."""
        return {"format": FORMAT, "state": self.state, **plain(self)}

    @property
    def state(self) -> Literal["running", "decided", "inconsistent"]:
        """The same in a word."""
        return "running" if self.stopped_at is None else "decided" if self.decided else "inconsistent"


@dataclass(frozen=True, eq=False)
class Estimates:
    """What is known of all means at some time, in the units of the outcomes; vectors are read-only."""

    mean: Vector
    """The constrained estimate; nan until every component has a result."""
    low: Vector
    """Lower ends of intervals that hold all means at all times at once with probability 1 - delta; -inf where nothing
    is known.

    For rules that bet this delta is a risk of its own, beside that of the decision: that all intervals hold and the
    answer is right has probability 1 - 2 delta. For other rules both rest on one event of probability 1 - delta."""
    high: Vector
    """Upper ends; inf where nothing is known."""
    consistent: bool | None
    """Whether all results so far agree with R, at risk delta; None where the rule does not test it, or not yet."""
