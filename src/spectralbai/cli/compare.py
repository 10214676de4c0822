"""`spectralbai compare`: what a campaign says, as a table, CSV or JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from spectralbai.cli.extensions import Import
from spectralbai.cli.outputs import TABLE, Force, Output
from spectralbai.cli.tables import csv_text, empty_table, print_json, print_plain
from spectralbai.cli.work import progress
from spectralbai.documents import plain
from spectralbai.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from spectralbai.campaign import Cell


HEADINGS = (
    *("policy", "rule", "delta", "runs", "mean tau", "median", "5 - 95 %", "errors (rate)", "/ bound", "s / run"),
)

LATEX_HEADINGS = (
    *("policy", "rule", r"$\delta$", "runs", r"mean $\tau$", "median", r"5--95\,\%", "errors (rate)", "/ bound"),
)


def compare(
    directory: Annotated[Path, Argument(help="Directory of a campaign's results.", metavar="DIR")],
    as_csv: Annotated[bool, Option("--csv", help="Print CSV instead of a table.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print one JSON array instead of a table.")] = False,
    as_latex: Annotated[bool, Option("--latex", help="Print a LaTeX table, which needs the package booktabs.")] = False,
    export: Annotated[Path | None, Option(help="Write every run to this CSV file too.", metavar="FILE")] = None,
    force: Force = False,
    modules: Import = None,
) -> None:
    """Compares policies: samples, errors, ratio to the lower bound.

    All intervals have 95 % confidence: by Student's t for means, exact for error rates.
    """
    forms = [name for name, given in (("--csv", as_csv), ("--json", as_json), ("--latex", as_latex)) if given]
    if len(forms) > 1:
        raise InvalidInput(f"{forms[0]} and {forms[1]} are both given; keep one")

    from spectralbai.campaign import Cell, Results, summarise
    from spectralbai.campaign.results import COLUMNS

    with Results.open(directory) as results, progress("comparing"):
        table = None if export is None else Output("--export", export, TABLE, force)
        cells = summarise(results)
        campaign = results.campaign
        if table is not None:
            table.write(csv_text(COLUMNS, map(asdict, results.rows())).encode())
    named = {each.name for each in campaign.policies}
    there = sum(cell.runs for cell in cells if cell.policy in named)
    expected = campaign.runs * len(campaign.instances) * len(named) * len(campaign.deltas)
    if as_csv:
        typer.echo(csv_text([field.name for field in fields(Cell)], map(asdict, cells)), nl=False)
    elif as_json:
        print_json(plain(cells))
    elif as_latex:
        typer.echo(_as_latex(cells, _remarks(cells, there, expected)), nl=False)
    else:
        print_plain(_as_table(cells), "", *_remarks(cells, there, expected), least_width=132)
        if export is not None:
            typer.echo(f"Every run is in {export}")


def _as_table(cells: Sequence[Cell]) -> Table:
    table = empty_table(*HEADINGS, left=("policy", "rule"), folded=("policy",), least={"policy": 16})
    last = None
    for cell in cells:
        if cell.instance != last:
            if last is not None:
                table.add_row()
            table.add_row(cell.instance)
            last = cell.instance
        policy, *others = _in_words(cell)
        table.add_row(f"  {policy}", *others)
    return table


def _as_latex(cells: Sequence[Cell], remarks: Iterable[str]) -> str:
    """Returns the table for a paper, after its remarks as comments; how long runs took is left out."""
    from spectralbai.text.latex import tabular

    groups: dict[str, list[list[str]]] = {}
    for cell in cells:
        words = [text.replace(" - ", "–") for text in _in_words(cell)[:-1]]
        groups.setdefault(cell.instance, []).append(words)
    comments = "".join(f"% {' '.join(remark.split())}\n" for remark in remarks)
    return comments + tabular(LATEX_HEADINGS, groups, left=2)


def _in_words(cell: Cell) -> list[str]:
    """Returns a row of the table."""
    mean = f"{cell.mean_tau:.0f}" + (f" ± {cell.mean_tau_high - cell.mean_tau:.0f}" if cell.runs > 1 else "")
    return [
        cell.policy,
        cell.rule + ("" if cell.proved else " †"),
        f"{cell.delta:g}",
        str(cell.runs),
        (">" if cell.truncated else "") + mean,
        f"{cell.median_tau:.0f}",
        f"{cell.q05_tau:.0f} - {cell.q95_tau:.0f}",
        f"{cell.errors} ({cell.error_rate_low:.3f} - {cell.error_rate_high:.3f})",
        "-" if math.isnan(cell.ratio) else f"{cell.ratio:.2f}",
        f"{cell.seconds:.2g}",
    ]


def _remarks(cells: Sequence[Cell], there: int, expected: int) -> Iterable[str]:
    yield "mean tau ± half of its 95 % interval; errors: wrong decisions (exact 95 % interval of their rate);"
    yield "/ bound: mean tau over the lower bound (-: none known) on that of any policy with the graph and this risk"
    if not all(cell.proved for cell in cells):
        yield "†: the risk of this stopping rule is not proved"
    if there < expected:
        yield f"The campaign is not finished: {there} of {expected} runs are there, each counted once per delta"
    for cell in cells:
        odd = ((cell.inconsistent, "contradicted R"), (cell.truncated, "cut short"))
        parts = [f"{n} {what}" for n, what in odd if n]
        if parts:
            yield f"{cell.policy} on {cell.instance} at delta {cell.delta:g}: of {cell.runs} runs {', '.join(parts)}"
