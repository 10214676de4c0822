"""The outcomes of a study whose options are tried on items, as a table, and that table as CSV text."""

from __future__ import annotations

import csv
import io
import math

import numpy as np

from spectralbai.checks import check_memory
from spectralbai.journal.definition import Definition
from spectralbai.study.ledger import Ledger
from spectralbai.tables import Table
from spectralbai.text.wording import as_cell


def table_of(ledger: Ledger, definition: Definition, most: int | None = None) -> Table | None:
    """Returns the outcomes told so far; None if there is none. See `Study.table`."""
    items = ledger.items()
    if not items:
        return None
    if most is not None and most < len(items):
        items = [items[at] for at in np.linspace(0, len(items) - 1, most).round().astype(int)]
    labels = definition.instance.labels
    what = f"a table of {len(labels):,} options and {len(items):,} items"
    check_memory(what, 8 * len(labels) * len(items), "export the results instead, without --table")
    outcomes = np.full((len(labels), len(items)), math.nan)
    column = {item: at for at, item in enumerate(items)}
    for arm, item, outcome in ledger.outcomes(None if most is None else items):
        if math.isnan(outcomes[arm, column[item]]):  # the first result of a pair counts
            outcomes[arm, column[item]] = outcome
    names = [definition.item_name(item) or "" for item in items]
    return Table(outcomes, labels, names)


def table_as_csv(table: Table) -> str:
    """Returns a table with a row for each option and a column for each item, as CSV text; the cells of missing pairs
    are empty. `Table.from_csv` and imports read it.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.study
        >>> table = sb.Table([[0.9, None], [0.8, 0.4]], options=["new", "old"], items=["q1", "q2"])
        >>> print(sb.study.table_as_csv(table))
        option,q1,q2
        new,0.9,
        old,0.8,0.4
        <BLANKLINE>
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("option", *map(as_cell, table.items)))
    for option, row in zip(table.options, table.outcomes.tolist(), strict=True):
        writer.writerow((as_cell(option), *("" if math.isnan(cell) else repr(cell) for cell in row)))
    return text.getvalue()
