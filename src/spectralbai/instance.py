"""An instance: a problem, its means if they are known, names for its arms, and its JSON form."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import category, normalize

from numpy.typing import ArrayLike

from spectralbai.arrays import Vector, check_vector
from spectralbai.checks import (
    check_amount,
    check_arm,
    check_integer,
    check_keys,
    check_kind,
    check_number,
    check_numbers,
    subject,
)
from spectralbai.documents import check_format, number, plain
from spectralbai.errors import InvalidInput
from spectralbai.graph import READERS, Graph, check_edges
from spectralbai.items import Items
from spectralbai.noise import noise_from_dict
from spectralbai.noise.document import KEYS as NOISE_KEYS
from spectralbai.problem import Problem

FORMAT = "spectralbai-instance/3"
REQUIRED = ("format", "n_arms", "R")
GRAPH_KEYS = ("edges", "categories", "category_weight", "geometry")
KEYS = (*REQUIRED, *GRAPH_KEYS, "mu", "noise", *NOISE_KEYS, "tolerance", "items", "labels")


@dataclass(frozen=True, eq=False, init=False)
class Instance:
    """A problem, labels for its arms, and perhaps means to simulate it with.

    `mu` need not satisfy the hypotheses of `problem`; functions that rely on them check them.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01)
        >>> instance = sb.Instance(problem, mu=[0.9, 0.5, 0.6], labels=["plain", "warm", "warmer"])
        >>> instance.as_dict()["labels"]
        ['plain', 'warm', 'warmer']
        >>> sb.Instance.from_dict(instance.as_dict()).mu.tolist()
        [0.9, 0.5, 0.6]
    """

    problem: Problem
    mu: Vector | None
    """Means, shape (n_arms,), or None if they are not known."""
    labels: tuple[str, ...]
    """Unique names of the arms; "0", "1", ... unless given."""

    def __init__(self, problem: Problem, mu: ArrayLike | None = None, labels: Sequence[str] | None = None) -> None:
        if not isinstance(problem, Problem):
            raise InvalidInput(
                f"`problem` must be a spectralbai.Problem, got {type(problem).__name__}; use Problem(graph, R)"
            )
        names = map(str, range(problem.n_arms)) if labels is None else _check_labels("labels", labels, problem.n_arms)
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "mu", None if mu is None else check_vector("mu", mu, problem.n_arms))
        object.__setattr__(self, "labels", tuple(names))

    def as_dict(self) -> dict[str, Any]:
        """Returns the instance as a document spectralbai-instance/3; `from_dict` restores it."""
        problem = self.problem
        radii = plain(problem.radii)
        return {
            "format": FORMAT,
            "n_arms": problem.n_arms,
            **problem.graph.as_dict(),
            **({} if self.mu is None else {"mu": self.mu.tolist()}),
            "R": radii if problem.by_component else radii[0],
            **problem.noise.as_dict(),
            "tolerance": problem.tolerance,
            **({} if problem.items is None else {"items": problem.items.as_json()}),
            "labels": list(self.labels),
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Instance:
        """Returns the instance of a document spectralbai-instance/3; error messages name the JSON path."""
        _check_keys(d)
        n_arms = check_integer("$.n_arms", d["n_arms"], 2)
        graph = _graph_from(d, n_arms)
        R = _radii_from(d["R"], graph)
        rule = "a finite non-negative number"
        noise = noise_from_dict(d, n_arms)
        amount = check_amount("$.tolerance", d.get("tolerance", 0.0), noise.outcome_range)
        tolerance = check_number("$.tolerance", amount, rule, low=0.0, strict=False)
        mu = check_numbers("$.mu", d["mu"], n_arms, "a finite number", low=-math.inf) if "mu" in d else None
        labels = _check_labels("$.labels", d["labels"], n_arms) if "labels" in d else None
        items = Items.from_json(d["items"]) if "items" in d else None
        problem = Problem(graph, R, tolerance=tolerance, noise=noise, items=items)
        return cls(problem, mu, labels)


def _check_keys(d: Mapping[str, Any]) -> None:
    if not isinstance(d, Mapping):
        raise InvalidInput(f'$ must be an object, got {reprlib.repr(d)}; start from {{"format": "{FORMAT}", ...}}')
    if "format" not in d:
        raise InvalidInput(f'$ lacks the key "format"; add "format": "{FORMAT}"')
    check_format("$.format", d["format"], FORMAT)
    check_keys("$", d, KEYS, REQUIRED)
    forms = [key for key in ("edges", "categories", "geometry") if key in d]
    if len(forms) != 1:
        got = " and ".join(f'"{key}"' for key in forms) if "geometry" in forms else "both" if forms else "neither"
        raise InvalidInput(f'$ must have either "edges" or "categories", got {got}; "edges": [] has none')
    if "category_weight" in d and "categories" not in d:
        raise InvalidInput('$ has "category_weight" without "categories"; remove it')


def _graph_from(d: Mapping[str, Any], n_arms: int) -> Graph:
    if "edges" in d:
        return Graph.from_edges(n_arms, _edges_from(d["edges"], n_arms))
    if "geometry" in d:
        graph = check_kind("$.geometry", d["geometry"], READERS)(d["geometry"], n_arms)
        if graph.n_arms != n_arms:
            raise InvalidInput(f"$.geometry must have n_arms = {n_arms} arms, got {graph.n_arms}; correct one of them")
        return graph
    labels = d["categories"]
    if not isinstance(labels, list | tuple) or len(labels) != n_arms:
        given = f"{len(labels)} of them" if isinstance(labels, list | tuple) else reprlib.repr(labels)
        raise InvalidInput(f"$.categories must be a list of {n_arms} names, one per arm, got {given}")
    for arm, label in enumerate(labels):
        if not isinstance(label, str) or not label.strip():
            raise InvalidInput(f"$.categories[{arm}] must be a string that is not blank, got {reprlib.repr(label)}")
    rule = "a finite positive number"
    weight = check_number("$.category_weight", d.get("category_weight", 1.0), rule, low=0.0, strict=True)
    return Graph.from_categories(labels, weight)


def _radii_from(R: Any, graph: Graph) -> float | list[float]:
    def radius(path: str, value: Any) -> float:
        given = value if value is None else number(value)
        rule = 'a finite non-negative number or "inf"'
        return check_number(path, given, rule, low=0.0, strict=False, allow_inf=isinstance(value, str))

    if not isinstance(R, list | tuple):
        return radius("$.R", R)
    if len(R) != graph.n_components:
        raise InvalidInput(
            f"$.R must be one number or one for each of the {graph.n_components} components, in the order of their "
            f"first arms, got {len(R)} numbers"
        )
    return [radius(f"$.R[{c}]", value) for c, value in enumerate(R)]


def _check_labels(name: str, labels: Any, n_arms: int) -> tuple[str, ...]:
    if not isinstance(labels, list | tuple):
        got = reprlib.repr(labels)
        raise InvalidInput(f"{subject(name)} must be a list of {n_arms} strings, got {got}; leave it out for numbers")
    arm_of: dict[str, int] = {}
    for arm, label in enumerate(labels):
        entry = subject(f"{name}[{arm}]")
        if not isinstance(label, str) or not label.strip():
            raise InvalidInput(f"{entry} must be a string that is not blank, got {reprlib.repr(label)}")
        if label in arm_of:
            raise InvalidInput(
                f"{entry} must be new, got {label!r}, already the label of arm {arm_of[label]}; give each arm its own"
            )
        arm_of[label] = arm
    _check_looks(name, labels)
    if len(labels) != n_arms:
        raise InvalidInput(f"{subject(name)} must hold one label per arm, got {len(labels)} for {n_arms} arms")
    return tuple(map(str, labels))


def _check_looks(name: str, labels: Sequence[str]) -> None:
    """Raises InvalidInput if two labels look alike to people, written in different ways."""
    if all(label.isascii() and label.isprintable() for label in labels):
        return
    arm_of: dict[str, int] = {}
    for arm, label in enumerate(labels):
        seen = "".join(sign for sign in normalize("NFKC", label) if category(sign) not in ("Cf", "Cc"))
        other = arm_of.setdefault(" ".join(seen.split()), arm)
        if other != arm:
            raise InvalidInput(
                f"{subject(f'{name}[{arm}]')} must look different from that of arm {other}, got {label!a} and "
                f"{labels[other]!a}; rename one"
            )


def _edges_from(edges: Any, n_arms: int) -> list[tuple[int, int, float]]:
    if not isinstance(edges, list | tuple):
        raise InvalidInput(f"$.edges must be a list of [a, b, weight], got {reprlib.repr(edges)}; use [] for no edges")
    for position, edge in enumerate(edges):
        if not isinstance(edge, list | tuple) or len(edge) != 3:
            raise InvalidInput(f"$.edges[{position}] must be [a, b, weight], got {reprlib.repr(edge)}")
        for end in (0, 1):
            check_arm(f"$.edges[{position}][{end}]", edge[end], n_arms)
    clean = check_edges(n_arms, edges, "$.edges[{}]".format)
    return [(a, b, weight) for (a, b), weight in clean.items()]
