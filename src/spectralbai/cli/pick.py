"""`spectralbai pick`: the best option on some items, by running a command on pairs of the two."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from spectralbai.cli import process
from spectralbai.cli.files import read_table, read_text
from spectralbai.cli.outputs import PAGE, Force, Output
from spectralbai.cli.study.common import Json, StorageUrl, filled
from spectralbai.cli.tables import print_json, print_plain
from spectralbai.cli.work import progress
from spectralbai.errors import InvalidInput

if TYPE_CHECKING:
    from spectralbai.graph import Graph
    from spectralbai.picking import Pick
    from spectralbai.picking import Progress as State
    from spectralbai.picking.entries import Entries, Role
    from spectralbai.tables import Table

OUT = Path("report.html")
UNFINISHED = 3
"""Exit code where nothing is decided."""

_Table = Annotated[
    Path | None,
    Option(
        help="Instead of --run: a CSV of all outcomes, to see what picking would have taken. Columns option, item and "
        "outcome, or a row for each option and a column for each item.",
        metavar="FILE",
    ),
]


def pick(
    options: Annotated[
        Path | None, Argument(help="The options: a label a line, or a CSV with more columns.", metavar="OPTIONS")
    ] = None,
    items: Annotated[
        Path | None,
        Argument(help="What they are tried on: a label a line, or a CSV with more columns.", metavar="ITEMS"),
    ] = None,
    run: Annotated[
        str | None,
        Option(
            help="Tries an option on an item; its last line of output is the outcome. Such as "
            "'./score {option} {item}', where {option.COLUMN} and {item.COLUMN} are "
            "other cells of the files. No shell reads it.",
            metavar="COMMAND",
        ),
    ] = None,
    table: _Table = None,
    low: Annotated[float | None, Option(help="Least possible outcome.")] = None,
    high: Annotated[float | None, Option(help="Largest possible outcome.")] = None,
    tolerance: Annotated[float, Option(help="An option this close to the best is as good.")] = 0.0,
    delta: Annotated[float, Option(help="Risk of a wrong answer.")] = 0.05,
    goal: Annotated[str, Option(help="max or min: which mean outcome is best.")] = "max",
    fresh: Annotated[
        bool, Option("--fresh", help="The items are a random sample: the answer is about all that are like them.")
    ] = False,
    similar: Annotated[
        str | None, Option(help="Columns of OPTIONS that say which options are alike.", metavar="A,B,...")
    ] = None,
    step: Annotated[float | None, Option(help="With --similar: neighbours differ by at most this.")] = None,
    jobs: Annotated[int, Option(help="Runs at once.", metavar="N")] = 1,
    timeout: Annotated[
        float | None, Option(help="Seconds after which a run is killed, and has failed.", metavar="SECONDS")
    ] = None,
    retries: Annotated[int, Option(help="How often a run that failed is repeated.", metavar="N")] = 2,
    failed_as: Annotated[
        float | None,
        Option(
            help="Outcome that a run counts as if it fails each time; if not given, its option is out.", metavar="VALUE"
        ),
    ] = None,
    known: Annotated[
        Path | None, Option(help="CSV of outcomes that are known, which are not run; as --table.", metavar="FILE")
    ] = None,
    budget: Annotated[int | None, Option(help="Trials after which it ends, decided or not.", metavar="N")] = None,
    name: Annotated[
        str | None,
        Option(help='Name of the study; if not given, that of the files: "OPTIONS on ITEMS".', metavar="NAME"),
    ] = None,
    out: Annotated[Path, Option(help="The report to write.", metavar="FILE")] = OUT,
    seed: Annotated[
        int | None, Option(help="Fixes the order of the items: for examples and tests only.", metavar="N")
    ] = None,
    storage: StorageUrl = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Picks the best option, by running a command on some items.

    It runs on pairs of an option and an item, until the answer is certain enough.

    \b
    Examples:
      spectralbai pick prompts.txt questions.txt --run './score {option} {item}' --low 0 --high 1 --tolerance 0.02
      spectralbai pick models.csv cases.csv --run 'python3 run.py -t {option.temperature} {item.file}' --low 0 --high 1
      spectralbai pick --table scores.csv --low 0 --high 1 --tolerance 0.02

    All is kept in a study. After Ctrl-C or a crash, the same command goes on; only what was under way is repeated.
    """
    if low is None or high is None:
        raise InvalidInput(
            "--low and --high are needed, the least and the largest outcome that is possible: they are never guessed, "
            "since the risk relies on them"
        )
    common: dict[str, Any] = dict(low=low, high=high, tolerance=tolerance, delta=delta, goal=goal, fresh=fresh)
    if table is not None:
        _check_replay(run=run, items=items, known=known, budget=budget, failed_as=failed_as, timeout=timeout)
        _replay(table, options, similar, step, common, seed, as_json)
        return
    if options is None or items is None or run is None:
        raise InvalidInput(
            "OPTIONS, ITEMS and --run COMMAND are needed: two files and a command; or --table FILE for outcomes that "
            "are all known"
        )
    from spectralbai.checks import check_integer, check_number, check_words
    from spectralbai.picking.command import Command
    from spectralbai.picking.question import Question
    from spectralbai.picking.template import Template

    jobs, retries = check_integer("--jobs", jobs, 1), check_integer("--retries", retries, 0)
    if timeout is not None:
        check_number("--timeout", timeout, "a positive number of seconds", low=0.0, strict=True)
    study_name = check_words("name", f"{options.stem} on {items.stem}"[:100] if name is None else name, 100)
    page = Output("--out", out, PAGE, force)
    these, those = _entries("option", options), _entries("item", items)
    graph, R, remarks = _similar(options, similar, step, common)
    question = Question(these, those, **common, budget=budget, failed_as=failed_as, graph=graph, R=R)
    _ = question.definition  # raises errors before anything is written
    template = Template.parsed(run, these, those)
    score = Command(template, timeout)
    checksum = template.checksum(these, those)
    named = f"{run} (cells with checksum {checksum})" if checksum else run
    scores, used = ({}, ()) if known is None else _known(known, question)
    _remark((*remarks, *used))
    settings = dict(jobs=jobs, retries=retries)
    _pick(question, study_name, storage, seed, named, score, scores, settings, page, as_json)


