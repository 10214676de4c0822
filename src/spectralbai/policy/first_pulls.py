"""The first pulls of a run: estimates need a result of every component."""

from __future__ import annotations

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.problem import Problem


def empty_components(problem: Problem, counts: Vector) -> Indices:
    """Returns the components whose counts are all 0."""
    if counts.all():
        return np.empty(0, dtype=np.intp)  # what follows takes longer
    return np.flatnonzero(np.bincount(problem.components, counts) == 0)


FIRST_ITEMS = 2
"""Number of items that arms are tried on at first."""
SECOND_ITEM = 10
"""Most arms that are tried on more than the first of fresh items at first: enough to see whether outcomes of an item go
together."""


def first_items(problem: Problem, issued: Vector, drawn: int, withdrawn: tuple[int, ...]) -> tuple[Indices, Indices]:
    """Returns arms, and draws of items, of the first trials of arms of components without a trial; at first all arms.

    Arms that joined later are tried on items that the others were tried on, if these are a list.
    """
    empty = empty_components(problem, issued)
    new = np.isin(problem.components, empty)
    new[list(withdrawn)] = False
    arms = np.flatnonzero(new)
    n = None if problem.items is None else problem.items.n
    if n is None:
        some = arms[:: -(-arms.size // SECOND_ITEM) or 1]
        draws = np.repeat(drawn + np.arange(FIRST_ITEMS), [arms.size, *[some.size] * (FIRST_ITEMS - 1)])
        return np.concatenate([arms, *[some] * (FIRST_ITEMS - 1)]), draws
    draws = np.arange(min(FIRST_ITEMS, n if drawn == 0 else drawn))
    return np.repeat(arms, draws.size), np.tile(draws, arms.size)


def first_pulls(problem: Problem, issued: Vector, withdrawn: tuple[int, ...] = ()) -> Indices:
    """Returns, for every component without a pull, its first arm that is not withdrawn."""
    empty = empty_components(problem, issued)
    if not empty.size:
        return empty
    components = problem.components.copy()
    components[list(withdrawn)] = -1
    numbers, first = np.unique(components, return_index=True)
    return first[np.isin(numbers, empty)]
