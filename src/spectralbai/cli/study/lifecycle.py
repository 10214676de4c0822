"""The life of a study: created, options taken out and added, stopped, deleted."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from spectralbai.checks import check_amount
from spectralbai.cli.extensions import Import
from spectralbai.cli.files import InstanceFile, read_instance, read_names, read_table
from spectralbai.cli.study.common import Json, Name, StorageUrl, answer, open_study, read_time
from spectralbai.cli.work import progress
from spectralbai.errors import InvalidInput
from spectralbai.text.wording import in_words

if TYPE_CHECKING:
    from spectralbai.instance import Instance


def create(
    name: Name,
    file: InstanceFile,
    delta: Annotated[float, Option(help="Risk of a wrong answer.")] = 0.05,
    goal: Annotated[str, Option(help="max or min: which mean outcome is best.")] = "max",
    budget: Annotated[
        int | None, Option(help="Trials after which the study ends, decided or not.", metavar="N")
    ] = None,
    until: Annotated[
        str | None,
        Option(help="When it ends: 2026-05-31, the end of that day, or 2026-05-31T18:00; UTC.", metavar="DATE"),
    ] = None,
    failed_as: Annotated[
        float | None,
        Option(help="Outcome that a failed trial counts as; if not given, it is handed out again.", metavar="VALUE"),
    ] = None,
    items: Annotated[
        Path | None,
        Option(
            help="What options are tried on, such as questions: a name a line, or a CSV with a column item. The answer "
            "is about these items, in any order.",
            metavar="FILE",
        ),
    ] = None,
    fresh: Annotated[
        bool, Option("--fresh", help="The items are a random sample: the answer is about all that are like them.")
    ] = False,
    control: Annotated[
        str | None,
        Option(
            help="The option that the others are compared with, such as the page of now: it keeps getting trials.",
            metavar="LABEL",
        ),
    ] = None,
    control_share: Annotated[
        str | None,
        Option(
            help="Least part of the trials for --control, such as 0.1 or 10%; if not given, what the comparison needs.",
            metavar="SHARE",
        ),
    ] = None,
    lapse_as: Annotated[
        float | None,
        Option(help="What a ticket counts as that is not told within --window, such as 0.", metavar="VALUE"),
    ] = None,
    window: Annotated[
        str | None, Option(help="After how long a ticket lapses: 30m, 12h, 3d, or seconds.", metavar="TIME")
    ] = None,
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Creates a study of the options in an instance file."""
    end = None if until is None else read_time(until)
    if fresh and items is None:
        raise InvalidInput("--fresh is about the items of --items; give the file that holds the sample")
    instance, names = read_instance(file), None
    if items is not None:
        instance, names = _on_items(instance, read_names(items), fresh)
    from spectralbai.study import Study

    limits: dict[str, Any] = {"budget": budget, "until": end, "failed_as": failed_as, "items": names}
    limits |= {"control": control, "control_share": check_amount("--control-share", control_share, (0.0, 1.0))}
    limits |= {"lapse_as": lapse_as, "window": None if window is None else _seconds(window)}
    made = Study.create(name, instance, delta, storage, goal, **limits)  # type: ignore[arg-type]  # checked inside
    with made as study:
        document, problem = {"name": name, **study.definition.as_dict()}, study.definition.instance.problem
    words = f'The study "{name}" is ready; next: spectralbai study ask {shlex.quote(name)}'
    if problem.noise.shares(problem.sigma) is not None and problem.items is None:
        words += f" or, for a day's counts, spectralbai study shares {shlex.quote(name)}"
    answer(as_json, document, words + ("" if storage is None else ", same --storage"))
    if problem.tolerance:
        typer.echo(problem.described_tolerance(), err=True)