def _pick(
    question: Any,
    name: str,
    storage: str | None,
    seed: int | None,
    named: str,
    score: Any,
    scores: dict[tuple[str, str], float],
    settings: dict[str, Any],
    page: Output,
    as_json: bool,
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from spectralbai.picking.carry_out import carry_out

    threads = ThreadPoolExecutor(settings["jobs"])
    try:
        with question.study(name, storage, seed) as study, _live() as show:
            done = carry_out(
                question,
                study,
                named,
                lambda option, item: threads.submit(score, option, item),
                scores,
                **settings,
                on_progress=show,
                on_tick=process.between_steps,
            )
            report = study.report().as_html().encode()
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing is lost; to go on, run the same command again") from None
    finally:
        score.stop()
        threads.shutdown(cancel_futures=True)
    page.write(report)
    _print(done, name, page, as_json)
    if not done.decided:
        raise typer.Exit(UNFINISHED)


def _print(done: Pick, name: str, page: Output, as_json: bool) -> None:
    if as_json:
        print_json(done.as_dict())
        return
    first, *others = done.sentences
    table = filled(done.ranking)
    where = () if page.is_stream else ("", f'The report is in {page.path}; the study is "{name}".')
    print_plain(first, "", table, "", *others, *where, least_width=100)


def _entries(role: Role, file: Path) -> Entries:
    from spectralbai.errors import about
    from spectralbai.picking.entries import Entries

    if file.suffix == ".csv":
        with read_table(file) as table:
            return Entries.from_table(role, table)
    text = read_text(file)
    with about(file):
        return Entries.from_lines(role, text)


def _similar(
    options: Path | None, similar: str | None, step: float | None, common: dict[str, Any]
) -> tuple[Graph | None, float, tuple[str, ...]]:
    """Returns the graph that columns of the options make, R, and remarks; no graph if no column is named."""
    import math

    if (similar is None) != (step is None):
        raise InvalidInput("--similar and --step go together: which options are alike, and how much neighbours differ")
    if similar is None:
        return None, math.inf, ()
    if options is None or options.suffix != ".csv":
        raise InvalidInput("--similar names columns of OPTIONS, which must be a CSV file then")
    from spectralbai.inputs.from_tables import Choices, instance_from
    from spectralbai.inputs.table import CsvTable

    called = {"features": "--similar"}
    table = CsvTable.named(str(options), read_text(options))
    choices = Choices(
        features=similar,
        label="option" if "option" in table.columns else None,
        step=step,
        low=common["low"],
        high=common["high"],
        called=lambda choice: called.get(choice, f"--{choice}"),
    )
    made = instance_from(choices, table)
    problem = made.instance.problem
    assert isinstance(problem.R, float)
    return problem.graph, problem.R, made.remarks


def _known(file: Path, question: Any) -> tuple[dict[tuple[str, str], float], tuple[str, ...]]:
    """Returns the outcomes in a file that are about these options and items, and a remark."""
    from spectralbai.inputs.outcomes import outcomes_from
    from spectralbai.picking.carry_out import check_known
    from spectralbai.text.wording import in_words

    with read_table(file) as table:
        exported = {"label", "item", "outcome"} <= set(table.columns)  # by `study export`
        given = outcomes_from(table, option="label" if exported else None)
        rows = zip(given.options, given.outcomes.tolist(), strict=True)
        scores = {(a, j): x for a, row in rows for j, x in zip(given.items, row, strict=True) if x == x}
        labels, items = set(question.options.labels), set(question.items.labels)
        ours = {(a, j): x for (a, j), x in scores.items() if a in labels and j in items}
        if not ours:
            raise InvalidInput("no outcome is of these options and items; their labels must be the same")
        check_known(question, ours)
    left = len(scores) - len(ours)
    others = f", and {in_words(left, 'outcome')} of other options or items left out" if left else ""
    return ours, (f"{file}: {in_words(len(ours), 'outcome')} known{others}",)


def _remark(remarks: tuple[str, ...]) -> None:
    for remark in remarks:
        typer.echo(remark, err=True)


def _check_replay(**others: object) -> None:
    for option, value in others.items():
        if value is not None:
            called = "ITEMS" if option == "items" else "--" + option.replace("_", "-")
            raise InvalidInput(f"--table replays outcomes that are all known, and needs no {called}; leave it out")


def _replay(
    file: Path,
    options: Path | None,
    similar: str | None,
    step: float | None,
    common: dict[str, Any],
    seed: int | None,
    as_json: bool,
) -> None:
    from spectralbai.picking.replay import replay
    from spectralbai.tables import Table

    graph, R, remarks = _similar(options, similar, step, common)
    table = Table.from_csv(file)
    if graph is not None and options is not None:
        table = _in_order(table, _entries("option", options), file)
    _remark(remarks)
    with progress("replaying"):
        done = replay(table, **common, graph=graph, R=R, seed=seed)
    if as_json:
        print_json(done.as_dict())
    else:
        print_plain(*done.sentences)


def _in_order(table: Table, options: Entries, file: Path) -> Table:
    """Returns a table with its options in the order of OPTIONS."""
    from spectralbai.tables import Table

    if set(table.options) != set(options.labels):
        raise InvalidInput(f"{file}: OPTIONS and the table must have the same options")
    rows = [table.options.index(label) for label in options.labels]
    return Table(table.outcomes[rows], options.labels, table.items, table.clusters)


@contextmanager
def _live() -> Iterator[Callable[[State], object]]:
    """Yields a function that shows how far a run is: as a bar in a terminal, otherwise in a line whenever options are
    eliminated."""
    if sys.stderr is None or not sys.stderr.isatty():
        last: list[object] = [None]

        def say(state: State) -> None:
            if state.left is not None and state.left != last[0]:
                last[0] = state.left
                typer.echo(str(state), err=True)

        yield say
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    bar = Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    task, names = bar.add_task("begins", total=None), Text(no_wrap=True, overflow="ellipsis")

    def show(state: State) -> None:
        bar.update(task, completed=state.trials, total=state.expected, description=state.counts)
        names.plain = f"left: {', '.join(state.left)}" if state.left else ""

    with Live(Group(bar, names), console=Console(stderr=True), transient=True):
        yield show
