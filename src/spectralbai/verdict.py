"""What a stopping rule said at one time: the same type in the policy, in the log of a study, and on a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from spectralbai import run_lengths
from spectralbai.documents import plain

FORMAT = "spectralbai-verdict/2"


@dataclass(frozen=True)
class Verdict:
    """What a policy says at some time, for one stopping rule and one risk."""

    arm: int = 0
    """The arm recommended now, decided or not."""
    statistic: float = 0.0
    """Evidence against the challenger that is closest to winning, when the rule was last read."""
    threshold: float = float("inf")
    """What the statistic must exceed."""
    samples: int = 0
    """Results received so far."""
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
        return "running" if not self.settled else "decided" if self.consistent else "inconsistent"

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready: a document of the format spectralbai-verdict/2."""
        return {"format": FORMAT, "state": self.state, "decided": self.decided, **plain(self)}

    def compact(self) -> dict[str, Any]:
        """Returns the fields, JSON-ready, with long lists in a short form; `Verdict.from_dict` reads them."""
        return {field.name: _compact(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Verdict:
        """Returns the verdict that `as_dict` or `compact` wrote."""
        values = {field.name: d[field.name] for field in fields(cls) if field.name in d}
        for name in ("statistic", "threshold"):
            values[name] = float(values[name])
        for name in ("candidates", "lacking"):
            if values.get(name) is not None:
                values[name] = tuple(run_lengths.from_json(values[name]))
        return cls(**values)


def _compact(value: Any) -> Any:
    return run_lengths.as_json(value) if isinstance(value, tuple) else plain(value)
