"""`spectralbai instance`: from a table of options to an instance file and a picture of its graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from spectralbai.cli.files import read_text
from spectralbai.cli.outputs import INSTANCE, PICTURE, Force, Output, Width, check_width
from spectralbai.cli.tables import print_plain
from spectralbai.cli.work import progress
from spectralbai.errors import InvalidInput

if TYPE_CHECKING:
    from spectralbai.inputs.from_tables import Choices

OUT = Path("instance.json")


def instance(
    arms: Annotated[
        Path | None, Option(help="CSV with a row per option; labels in its first column.", metavar="FILE")
    ] = None,
    features: Annotated[
        str | None,
        Option(
            help="Columns of --arms to compare options by: numbers, ISO dates, yes or no, or categories.",
            metavar="A,B,...",
        ),
    ] = None,
    neighbors: Annotated[
        int | None,
        Option(
            help="Join each option to its N nearest ones, by --features; by default log2 of the number of options, at "
            "most 5.",
            metavar="N",
        ),
    ] = None,
    edges: Annotated[Path | None, Option(help="CSV of label, label and perhaps weight.", metavar="FILE")] = None,
    by: Annotated[
        str | None,
        Option(
            help="Column of --arms with categories, whose options are alike. Each category gets an R.", metavar="COLUMN"
        ),
    ] = None,
    label: Annotated[
        str | None, Option(help="Column of --arms with the labels; the first if not given.", metavar="COLUMN")
    ] = None,
    guess: Annotated[
        str | None, Option(help="Column of --arms with guesses of the mean outcomes.", metavar="COLUMN")
    ] = None,
    R: Annotated[float | None, Option("--R", help="Bound on the roughness S(mu) of the means.")] = None,
    step: Annotated[
        str | None,
        Option(help="Instead of --R: neighbours differ by at most this, such as 0.03, or 3% of clicks.", metavar="X"),
    ] = None,
    sigma: Annotated[float | None, Option(help="Standard deviation of one outcome of one option.")] = None,
    observations: Annotated[
        Path | None, Option(help="Instead of --sigma: CSV of label and outcome, to estimate it from.", metavar="FILE")
    ] = None,
    low: Annotated[float | None, Option(help="Least possible outcome, instead of --sigma.")] = None,
    high: Annotated[float | None, Option(help="Largest possible outcome, instead of --sigma.")] = None,
    binary: Annotated[
        bool, Option("--binary", help="Only --low and --high occur, 0 and 1 if not given: clicks, cures.")
    ] = False,
    tolerance: Annotated[
        str, Option(help="An option this close to the best is as good, such as 0.005, or 0.5% of clicks.", metavar="X")
    ] = "0",
    out: Annotated[Path, Option(help="The instance file to write; a picture goes beside it.", metavar="FILE")] = OUT,
    width: Width = None,
    force: Force = False,
) -> None:
    """Makes an instance file from CSV tables, and draws its graph.

    \b
    Examples:
      spectralbai instance --arms doses.csv --features dose --neighbors 1 --step 0.1 --sigma 0.5
      spectralbai instance --arms doses.csv --features dose,form --step 0.1 --observations pilot.csv
      spectralbai instance --edges similar.csv --R 0.01 --low 0 --high 1
      spectralbai instance --edges similar.csv --R 0.01 --binary
      spectralbai instance --arms catalogue.csv --by category --step 0.02 --binary

    With --by, --R is the bound for every category, and --step says how far two options of one category differ (root
    mean square over all pairs). With neither, this is estimated from --observations of some options.

    All features have the same weight: numbers and dates are scaled to standard deviation 1, categories to the same
    variance.
    """
    from spectralbai.inputs.from_tables import Choices

    choices = Choices(
        features=features,
        neighbors=neighbors,
        by=by,
        label=label,
        guess=guess,
        R=R,
        step=step,
        sigma=sigma,
        low=low,
        high=high,
        binary=binary,
        tolerance=tolerance,
    )
    check_width(width)
    _make(choices, (arms, edges, observations), out, width, force)


def _make(
    choices: Choices, given: tuple[Path | None, Path | None, Path | None], out: Path, width: float | None, force: bool
) -> None:
    """Writes the instance of the given tables (arms, edges, observations), and its picture."""
    choices.check(*(each is not None for each in given))
    picture = _picture_beside(out, [each for each in given if each is not None])
    from spectralbai import plot as plots
    from spectralbai.inputs.from_tables import instance_from
    from spectralbai.inputs.table import CsvTable

    file = Output("--out", out, INSTANCE, force)
    drawing = None if file.is_stream else Output("--out", picture, PICTURE, force)
    with progress("reading"):
        tables = (None if each is None else CsvTable.named(str(each), read_text(each)) for each in given)
        found = instance_from(choices, *tables)
    made = found.instance
    if drawing is not None:
        with progress("drawing"), plots.of_width(width):
            drawing.write(plots.as_png(plots.plot_graph(made)))
    file.write((json.dumps(made.as_dict(), indent=1, ensure_ascii=False) + "\n").encode())
    print_plain(*found.remarks, err=drawing is None)
    if drawing is not None:
        typer.echo(f"The instance is in {out}, its graph in {picture}; next: spectralbai plan {out}")


def _picture_beside(out: Path, tables: list[Path]) -> Path:
    """Returns the name of the picture; raises InvalidInput if the outputs cannot have these names, or have those of
    tables that are read."""
    if not out.name or out.suffix == ".png":
        raise InvalidInput(f'--out must name a file such as options.json, got "{out}"; its picture ends in .png')
    picture = out.with_suffix(".png")
    for table in tables:
        if table.resolve() in (out.resolve(), picture.resolve()):
            raise InvalidInput(f"--out would overwrite {table}, which is read; choose another name")
    return picture
