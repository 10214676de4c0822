"""`spectralbai reproduce`: the experiment of the paper, as a table, a CSV file and a figure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from spectralbai.cli.outputs import PICTURE, TABLE, Force, Output, Width, check_width, make_folder, picture_format
from spectralbai.cli.tables import csv_text, empty_table, print_plain
from spectralbai.cli.work import Jobs, Seed, check_jobs, processes, progress

if TYPE_CHECKING:
    from rich.table import Table

    from spectralbai.reproduction import CurveRow

Curves = dict[tuple[str, str], list["CurveRow"]]
"""The rows of each policy and rule, with R ascending."""
OUT, TABLE_NAME, PICTURE_NAME = Path("reproduction"), "figure.csv", "figure.png"


def reproduce(
    runs: Annotated[int, Option(help="Simulated runs of each curve per value of R.", metavar="N")] = 30,
    delta: Annotated[float, Option(help="Risk of a wrong answer; the paper names none.")] = 0.01,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[Path, Option(help=f"Directory for {TABLE_NAME} and {PICTURE_NAME}.", metavar="DIR")] = OUT,
    name: Annotated[str, Option("--picture", help="Name of the picture: .png, .pdf or .svg.")] = PICTURE_NAME,
    width: Width = None,
    force: Force = False,
) -> None:
    """Runs the experiment of the paper, and draws its figure.

    It shows what a tighter bound R on the roughness of the means saves.

    There are three arms with means 0.9, 0.5 and 0.6, the last two joined by an edge, and noise of standard deviation 1.
    The smaller R is, the more the graph helps. Three methods meet the same outcomes. The race aims its samples at the
    arms not yet eliminated and stops by betting, a rule whose risk is proved. "tas-printed" is the paper's Algorithm 1
    to the letter, with 300 steps of mirror ascent at every pull; its statistic ignores the graph. "tas" tracks the
    optimal allocation of the smooth estimate, solved to the end, and stops by the paper's threshold for the constrained
    statistic ("paper").
    """
    from spectralbai.checks import check_delta, check_integer

    check_integer("--runs", runs, 1)
    check_integer("--seed", seed, 0)
    check_delta(delta)
    check_width(width)
    form = picture_format("--picture", Path(name))
    with processes(check_jobs(jobs)) as executor, progress("simulated runs") as on_run:
        from spectralbai import plot, reproduction

        make_folder("--out", out)
        table = Output("--out", out / TABLE_NAME, TABLE, force)
        picture = Output("--out", out / name, PICTURE, force)
        rows = reproduction.reproduce(runs, delta, seed, executor, on_run)

    with plot.of_width(width):
        drawn = plot.as_picture(plot.plot_reproduction(rows, delta), form)
    curves: Curves = {}
    for row in rows:
        curves.setdefault((row.policy, row.rule), []).append(row)
    columns = [field.name for field in fields(reproduction.CurveRow) if field.name not in ("undecided", "taus")]
    table.write(csv_text(columns, map(asdict, rows)).encode())
    picture.write(drawn)
    print_plain(
        "Means 0.9, 0.5, 0.6; one edge between the second and the third arm; sigma = 1",
        f"delta = {delta:g}, runs per R: {runs}",
        "Samples until the decision, mean ± standard deviation:",
        "",
        _as_table(curves),
        "",
        *_remarks(curves),
        *_saving(rows),
    )
    # a path must not be broken into lines
    typer.echo(f"The picture is in {picture.path}, its numbers in {table.path}")


def _as_table(curves: Curves) -> Table:
    names = (
        f"{policy.removeprefix('spectral-')}\n{rule}\n({'proved' if own[0].proved else 'not proved'})"
        for (policy, rule), own in curves.items()
    )
    table = empty_table("R", "T_R*", "lower\nbound", *names)
    for row, *others in zip(*curves.values(), strict=True):
        theory = (f"{row.R:.2f}", f"{row.characteristic_time:.3f}", f"{row.lower_bound:.1f}")
        table.add_row(*theory, *map(_mean_and_deviation, (row, *others)))
    return table


def _mean_and_deviation(row: CurveRow) -> str:
    return f"{row.mean_tau:.0f}" + (f" ± {row.std_tau:.0f}" if row.runs > 1 else "") if row.runs else "undecided"


def _remarks(curves: Curves) -> Iterator[str]:
    totals = {
        " ".join(curve): [sum(getattr(row, what) for row in own) for what in ("errors", "runs", "undecided")]
        for curve, own in curves.items()
    }
    yield "Wrong decisions: " + ", ".join(f"{name} {errors} of {runs}" for name, (errors, runs, _) in totals.items())
    for name, (_, _, undecided) in totals.items():
        if undecided:
            yield f"{name}: {undecided} runs without a decision are left out"


def _saving(rows: list[CurveRow]) -> Iterator[str]:
    from spectralbai.reproduction import paired_saving

    mean, error = paired_saving(rows)
    if math.isfinite(error):
        low, high = min(row.R for row in rows), max(row.R for row in rows)
        yield (
            f"The race takes {mean:.0f} samples fewer at R = {low:g} than at R = {high:g}, standard error {error:.0f}, "
            "compared run by run"
        )
