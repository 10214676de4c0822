"""`spectralbai instance`: from a table of options to an instance file and a picture of its graph."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spectralbai.cli.files import read_table
from spectralbai.cli.outputs import INSTANCE, PICTURE, Force, Output
from spectralbai.cli.tables import print_plain
from spectralbai.cli.work import progress
from spectralbai.errors import InvalidInput

if TYPE_CHECKING:
    from spectralbai.checks import Vector
    from spectralbai.graph import Graph
    from spectralbai.inputs.table import CsvTable
    from spectralbai.problem import Problem


def instance(
    arms: Annotated[
        Path | None, typer.Option(help="CSV with a row per option; labels in its first column.", metavar="FILE")
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="Columns of --arms to compare options by: numbers, ISO dates, yes or no, or categories.",
            metavar="A,B,...",
        ),
    ] = None,
    neighbors: Annotated[
        int | None,
        typer.Option(
            help="Join each option to so many nearest ones, in --features; log2 of the options, at most 5, if not "
            "given.",
            metavar="N",
        ),
    ] = None,
    edges: Annotated[Path | None, typer.Option(help="CSV of label, label and perhaps weight.", metavar="FILE")] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column of --arms with categories: the options of one are alike. Each gets an R of its own.",
            metavar="COLUMN",
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Column of --arms with the labels; the first if not given.", metavar="COLUMN")
    ] = None,
    guess: Annotated[
        str | None, typer.Option(help="Column of --arms with guesses of the mean outcomes.", metavar="COLUMN")
    ] = None,
    R: Annotated[float | None, typer.Option("--R", help="Bound on the roughness S(mu) of the means.")] = None,
    step: Annotated[float | None, typer.Option(help="Instead of --R: neighbours differ by at most so much.")] = None,
    sigma: Annotated[float | None, typer.Option(help="Standard deviation of one outcome of one option.")] = None,
    observations: Annotated[
        Path | None,
        typer.Option(help="Instead of --sigma: CSV of label and outcome, to estimate it from.", metavar="FILE"),
    ] = None,
    low: Annotated[float | None, typer.Option(help="Least possible outcome, instead of --sigma.")] = None,
    high: Annotated[float | None, typer.Option(help="Largest possible outcome, instead of --sigma.")] = None,
    binary: Annotated[
        bool, typer.Option("--binary", help="Only --low and --high occur, 0 and 1 if not given: clicks, cures.")
    ] = False,
    tolerance: Annotated[float, typer.Option(help="An option this close to the best is as good.")] = 0.0,
    out: Annotated[
        Path, typer.Option(help="The instance file to write; a picture goes beside it.", metavar="FILE")
    ] = Path("instance.json"),
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

    With --by, --R is the bound of every category, and --step says how far two options of one differ, as the root of the
    mean square over all its pairs; with neither, --observations of some options tells it.

    Every feature counts the same: numbers and dates get standard deviation 1, and categories as much variance.
    """
    from spectralbai.instance import Instance

    _check_options(arms, features, edges, by, guess, R, step)
    _check_noise(sigma, observations, low, high, binary)
    if not out.name or out.suffix == ".png":
        raise InvalidInput(
            f'--out must name a file for the instance, such as options.json, got "{out}"; its picture gets the ending '
            ".png"
        )
    picture = out.with_suffix(".png")
    for given in (arms, edges, observations):
        if given is not None and given.resolve() in (out.resolve(), picture.resolve()):
            raise InvalidInput(f"--out would overwrite {given}, which is read; choose another name")
    from spectralbai import plot as plots

    file = Output("--out", out, INSTANCE, force)
    drawing = None if file.is_stream else Output("--out", picture, PICTURE, force)
    with progress("reading"):
        labels, graph, mu, remarks = _read(arms, features, neighbors, edges, by, label, guess)
    told = ""
    if observations is not None:
        sigma, told = _estimated_sigma(observations, labels)
    radii, chosen = _radii(graph, labels, by, R, step, observations, sigma)
    remarks += [chosen, told]
    problem = _problem(graph, radii, sigma, low, high, binary, tolerance)
    made = Instance(problem, mu, labels)
    if made.mu is not None:
        problem.noise.check_means("--guess", made.mu)
    if drawing is not None:
        with progress("drawing"):
            drawing.write(plots.as_png(plots.plot_graph(made)))
    file.write((json.dumps(made.as_dict(), indent=1, ensure_ascii=False) + "\n").encode())
    if made.mu is not None:
        rough = problem.roughness(made.mu)
        over = rough > problem.radii
        remarks.append(
            f"S of the guesses is {rough.sum():g}"
            + (f", above R = {problem.radii[over][0]:g}: raise R, or guess again" if over.any() else "")
        )
    parts = f" in {graph.n_components} parts that the edges do not join" if graph.n_components > 1 else ""
    shape = f"{graph.n_edges} edges{parts}" if by is None else f"{graph.n_components} categories"
    print_plain(f"{graph.n_arms} options, {shape}", *[each for each in remarks if each], err=drawing is None)
    if drawing is not None:
        typer.echo(f"The instance is in {out}, its graph in {picture}; next: spectralbai plan {out}")


