"""What a policy knows and says: states that only grow, and verdicts and estimates read off them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from spectralbai.checks import Vector
from spectralbai.errors import InvalidInput
from spectralbai.stopping import Snapshot

FORMAT = "spectralbai-state/1"


@dataclass(frozen=True)
class Verdict:
    """What a policy says at some time, for one stopping rule and one risk."""

    decided: bool
    """Whether to stop: `arm` is right with risk at most delta, if the rule is proved."""
    arm: int
    """The arm recommended, at any time."""
    statistic: float
    """Evidence against the challenger least beaten, at the last check."""
    threshold: float
    """What the statistic must exceed."""
    samples: int
    """Results received so far."""
    stopped_at: int | None
    """Results received when the decision fell, or when the data contradicted R."""
    consistent: bool
    """False once the data contradict R, at risk delta; nothing is decided then."""
    proved: bool
    """Whether the risk of the stopping rule is proved."""

    @property
    def progress(self) -> Literal["running", "decided", "inconsistent"]:
        """The same in a word."""
        return "running" if self.stopped_at is None else "decided" if self.decided else "inconsistent"


@dataclass(frozen=True, eq=False)
class Estimates:
    """What is known of all means at some time, in the units of the outcomes; vectors are read-only."""

    mean: Vector
    """The constrained estimate; nan until every component has a result."""
    low: Vector
    """Lower ends of intervals that hold all means at all times at once with probability 1 - delta; -inf where
    nothing is known."""
    high: Vector
    """Upper ends; inf where nothing is known."""
    consistent: bool | None
    """Whether all results so far agree with R, at risk delta; None where the rule does not test it, or not yet."""


@dataclass(frozen=True)
class Watch:
    """Where one stopping rule at one risk stands; a decision or a contradiction is final."""

    arm: int = 0
    statistic: float = 0.0
    threshold: float = math.inf
    stopped_at: int | None = None
    consistent: bool = True

    @property
    def settled(self) -> bool:
        return self.stopped_at is not None

    @property
    def decided(self) -> bool:
        return self.settled and self.consistent


@dataclass(frozen=True, eq=False)
class State:
    """Everything a policy needs to go on: what replaying every observation would give."""

    counts: Vector
    """Results received per arm."""
    sums: Vector
    """Sum of outcomes minus `origin`, per arm."""
    origin: float
    """The first outcome received: only differences from it are summed, so that a common shift changes nothing."""
    targets: Vector
    """Cumulated target allocation at time `base`."""
    base: int
    """Results received when the allocation was last computed."""
    omega: Vector
    """Optimal allocation of the estimate then."""
    rate: Vector
    """What the targets grow by each pull: omega, kept above the exploration floor."""
    next_check: int
    """Results received at the next check."""
    best: int
    """The arm defended."""
    split: Snapshot | None
    """Results at the time the mixture's prior was frozen."""
    watches: tuple[Watch, ...]
    """One per stopping rule and risk."""

    @property
    def samples(self) -> int:
        return int(self.counts.sum())

    @property
    def data(self) -> Snapshot:
        return Snapshot(self.counts, self.sums)

    def as_dict(self) -> dict[str, Any]:
        """Returns the state in JSON-ready form; floats survive the round trip exactly."""
        return {
            "format": FORMAT,
            "counts": [int(n) for n in self.counts],
            "sums": self.sums.tolist(),
            "origin": self.origin,
            "targets": self.targets.tolist(),
            "base": self.base,
            "omega": self.omega.tolist(),
            "rate": self.rate.tolist(),
            "next_check": self.next_check,
            "best": self.best,
            "split": None
            if self.split is None
            else {"counts": [int(n) for n in self.split.counts], "sums": self.split.sums.tolist()},
            "watches": [
                {
                    "arm": w.arm,
                    "statistic": _as_json(w.statistic),
                    "threshold": _as_json(w.threshold),
                    "stopped_at": w.stopped_at,
                    "consistent": w.consistent,
                }
                for w in self.watches
            ],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> State:
        """Returns the state that `as_dict` wrote."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            found = data.get("format") if isinstance(data, dict) else data
            raise InvalidInput(f"a state must have the format {FORMAT!r}, got {found!r}; write it with State.as_dict")
        try:
            split = data["split"]
            state = cls(
                _vector(data["counts"]),
                _vector(data["sums"]),
                float(data["origin"]),
                _vector(data["targets"]),
                int(data["base"]),
                _vector(data["omega"]),
                _vector(data["rate"]),
                int(data["next_check"]),
                int(data["best"]),
                None if split is None else Snapshot(_vector(split["counts"]), _vector(split["sums"])),
                tuple(
                    Watch(w["arm"], float(w["statistic"]), float(w["threshold"]), w["stopped_at"], w["consistent"])
                    for w in data["watches"]
                ),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"a state must hold what State.as_dict writes, got a broken entry: {error}") from None
        sizes = {vector.size for vector in (state.counts, state.sums, state.targets, state.omega, state.rate)}
        if len(sizes) != 1:
            raise InvalidInput(
                f"a state must have vectors of one length, got lengths {sorted(sizes)}; write it with State.as_dict"
            )
        return state


def _vector(values: list[float]) -> Vector:
    vector = np.array(values, dtype=np.float64)
    vector.setflags(write=False)
    return vector


def _as_json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
