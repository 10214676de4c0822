"""Which candidates of a grid are alike."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import ParameterGrid

from spectralbai.checks import check_number
from spectralbai.errors import InvalidInput


def neighbours(grid: ParameterGrid, similar: Sequence[str]) -> list[tuple[int, int]]:
    """Returns the pairs of candidates that differ in one of the parameters `similar`, by one step in its values."""
    names = sorted({name for part in grid.param_grid for name in part})
    if isinstance(similar, str) or not set(similar) <= set(names):
        raise InvalidInput(
            f"`similar` must be a list of parameters of the grid, of {', '.join(names)}, got {similar!r}"
        )
    edges: list[tuple[int, int]] = []
    first = 0
    for part in grid.param_grid:
        keys = sorted(part)  # the order of ParameterGrid
        numbers = first + np.arange(math.prod(len(part[key]) for key in keys)).reshape([len(part[key]) for key in keys])
        first += numbers.size
        for axis, key in enumerate(keys):
            if key in similar:
                rule = "a number, since `similar` names it"
                values = [check_number(f"$.{key}", value, rule, low=-math.inf, strict=True) for value in part[key]]
                lines = np.moveaxis(numbers, axis, 0)[np.argsort(values, kind="stable")]
                edges += zip(lines[:-1].ravel().tolist(), lines[1:].ravel().tolist(), strict=True)
    if not edges:
        raise InvalidInput(f"`similar` must name a parameter with several values, got {similar!r}")
    return edges
