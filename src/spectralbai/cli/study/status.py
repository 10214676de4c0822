"""What is known: the status of a study, and the list of studies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Option

from spectralbai.cli.extensions import Import
from spectralbai.cli.study.common import Control, Json, Name, StorageUrl, filled, open_study, study_table
from spectralbai.cli.tables import print_json, print_plain
from spectralbai.cli.work import progress
from spectralbai.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from spectralbai.study import ArmStatus, Status

MOST_CATEGORIES = 30
"""Most categories that a status shows without --all."""


def status(
    name: Name,
    control: Control = None,
    every: Annotated[bool, Option("--all", help="Show all options, even if there are more than 100.")] = False,
    category: Annotated[
        str | None, Option(help="Show the options of this category, all of them.", metavar="NAME")
    ] = None,
    search: Annotated[
        str | None, Option(help="Show the options with this in their labels, all of them.", metavar="TEXT")
    ] = None,
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Shows the status of a study.

    It shows the arms with estimates and intervals, the evidence, pending tickets and a forecast. If there are more than
    100 arms, it shows the categories, if there are any, and the top.
    """
    chosen = category is not None or search is not None
    if every and chosen:
        raise InvalidInput("--all shows all options; leave it out, or leave out --category and --search")
    with open_study(name, storage) as study, progress("processing results"):
        seen = study.status(control)
    arms = seen.select(category, search) if chosen or every else seen.top
    if as_json:
        print_json(seen.as_dict(arms if chosen or seen.categories is not None else None))
        return
    from spectralbai.report.tables import arms_of

    parts = (
        *_evidence(seen),
        *(() if search is not None else _categories(seen, category, every)),
        "",
        filled(arms_of(seen, arms)) if arms else f'no option has "{search}" in its label',
        *_not_shown(seen, arms, chosen),
        *(_compared(seen, arms) if arms else ()),
        *_pending(seen),
    )
    print_plain(seen.answer, *seen.advice, "", *parts, least_width=100)


def list_(storage: StorageUrl = None, as_json: Json = False, modules: Import = None) -> None:
    """Lists the studies of a storage."""
    from spectralbai.study import list_studies

    found = list_studies(storage)
    if as_json:
        print_json([asdict(each) for each in found])
        return
    table = study_table("study", "options", "goal", "delta", "results", "state", "best so far", "created")
    for each in found:
        numbers = (str(each.n_arms), each.goal, f"{each.delta:g}", f"{each.results:,}")
        table.add_row(each.name, *numbers, each.state, each.best or "", each.created)
    print_plain(table, least_width=100)


def _evidence(status: Status) -> Iterator[str]:
    yield f"goal {status.goal}, delta = {status.delta:g}, rule betting (risk proved)"
    yield status.evidence
    yield f"do the data agree with R? {status.agreement}"
    if status.items is not None:
        yield status.items.described
    if status.joined:
        yield status.joined
    if status.unprocessed:
        yield f"results not yet processed, while a worker computes: {status.unprocessed:,}"


def _categories(status: Status, only: str | None, every: bool) -> Iterator[str | Table]:
    if status.categories is None:
        return
    from spectralbai.report.tables import categories_of

    table = categories_of(status)
    rows = [row for row, each in zip(table.rows, status.categories, strict=True) if only is None or each.name == only]
    first = len(rows) if every else MOST_CATEGORIES
    yield ""
    yield filled(table._replace(rows=tuple(rows[:first])))
    if len(rows) > first:
        yield f"... and {len(rows) - first:,} more categories; to see them: --all"


def _not_shown(status: Status, arms: Sequence[ArmStatus], chosen: bool) -> Iterator[str]:
    if len(arms) == len(status.arms):
        return
    yield ""
    if chosen:
        yield f"{len(arms):,} of {len(status.arms):,} options; to see all: --all"
    else:
        ways = "--search TEXT or --all" if status.categories is None else "--category NAME, --search TEXT or --all"
        yield f"{status.about(arms)} To see others: {ways}"


def _compared(status: Status, arms: Sequence[ArmStatus]) -> Iterator[str | Table]:
    if status.control is not None:
        from spectralbai.report.tables import comparisons_of

        yield ""
        yield f'against "{status.control}": {status.compared}'
        yield ""
        yield filled(comparisons_of(status, arms))


def _pending(status: Status) -> Iterator[str | Table]:
    if status.pending:
        on = () if status.items is None else ("item",)
        table = study_table("pending ticket", "option", *on, "worker", "expires")
        for ticket in status.pending[:20]:
            each = ticket.as_dict()
            table.add_row(each["ticket"], each["label"], *(each[name] for name in on), each["worker"], each["expires"])
        yield ""
        yield table
        if len(status.pending) > 20:
            yield f"... and {len(status.pending) - 20:,} more"
