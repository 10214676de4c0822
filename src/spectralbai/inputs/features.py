"""Features that say how similar options are, from columns of a table: numbers, dates, yes or no, and categories. All
features have the same weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from spectralbai.arrays import Matrix, Vector
from spectralbai.errors import InvalidInput
from spectralbai.inputs.table import CsvTable

TRUTH = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
SHOWN = 5
"""Most categories that are listed by name."""


@dataclass(frozen=True, eq=False)
class Feature:
    """A column of a table as coordinates of the arms."""

    name: str
    reading: str
    """How the column was interpreted, such as "numbers"."""
    values: Matrix
    """Coordinates of the arms, shape (n_arms, 1), or (n_arms, n_categories); their variances sum to 1.

    So for every feature the average squared distance of two arms is 2. No feature outweighs the others because of its
    unit or kind, and arms of different categories are about as far apart as arms with different numbers.
    """


def features_from(table: CsvTable, names: Sequence[str], label: str | None = None) -> list[Feature]:
    """Returns the features with these names; the column of labels, `label` or the first, cannot be one."""
    labels = label or table.columns[0]
    if labels in names:
        raise InvalidInput(
            f'the column "{labels}" holds the labels; leave it out of the features, or name another with --label'
        )
    return [_feature(table, name) for name in names]


def _feature(table: CsvTable, name: str) -> Feature:
    cells = table.filled(name)
    numeric = [table.number(cell) is not None for cell in cells]
    dates = [_days(cell) for cell in cells]
    if sum(numeric) * 2 >= len(cells):  # a word among mostly numbers is a mistake; the error names its line
        return Feature(name, "numbers", _standardised(name, table.numbers(name)))
    days = [day for day in dates if day is not None]
    if len(days) * 2 >= len(cells):
        if len(days) < len(cells):
            at = dates.index(None)
            raise InvalidInput(
                f'line {table.lines[at]}, column "{name}": a date such as 2026-03-31 is needed, got "{cells[at]}"; '
                "correct it or remove the row"
            )
        return Feature(name, "dates, in days", _standardised(name, np.array(days)))
    if all(cell.lower() in TRUTH for cell in cells):
        return Feature(name, "yes or no", _standardised(name, np.array([TRUTH[cell.lower()] for cell in cells])))
    return _categories(name, cells)


def _categories(name: str, cells: Sequence[str]) -> Feature:
    kinds = sorted(set(cells))
    _check_tells(name, len(kinds) > 1)
    if len(kinds) == len(cells):
        raise InvalidInput(
            f'the column "{name}" holds words and is different for every option, so it does not say which options are '
            "alike; leave it out, or give numbers or dates"
        )
    one_hot = np.array([[cell == kind for kind in kinds] for cell in cells], dtype=np.float64)
    listed = ", ".join(kinds[:SHOWN]) + (", ..." if len(kinds) > SHOWN else "")
    return Feature(name, f"{len(kinds)} categories: {listed}", one_hot / np.sqrt(one_hot.var(axis=0).sum()))


def _days(cell: str) -> float | None:
    """Returns the days since 1970 if the cell is an ISO date, with or without a time of day; otherwise None."""
    try:
        when = datetime.fromisoformat(cell)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() / 86400


def _standardised(name: str, values: Vector) -> Matrix:
    """Returns the values as a column with mean 0 and standard deviation 1."""
    centred = values - values[0]
    size = np.abs(centred).max()
    _check_tells(name, size > 0)
    unit = centred / size
    scaled: Matrix = ((unit - unit.mean()) / unit.std())[:, None]
    return scaled


def _check_tells(name: str, differs: bool) -> None:
    if not differs:
        raise InvalidInput(f'the column "{name}" is the same for every option, so it says nothing; leave it out')