def _check_options(
    arms: Path | None,
    features: str | None,
    edges: Path | None,
    by: str | None,
    guess: str | None,
    R: float | None,
    step: float | None,
) -> None:
    if arms is None and edges is None:
        raise InvalidInput("--arms or --edges is needed: a CSV file of options, or of pairs of similar ones")
    if arms is None and not (features is None and guess is None and by is None):
        raise InvalidInput("--features, --by and --guess name columns of --arms, which is missing")
    makers = {"--features": features is not None, "--edges": edges is not None, "--by": by is not None}
    named = [name for name, there in makers.items() if there]
    if not named:
        raise InvalidInput(
            "--features is needed to tell which options are alike, such as --features dose,age; or give --edges, or "
            "--by a column of categories"
        )
    if len(named) > 1:
        raise InvalidInput(f"{' and '.join(named)} both make the graph; keep one")
    if R is not None and step is not None:
        raise InvalidInput("--R and --step both set R; keep one")


def _check_noise(
    sigma: float | None, observations: Path | None, low: float | None, high: float | None, binary: bool
) -> None:
    if (low is None) != (high is None):
        raise InvalidInput("--low and --high go together; give both")
    given = {
        "--sigma": sigma is not None,
        "--observations": observations is not None,
        "--low, --high, --binary": low is not None or binary,
    }
    named = [name for name, there in given.items() if there]
    if len(named) > 1:
        raise InvalidInput(f"{' and '.join(named)} both describe the noise; keep one")
    if not named:
        raise InvalidInput(
            "--sigma is missing, the standard deviation of one outcome of one option; know it from experience, or try "
            "a few options several times and give --observations, a CSV of label and outcome, or give --low and "
            "--high if outcomes lie in a range, or --binary if they are 0 or 1"
        )


def _read(
    arms: Path | None,
    features: str | None,
    neighbors: int | None,
    edges: Path | None,
    by: str | None,
    label: str | None,
    guess: str | None,
) -> tuple[tuple[str, ...], Graph, list[float] | None, list[str]]:
    """Returns labels, graph, guesses and what was chosen on the way."""
    import numpy as np

    from spectralbai.graph import Graph, usual_neighbors
    from spectralbai.inputs.features import features_from
    from spectralbai.inputs.table import arms_from, edges_from

    labels, mu = None, None
    graph: Graph
    remarks: list[str] = []
    if arms is not None:
        names = [name.strip() for name in (features or "").split(",") if name.strip()]
        with read_table(arms) as table:
            labels = arms_from(table, label)
            mu = table.numbers(guess).tolist() if guess is not None else None
            if by is not None:
                graph = Graph.from_categories(_categories(table, by, labels))
            elif edges is None:
                if not names:
                    raise InvalidInput(f'--features names no column, got "{features}"; name some, such as dose,age')
                read = features_from(table, names, label)
                graph = Graph.from_features(np.hstack([each.values for each in read]), neighbors)
                shown = "; ".join(f"{each.name} ({each.reading})" for each in read)
                nearest = usual_neighbors(len(labels)) if neighbors is None else neighbors
                remarks.append(f"features: {shown}")
                remarks.append(f"each option is joined to its {nearest} nearest")
    if edges is not None:
        with read_table(edges) as table:
            labels, pairs = edges_from(table, labels)
            graph = Graph.from_edges(len(labels), pairs)
    assert labels is not None
    return labels, graph, mu, remarks


