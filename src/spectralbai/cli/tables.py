"""How answers are printed: text and tables."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rich.console import RenderableType
    from rich.table import Table

MOST_FITTED = 200
"""Tables with more rows than this are not fitted to the width of the terminal, which is much faster."""


def print_plain(*parts: RenderableType, least_width: int = 0, err: bool = False) -> None:
    """Prints strings and tables, one below the other. Strings are printed without markup, since users may have written
    them.

    Tables are fitted to the width of the terminal, but are at least `least_width` wide; the terminal breaks long
    strings. With `err` everything goes to stderr.
    """
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    console.width = max(console.width, least_width)
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, str))
    # echo replaces characters that the terminal cannot show, while print would raise an error
    typer.echo("\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n")), err=err)


def empty_table(
    *headings: str, left: Collection[str] = (), folded: Collection[str] = (), least: Mapping[str, int] | None = None
) -> Table:
    """Returns a table without rows; cells are aligned right and take one line each.

    Columns in `left` hold words and are aligned left; cells of columns in `folded` may take several lines if the
    terminal is narrow; `least` gives the least width of columns.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        table.add_column(
            heading,
            justify="left" if heading in left else "right",
            no_wrap=heading not in folded,
            overflow="fold" if heading in folded else "ellipsis",
            min_width=None if least is None else least.get(heading),
        )
    return table


def as_text(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table as text: the first column is aligned left, the others right, and no cell takes several lines."""
    from rich.cells import cell_len  # characters of some scripts are two columns wide

    widths = [max(map(cell_len, column)) for column in zip(headings, *rows, strict=True)]
    lines = []
    for first, *others in (headings, *rows):
        blanks = [" " * (width - cell_len(cell)) for width, cell in zip(widths, (first, *others), strict=True)]
        cells = (blank + cell for blank, cell in zip(blanks[1:], others, strict=True))
        lines.append("   ".join((first + blanks[0], *cells)))
    lines.insert(1, "─" * (sum(widths) + 3 * (len(widths) - 1)))
    return "\n".join(lines)


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Returns these columns of the rows as CSV; lists in a cell are separated by blanks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_in_a_cell(row[column]) for column in columns])
    return text.getvalue()


def _in_a_cell(value: Any) -> Any:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else value


def print_json(document: Any) -> None:
    """Prints a document as JSON."""
    typer.echo(as_json_text(document), nl=False)


def as_json_text(document: Any, indent: int | None = 1) -> str:
    """Returns a document as the text of a JSON file."""
    if (
        isinstance(document, dict)
        and len(document.get("arms", document.get("status", {}).get("arms", ()))) > MOST_FITTED
    ):
        indent = None  # without indentation writing is many times faster, and the text a third smaller
    return json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"
