"""`spectralbai plot`: figures of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spectralbai.cli.outputs import PICTURE, Force, Output
from spectralbai.cli.work import progress
from spectralbai.errors import InvalidInput

if TYPE_CHECKING:
    from spectralbai.campaign import Cell

KINDS = ("box", "R", "delta", "K", "proportions", "graph")
AXES: dict[str, Literal["R", "delta", "n_arms"]] = {"R": "R", "delta": "delta", "K": "n_arms"}


def plot(
    directory: Annotated[Path, typer.Argument(help="Directory of a campaign's results.", metavar="DIR")],
    kind: Annotated[str, typer.Option(help="box, R, delta, K, proportions or graph.")] = "box",
    instance: Annotated[
        str, typer.Option(help="Name of an instance, or of several with * as in 'cliques*'.", metavar="NAME")
    ] = "*",
    delta: Annotated[float | None, typer.Option(help="A risk of the campaign; the first if not given.")] = None,
    out: Annotated[Path | None, typer.Option(help="The PNG file; DIR/KIND.png if not given.", metavar="FILE")] = None,
    force: Force = False,
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
    from spectralbai import plot as plots

    out = out or directory / f"{kind}.png"

    from spectralbai.campaign import Results, summarise

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
        name, risk = names[0], delta or campaign.deltas[0]
        chosen = next(each.instance for each in campaign.instances if each.name == name)
        if kind == "graph":
            ax = plots.plot_graph(chosen, results.theory(name).omega or None)
            title = name
        elif kind in ("box", "proportions"):
            rows = [row for row in results.rows() if row.instance == name and row.delta == risk]
            _check_any(rows, directory)
            if kind == "box":
                ax = plots.plot_tau_by_policy(rows, results.lower_bound(name, risk))
            else:
                ax = plots.plot_proportions(rows, results.theory(name).omega, chosen.labels)
            title = f"{name}, delta = {risk:g}"
        else:
            cells = [cell for cell in summarise(results) if cell.instance in names]
            if kind == "delta":
                cells = [cell for cell in cells if cell.instance == name]
            else:
                cells = [cell for cell in cells if cell.delta == risk]
                _check_distinct(cells, kind)
            _check_any(cells, directory)
            ax = plots.plot_tau_against(cells, AXES[kind])
            title = name if kind == "delta" else f"delta = {risk:g}"
    picture.write(plots.as_png(ax, title))
    typer.echo(f"The picture is in {out}", err=picture.is_stream)


def _check_any(found: Sequence[object], directory: Path) -> None:
    if not found:
        raise InvalidInput(f"{directory} holds no run of this yet; go on with: spectralbai simulate")


def _check_distinct(cells: Sequence[Cell], kind: str) -> None:
    """Refuses two instances at one place of the x-axis."""
    at: dict[float, str] = {}
    for cell in cells:
        if kind == "R" and isinstance(cell.R, tuple):
            raise InvalidInput(f'--kind R: "{cell.instance}" has an R for each component; choose others by --instance')
        x = cell.n_arms if kind != "R" or isinstance(cell.R, tuple) else cell.R
        other = at.setdefault(x, cell.instance)
        if other != cell.instance:
            raise InvalidInput(
                f'--kind {kind}: "{other}" and "{cell.instance}" both have {kind} = {x:g}; choose instances that '
                "differ in it, with --instance and a pattern such as 'cliques*'"
            )
