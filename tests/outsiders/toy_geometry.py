"""A geometry: arms on a ring, each joined to the next by an edge of one weight, and the last to the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.checks import check_integer, check_number
from spectralbai.graph import Graph, register_geometry


@dataclass(frozen=True, eq=False, init=False)
class Ring(Graph):
    """Arms on a ring, such as the hours of a day."""

    weight: float
    """Weight of every edge."""

    def __init__(self, n_arms: int, weight: float = 1.0) -> None:
        n_arms = check_integer("n_arms", n_arms, 3)
        weight = check_number("weight", weight, "a finite positive number", low=0.0, strict=True)
        path = [(arm, arm + 1) for arm in range(n_arms - 1)]
        pairs = np.array(sorted([*path, (0, n_arms - 1)]), dtype=np.intp)
        object.__setattr__(self, "weight", weight)
        super().__init__(n_arms, pairs, np.full(n_arms, weight))

    @cached_property
    def components(self) -> Indices:
        components = np.zeros(self.n_arms, dtype=np.intp)
        components.setflags(write=False)
        return components

    def roughness(self, mu: Vector) -> float:
        return self.weight * float(((mu - np.roll(mu, 1)) ** 2).sum())

    def roughness_by_component(self, mu: Vector) -> Vector:
        return np.array([self.roughness(mu)])

    def described(self) -> str:
        return f"a ring of {self.n_arms:,} arms"

    def as_dict(self) -> dict[str, Any]:
        return {"geometry": {"kind": "ring", "weight": self.weight}}


def read(document: Mapping[str, Any], n_arms: int) -> Ring:
    """Returns the geometry that a file describes."""
    weight = document.get("weight", 1.0)
    return Ring(n_arms, check_number("$.geometry.weight", weight, "a positive number", low=0.0, strict=True))


register_geometry("ring", read)
