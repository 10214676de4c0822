"""A study as a file: its report, exports and imports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from spectralbai.cli.extensions import Import
from spectralbai.cli.files import read_json, read_table
from spectralbai.cli.outputs import EXPORT, PAGE, REPORT, TABLE, Force, Output
from spectralbai.cli.study.common import Control, Json, Name, StorageUrl, answer, open_study, tell_counts
from spectralbai.cli.tables import as_json_text, print_json
from spectralbai.cli.work import progress
from spectralbai.errors import InvalidInput
from spectralbai.text.wording import in_words

if TYPE_CHECKING:
    from spectralbai.study import Study

OUT = Path("report.html")


def report(
    name: Name,
    out: Annotated[Path, Option(help="The page to write; the same as JSON goes beside it.", metavar="FILE")] = OUT,
    control: Control = None,
    storage: StorageUrl = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON, and write no file.")] = False,
    force: Force = False,
    modules: Import = None,
) -> None:
    """Writes the report of a study: a page with pictures, and JSON.

    The page is one HTML file, to attach to a decision.
    """
    beside = out.with_suffix(".json") if out.name else out
    if not as_json and beside == out:
        raise InvalidInput(
            f'--out must name a page, such as report.html, got "{out}"; the same as JSON gets the ending .json'
        )
    page = None if as_json else Output("--out", out, PAGE, force)
    document = None if page is None or page.is_stream else Output("--out", beside, REPORT, force)
    with open_study(name, storage) as study, progress("making the report"):
        made = study.report(control)
        content = b"" if page is None else made.as_html().encode()
    if page is None:
        print_json(made.as_dict())
        return
    if document is not None:
        document.write(as_json_text(made.as_dict()).encode())
    page.write(content)
    if document is not None:
        typer.echo(f"The report is in {out}, for programs in {beside}")


def export(
    name: Name,
    out: Annotated[
        Path | None,
        Option(
            help="All of the study as JSON, or its results if the name ends in .csv; stdout if not given.",
            metavar="FILE",
        ),
    ] = None,
    table: Annotated[
        bool,
        Option(
            "--table",
            help="The outcomes of options on items, as CSV: a row for each option, a column for each item begun.",
        ),
    ] = False,
    readable: Annotated[bool, Option("--readable", help="Of a damaged study, as much as can be read.")] = False,
    storage: StorageUrl = None,
    force: Force = False,
    modules: Import = None,
) -> None:
    """Writes a study to a file. To move it to another storage, to keep it, or to look at its results."""
    from spectralbai.study import Studies, export_study, results_as_csv, table_as_csv

    if readable:
        if table or (out is not None and out.suffix == ".csv"):
            raise InvalidInput("--readable is for a study as JSON; import it under another name to get tables")
        with Studies(storage, create=False) as studies:
            part = studies.export_readable(name)
        if out is None:
            typer.echo(as_json_text(part, indent=None), nl=False)
        else:
            Output("--out", out, EXPORT, force).write(as_json_text(part, indent=None).encode())
            typer.echo(f'{in_words(len(part["events"]), "event")} of the study "{name}" can be read; they are in {out}')
        return
    as_csv = table or (out is not None and out.suffix == ".csv")
    file = None if out is None else Output("--out", out, TABLE if as_csv else EXPORT, force)
    words = f'The study "{name}" is in {out}'
    with open_study(name, storage) as study, progress("reading the study"):
        if table:
            outcomes = study.table()
            content, words = table_as_csv(outcomes), f"The table is in {out}: {outcomes.described()}"
        else:
            content = results_as_csv(study) if as_csv else as_json_text(export_study(study), indent=None)
    if file is None:
        typer.echo(content, nl=False)
        return
    file.write(content.encode())
    typer.echo(words, err=file.is_stream)


def import_(
    name: Name,
    file: Annotated[Path, Argument(help="A study exported as JSON; or a CSV of label and outcome.", metavar="FILE")],
    origin: Annotated[str | None, Option(help="Where the results of a CSV come from.", metavar="TEXT")] = None,
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Reads an exported study, or past results. A JSON file becomes the study NAME; the results in a CSV file are added
    to it.

    Where options are tried on items, the CSV has columns option, item and outcome, or a row for each option and a
    column for each item: pairs that are known are not handed out. Give all past results of an origin, not only those
    that look good. Importing the same file again does no harm.
    """
    if file.suffix == ".csv":
        _import_results(name, file, origin, storage, as_json)
        return
    if origin is not None:
        raise InvalidInput("--origin is for past results in a CSV file; an exported study has its own")
    document = read_json(file)
    from spectralbai.study import import_study

    with progress("processing results") as show, import_study(document, name, storage, show) as study:
        results = study.status().results
    words = f'The study "{name}" is restored, with {in_words(results, "result")}'
    answer(as_json, {"name": name, "results": results}, words)


def _import_results(name: str, file: Path, origin: str | None, storage: str | None, as_json: bool) -> None:
    if origin is None:
        raise InvalidInput('--origin is needed: where the results come from, such as --origin "pilot of May"')
    from spectralbai.inputs.table import counts_from, has_counts, observations_from

    with open_study(name, storage) as study:
        if study.definition.has_items:
            _import_known(study, file, origin, as_json)
            return
        instance = study.definition.instance
        with read_table(file) as table:
            counts = counts_from(table, instance.labels) if has_counts(table) else None
            if counts is None:
                arms, outcomes = observations_from(table, instance.labels, instance.problem.noise)
        if counts is not None:
            tell_counts(study, counts, origin, True, as_json)
            return
        tickets, origins = (
            sorted({*table.column(name)} - {""}) if name in table.columns else [] for name in ("ticket", "origin")
        )
        labels = [instance.labels[arm] for arm in arms]
        with progress("processing results") as show:
            new = study.add(labels, outcomes.tolist(), origin, show, tickets=tickets, origins=origins)
    words = f"recorded {in_words(new, 'result')}" if new else "all of these results are known already"
    answer(as_json, {"recorded": new, "known": len(arms) - new}, words)


def _import_known(study: Study, file: Path, origin: str, as_json: bool) -> None:
    """Adds the outcomes of pairs of an option and an item, which are then known without a trial."""
    import numpy as np

    from spectralbai.inputs.outcomes import outcomes_from

    with read_table(file) as table:
        # A table of results that `export` wrote calls options labels.
        label = "label" if "label" in table.columns and "option" not in table.columns else None
        known = outcomes_from(table, label)
        pairs = np.argwhere(~np.isnan(known.outcomes)).tolist()
        if not pairs:
            raise InvalidInput("no pair has an outcome; fill in those that are known")
        labels, items = [known.options[a] for a, _ in pairs], [known.items[j] for _, j in pairs]
        new = study.add_known(labels, items, [float(known.outcomes[a, j]) for a, j in pairs], origin)
    words = f"{in_words(new, 'pair')} will not be tried" if new else "all of these pairs are known already"
    if len(pairs) < known.outcomes.size:
        words += f"; {known.lacking}"
    answer(as_json, {"recorded": new, "known": len(pairs) - new}, words)
