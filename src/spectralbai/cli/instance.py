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
    from spectralbai.graph import Graph
    from spectralbai.problem import Problem


def instance(
    arms: Annotated[
        Path | None, typer.Option(help="CSV with a row per option; labels in its first column.", metavar="FILE")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Numeric columns of --arms to compare options by.", metavar="A,B,...")
    ] = None,
    neighbors: Annotated[
        int, typer.Option(help="Join each option to so many nearest ones, in --features.", metavar="N")
    ] = 5,
    edges: Annotated[Path | None, typer.Option(help="CSV of label, label and perhaps weight.", metavar="FILE")] = None,
    label: Annotated[
        str | None, typer.Option(help="Column of --arms with the labels; the first if not given.", metavar="COLUMN")
    ] = None,
    guess: Annotated[
        str | None, typer.Option(help="Column of --arms with guesses of the mean outcomes.", metavar="COLUMN")
    ] = None,
    R: Annotated[float | None, typer.Option("--R", help="Bound on the roughness S(mu) of the means.")] = None,
    step: Annotated[float | None, typer.Option(help="Instead of --R: neighbours differ by at most so much.")] = None,
    sigma: Annotated[float | None, typer.Option(help="Standard deviation of one outcome; 1 if not given.")] = None,
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
      spectralbai instance --edges similar.csv --R 0.01 --low 0 --high 1
      spectralbai instance --edges similar.csv --R 0.01 --binary

    Features are standardised: each gets mean 0 and standard deviation 1, so that none outweighs the others by its unit.
    """
    from spectralbai.history import implied_R
    from spectralbai.instance import Instance

    _check_options(arms, features, edges, guess, R, step, sigma, low, high, binary)
    if not out.name or out.suffix == ".png":
        raise InvalidInput(
            f'--out must name a file for the instance, such as options.json, got "{out}"; its picture gets the ending '
            ".png"
        )
    picture = out.with_suffix(".png")
    for given in (arms, edges):
        if given is not None and given.resolve() in (out.resolve(), picture.resolve()):
            raise InvalidInput(f"--out would overwrite {given}, which is read; choose another name")
    from spectralbai import plot as plots

    file = Output("--out", out, INSTANCE, force)
    drawing = None if file.is_stream else Output("--out", picture, PICTURE, force)
    with progress("reading"):
        labels, graph, mu, remarks = _read(arms, features, neighbors, edges, label, guess)
    if R is None and step is not None:
        R = implied_R(graph, step)
        if math.isinf(R):
            raise InvalidInput(f"--step must be a number whose square is finite, got {step:g}")
        remarks.append(
            f"R = {R:g}: neighbours differ by at most {step:g}, and the weights of {graph.n_edges} edges sum to "
            f"{graph.weights.sum():g}"
        )
    elif R is None:
        R = math.inf
        remarks.append(
            'R = inf: the graph says nothing yet; choose --R or --step, with the help of "spectralbai plan '
            '--observations"'
        )
    problem = _problem(graph, R, sigma, low, high, binary, tolerance)
    made = Instance(problem, mu, labels)
    if made.mu is not None:
        problem.noise.check_means("--guess", made.mu)
    if drawing is not None:
        with progress("drawing"):
            drawing.write(plots.as_png(plots.plot_graph(made)))
    file.write((json.dumps(made.as_dict(), indent=1, ensure_ascii=False) + "\n").encode())
    if mu is not None:
        rough = problem.smoothness(mu)
        remarks.append(
            f"S of the guesses is {rough:g}" + (f", above R = {R:g}: raise R, or guess again" if rough > R else "")
        )
    parts = f" in {graph.n_components} parts that the edges do not join" if graph.n_components > 1 else ""
    print_plain(f"{graph.n_arms} options, {graph.n_edges} edges{parts}", *remarks, err=drawing is None)
    if drawing is not None:
        typer.echo(f"The instance is in {out}, its graph in {picture}; next: spectralbai plan {out}")


def _check_options(
    arms: Path | None,
    features: str | None,
    edges: Path | None,
    guess: str | None,
    R: float | None,
    step: float | None,
    sigma: float | None,
    low: float | None,
    high: float | None,
    binary: bool,
) -> None:
    if arms is None and edges is None:
        raise InvalidInput("--arms or --edges is needed: a CSV file of options, or of pairs of similar ones")
    if arms is None and (features is not None or guess is not None):
        raise InvalidInput("--features and --guess name columns of --arms, which is missing")
    if edges is None and features is None:
        raise InvalidInput(
            "--features is needed to tell which options are alike, such as --features dose,age; or give --edges"
        )
    if edges is not None and features is not None:
        raise InvalidInput("--features and --edges both make the graph; keep one")
    if R is not None and step is not None:
        raise InvalidInput("--R and --step both set R; keep one")
    if sigma is not None and (low is not None or high is not None or binary):
        raise InvalidInput("--sigma and --low, --high, --binary both describe the noise; keep one")
    if (low is None) != (high is None):
        raise InvalidInput("--low and --high go together; give both")


def _read(
    arms: Path | None, features: str | None, neighbors: int, edges: Path | None, label: str | None, guess: str | None
) -> tuple[tuple[str, ...], Graph, list[float] | None, list[str]]:
    """Returns labels, graph, guesses and what was chosen on the way."""
    from spectralbai.graph import Graph
    from spectralbai.records import arms_from, edges_from, standardise

    labels, mu = None, None
    remarks: list[str] = []
    if arms is not None:
        names = [name.strip() for name in (features or "").split(",") if name.strip()]
        with read_table(arms) as table:
            labels, values = arms_from(table, names, label)
            mu = table.numbers(guess).tolist() if guess is not None else None
            if edges is None:
                graph = Graph.from_features(standardise(values, names), neighbors)
                remarks.append(
                    f"standardised features {', '.join(names)}; each option joined to its {neighbors} nearest"
                )
    if edges is not None:
        with read_table(edges) as table:
            labels, pairs = edges_from(table, labels)
            graph = Graph.from_edges(len(labels), pairs)
    assert labels is not None
    return labels, graph, mu, remarks


def _problem(
    graph: Graph, R: float, sigma: float | None, low: float | None, high: float | None, binary: bool, tolerance: float
) -> Problem:
    from spectralbai.problem import Problem

    if binary and low is None:
        low, high = 0.0, 1.0
    if low is not None and high is not None:
        return Problem.bounded(graph, R, low, high, tolerance, binary)
    return Problem(graph, R, 1.0 if sigma is None else sigma, tolerance)
