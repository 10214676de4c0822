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


FIRST_TOGETHER = 10
FIRST_ITEMS = 2
"""Number of items that arms are tried on at first."""


def first_items(problem: Problem, issued: Vector, drawn: int, withdrawn: tuple[int, ...]) -> tuple[Indices, Indices]:
    """Returns arms, and draws of items, of the first trials of arms of components without a trial; at first all arms.

    Arms that joined later are tried on items that the others were tried on, if these are a list.
    """
    empty = empty_components(problem, issued)
    new = np.isin(problem.components, empty)
    new[list(withdrawn)] = False
    arms = np.flatnonzero(new)
    n = None if problem.items is None else problem.items.n
    first = 0 if drawn == 0 or n is not None else drawn
    if n is None and arms.size:
        some = arms[np.unique(np.linspace(0, arms.size - 1, FIRST_TOGETHER).astype(np.intp))]
        return np.concatenate([arms, some]), np.repeat([first, first + 1], [arms.size, some.size])
    most = FIRST_ITEMS if n is None else min(FIRST_ITEMS, n if drawn == 0 else drawn)
    draws = np.arange(first, first + most)
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
