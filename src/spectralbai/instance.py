"""An instance: a problem, its means if they are known, names for its arms, and its JSON form."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from spectralbai.checks import Vector, check_arm, check_integer, check_number, check_numbers, check_vector, did_you_mean
from spectralbai.errors import InvalidInput
from spectralbai.graph import Graph
from spectralbai.noise import noise_from_dict
from spectralbai.problem import Problem

FORMAT = "spectralbai-instance/1"
REQUIRED = ("format", "n_arms", "edges", "R")
KEYS = (*REQUIRED, "mu", "sigma", "low", "high", "binary", "tolerance", "labels")


@dataclass(frozen=True, eq=False, init=False)
class Instance:
    """A problem with the means to simulate it and the labels people know its arms by.

    `mu` is not required to satisfy the hypotheses of `problem`; what relies on them checks them.
    """

    problem: Problem
    mu: Vector | None
    """Means, shape (n_arms,), or None where only the problem is meant."""
    labels: tuple[str, ...]
    """Unique names of the arms; "0", "1", ... unless given."""

    def __init__(self, problem: Problem, mu: ArrayLike | None = None, labels: Sequence[str] | None = None) -> None:
        if not isinstance(problem, Problem):
            raise InvalidInput(
                f"`problem` must be a spectralbai.Problem, got {type(problem).__name__}; use Problem(graph, R)"
            )
        n_arms = problem.n_arms
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "mu", None if mu is None else check_vector("mu", mu, n_arms))
        object.__setattr__(
            self,
            "labels",
            tuple(map(str, range(n_arms))) if labels is None else _check_labels("labels", labels, n_arms),
        )

    def as_dict(self) -> dict[str, Any]:
        """Returns the instance in the JSON format spectralbai-instance/1; `from_dict` restores it exactly."""
        problem = self.problem
        graph = problem.graph
        return {
            "format": FORMAT,
            "n_arms": problem.n_arms,
            "edges": [[a, b, w] for (a, b), w in zip(graph.pairs.tolist(), graph.weights.tolist(), strict=True)],
            **({} if self.mu is None else {"mu": self.mu.tolist()}),
            "R": "inf" if math.isinf(problem.R) else problem.R,
            **problem.noise.as_dict(),
            "tolerance": problem.tolerance,
            "labels": list(self.labels),
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Instance:
        """Returns the instance of a JSON document of format spectralbai-instance/1; complaints name the JSON path."""
        _check_keys(d)
        n_arms = check_integer("$.n_arms", d["n_arms"], 2)
        graph = Graph.from_edges(n_arms, _edges_from(d["edges"], n_arms))
        R = math.inf if d["R"] == "inf" else _non_negative("$.R", d["R"], ' or "inf"')
        tolerance = _non_negative("$.tolerance", d.get("tolerance", 0.0))
        mu = check_numbers("$.mu", d["mu"], n_arms, "a finite number", low=-math.inf) if "mu" in d else None
        labels = _check_labels("$.labels", d["labels"], n_arms) if "labels" in d else None
        problem = Problem(graph, R, tolerance=tolerance, noise=noise_from_dict(d, n_arms))
        return cls(problem, mu, labels)


def _check_keys(d: Mapping[str, Any]) -> None:
    if not isinstance(d, Mapping):
        raise InvalidInput(
            f"$ must be an object, got {reprlib.repr(d)}; start from {{{_quote('format')}: {_quote(FORMAT)}, ...}}"
        )
    if "format" not in d:
        raise InvalidInput(f"$ lacks the key {_quote('format')}; add {_quote('format')}: {_quote(FORMAT)}")
    if d["format"] != FORMAT:
        raise InvalidInput(f"$.format must be {_quote(FORMAT)}, got {reprlib.repr(d['format'])}")
    for key in d:
        if key not in KEYS:
            remedy = did_you_mean(str(key), KEYS, f"remove it; the keys are {', '.join(KEYS)}")
            raise InvalidInput(f"$ has the unknown key {_quote(key)}; {remedy}")
    for key in REQUIRED:
        if key not in d:
            raise InvalidInput(f"$ lacks the key {_quote(key)}; add it")


def _check_labels(name: str, labels: Any, n_arms: int) -> tuple[str, ...]:
    path = name.startswith("$")
    subject = name if path else f"`{name}`"
    if not isinstance(labels, list | tuple):
        raise InvalidInput(
            f"{subject} must be a list of {n_arms} strings, got {reprlib.repr(labels)}; leave it out to number the arms"
        )
    arm_of: dict[str, int] = {}
    for arm, label in enumerate(labels):
        entry = f"{name}[{arm}]" if path else f"`{name}[{arm}]`"
        if not isinstance(label, str) or not label.strip():
            raise InvalidInput(f"{entry} must be a string that is not blank, got {reprlib.repr(label)}")
        if label in arm_of:
            raise InvalidInput(
                f"{entry} must be new, got {label!r}, already the label of arm {arm_of[label]}; give each arm its own"
            )
        arm_of[label] = arm
    if len(labels) != n_arms:
        raise InvalidInput(f"{subject} must hold one label per arm, got {len(labels)} for {n_arms} arms")
    return tuple(map(str, labels))


def _edges_from(edges: Any, n_arms: int) -> list[tuple[int, int, float]]:
    if not isinstance(edges, list | tuple):
        raise InvalidInput(f"$.edges must be a list of [a, b, weight], got {reprlib.repr(edges)}; use [] for no edges")
    clean: dict[tuple[int, int], float] = {}
    for position, edge in enumerate(edges):
        path = f"$.edges[{position}]"
        if not isinstance(edge, list | tuple) or len(edge) != 3:
            raise InvalidInput(f"{path} must be [a, b, weight], got {reprlib.repr(edge)}")
        a, b = (check_arm(f"{path}[{end}]", edge[end], n_arms) for end in (0, 1))
        weight = _non_negative(f"{path}[2]", edge[2])
        if a == b:
            raise InvalidInput(f"{path} must join two different arms, got {a} and {b}; remove the self-loop")
        pair = (min(a, b), max(a, b))
        if pair in clean:
            # Every edge before this one was new, so positions in `clean` are positions in the document.
            raise InvalidInput(
                f"{path} must be new, got [{a}, {b}] as in $.edges[{list(clean).index(pair)}]; give each edge once"
            )
        clean[pair] = weight
    return [(a, b, weight) for (a, b), weight in clean.items()]


def _non_negative(path: str, value: Any, alternative: str = "") -> float:
    return check_number(path, value, f"a finite non-negative number{alternative}", low=0.0, strict=False)


def _quote(text: object) -> str:
    return f'"{text}"'
