"""`spectralbai study`: live studies from a shell.

stdout gets what a script needs, stderr what a person may want to know.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectralbai.cli.files import read_instance, read_json, read_stdin, read_table
from spectralbai.cli.outputs import EXPORT, PAGE, REPORT, TABLE, Force, Output
from spectralbai.cli.process import held_back
from spectralbai.cli.tables import MOST_FITTED, as_text, empty_table, print_plain
from spectralbai.cli.work import progress
from spectralbai.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from spectralbai.journal.entries import Failure
    from spectralbai.report import ArmStatus
    from spectralbai.report.tables import TextTable
    from spectralbai.study import Status, Study

app = typer.Typer(no_args_is_help=True, help="Live studies. Ask what to try, tell the outcomes, until it says stop.")

MOST_CATEGORIES = 30
"""Most categories that a status shows without --all."""

Name = Annotated[str, typer.Argument(help="Name of the study.", metavar="NAME")]
StorageUrl = Annotated[
    str | None,
    typer.Option(
        "--storage",
        envvar="SPECTRALBAI_STORAGE",
        show_envvar=False,
        help=(
            "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE; if not given, $SPECTRALBAI_STORAGE, or "
            "spectralbai.db here."
        ),
        metavar="URL",
    ),
]
Control = Annotated[
    str | None,
    typer.Option(help="Compare every arm with this one: difference and lift, with limits.", metavar="LABEL"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def create(
    name: Name,
    file: Annotated[str, typer.Argument(help='Instance as JSON; "-" reads standard input.', metavar="FILE")],
    delta: Annotated[float, typer.Option(help="Risk of a wrong answer.")] = 0.05,
    goal: Annotated[str, typer.Option(help="max or min: which mean outcome is best.")] = "max",
    stopping: Annotated[
        str, typer.Option(help="Stopping rule: betting races to the answer; the others sample as SpectralTaS does.")
    ] = "betting",
    budget: Annotated[
        int | None, typer.Option(help="Trials after which the study ends, decided or not.", metavar="N")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(help="When it ends: 2026-05-31, the end of that day, or 2026-05-31T18:00; UTC.", metavar="DATE"),
    ] = None,
    failed_as: Annotated[
        float | None,
        typer.Option(
            help="Outcome that a failed trial counts as; if not given, it is handed out again.", metavar="VALUE"
        ),
    ] = None,
    storage: StorageUrl = None,
    as_json: Json = False,
) -> None:
    """Creates a study of the options in an instance file."""
    end = None if until is None else _time(until)
    instance = read_instance(file)
    from spectralbai.study import Study

    made = Study.create(name, instance, delta, storage, goal, stopping, budget, end, failed_as)  # type: ignore[arg-type]  # checked inside
    with made as study:
        _answer(
            as_json,
            {"name": name, **study.definition.as_dict()},
            f'The study "{name}" is ready; next: spectralbai study ask {shlex.quote(name)}'
            + ("" if storage is None else ", same --storage"),
        )


@app.command()
def ask(
    name: Name,
    n: Annotated[int, typer.Option("--n", "-n", help="How many trials.", metavar="N")] = 1,
    worker: Annotated[str, typer.Option(help="Who will do them.", metavar="NAME")] = "",
    lease: Annotated[
        float, typer.Option(help="Seconds until a ticket no longer counts as pending.", metavar="SECONDS")
    ] = 3600.0,
    storage: StorageUrl = None,
    as_json: Json = False,
) -> None:
    """Says what to try next.

    Prints a line per trial: its ticket, then its label. Prints nothing, with exit code 0, once the study has decided.
    """
    with _open(name, storage) as study, held_back() as hold:
        with progress("choosing trials"):
            tickets = study.ask(n, worker, lease, on_give=hold)  # Ctrl-C must wait until the tickets are printed
        if not tickets:
            typer.echo(study.status().answer, err=True)
        if as_json:
            lines = [_as_json([ticket.as_dict() for ticket in tickets])]
        else:
            lines = [f"{ticket.id} {ticket.label}\n" for ticket in tickets]
        written = 0
        try:
            for line in lines:
                typer.echo(line, nl=False)  # one by one, to know which lines were written if the pipe is closed
                written += 1
        except BaseException:
            if tickets:
                study.abandon(*tickets[written:])
            raise


@app.command(context_settings={"ignore_unknown_options": True})  # so that a negative outcome is not taken for an option
def tell(
    name: Name,
    ticket: Annotated[
        str | None, typer.Argument(help='As ask gave it; "-" reads lines of ticket and outcome.', metavar="TICKET")
    ] = None,
    outcome: Annotated[str | None, typer.Argument(help="What came out: a number.", metavar="OUTCOME")] = None,
    counts: Annotated[
        str | None,
        typer.Option(
            help='CSV of label, trials and successes, such as a day\'s traffic, instead of a ticket; "-" reads '
            "standard input.",
            metavar="FILE",
        ),
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", help="Name of the counts, such as the day.", metavar="TEXT")
    ] = None,
    past: Annotated[
        bool, typer.Option("--past", help="These counts are older than the study: they only inform.")
    ] = False,
    failed: Annotated[
        str | None, typer.Option(help="The trial failed: say why, instead of an outcome.", metavar="REASON")
    ] = None,
    storage: StorageUrl = None,
    as_json: Json = False,
) -> None:
    """Records outcomes. Telling the same again does no harm: do so whenever in doubt.

    A ticket without an outcome is a failed trial: it is handed out again, or counts as the study's --failed-as.
    """
    if counts is not None:
        if ticket is not None:
            raise InvalidInput(f'--counts replaces the ticket and the outcome, got "{ticket}" too; leave it out')
        if id_ is None:
            raise InvalidInput("--id is needed: a unique name for these counts, such as --id 2026-05-17")
        _tell_counts(name, counts, id_, past, storage, as_json)
        return
    if id_ is not None or past:
        raise InvalidInput("--id and --past go with --counts; a ticket needs neither")
    if ticket is None:
        raise InvalidInput("a ticket and its outcome are needed, or --counts FILE --id NAME")
    from spectralbai.journal.entries import Failure

    results: list[tuple[str, float | Failure | None]]
    if ticket == "-":
        if failed is not None:
            raise InvalidInput("--failed goes with one ticket; in standard input a ticket without an outcome failed")
        results = list(_lines(read_stdin(), outcome))
    elif outcome is not None and failed is not None:
        raise InvalidInput(f'a failed trial has no outcome, got "{outcome}"; leave it out, or leave out --failed')
    else:
        results = [(ticket, Failure(failed or "no outcome") if outcome is None else _number(outcome))]
    with _open(name, storage) as study, progress("weighing results"):
        new = study.tell_many(results)
    from spectralbai.wording import in_words

    known = len(results) - new
    words = f"recorded {in_words(new, 'result')}" + (f"; {known} known already" if known else "")
    _answer(as_json, {"recorded": new, "known": known}, words)


def _tell_counts(name: str, file: str, id_: str, past: bool, storage: str | None, as_json: bool) -> None:
    from spectralbai.inputs.table import counts_from
    from spectralbai.wording import in_words

    with _open(name, storage) as study:
        with read_table(file) as table:
            rows = counts_from(table, study.definition.instance.labels)
        new = study.tell_counts(rows, id_, past)
    total = sum(trials for _, trials, _ in rows)
    words = f"recorded {in_words(new, 'trial')}" if new else f'the counts of "{id_}" are known already'
    _answer(as_json, {"recorded": new, "known": total - new}, words)


@app.command()
def shares(
    name: Name,
    n: Annotated[
        int | None, typer.Option("--n", "-n", help="Visitors to split into whole numbers.", metavar="N")
    ] = None,
    storage: StorageUrl = None,
    as_json: Json = False,
) -> None:
    """Says how to split the next traffic. Tell the results with tell --counts."""
    from spectralbai.checks import check_integer

    if n is not None:
        check_integer("--n", n, 1)
    with _open(name, storage) as study:
        split = study.shares()
        running = study.status()
    whole = None if n is None else _whole(list(split.values()), n)
    if running.state != "running":
        typer.echo(running.answer, err=True)
    if as_json:
        counts = [{}] * len(split) if whole is None else [{"n": count} for count in whole]
        rows = zip(split.items(), counts, strict=True)
        _print_json([{"label": label, "share": share, **count} for (label, share), count in rows])
        return
    from spectralbai.report.tables import TextTable

    lines = [
        (label, f"{share:.1%}", *(() if whole is None else (f"{whole[position]:,}",)))
        for position, (label, share) in enumerate(split.items())
    ]
    print_plain(_filled(TextTable(("arm", "share", *(() if whole is None else ("visitors",))), tuple(lines))))


def _whole(split: list[float], n: int) -> list[int]:
    """Returns n split into whole numbers by these shares: rounded down, and one more for the largest remainders."""
    whole = [int(share * n) for share in split]
    by_remainder = sorted(range(len(split)), key=lambda arm: whole[arm] - split[arm] * n)
    for arm in by_remainder[: n - sum(whole)]:
        whole[arm] += 1
    return whole


@app.command()
def abandon(
    name: Name,
    ticket: Annotated[str, typer.Argument(help="As ask gave it.", metavar="TICKET")],
    storage: StorageUrl = None,
    as_json: Json = False,
) -> None:
    """Gives back a ticket whose trial will not be done."""
    with _open(name, storage) as study:
        study.abandon(ticket)
    _answer(as_json, {"abandoned": ticket}, "given back")


@app.command()
def withdraw(
    name: Name,
    label: Annotated[str, typer.Argument(help="The option to take out.", metavar="LABEL")],
    storage: StorageUrl = None,
    as_json: Json = False,
) -> None:
    """Takes an option out of a study, for example because it is out of stock or unsafe.

    It is never tried again and never the answer; if it was the answer, the study goes on. The risk of all answers
    together is then at most 2 delta, if options are not withdrawn because of their outcomes.
    """
    with _open(name, storage) as study, progress("weighing results"):
        new = study.withdraw(label)
        words = study.status().answer
    _answer(as_json, {"withdrawn": label, "new": new}, f'withdrawn: "{label}"' if new else f'"{label}" was out already')
    typer.echo(words, err=True)


@app.command()
def join(
    name: Name,
    file: Annotated[
        str,
        typer.Argument(
            help='Instance as JSON of all options, the present ones first; "-" reads standard input.', metavar="FILE"
        ),
    ],
    storage: StorageUrl = None,
    as_json: Json = False,
) -> None:
    """Adds options to a study.

    The race goes on, even if the study had decided; options that are out stay out. Noise and tolerance must be the
    same; graph and R may differ. Each answer is wrong with probability at most delta, if options do not join because of
    outcomes.
    """
    instance = read_instance(file)
    with _open(name, storage) as study, progress("weighing results"):
        changes = study.join(instance)
        seen = study.status()
    joined = instance.labels[len(study.definition.history[-2].instance.labels) :]
    _answer(as_json, {"joined": joined, "changes": changes, "results": seen.results}, changes)
    typer.echo(seen.answer, err=True)


@app.command()
def stop(name: Name, storage: StorageUrl = None, as_json: Json = False) -> None:
    """Ends a running study by hand, decided or not.

    No trials are handed out any more; results of those that are out are still welcome. What it says then holds as it
    would at any other time, for whatever reason it was stopped.
    """
    with _open(name, storage) as study, progress("weighing results"):
        new = study.stop()
        seen = study.status()
    words = f'stopped: "{name}"' if new else f'"{name}" was not running'
    _answer(as_json, {"stopped": name, "new": new, "state": seen.state}, words)
    typer.echo(seen.answer, err=True)


@app.command()
def status(
    name: Name,
    control: Control = None,
    every: Annotated[bool, typer.Option("--all", help="Show all arms, even if there are more than 100.")] = False,
    category: Annotated[
        str | None, typer.Option(help="Show the arms of this category, all of them.", metavar="NAME")
    ] = None,
    search: Annotated[
        str | None, typer.Option(help="Show the arms with this in their labels, all of them.", metavar="TEXT")
    ] = None,
    storage: StorageUrl = None,
    as_json: Json = False,
) -> None:
    """Shows the status of a study.

    It shows the arms with estimates and intervals, the evidence, pending tickets and a forecast. If there are more than
    100 arms, it shows the categories, if there are any, and the top.
    """
    chosen = category is not None or search is not None
    if every and chosen:
        raise InvalidInput("--all shows all arms; leave it out, or leave out --category and --search")
    with _open(name, storage) as study, progress("weighing results"):
        seen = study.status(control)
    arms = seen.select(category, search) if chosen or every else seen.top
    if as_json:
        # Without categories the JSON has all arms, as in earlier versions.
        _print_json(seen.as_dict(arms if chosen or seen.categories is not None else None))
        return
    from spectralbai.report.tables import arms_of

    parts = (
        *_evidence(seen),
        *(() if search is not None else _categories(seen, category, every)),
        "",
        _filled(arms_of(seen, arms)) if arms else f'no arm has "{search}" in its label',
        *_not_shown(seen, arms, chosen),
        *(_compared(seen, arms) if arms else ()),
        *_pending(seen),
    )
    print_plain(seen.answer, *seen.advice, "", *parts, least_width=100)


@app.command("list")
def list_(storage: StorageUrl = None, as_json: Json = False) -> None:
    """Lists the studies of a storage."""
    from spectralbai.study import list_studies

    found = list_studies(storage)
    if as_json:
        _print_json([asdict(each) for each in found])
        return
    table = _table("study", "arms", "goal", "delta", "results", "state", "best so far", "created")
    for each in found:
        cells = (
            str(each.n_arms),
            each.goal,
            f"{each.delta:g}",
            f"{each.results:,}",
            each.state,
            each.best or "",
            each.created,
        )
        table.add_row(each.name, *cells)
    print_plain(table, least_width=100)


@app.command()
def report(
    name: Name,
    out: Annotated[
        Path, typer.Option(help="The page to write; the same as JSON goes beside it.", metavar="FILE")
    ] = Path("report.html"),
    control: Control = None,
    storage: StorageUrl = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and write no file.")] = False,
    force: Force = False,
) -> None:
    """Writes the report of a study: one HTML page with pictures, to attach to a decision, and JSON."""
    beside = out.with_suffix(".json") if out.name else out
    if not as_json and beside == out:
        raise InvalidInput(
            f'--out must name a page, such as report.html, got "{out}"; the same as JSON gets the ending .json'
        )
    if as_json:
        with _open(name, storage) as study, progress("making the report"):
            made = study.report(control)
        _print_json(made.as_dict())
        return
    page = Output("--out", out, PAGE, force)
    document = None if page.is_stream else Output("--out", beside, REPORT, force)
    with _open(name, storage) as study, progress("making the report"):
        made = study.report(control)
        content = made.as_html().encode()
    if document is not None:
        document.write(_as_json(made.as_dict()).encode())
    page.write(content)
    if document is not None:
        typer.echo(f"The report is in {out}, for programs in {beside}")


@app.command()
def export(
    name: Name,
    out: Annotated[
        Path | None,
        typer.Option(
            help="All of the study as JSON, or its results if the name ends in .csv; stdout if not given.",
            metavar="FILE",
        ),
    ] = None,
    storage: StorageUrl = None,
    force: Force = False,
) -> None:
    """Writes a study to a file. To move it to another storage, to keep it, or to look at its results."""
    from spectralbai.study import export_study, results_as_csv

    as_csv = out is not None and out.suffix == ".csv"
    file = None if out is None else Output("--out", out, TABLE if as_csv else EXPORT, force)
    with _open(name, storage) as study, progress("reading the study"):
        content = results_as_csv(study) if as_csv else _as_json(export_study(study), indent=None)
    if file is None:
        typer.echo(content, nl=False)
        return
    file.write(content.encode())
    typer.echo(f'The study "{name}" is in {out}', err=file.is_stream)


@app.command()
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    storage: StorageUrl = None,
    as_json: Json = False,
) -> None:
    """Deletes a study with all its tickets and results. It cannot be restored, except from an export."""
    from spectralbai.wording import in_words

    with _open(name, storage) as study:
        results = len(study.records().observations)
        if not yes:
            _confirm(name, in_words(results, "result"))
        study.delete()
    words = f'The study "{name}" is deleted, with {in_words(results, "result")}'
    _answer(as_json, {"deleted": name, "results": results}, words)


def _confirm(name: str, results: str) -> None:
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidInput(
            f'to delete the study "{name}", with {results}, somebody has to confirm it at a terminal; or add --yes'
        )
    typer.echo(f'The study "{name}" has {results}. Type its name, or y, to delete it for good: ', nl=False, err=True)
    answer = sys.stdin.readline().strip()
    if answer not in (name, "y"):
        raise InvalidInput(f'nothing was deleted: the answer was "{answer}", neither "{name}" nor y')


@app.command("import")
def import_(
    name: Name,
    file: Annotated[
        Path, typer.Argument(help="A study exported as JSON; or a CSV of label and outcome.", metavar="FILE")
    ],
    origin: Annotated[str | None, typer.Option(help="Where the results of a CSV come from.", metavar="TEXT")] = None,
    storage: StorageUrl = None,
    as_json: Json = False,
) -> None:
    """Reads an exported study, or past results. A JSON file becomes the study NAME; the results in a CSV file are added
    to it.

    Give all past results of an origin, not only those that look good. Importing the same file again does no harm.
    """
    if file.suffix == ".csv":
        _import_results(name, file, origin, storage, as_json)
        return
    if origin is not None:
        raise InvalidInput("--origin is for past results in a CSV file; an exported study has its own")
    document = read_json(file)
    from spectralbai.study import import_study
    from spectralbai.wording import in_words

    with progress("weighing results") as show, import_study(document, name, storage, show) as study:
        results = study.status().results
    _answer(
        as_json,
        {"name": name, "results": results},
        f'The study "{name}" is restored, with {in_words(results, "result")}',
    )


def _import_results(name: str, file: Path, origin: str | None, storage: str | None, as_json: bool) -> None:
    if origin is None:
        raise InvalidInput('--origin is needed: where the results come from, such as --origin "pilot of May"')
    from spectralbai.inputs.table import has_counts, observations_from
    from spectralbai.wording import in_words

    with _open(name, storage) as study:
        instance = study.definition.instance
        with read_table(file) as table:
            if has_counts(table):
                _tell_counts(name, str(file), origin, True, storage, as_json)
                return
            arms, outcomes = observations_from(table, instance.labels, instance.problem.noise)
        tickets, origins = (
            sorted({*table.column(name)} - {""}) if name in table.columns else [] for name in ("ticket", "origin")
        )
        labels = [instance.labels[arm] for arm in arms]
        with progress("weighing results") as show:
            new = study.add(labels, outcomes.tolist(), origin, show, tickets=tickets, origins=origins)
    words = f"recorded {in_words(new, 'result')}" if new else "all of these results are known already"
    _answer(as_json, {"recorded": new, "known": len(arms) - new}, words)


def _open(name: str, storage: str | None) -> Study:
    from spectralbai.study import Study

    return Study.open(name, storage)


def _time(text: str) -> float:
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
        try:
            yield cells[0], None if len(cells) == 1 else _number(cells[1])
        except InvalidInput as error:
            raise InvalidInput(f"standard input, line {number}: {error}") from None


def _evidence(status: Status) -> Iterator[str]:
    proved = "risk proved" if status.proved else "risk NOT proved"
    yield f"goal {status.goal}, delta = {status.delta:g}, rule {status.stopping} ({proved})"
    claimless = status.consistent is False
    yield status.evidence if claimless or status.candidates is not None else f"evidence {status.evidence}"
    yield f"do the data agree with R? {status.agreement}"
    if status.joined:
        yield status.joined
    if status.unweighed:
        yield f"results not yet processed, while a worker computes: {status.unweighed:,}"


def _categories(status: Status, only: str | None, every: bool) -> Iterator[str | Table]:
    if status.categories is None:
        return
    from spectralbai.report.tables import categories_of

    table = categories_of(status)
    rows = [row for row, each in zip(table.rows, status.categories, strict=True) if only is None or each.name == only]
    first = len(rows) if every else MOST_CATEGORIES
    yield ""
    yield _filled(table._replace(rows=tuple(rows[:first])))
    if len(rows) > first:
        yield f"... and {len(rows) - first:,} more categories; to see them: --all"


def _not_shown(status: Status, arms: Sequence[ArmStatus], chosen: bool) -> Iterator[str]:
    if len(arms) == len(status.arms):
        return
    yield ""
    if chosen:
        yield f"{len(arms):,} of {len(status.arms):,} arms; to see all: --all"
    else:
        ways = "--search TEXT or --all" if status.categories is None else "--category NAME, --search TEXT or --all"
        yield f"{status.about(arms)} To see others: {ways}"


def _compared(status: Status, arms: Sequence[ArmStatus]) -> Iterator[str | Table]:
    if status.control is not None:
        from spectralbai.report.tables import comparisons_of

        yield ""
        yield f'against "{status.control}": {status.compared}'
        yield ""
        yield _filled(comparisons_of(status, arms))


def _filled(content: TextTable) -> str | Table:
    """Returns a table of text in the form for the terminal."""
    if len(content.rows) > MOST_FITTED:
        return as_text(content.headings, content.rows)
    table = _table(*content.headings)
    for row in content.rows:
        table.add_row(*row)
    return table


def _pending(status: Status) -> Iterator[str | Table]:
    if status.pending:
        table = _table("pending ticket", "arm", "worker", "expires")
        for ticket in status.pending[:20]:
            each = ticket.as_dict()
            table.add_row(each["ticket"], each["label"], each["worker"], each["expires"])
        yield ""
        yield table
        if len(status.pending) > 20:
            yield f"... and {len(status.pending) - 20:,} more"


def _table(*headings: str) -> Table:
    return empty_table(*headings, left=headings[:1], folded=headings)


def _answer(as_json: bool, document: dict[str, Any], words: str) -> None:
    if as_json:
        _print_json(document)
    else:
        typer.echo(words)


def _print_json(document: Any) -> None:
    typer.echo(_as_json(document), nl=False)


def _as_json(document: Any, indent: int | None = 1) -> str:
    if (
        isinstance(document, dict)
        and len(document.get("arms", document.get("status", {}).get("arms", ()))) > MOST_FITTED
    ):
        indent = None  # without indentation writing is many times faster, and the text a third smaller
    return json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"
