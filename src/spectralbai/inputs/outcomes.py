"""Outcomes of options on items, as CSV text: a row for each pair of the two, or a row for each option and a column for
each item."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spectralbai.arrays import Matrix
from spectralbai.checks import check_memory
from spectralbai.errors import InvalidInput
from spectralbai.inputs.table import CsvTable, arms_from
from spectralbai.text.wording import in_words

NAMES = ("option", "item", "outcome")
"""Columns of the long form."""
CLUSTER = "cluster"
BLANK = "leave the cell empty if the pair is missing"


class Outcomes(NamedTuple):
    """What a table says: labels in the order in which they first appear, and the outcomes of pairs."""

    outcomes: Matrix
    """Shape (n_options, n_items), nan where the table has no outcome."""
    options: tuple[str, ...]
    items: tuple[str, ...]
    clusters: tuple[str, ...] | None
    """The cluster of each item; None if the table has no such column."""

    @property
    def lacking(self) -> str:
        """How many pairs are missing, and the first of them, in words."""
        missing = np.argwhere(np.isnan(self.outcomes))
        a, j = missing[0].tolist()
        verb, colon = ("is", ":") if len(missing) == 1 else ("are", ", the first:")
        pairs = f"{len(missing):,} of {in_words(self.outcomes.size, 'pair')} {verb} missing"
        return f'{pairs}{colon} option "{self.options[a]}", item "{self.items[j]}"'


def outcomes_from(
    table: CsvTable,
    option: str | None = None,
    item: str | None = None,
    outcome: str | None = None,
    cluster: str | None = None,
) -> Outcomes:
    """Returns the outcomes in a table of either form. Cells left empty are pairs that are missing.

    The long form has columns for option, item and outcome, and perhaps for the cluster of the item; they have these
    names unless others are given. A table without them is wide: options are in its first column, and the other columns
    are items.
    """
    names = tuple(given or usual for given, usual in zip((option, item, outcome), NAMES, strict=True))
    given = any(name is not None for name in (option, item, outcome, cluster))
    if not given and len(set(names) & set(table.columns)) < 2:
        return _wide(table)
    return _long(table, names, CLUSTER if cluster is None and CLUSTER in table.columns else cluster)


def _long(table: CsvTable, names: tuple[str, ...], cluster: str | None) -> Outcomes:
    labels = [table.filled(name) for name in names[:2]]
    cells = table.column(names[2])
    options, items = ({label: at for at, label in enumerate(dict.fromkeys(column))} for column in labels)
    outcomes = _nowhere(len(options), len(items))
    line_of: dict[tuple[str, str], int] = {}
    for *pair, cell, line in zip(*labels, cells, table.lines, strict=True):
        a, j = pair
        if (a, j) in line_of:
            raise InvalidInput(
                f'line {line}: option "{a}" already has an outcome on item "{j}", on line {line_of[a, j]}; remove one, '
                "or make each repetition an item of its own"
            )
        line_of[a, j] = line
        if cell:
            outcomes[options[a], items[j]] = table.finite(cell, line, names[2], BLANK)
    return Outcomes(outcomes, tuple(options), tuple(items), _clusters(table, labels[1], cluster))


def _clusters(table: CsvTable, items: list[str], name: str | None) -> tuple[str, ...] | None:
    if name is None:
        return None
    first: dict[str, tuple[str, int]] = {}
    for item, cluster, line in zip(items, table.filled(name), table.lines, strict=True):
        other, above = first.setdefault(item, (cluster, line))
        if other != cluster:
            raise InvalidInput(
                f'line {line}, column "{name}": item "{item}" is in cluster "{cluster}", but in "{other}" on line '
                f"{above}; an item has one cluster"
            )
    return tuple(cluster for cluster, _ in first.values())


def _wide(table: CsvTable) -> Outcomes:
    options, items = arms_from(table), table.columns[1:]
    if not items:
        raise InvalidInput(
            f'there is one column, "{table.columns[0]}"; add a column for each item, or give rows of {", ".join(NAMES)}'
        )
    if "" in items:
        raise InvalidInput(f"column {items.index('') + 2} has no name; name the item in the first line")
    outcomes = _nowhere(len(options), len(items))
    for a, (row, line) in enumerate(zip(table.rows, table.lines, strict=True)):
        cells = zip(row[1:], items, strict=True)
        outcomes[a] = [table.finite(cell, line, item, BLANK) if cell else math.nan for cell, item in cells]
    return Outcomes(outcomes, options, items, None)


def _nowhere(n_options: int, n_items: int) -> Matrix:
    """Returns a matrix without any outcome."""
    what = f"a table of {n_options:,} options and {n_items:,} items"
    check_memory(what, 8 * n_options * n_items, "leave out items that few options have")
    return np.full((n_options, n_items), math.nan)
