"""Tables as HTML, for pages and notebooks: whatever text comes in is escaped, and there are no scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

BOX = '<div class="box" style="overflow-x: auto">'
"""What is wider than the page scrolls in a box of its own."""


def paragraph(text: str) -> str:
    """Returns a paragraph."""
    return f"<p>{escape(text)}</p>\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table whose first column is words, to the left, and whose others are numbers, to the right."""
    head = "".join(_cell("th", text, left=column == 0) for column, text in enumerate(headings))
    body = "".join(
        "<tr>" + "".join(_cell("td", text, left=column == 0) for column, text in enumerate(row)) + "</tr>\n"
        for row in rows
    )
    return f'{BOX}<table class="numbers">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n'


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Returns a table of names and what each is."""
    body = "".join(f"<tr>{_cell('th', name, left=True)}{_cell('td', value, left=True)}</tr>\n" for name, value in rows)
    return f'{BOX}<table class="pairs">\n{body}</table></div>\n'


def _cell(tag: str, text: str, left: bool) -> str:
    return f'<{tag} style="text-align: {"left" if left else "right"}">{escape(text)}</{tag}>'
