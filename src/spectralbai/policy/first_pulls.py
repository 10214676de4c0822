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


def first_pulls(problem: Problem, issued: Vector, withdrawn: tuple[int, ...] = ()) -> Indices:
    """Returns, for every component without a pull, its first arm that is not withdrawn."""
    empty = empty_components(problem, issued)
    if not empty.size:
        return empty
    components = problem.components.copy()
    components[list(withdrawn)] = -1
    numbers, first = np.unique(components, return_index=True)
    return first[np.isin(numbers, empty)]
