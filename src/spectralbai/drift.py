"""Means that drift while a simulation runs: what is added to the mean of an arm depends on the time.

Time is counted in trials or in blocks of pulls. Sudden and slow changes, good and bad days: none may change which arm
is best, since a simulation judges answers by the means at its start.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.checks import check_integer, check_keys, check_kind, check_number, check_numbers
from spectralbai.errors import InvalidInput


@dataclass(frozen=True)
class Drift(ABC):
    """How means change with time; settings only."""

    @abstractmethod
    def shift(self, arms: Indices, trials: Indices, blocks: Indices, seed: int) -> Vector:
        """Returns what is added to the mean of each pull. `trials` are their numbers in the order of pulling, `blocks`
        those of their blocks or -1, and `seed` is that of the simulation."""

    @abstractmethod
    def ends(self, n_arms: int) -> tuple[Vector, Vector]:
        """Returns the least and the largest amount that may be added to the mean of each arm."""

    def check(self, mu: Vector) -> None:
        """Raises InvalidInput if the settings do not fit these means, or if another arm may become the best."""
        self.ends(mu.size)

    def as_dict(self) -> dict[str, Any]:
        """Returns the settings, JSON-ready."""
        kind = next(kind for kind, cls in DRIFTS.items() if cls is type(self))
        return {"kind": kind, **asdict(self)}


@dataclass(frozen=True)
class Jump(Drift):
    """All means change at one time and stay there."""

    height: float
    at: int
    """Number of trials before the change."""

    def __post_init__(self) -> None:
        _check_height("height", self.height)
        check_integer("at", self.at, 0)

    def shift(self, arms: Indices, trials: Indices, blocks: Indices, seed: int) -> Vector:
        return np.where(trials >= self.at, self.height, 0.0)

    def ends(self, n_arms: int) -> tuple[Vector, Vector]:
        return np.full(n_arms, min(self.height, 0.0)), np.full(n_arms, max(self.height, 0.0))


@dataclass(frozen=True)
class Sine(Drift):
    """All means rise and fall together, as on the days of a week."""

    height: float
    period: float
    """Number of trials in a period."""

    def __post_init__(self) -> None:
        _check_height("height", self.height)
        check_number("period", self.period, "a positive number of trials", low=0.0, strict=True)

    def shift(self, arms: Indices, trials: Indices, blocks: Indices, seed: int) -> Vector:
        shift: Vector = self.height * np.sin(2 * np.pi * trials / self.period)
        return shift

    def ends(self, n_arms: int) -> tuple[Vector, Vector]:
        return np.full(n_arms, -abs(self.height)), np.full(n_arms, abs(self.height))


@dataclass(frozen=True)
class Swing(Drift):
    """All means are higher in every second block, or in every second stretch of trials."""

    height: float
    every: int | None = None
    """Number of trials in a stretch; None for blocks."""

    def __post_init__(self) -> None:
        _check_height("height", self.height)
        _check_every(self.every)

    def shift(self, arms: Indices, trials: Indices, blocks: Indices, seed: int) -> Vector:
        return np.where(_stretches(trials, blocks, self.every) % 2 == 1, self.height, 0.0)

    def ends(self, n_arms: int) -> tuple[Vector, Vector]:
        return np.full(n_arms, min(self.height, 0.0)), np.full(n_arms, max(self.height, 0.0))


@dataclass(frozen=True)
class Walk(Drift):
    """All means make a normal step together after every block, or after every stretch of trials, and turn back at a
    limit."""

    step: float
    """Standard deviation of a step."""
    limit: float
    """Largest distance from the means at the start."""
    every: int | None = None
    """Number of trials in a stretch; None for blocks."""

    def __post_init__(self) -> None:
        _check_height("step", self.step)
        check_number("limit", self.limit, "a positive number", low=0.0, strict=True)
        _check_every(self.every)

    def shift(self, arms: Indices, trials: Indices, blocks: Indices, seed: int) -> Vector:
        stretches = _stretches(trials, blocks, self.every)
        if not stretches.size:
            return np.zeros(0)
        free = self.step * _path(seed, 1 << int(stretches.max()).bit_length())[stretches]
        return np.abs((free - self.limit) % (4 * self.limit) - 2 * self.limit) - self.limit  # mirrored at both ends

    def ends(self, n_arms: int) -> tuple[Vector, Vector]:
        return np.full(n_arms, -self.limit), np.full(n_arms, self.limit)


@dataclass(frozen=True)
class Rise(Drift):
    """The mean of each arm rises or falls by an amount of its own, evenly over the first trials."""

    heights: tuple[float, ...]
    over: int
    """Number of trials after which means stay."""

    def __post_init__(self) -> None:
        rule = "a finite number"
        heights = check_numbers("heights", self.heights, len(self.heights), rule, low=-np.inf)
        object.__setattr__(self, "heights", tuple(heights))
        check_integer("over", self.over, 1)

    def shift(self, arms: Indices, trials: Indices, blocks: Indices, seed: int) -> Vector:
        return np.array(self.heights)[arms] * np.minimum(trials / self.over, 1.0)

    def ends(self, n_arms: int) -> tuple[Vector, Vector]:
        if len(self.heights) != n_arms:
            raise InvalidInput(f"`heights` must have {n_arms} numbers, one per arm, got {len(self.heights)}")
        return np.minimum(self.heights, 0.0), np.maximum(self.heights, 0.0)

    def check(self, mu: Vector) -> None:
        super().check(mu)
        if np.argmax(mu) != np.argmax(mu + np.array(self.heights)):
            raise InvalidInput(
                f"`heights` must keep arm {np.argmax(mu)} the best, got {list(self.heights)} for the means "
                f"{mu.tolist()}; a simulation judges answers by the means at its start"
            )


DRIFTS: dict[str, type[Drift]] = {"jump": Jump, "sine": Sine, "swing": Swing, "walk": Walk, "rise": Rise}
"""All kinds, by the name that campaign files use."""


def drift_from_dict(name: str, d: Any) -> Drift:
    """Returns the drift of a table such as {"kind": "jump", "height": 3.0, "at": 150}."""
    kind = check_kind(name, d, DRIFTS)
    settings = {key: value for key, value in d.items() if key != "kind"}
    parameters = inspect.signature(kind).parameters
    required = [key for key, parameter in parameters.items() if parameter.default is parameter.empty]
    check_keys(name, settings, parameters, required, others=("kind",))
    if isinstance(settings.get("heights"), list):
        settings["heights"] = tuple(settings["heights"])
    return kind(**settings)


def _check_height(name: str, value: Any) -> None:
    check_number(name, value, "a finite number", low=-np.inf, strict=True)


def _check_every(value: Any) -> None:
    if value is not None:
        check_integer("every", value, 1)


def _stretches(trials: Indices, blocks: Indices, every: int | None) -> Indices:
    """Returns the number of the stretch of time that each trial belongs to."""
    if every is not None:
        return trials // every
    if (blocks < 0).any():
        raise InvalidInput(
            "`drift` changes from block to block, but the pulls of this policy do not come in blocks; set `every` to a "
            "number of trials"
        )
    return blocks


@lru_cache(maxsize=4)
def _path(seed: int, n: int) -> Vector:
    """Returns the first n points of a random walk that starts at 0; longer ones begin alike."""
    path = np.cumsum(np.random.default_rng((seed, 3)).standard_normal(n))
    path -= path[0]
    path.setflags(write=False)
    return path
