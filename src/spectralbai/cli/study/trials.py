"""Trials of a study: what to try next, and what came out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from spectralbai.cli.extensions import Import
from spectralbai.cli.files import read_stdin, read_table
from spectralbai.cli.process import held_back
from spectralbai.cli.study.common import Json, Name, StorageUrl, answer, filled, open_study, tell_counts
from spectralbai.cli.tables import as_json_text, print_json, print_plain
from spectralbai.cli.work import progress
from spectralbai.errors import InvalidInput, about
from spectralbai.text.wording import in_words

if TYPE_CHECKING:
    from spectralbai.journal.entries import Failure


def ask(
    name: Name,
    n: Annotated[int, Option("--n", "-n", help="How many trials.", metavar="N")] = 1,
    worker: Annotated[str, Option(help="Who will do them.", metavar="NAME")] = "",
    lease: Annotated[
        float, Option(help="Seconds until a ticket no longer counts as pending.", metavar="SECONDS")
    ] = 3600.0,
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Says what to try next.

    Prints a line per trial: its ticket, then its label and, where options are tried on items, a tab and the item.
    Prints nothing, with exit code 0, once the study has decided.
    """
    with open_study(name, storage) as study, held_back() as hold:
        with progress("choosing trials"):
            tickets = study.ask(n, worker, lease, on_give=hold)  # Ctrl-C must wait until the tickets are printed
        if not tickets:
            typer.echo(study.status().answer, err=True)
        if as_json:
            lines = [as_json_text([ticket.as_dict() for ticket in tickets])]
        else:
            lines = [
                f"{ticket.id} {ticket.label}" + ("\n" if ticket.item is None else f"\t{ticket.item}\n")
                for ticket in tickets
            ]
        written = 0
        try:
            for line in lines:
                typer.echo(line, nl=False)  # one by one, to know which lines were written if the pipe is closed
                written += 1
        except BaseException:
            if tickets:
                study.abandon(*tickets[written:])
            raise


def tell(
    name: Name,
    ticket: Annotated[
        str | None, Argument(help='As ask gave it; "-" reads lines of ticket and outcome.', metavar="TICKET")
    ] = None,
    outcome: Annotated[str | None, Argument(help="What came out: a number.", metavar="OUTCOME")] = None,
    counts: Annotated[
        str | None,
        Option(
            help='CSV of label, trials and successes, such as a day\'s traffic, instead of a ticket; "-" reads '
            "standard input.",
            metavar="FILE",
        ),
    ] = None,
    id_: Annotated[str | None, Option("--id", help="Name of the counts, such as the day.", metavar="TEXT")] = None,
    past: Annotated[bool, Option("--past", help="These counts are older than the study: they only inform.")] = False,
    failed: Annotated[
        str | None, Option(help="The trial failed: say why, instead of an outcome.", metavar="REASON")
    ] = None,
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Records outcomes. Telling the same again does no harm: do so whenever in doubt.

    A ticket without an outcome is a failed trial: it is handed out again, or counts as the study's --failed-as.
    """
    if counts is not None:
        if ticket is not None:
            raise InvalidInput(f'--counts replaces the ticket and the outcome, got "{ticket}" too; leave it out')
        if id_ is None:
            raise InvalidInput("--id is needed: a unique name for these counts, such as --id 2026-05-17")
        from spectralbai.inputs.table import counts_from

        with open_study(name, storage) as study:
            with read_table(counts) as table:
                rows = counts_from(table, study.definition.instance.labels)
            tell_counts(study, rows, id_, past, as_json)
        return
    if id_ is not None or past:
        raise InvalidInput("--id and --past go with --counts; a ticket needs neither")
    if ticket is None:
        raise InvalidInput("a ticket and its outcome are needed, or --counts FILE --id NAME")
    results = _told(ticket, outcome, failed)
    with open_study(name, storage) as study, progress("processing results"):
        new = study.tell_many(results)
    known = len(results) - new
    words = f"recorded {in_words(new, 'result')}" + (f"; {known} known already" if known else "")
    answer(as_json, {"recorded": new, "known": known}, words)


def _told(ticket: str, outcome: str | None, failed: str | None) -> list[tuple[str, float | Failure | None]]:
    """Returns the outcome of the ticket, or those that standard input has."""
    from spectralbai.journal.entries import Failure

    if ticket == "-":
        if failed is not None:
            raise InvalidInput("--failed goes with one ticket; in standard input a ticket without an outcome failed")
        return list(_lines(read_stdin(), outcome))
    if outcome is not None and failed is not None:
        raise InvalidInput(f'a failed trial has no outcome, got "{outcome}"; leave it out, or leave out --failed')
    return [(ticket, Failure(failed or "no outcome") if outcome is None else _number(outcome))]


def shares(
    name: Name,
    n: Annotated[int | None, Option("--n", "-n", help="Visitors to split into whole numbers.", metavar="N")] = None,
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Says how to split the next traffic. Tell the results with tell --counts."""
    from spectralbai.checks import check_integer

    if n is not None:
        check_integer("--n", n, 1)
    with open_study(name, storage) as study:
        split = study.shares()
        running = study.status()
    if running.state != "running":
        typer.echo(running.answer, err=True)
    whole = [] if n is None else _whole(list(split.values()), n)
    if as_json:
        rows = [{"label": label, "share": share} for label, share in split.items()]
        print_json([{**row, "n": count} for row, count in zip(rows, whole, strict=True)] if whole else rows)
        return
    from spectralbai.report.tables import TextTable

    columns = [[*split], [f"{share:.1%}" for share in split.values()], [f"{count:,}" for count in whole]]
    shown = columns if whole else columns[:2]
    print_plain(filled(TextTable(("option", "share", "visitors")[: len(shown)], tuple(zip(*shown, strict=True)))))


def _whole(split: list[float], n: int) -> list[int]:
    """Returns n split into whole numbers by these shares: rounded down, and one more for the largest remainders."""
    whole = [int(share * n) for share in split]
    by_remainder = sorted(range(len(split)), key=lambda arm: whole[arm] - split[arm] * n)
    for arm in by_remainder[: n - sum(whole)]:
        whole[arm] += 1
    return whole


def abandon(
    name: Name,
    ticket: Annotated[str, Argument(help="As ask gave it.", metavar="TICKET")],
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Gives back a ticket whose trial will not be done."""
    with open_study(name, storage) as study:
        study.abandon(ticket)
    answer(as_json, {"abandoned": ticket}, "given back")


def _number(cell: str) -> float:
    try:
        return float(cell.replace("_", "?"))
    except ValueError:
        raise InvalidInput(f'the outcome must be a number, got "{cell}"; decimals have a point') from None


def _lines(content: bytes, extra: str | None) -> Iterator[tuple[str, float | Failure | None]]:
    """Yields (ticket, outcome) of each line of standard input; the last line must end with a line break."""
    if extra is not None:
        raise InvalidInput('"-" reads tickets and outcomes from standard input; leave the outcome out')
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("standard input is not UTF-8 text") from None
    if text and not text.endswith("\n"):
        raise InvalidInput("standard input ends within a line: was it cut short? Nothing was recorded; end every line")
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split()
        if not cells:
            continue
        if len(cells) > 2:
            raise InvalidInput(
                f'standard input, line {number}: a ticket and an outcome are needed, got "{line.strip()}"'
            )
        with about(f"standard input, line {number}"):
            outcome = None if len(cells) == 1 else _number(cells[1])
        yield cells[0], outcome
