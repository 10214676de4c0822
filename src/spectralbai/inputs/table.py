"""Tables of options, edges and observations as CSV text; every error message names the row and the column.

Columns may be separated by commas, semicolons or tabs. Windows line ends and byte-order marks are accepted, and decimal
commas if semicolons separate the columns. Labels are strings: "7" and "07" differ.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.checks import did_you_mean
from spectralbai.errors import InvalidInput, about
from spectralbai.graph import check_edges
from spectralbai.noise import Noise
from spectralbai.text.wording import from_cell

SEPARATORS = (",", ";", "\t")
COUNTS = (
    ("label", "option", "arm", "page", "variant", "variation", "design", "version"),
    ("trials", "visitors", "views", "impressions", "sessions", "users", "visits"),
    ("successes", "clicks", "conversions", "orders", "purchases", "signups"),
)
"""Columns of a table of counts, each with the other names that are accepted, in capitals or not."""
THOUSANDS = re.compile(r"\d{1,3}(?:([,.' \u00a0\u2009\u202f])\d{3})(?:\1\d{3})*")
"""Whole numbers with a sign between thousands."""
LARGEST = 1e100
"""Largest number allowed in tables, so that squares do not overflow."""


@dataclass(frozen=True)
class CsvTable:
    """The cells of a CSV file: column names and rows of strings, with the line number of each row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    decimal_comma: bool
    name: str = ""
    """What messages call the table."""

    @classmethod
    def named(cls, name: str, text: str) -> CsvTable:
        """Returns the table of a CSV text, with a name."""
        with about(name):
            return replace(cls.from_text(text), name=name)

    @classmethod
    def from_text(cls, text: str) -> CsvTable:
        """Returns the table of a CSV text whose first line names the columns."""
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        header = re.sub(r'"[^"]*"', "", text).lstrip().split("\n", 1)[0]  # separators inside quotes do not count
        separator = max(SEPARATORS, key=header.count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
        rows: list[tuple[str, ...]] = []
        lines: list[int] = []
        begun = 1
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    rows.append(tuple(from_cell(cell.strip()) for cell in cells))
                    lines.append(begun)
                begun = reader.line_num + 1
        except csv.Error as error:
            raise InvalidInput(f"line {begun}: not CSV: {error}") from None
        if not rows:
            raise InvalidInput("the file is empty; the first line must name the columns")
        columns, rows = rows[0], rows[1:]
        if len(set(columns)) < len(columns):
            repeated = next(name for name in columns if columns.count(name) > 1)
            raise InvalidInput(f'line {lines[0]}: the column "{repeated}" is there twice; rename one')
        if not rows:
            raise InvalidInput("there is no row below the column names; add one per line")
        for row, line in zip(rows, lines[1:], strict=True):
            if len(row) != len(columns):
                raise InvalidInput(
                    f"line {line}: {len(row)} cells for {len(columns)} columns; put cells with a separator in quotes"
                )
        return cls(columns, tuple(rows), tuple(lines[1:]), separator == ";")

    def column(self, name: str) -> list[str]:
        """Returns the cells of a column."""
        if name not in self.columns:
            remedy = did_you_mean(name, self.columns, f"the columns are {', '.join(self.columns)}")
            raise InvalidInput(f'there is no column "{name}"; {remedy}')
        at = self.columns.index(name)
        return [row[at] for row in self.rows]

    def number(self, cell: str) -> float | None:
        """Returns the number in a cell; None if it is not a number."""
        try:
            return float((cell.replace(",", ".") if self.decimal_comma else cell).replace("_", "?"))
        except ValueError:
            return None

    def numbers(self, name: str) -> Vector:
        """Returns a column as finite numbers."""
        rows = zip(self.column(name), self.lines, strict=True)
        return np.array([self.finite(cell, line, name) for cell, line in rows])

    def finite(self, cell: str, line: int, name: str, remedy: str = "fill it in or remove the row") -> float:
        """Returns the finite number in a cell of a line and a column."""
        number = self.number(cell)
        if number is None:
            what = "an empty cell" if not cell else f'"{cell}"'
            raise InvalidInput(f'line {line}, column "{name}": a number is needed, got {what}; {remedy}')
        if not abs(number) <= LARGEST:
            raise InvalidInput(
                f'line {line}, column "{name}": a finite number up to {LARGEST:g} is needed, got "{cell}"'
            )
        return number

    def filled(self, name: str) -> list[str]:
        """Returns a column of words, such as labels; raises InvalidInput if a cell is empty."""
        cells = self.column(name)
        for cell, line in zip(cells, self.lines, strict=True):
            if not cell:
                raise InvalidInput(f'line {line}, column "{name}": the cell is empty; fill it in or remove the row')
        return cells

    def arms(self, name: str, labels: Sequence[str]) -> list[int]:
        """Returns a column of labels as arms; raises InvalidInput for other words."""
        arm_of = {label: arm for arm, label in enumerate(labels)}
        cells = self.filled(name)
        for cell, line in zip(cells, self.lines, strict=True):
            if cell not in arm_of:
                remedy = did_you_mean(cell, arm_of, "add it to the options, or remove the row")
                raise InvalidInput(f'line {line}, column "{name}": "{cell}" is no label of an option; {remedy}')
        return [arm_of[cell] for cell in cells]


def arms_from(table: CsvTable, label: str | None = None) -> tuple[str, ...]:
    """Returns the labels of a table with one row per arm; they are in the first column unless `label` names another."""
    name = label or table.columns[0]
    labels = table.filled(name)
    first: dict[str, int] = {}
    for each, line in zip(labels, table.lines, strict=True):
        if each in first:
            raise InvalidInput(
                f'line {line}, column "{name}": the label "{each}" is taken by line {first[each]}; choose another'
            )
        first[each] = line
    if len(labels) < 2:
        raise InvalidInput("there is one option; a choice needs at least two rows")
    return tuple(labels)


def edges_from(
    table: CsvTable, labels: Sequence[str] | None = None
) -> tuple[tuple[str, ...], list[tuple[int, int, float]]]:
    """Returns (labels, edges) of a table with two columns of labels and, if there is a third, weights.

    Without `labels`, the arms are the labels in the table, in the order in which they first appear.
    """
    if not 2 <= len(table.columns) <= 3:
        raise InvalidInput(f"edges need the columns label, label and perhaps weight, got {', '.join(table.columns)}")
    ends = [table.filled(name) for name in table.columns[:2]]
    weights = table.numbers(table.columns[2]) if len(table.columns) == 3 else np.ones(len(table.rows))
    known = tuple(dict.fromkeys(chain(*zip(*ends, strict=True))) if labels is None else labels)
    edges = zip(*(table.arms(name, known) for name in table.columns[:2]), weights.tolist(), strict=True)
    clean = check_edges(len(known), list(edges), lambda row: f"line {table.lines[row]}", lambda arm: f'"{known[arm]}"')
    return known, [(a, b, weight) for (a, b), weight in clean.items()]


def observations_from(table: CsvTable, labels: Sequence[str], noise: Noise | None = None) -> tuple[Indices, Vector]:
    """Returns (arms, outcomes) of a table with a column of labels and one of outcomes, in this order; if there are
    other columns, they must be named "label" and "outcome". Outcomes that `noise` does not allow are refused."""
    names = ("label", "outcome") if {"label", "outcome"} <= set(table.columns) else table.columns
    if len(names) != 2:
        raise InvalidInput(f"observations need the two columns label and outcome, got {', '.join(table.columns)}")
    arms = table.arms(names[0], labels)
    outcomes = table.numbers(names[1])
    if noise is not None:
        for outcome, line in zip(outcomes.tolist(), table.lines, strict=True):
            noise.check_outcome(f'line {line}, column "{names[1]}": an outcome', outcome)
    return np.array(arms, dtype=np.intp), outcomes


def has_counts(table: CsvTable) -> bool:
    """Returns whether the table has the columns of counts."""
    there = {column.casefold() for column in table.columns}
    return all(there & set(names) for names in COUNTS)


def _column_of_counts(table: CsvTable, names: Sequence[str]) -> str:
    """Returns the column with the first of these names or, without it, the only one with another of them."""
    found = [column for column in table.columns if column.casefold() in names]
    usual = [column for column in found if column.casefold() == names[0]]
    if len(found) > 1 and len(usual) != 1:
        raise InvalidInput(
            f'the columns "{found[0]}" and "{found[1]}" could both be the {names[0]}; call the right one {names[0]}'
        )
    return (usual or found)[0]


def _whole(table: CsvTable, cell: str, line: int, column: str) -> int:
    """Returns the whole number in a cell, which may have signs between thousands."""
    thousands = THOUSANDS.fullmatch(cell)
    if thousands is not None and thousands[1] == ("," if table.decimal_comma else "."):
        raise InvalidInput(
            f'line {line}, column "{column}": "{cell}" may be a decimal number; write thousands without '
            f'"{thousands[1]}"'
        )
    value = table.finite(cell if thousands is None else cell.replace(thousands[1], ""), line, column)
    if value < 0 or value != np.floor(value):
        raise InvalidInput(f'line {line}, column "{column}": a whole number from 0 on is needed, got {value:g}')
    return int(value)


def counts_from(table: CsvTable, labels: Sequence[str]) -> list[tuple[str, int, int]]:
    """Returns (label, trials, successes) of each row of a table with columns of these names, or of other usual names in
    `COUNTS`; other columns are ignored."""
    if not has_counts(table):
        raise InvalidInput(
            f"counts need the columns {', '.join(names[0] for names in COUNTS)} (or page, visitors, clicks and the "
            f"like), got {', '.join(table.columns)}"
        )
    columns = [_column_of_counts(table, names) for names in COUNTS]
    table.arms(columns[0], labels)  # raises an error for a label that is none of these
    numbers = [
        [_whole(table, cell, line, name) for cell, line in zip(table.column(name), table.lines, strict=True)]
        for name in columns[1:]
    ]
    first: dict[str, int] = {}
    rows = []
    for label, *pair, line in zip(table.column(columns[0]), *numbers, table.lines, strict=True):
        if label in first:
            raise InvalidInput(f'line {line}: "{label}" is already on line {first[label]}; give one row with the sums')
        first[label] = line
        if pair[1] > pair[0]:
            raise InvalidInput(
                f"line {line}: {pair[1]:,} {columns[2]} of {pair[0]:,} {columns[1]}; there cannot be more"
            )
        rows.append((label, pair[0], pair[1]))
    return rows