def _categories(table: CsvTable, by: str, labels: tuple[str, ...]) -> list[str]:
    """Returns the category of each option."""
    cells = table.column(by)
    for cell, line in zip(cells, table.lines, strict=True):
        if not cell:
            raise InvalidInput(f'line {line}, column "{by}": the cell is empty; name a category, or remove the row')
    if len(set(cells)) == len(labels):
        raise InvalidInput(f'the column "{by}" is different for every option: it tells nothing of which are alike')
    return cells


def _radii(
    graph: Graph,
    labels: tuple[str, ...],
    by: str | None,
    R: float | None,
    step: float | None,
    observations: Path | None,
    sigma: float | None,
) -> tuple[float | Vector, str]:
    """Returns R, or one for each category, and how it came about."""
    import numpy as np

    from spectralbai.inputs.history import implied_R, implied_radii, rounded_up, step_inside
    from spectralbai.inputs.table import observations_from

    if by is None:
        if R is not None:
            return R, ""
        if step is None:
            return math.inf, (
                'R = inf: the graph says nothing yet; choose --R or --step, with the help of "spectralbai plan '
                '--observations"'
            )
        whole = implied_R(graph, step)
        if math.isinf(whole):
            raise InvalidInput(f"--step must be a number whose square is finite, got {step:g}")
        return whole, (
            f"R = {whole:g}: neighbours differ by at most {step:g}, and the weights of {graph.n_edges} edges sum to "
            f"{graph.weights.sum():g}"
        )
    if R is not None:
        return np.full(graph.n_components, R), f"R = {R:g} for each category"
    how = ""
    if step is None:
        if observations is None or sigma is None:
            raise InvalidInput(
                "--step is needed: how far two options of one category differ; or --R, or --observations of some of "
                "them"
            )
        with read_table(observations) as table:
            estimated, upper = step_inside(graph, *observations_from(table, labels), sigma)
        step = rounded_up(upper)
        if step <= 0:
            raise InvalidInput(
                f"the outcomes of {observations} show no difference between options of one category; give --step, the "
                "largest that you think possible"
            )
        how = f", as observed (about {estimated:.2g}, and the upper end is on the safe side)"
    radii = implied_radii(graph, step)
    if not np.isfinite(radii).all():
        raise InvalidInput(f"--step must be a number whose square is finite, got {step:g}")
    several = radii[graph.sizes > 1]
    ends = f"{several.min():g}" if several.min() == several.max() else f"{several.min():g} to {several.max():g}"
    return radii, f"R = {ends}, one for each category: two options of one differ by {step:g}{how}"


def _estimated_sigma(file: Path, labels: tuple[str, ...]) -> tuple[float, str]:
    """Returns sigma from past outcomes, rounded up, and how it came about."""
    from spectralbai.inputs.history import rounded_up, sigma_from
    from spectralbai.inputs.table import observations_from

    with read_table(file) as table:
        found = sigma_from(*observations_from(table, labels))
        if found.sigma == 0:
            raise InvalidInput(
                f"the {found.observations} outcomes never vary within an option, so that sigma cannot be told; add "
                "outcomes, or give --sigma"
            )
    sigma = rounded_up(found.high)
    return sigma, (
        f"sigma = {sigma:g}: the outcomes of {file} vary by {found.sigma:.3g} within an option "
        f"({found.confidence:.0%} interval {found.low:.3g} to {found.high:.3g}), and the upper end is on the safe side"
    )


def _problem(
    graph: Graph,
    R: float | Vector,
    sigma: float | None,
    low: float | None,
    high: float | None,
    binary: bool,
    tolerance: float,
) -> Problem:
    from spectralbai.problem import Problem

    if binary and low is None:
        low, high = 0.0, 1.0
    if low is not None and high is not None:
        return Problem.bounded(graph, R, low, high, tolerance, binary)
    assert sigma is not None
    return Problem(graph, R, sigma, tolerance)