def withdraw(
    name: Name,
    label: Annotated[str, Argument(help="The option to take out.", metavar="LABEL")],
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Takes an option out of a study.

    Do so if it is out of stock or unsafe, for example. It is never tried again and never the answer; if it was the
    answer, the study goes on. The risk of all answers together is then at most 2 delta, also if the option is withdrawn
    because of what the study says, but not because of single results of blocks that are not complete.
    """
    with open_study(name, storage) as study, progress("processing results"):
        new = study.withdraw(label)
        words = study.status().answer
    answer(as_json, {"withdrawn": label, "new": new}, f'withdrawn: "{label}"' if new else f'"{label}" was out already')
    typer.echo(words, err=True)


def void(
    name: Name,
    ticket: Annotated[str | None, Argument(help="The ticket whose result is wrong.", metavar="TICKET")] = None,
    id_: Annotated[
        str | None,
        Option("--id", help="Instead: the counts or past results of this name, such as a day.", metavar="TEXT"),
    ] = None,
    reason: Annotated[str, Option(help="Why, for the log.", metavar="TEXT")] = "",
    yes: Annotated[bool, Option("--yes", help="Do not ask.")] = False,
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Takes wrong results out of a study.

    The study is computed again without them; what that changes is said before. The log keeps them. The risk stays what
    it is if results are taken out without regard to how options compare.
    """
    with open_study(name, storage) as study:
        with progress("computing without them"):
            words = study.void(id_, ticket=ticket, reason=reason, only_say=True)
        _agree(words, yes)
        with progress("taking them out"):
            words = study.void(id_, ticket=ticket, reason=reason)
        answer(as_json, {"changes": words}, words)


def correct(
    name: Name,
    first: Annotated[
        str, Argument(help="The ticket, or with --id the CSV of its right counts.", metavar="TICKET|FILE")
    ],
    outcome: Annotated[float | None, Argument(help="The right outcome of the ticket.", metavar="OUTCOME")] = None,
    id_: Annotated[
        str | None, Option("--id", help="Correct the counts of this name, such as a day.", metavar="TEXT")
    ] = None,
    reason: Annotated[str, Option(help="Why, for the log.", metavar="TEXT")] = "",
    yes: Annotated[bool, Option("--yes", help="Do not ask.")] = False,
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Corrects the outcome of a ticket, or the counts of a day.

    What that changes is said before, as by void; the log keeps what was told. Right counts are told anew, under the
    same name.
    """
    from functools import partial

    from spectralbai.inputs.table import counts_from

    if (id_ is None) == (outcome is None):
        raise InvalidInput("give a ticket and its right outcome, or --id NAME and a file with the right counts")
    with open_study(name, storage) as study:
        if id_ is None:
            make = partial(study.correct, first, float(outcome or 0.0), reason=reason)
        else:
            with read_table(first) as table:
                rows = counts_from(table, study.definition.instance.labels)
            make = partial(study.correct_counts, rows, id_, reason=reason)
        with progress("computing what changes"):
            words = make(only_say=True)
        _agree(words, yes)
        with progress("correcting"):
            words = make()
        answer(as_json, {"changes": words}, words)


def _agree(words: str, yes: bool) -> None:
    """Says what a correction changes, and asks whether to make it, unless it is agreed to already."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(f"{words} Nothing was changed; repeat with --yes to do it")
    typer.echo(words, err=True)
    typer.confirm("Do it?", abort=True, err=True)


def join(
    name: Name,
    file: Annotated[
        str,
        Argument(
            help='Instance as JSON of all options, the present ones first; "-" reads standard input.', metavar="FILE"
        ),
    ],
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Adds options to a study.

    The race goes on, even if the study had decided; options that are out stay out. Noise and tolerance must be the
    same; graph and R may differ. Each answer is wrong with probability at most delta, if options do not join because of
    outcomes.
    """
    instance = read_instance(file)
    with open_study(name, storage) as study, progress("processing results"):
        changes = study.join(instance)
        seen = study.status()
    joined = instance.labels[len(study.definition.history[-2].instance.labels) :]
    answer(as_json, {"joined": joined, "changes": changes, "results": seen.results}, changes)
    typer.echo(seen.answer, err=True)


def stop(name: Name, storage: StorageUrl = None, as_json: Json = False, modules: Import = None) -> None:
    """Ends a running study by hand, decided or not.

    No trials are handed out any more; results of those that are out are still accepted. What it says then holds as it
    would at any other time, for whatever reason it was stopped.
    """
    with open_study(name, storage) as study, progress("processing results"):
        new = study.stop()
        seen = study.status()
    words = f'stopped: "{name}"' if new else f'"{name}" was not running'
    answer(as_json, {"stopped": name, "new": new, "state": seen.state}, words)
    typer.echo(seen.answer, err=True)


def delete(
    name: Name,
    yes: Annotated[bool, Option("--yes", help="Delete without asking.")] = False,
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Deletes a study with all its tickets and results. It cannot be restored, except from an export."""
    from spectralbai.study import Studies

    with Studies(storage, create=False) as studies:  # not opened: it may be damaged
        results = next((each.results for each in studies.marks() if each.name == name), None)
        if results is None:
            studies.open(name)  # raises NotFound, with a similar name
            results = 0
        if not yes:
            _confirm(name, in_words(results, "result"))
        studies.delete(name)
    words = f'The study "{name}" is deleted, with {in_words(results, "result")}'
    answer(as_json, {"deleted": name, "results": results}, words)


def upgrade(
    storage: StorageUrl = None,
    backed_up: Annotated[bool, Option("--backed-up", help="There is a backup of the PostgreSQL database.")] = False,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Converts a storage that an earlier version wrote. Stop all workers and services first.

    A file is copied before it is converted. Make a backup of a PostgreSQL database yourself.
    """
    from spectralbai.study.schema import version
    from spectralbai.study.storage import Storage

    before, backup = Storage.upgrade(storage, backed_up=backed_up)
    words = f"converted from version {before} to {version()}" if before < version() else "nothing to convert"
    words += "" if backup is None else f"; the file as it was is {backup}"
    answer(as_json, {"before": before, "now": version(), "backup": backup}, words)


def _seconds(text: str) -> float:
    """Returns the seconds of a time such as 90, 30m, 12h or 3d."""
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}.get(text[-1:])
    try:
        return float(text if unit is None else text[:-1]) * (unit or 1.0)
    except ValueError:
        raise InvalidInput(f'--window must be a time such as 30m, 12h or 3d, got "{text}"') from None


def _on_items(instance: Instance, names: tuple[str, ...], fresh: bool) -> tuple[Instance, tuple[str, ...]]:
    """Returns the instance whose options are tried on the items with these names, and the names."""
    from dataclasses import replace

    from spectralbai.items import Items

    given = Items.fresh(len(names)) if fresh else Items.listed(len(names))
    if instance.problem.items not in (None, given):
        raise InvalidInput(
            f"the instance is about {instance.problem.items.described()}, and --items about {given.described()}; "
            "leave out one"
        )
    return replace(instance, problem=replace(instance.problem, items=given)), names


def _confirm(name: str, results: str) -> None:
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidInput(
            f'to delete the study "{name}", with {results}, somebody has to confirm it at a terminal; or add --yes'
        )
    typer.echo(f'The study "{name}" has {results}. Type its name, or y, to delete it for good: ', nl=False, err=True)
    typed = sys.stdin.readline().strip()
    if typed not in (name, "y"):
        raise InvalidInput(f'nothing was deleted: the answer was "{typed}", neither "{name}" nor y')
