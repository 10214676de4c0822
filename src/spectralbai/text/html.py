"""Tables as HTML, for pages and notebooks; all text is escaped.

The only script is `script()`, which pages with long tables use.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

BOX = '<div class="box" style="overflow-x: auto">'
"""Starts a box in which content wider than the page can be scrolled."""
PAGE_ROWS = 25
"""Number of rows that a long table shows at a time."""


@cache
def script() -> str:
    """Returns the script that turns the pages of every `paged` table and searches in it; it must come after the last
    such table of a page."""
    return f"<script>\n{Path(__file__).with_name('paged.js').read_text('utf-8')}</script>\n"


def paragraph(text: str) -> str:
    """Returns a paragraph."""
    return f"<p>{escape(text)}</p>\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table whose first column is text, aligned left, and whose other columns are numbers, aligned right."""
    head = "".join(_cell("th", text, left=column == 0) for column, text in enumerate(headings))
    body = "".join(
        "<tr>" + "".join(_cell("td", text, left=column == 0) for column, text in enumerate(row)) + "</tr>\n"
        for row in rows
    )
    return f'{BOX}<table class="numbers">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n'


def paged(headings: Sequence[str], rows: Sequence[Sequence[str]], kinds: Sequence[str] = (), kind_is: str = "") -> str:
    """Returns a table of many rows that shows some rows at a time, with a search in the first column.

    `kinds` gives the kind of each row, so that the reader can select one kind; `kind_is` is the name of this choice.
    The page contains all rows, as JSON that `script` reads. If scripts do not run, only the first rows are shown.
    """
    names = list(dict.fromkeys(kinds))
    choice = ""
    if names:
        options = "".join(f'<option value="{number}">{escape(name)}</option>' for number, name in enumerate(names))
        choice = f'<label>{escape(kind_is)} <select><option value="">all</option>{options}</select></label>\n'
    data = {
        "columns": [_column(cells) for cells in zip(*rows, strict=True)],
        "kinds": _column(kinds, names) if names else None,
        "total": len(rows),
        "rows": PAGE_ROWS,
    }
    content = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<div class="paged">\n<div class="controls" hidden>\n'
        f'<label>{escape(headings[0])} <input type="search" placeholder="search"></label>\n{choice}'
        '<span class="turn"><button type="button">&larr; back</button> '
        '<button type="button">next &rarr;</button></span>\n'
        '<span class="where" role="status"></span>\n</div>\n'
        f'{table(headings, rows[:PAGE_ROWS])}<script type="application/json">{content}</script>\n</div>\n'
    )


def _column(cells: Sequence[str], values: Sequence[str] = ()) -> Any:
    """Returns cells as the script reads them: a list or, if many are equal, the distinct ones and each one's index."""
    places = {value: place for place, value in enumerate(values or dict.fromkeys(cells))}
    if not values and 2 * len(places) > len(cells):
        return list(cells)
    return {"different": list(places), "which": [places[cell] for cell in cells]}


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Returns a table with a name and its value in each row."""
    body = "".join(f"<tr>{_cell('th', name, left=True)}{_cell('td', value, left=True)}</tr>\n" for name, value in rows)
    return f'{BOX}<table class="pairs">\n{body}</table></div>\n'


def _cell(tag: str, text: str, left: bool) -> str:
    return f'<{tag} style="text-align: {"left" if left else "right"}">{escape(text)}</{tag}>'
