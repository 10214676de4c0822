"""What picking would have taken on a table in which everything was tried."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectralbai import simulate
from spectralbai.arrays import Vector
from spectralbai.errors import InvalidInput
from spectralbai.graph import Graph
from spectralbai.items import Items
from spectralbai.journal.definition import Goal
from spectralbai.policy import SpectralRace
from spectralbai.problem import Problem
from spectralbai.tables import Table
from spectralbai.text.wording import in_words

ORDERS = 5
"""How many orders of the items are tried."""


@dataclass(frozen=True)
class Replay:
    """Picks on a complete table, each in an order of its own."""

    options: tuple[str, ...]
    means: Vector
    pairs: int
    answers: tuple[str, ...]
    """The option picked in each order."""
    right: tuple[bool, ...]
    trials: tuple[int, ...]
    decided: bool
    """Whether every pick decided; a random sample may be used up before."""

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready."""
        means = dict(zip(self.options, self.means.tolist(), strict=True))
        return {**vars(self), "options": list(self.options), "means": means, "sentences": list(self.sentences)}

    @property
    def sentences(self) -> tuple[str, ...]:
        """What came out, as sentences."""
        average = round(math.fsum(self.trials) / len(self.trials))
        least, most = min(self.trials), max(self.trials)
        spread = (
            f" on average over {len(self.trials)} orders of the items, {least:,} to {most:,}" if least < most else ""
        )
        wrong = len(self.right) - sum(self.right)
        picked = " or ".join(f'"{label}"' for label in dict.fromkeys(self.answers))
        good = (
            "a right answer in every order" if not wrong else f"a wrong answer in {wrong} of {len(self.right)} orders"
        )
        undecided = "" if self.decided else " Not every one of these decided: the sample is too small."
        return (
            f"This would have taken {average:,} of {self.pairs:,} trials{spread}.",
            f"It would have picked {picked}, {good}.{undecided}",
        )


def replay(
    table: Table,
    *,
    low: float,
    high: float,
    tolerance: float = 0.0,
    delta: float = 0.05,
    goal: Goal = "max",
    fresh: bool = False,
    graph: Graph | None = None,
    R: float = math.inf,
    seed: int | None = None,
) -> Replay:
    """Returns what picking would have done on a table that has every outcome."""
    if table.missing:
        option, item = table.missing[0]
        raise InvalidInput(
            f'the table must have every outcome, and that of "{option}" on "{item}" is missing'
            + (f", as {in_words(len(table.missing) - 1, 'other')} are" if len(table.missing) > 1 else "")
            + "; complete it, or give it as known scores"
        )
    if fresh and table.clusters is not None:
        table = table.by_cluster()
    sign = 1.0 if goal == "max" else -1.0
    items = Items.fresh() if fresh else Items.listed(table.n_items)
    graph = Graph.from_edges(table.n_options, []) if graph is None else graph
    problem = Problem.bounded(graph, R, low, high, tolerance, items=items)
    for a, j in np.argwhere(~problem.noise.allows(table.outcomes))[:1]:
        name = f'the outcome of "{table.options[a]}" on "{table.items[j]}"'
        problem.noise.check_outcome(name, float(table.outcomes[a, j]))  # raises InvalidInput
    policy = SpectralRace(problem if goal == "max" else replace(problem, noise=problem.noise.negated()), delta)
    first = secrets.randbits(32) if seed is None else seed
    runs = [
        simulate.replay(policy, sign * table.outcomes, first + k, max_samples=table.outcomes.size)
        for k in range(ORDERS)
    ]
    return Replay(
        options=table.options,
        means=table.means,
        pairs=table.outcomes.size,
        answers=tuple(table.options[run.arm] for run in runs),
        right=tuple(run.correct for run in runs),
        trials=tuple(run.tau for run in runs),
        decided=all(run.status == "decided" for run in runs),
    )
