"""What a stopping rule said at some time, for one risk, and its JSON form. It needs no numpy, so that clients can use
it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from spectralbai import run_lengths
from spectralbai.documents import plain
from spectralbai.errors import InvalidInput

FORMAT = "spectralbai-verdict/2"


@dataclass(frozen=True)
class Verdict:
    """What a stopping rule said at some time, for one risk; a decision or a contradiction of R is final."""

    arm: int = 0
    """The arm recommended, decided or not."""
    statistic: float = 0.0
    """Evidence against the challenger that is closest to winning, when the rule was last read."""
    threshold: float = math.inf
    """What the statistic must exceed."""
    samples: int = 0
    """Results received: in a state when the rule was read, from `Policy.verdict` so far."""
    stopped_at: int | None = None
    """Number of results seen at the decision, or when the data were found to contradict R."""
    consistent: bool = True
    """False once the data contradict R or every arm is eliminated, each at risk delta; then nothing is decided."""
    proved: bool = False
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

    @property
    def settled(self) -> bool:
        """Whether the rule has stopped: it has decided, or the data contradict R."""
        return self.stopped_at is not None

    @property
    def decided(self) -> bool:
        """Whether to stop: if the rule is proved, `arm` is a wrong answer with probability at most delta."""
        return self.settled and self.consistent

    @property
    def state(self) -> Literal["running", "decided", "inconsistent"]:
        """The verdict in one word."""
        return "running" if not self.settled else "decided" if self.decided else "inconsistent"

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready: a document of the format spectralbai-verdict/2; floats survive exactly."""
        lists = {"candidates": self.candidates, "lacking": self.lacking}
        short = {key: None if each is None else run_lengths.as_json(each) for key, each in lists.items()}
        return {"format": FORMAT, "state": self.state, "decided": self.decided, **plain(vars(self) | short)}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Verdict:
        """Returns the verdict that `as_dict` wrote."""
        if d["format"] != FORMAT:
            raise InvalidInput(f"a verdict must have the format {FORMAT!r}, got {d['format']!r}")
        candidates, lacking = d["candidates"], d["lacking"]
        return cls(
            arm=d["arm"],
            statistic=float(d["statistic"]),
            threshold=float(d["threshold"]),
            samples=d["samples"],
            stopped_at=d["stopped_at"],
            consistent=d["consistent"],
            proved=d["proved"],
            candidates=None if candidates is None else tuple(run_lengths.from_json(candidates)),
            doubted=d["doubted"],
            lacking=None if lacking is None else tuple(map(float, run_lengths.from_json(lacking))),
        )
