"""What the commands about studies share: options, the study that is named, and how answers are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from spectralbai.cli.tables import MOST_FITTED, as_text, empty_table, print_json
from spectralbai.errors import InvalidInput
from spectralbai.text.wording import in_words

if TYPE_CHECKING:
    from rich.table import Table

    from spectralbai.report.tables import TextTable
    from spectralbai.study import Study

Name = Annotated[str, Argument(help="Name of the study.", metavar="NAME")]
StorageUrl = Annotated[
    str | None,
    Option(
        "--storage",
        envvar="SPECTRALBAI_STORAGE",
        show_envvar=False,
        help="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE; if not given, $SPECTRALBAI_STORAGE, or "
        "spectralbai.db here.",
        metavar="URL",
    ),
]
Control = Annotated[
    str | None, Option(help="Compare every option with this one: difference and lift, with limits.", metavar="LABEL")
]
Json = Annotated[bool, Option("--json", help="Print JSON.")]


def open_study(name: str, storage: str | None) -> Study:
    """Returns the study with that name."""
    from spectralbai.study import Study

    return Study.open(name, storage)


def filled(content: TextTable) -> str | Table:
    """Returns a table of text in the form for the terminal."""
    if len(content.rows) > MOST_FITTED:
        return as_text(content.headings, content.rows)
    table = study_table(*content.headings)
    for row in content.rows:
        table.add_row(*row)
    return table


def study_table(*headings: str) -> Table:
    """Returns a table without rows; all of its cells may take several lines."""
    return empty_table(*headings, left=headings[:1], folded=headings)


def tell_counts(study: Study, rows: Sequence[tuple[str, int, int]], id_: str, past: bool, as_json: bool) -> None:
    """Records rows of a label, trials and successes, and prints how many were new."""
    new = study.tell_counts(rows, id_, past)
    total = sum(trials for _, trials, _ in rows)
    words = f"recorded {in_words(new, 'trial')}" if new else f'the counts of "{id_}" are known already'
    answer(as_json, {"recorded": new, "known": total - new}, words)


def answer(as_json: bool, document: dict[str, Any], words: str) -> None:
    """Prints what a command did: as JSON, or in words."""
    if as_json:
        print_json(document)
    else:
        typer.echo(words)


def read_time(text: str) -> float:
    """Returns the seconds since 1970 of the end of a date, or of a date and time; in UTC unless it has a time zone."""
    from contextlib import suppress
    from datetime import UTC, date, datetime, timedelta

    try:
        moment = datetime.fromisoformat(text)
        with suppress(ValueError):  # a time follows
            date.fromisoformat(text)
            moment += timedelta(days=1)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        raise InvalidInput(f'--until must be a date such as 2026-05-31, or 2026-05-31T18:00, got "{text}"') from None
