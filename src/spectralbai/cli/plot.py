"""`spectralbai plot`: figures of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from spectralbai.cli.extensions import Import
from spectralbai.cli.outputs import PICTURE, Force, Output, Width, check_width, picture_format
from spectralbai.cli.work import progress
from spectralbai.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectralbai.campaign import Cell, Results

KINDS = ("box", "R", "delta", "K", "proportions", "graph")
AXES: dict[str, Literal["R", "delta", "n_arms"]] = {"R": "R", "delta": "delta", "K": "n_arms"}


def plot(
    directory: Annotated[Path, Argument(help="Directory of a campaign's results.", metavar="DIR")],
    kind: Annotated[str, Option(help="box, R, delta, K, proportions or graph.")] = "box",
    instance: Annotated[
        str, Option(help="Name of an instance, or of several with * as in 'cliques*'.", metavar="NAME")
    ] = "*",
    delta: Annotated[float | None, Option(help="A risk of the campaign; the first if not given.")] = None,
    out: Annotated[
        Path | None, Option(help="A .png, .pdf or .svg file; DIR/KIND.png if not given.", metavar="FILE")
    ] = None,
    width: Width = None,
    force: Force = False,
    modules: Import = None,
) -> None:
    """Draws a campaign.

    \b
    box          samples by policy, one instance and one delta
    R, K         mean samples against R or the number of arms, all instances, one delta
    delta        mean samples against the risk, one instance
    proportions  shares of the pulls against the optimal ones, one instance and one delta
    graph        the graph of an instance with its means, optimal allocation and best arm
    """
    if kind not in KINDS:
        raise InvalidInput(f"--kind must be one of {', '.join(KINDS)}, got {kind!r}")
    check_width(width)
    out = out or directory / f"{kind}.png"
    form = picture_format("--out", out)
    from spectralbai import plot as plots
    from spectralbai.campaign import Results

    with Results.open(directory) as results, progress("drawing"):
        picture = Output("--out", out, PICTURE, force)
        campaign = results.campaign
        names = [each.name for each in campaign.instances if each.name == instance or fnmatchcase(each.name, instance)]
        if not names:
            known = ", ".join(f'"{each.name}"' for each in campaign.instances)
            raise InvalidInput(f'--instance: "{instance}" fits no instance of the campaign; its instances are {known}')
        if delta is not None and delta not in campaign.deltas:
            raise InvalidInput(
                f"--delta must be a risk of the campaign, one of {', '.join(map(str, campaign.deltas))}, got {delta:g}"
            )
        risk = delta or campaign.deltas[0]
        draw = _against if kind in AXES else _of_one
        with plots.of_width(width):
            ax, title = draw(kind, results, names, risk)
            content = plots.as_picture(ax, form, title)
    picture.write(content)
    typer.echo(f"The picture is in {out}", err=picture.is_stream)


def _of_one(kind: str, results: Results, names: Sequence[str], risk: float) -> tuple[Axes, str]:
    """Returns a picture of the first of these instances, and its title."""
    from spectralbai import plot as plots

    name = names[0]
    instance = next(each.instance for each in results.campaign.instances if each.name == name)
    if kind == "graph":
        return plots.plot_graph(instance, results.theory(name).omega or None), name
    rows = [row for row in results.rows() if row.instance == name and row.delta == risk]
    _check_any(rows, results)
    title = f"{name}, delta = {risk:g}"
    if kind == "box":
        return plots.plot_tau_by_policy(rows, results.lower_bound(name, risk)), title
    return plots.plot_proportions(rows, results.theory(name).omega, instance.labels), title


def _against(kind: str, results: Results, names: Sequence[str], risk: float) -> tuple[Axes, str]:
    """Returns a picture of the mean samples against R, K or delta, and its title."""
    from spectralbai import plot as plots
    from spectralbai.campaign import summarise

    if kind == "delta":
        cells, title = [cell for cell in summarise(results) if cell.instance == names[0]], names[0]
    else:
        cells = [cell for cell in summarise(results) if cell.instance in names and cell.delta == risk]
        title = f"delta = {risk:g}"
        _check_distinct(cells, kind)
    _check_any(cells, results)
    return plots.plot_tau_against(cells, AXES[kind]), title


def _check_any(found: Sequence[object], results: Results) -> None:
    if not found:
        raise InvalidInput(f"{results.path.parent} holds no run of this yet; go on with: spectralbai simulate")


def _check_distinct(cells: Sequence[Cell], kind: str) -> None:
    """Refuses two instances at one place of the x-axis."""
    at: dict[float, str] = {}
    for cell in cells:
        x = getattr(cell, AXES[kind])
        if isinstance(x, tuple):
            raise InvalidInput(f'--kind R: "{cell.instance}" has an R for each component; choose others by --instance')
        other = at.setdefault(x, cell.instance)
        if other != cell.instance:
            raise InvalidInput(
                f'--kind {kind}: "{other}" and "{cell.instance}" both have {kind} = {x:g}; choose instances that '
                "differ in it, with --instance and a pattern such as 'cliques*'"
            )
