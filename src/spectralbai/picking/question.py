"""The question of a pick as a study: made, or found again and compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from spectralbai.checks import check_ends
from spectralbai.errors import Conflict, InvalidInput, NotFound
from spectralbai.graph import Graph
from spectralbai.instance import Instance
from spectralbai.items import Items
from spectralbai.journal.definition import Definition, Goal
from spectralbai.picking.entries import CLUSTER, Entries, Entry
from spectralbai.problem import Problem
from spectralbai.study import Study

WORDS = {"failed_as": "the outcome of failed runs", "n_arms": "options", "labels": "options", "edges": "similarities"}
"""What fields of a definition are called in messages, if not by their own names."""
LISTS = ("items", "labels", "edges")
"""Fields whose values are too long for a message."""


@dataclass(frozen=True)
class Question:
    """Which option is best on these items?"""

    options: Entries
    items: Entries
    low: float
    high: float
    tolerance: float = 0.0
    delta: float = 0.05
    goal: Goal = "max"
    fresh: bool = False
    budget: int | None = None
    failed_as: float | None = None
    graph: Graph | None = None
    """Which options are alike; None if nothing is known of that."""
    R: float = math.inf
    members: Mapping[str, tuple[Entry, ...]] = field(init=False)
    """What each item of the study stands for: itself, or the items of a cluster of a random sample."""

    def __post_init__(self) -> None:
        check_ends(self.low, self.high)
        clusters = self.items.in_clusters() if self.fresh else None
        if clusters is not None and "" in clusters:
            raise InvalidInput(
                f'the item "{clusters[""][0].label}" has no {CLUSTER}; fill it in, or leave out the column'
            )
        object.__setattr__(self, "members", clusters or {entry.label: (entry,) for entry in self.items})

    @property
    def pairs(self) -> int:
        """The trials that trying everything takes."""
        return len(self.options) * len(self.members)

    @property
    def definition(self) -> Definition:
        """The definition of the study, with its items in the order in which they were listed."""
        n = len(self.members)
        items = Items.fresh(n) if self.fresh else Items.listed(n)
        graph = Graph.from_edges(len(self.options), []) if self.graph is None else self.graph
        if isinstance(graph, Graph) and graph.n_arms != len(self.options):
            raise InvalidInput(f"`graph` must have {len(self.options)} arms, one for each option, got {graph.n_arms}")
        problem = Problem.bounded(graph, self.R, self.low, self.high, self.tolerance, items=items)
        instance = Instance(problem, labels=self.options.labels)
        names = tuple(self.members)
        return Definition(instance, self.delta, self.goal, self.budget, None, self.failed_as, items=names)

    def study(self, name: str, storage: str | None, seed: int | None) -> Study:
        """Returns the study of this question: the one with that name, or a new one."""
        wanted = self.definition
        limits: dict[str, Any] = {"budget": self.budget, "failed_as": self.failed_as}
        try:
            there = Study.open(name, storage)
        except NotFound:
            # Another search may create it at this moment.
            with suppress(Conflict):
                return Study.create(
                    name, wanted.instance, self.delta, storage, self.goal, **limits, items=wanted.items, seed=seed
                )
            there = Study.open(name, storage)
        difference = _difference(there.definition, wanted)
        if difference is None:
            return there
        there.close()
        raise Conflict(
            f'the study "{name}" is there already, {difference}; ask the same question to go on with it, or give this '
            "one another name"
        )


def _difference(there: Definition, wanted: Definition) -> str | None:
    """Returns how two definitions differ, in words; None if they ask the same, in whatever order of the items."""
    old, new = _flat(there), _flat(wanted)
    for key in (*old, *new):
        if old.get(key) != new.get(key):
            words = WORDS.get(key, key)
            return f"with other {words}" if key in LISTS else f"with {words} {old.get(key)}, and not {new.get(key)}"
    return None


def _flat(definition: Definition) -> dict[str, Any]:
    document = definition.as_dict()
    instance = document.pop("instance")
    names = sorted(document.pop("items"))
    count = {"number of items": len(names), "fresh": "fresh" in instance.pop("items")}
    del document["stopped"]
    return {**document, **count, **instance, "items": names}
