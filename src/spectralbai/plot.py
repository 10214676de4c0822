"""Figures: results in, Axes out. The only module that needs matplotlib: pip install 'spectralbai[plot]'."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import StrMethodFormatter

from spectralbai.reproduction import Row


class Style(NamedTuple):
    """How a curve looks: colours told apart by colour-blind readers, and markers and lines for print in grey."""

    colour: str
    marker: str
    line: str
    face: str
    """Colour inside the marker."""


# Colours of Okabe and Ito.
STYLES = (
    Style("#0072B2", "o", "-", "#0072B2"),
    Style("#D55E00", "s", "--", "white"),
    Style("#009E73", "^", "-.", "#009E73"),
    Style("#CC79A7", "D", ":", "white"),
)
NAMES = {
    "mixture": "mixture: constrained statistic",
    "paper": "paper: constrained statistic",
    "paper-printed": "paper-printed: unconstrained statistic",
}
DODGE = 0.16
"""Distance of neighbouring curves at one R, in parts of the distance of neighbouring R."""


def plot_reproduction(rows: Sequence[Row], delta: float, ax: Axes | None = None) -> Axes:
    """Returns the figure of the paper: the mean of tau, plus or minus a standard deviation, per rule and R, above the lower bound.

    Without `ax` a figure is made, with a caption under it, which pyplot knows nothing of.
    """
    rules = list(dict.fromkeys(row.rule for row in rows))
    radii = sorted({row.R for row in rows})
    spacing = min((high - low for low, high in pairwise(radii)), default=radii[0])
    if ax is None:
        figure = Figure(figsize=(7.2, 5.8), dpi=200, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
        ax = figure.add_subplot()
        figure.supxlabel(_caption(rows, delta), x=0.02, ha="left", fontsize=8.5, linespacing=1.35)

    bound = {row.R: row.lower_bound for row in rows}
    label = r"lower bound on $E[\tau]$: $T_R^*(\mu)\,\mathrm{kl}(\delta, 1-\delta)$"
    ax.plot(radii, [bound[R] for R in radii], color="black", linewidth=2.2, label=label)
    for index, rule in enumerate(rules):
        style = STYLES[index % len(STYLES)]
        own = sorted((row for row in rows if row.rule == rule), key=lambda row: row.R)
        shift = (index - (len(rules) - 1) / 2) * DODGE * spacing  # so that the bars do not hide one another
        ax.errorbar(
            [row.R + shift for row in own],
            [row.mean_tau for row in own],
            yerr=[row.std_tau for row in own],
            color=style.colour, linestyle=style.line, linewidth=1.5, elinewidth=1.0, capsize=2.5,
            marker=style.marker, markerfacecolor=style.face, markersize=5.5, markeredgewidth=1.3,
            label=f"{NAMES.get(rule, rule)} ({'risk proved' if own[0].proved else 'risk not proved'})",
        )  # fmt: skip
    ax.set_xlabel(r"$R$: bound on the roughness $S(\mu)$ of the means (smaller: the graph says more)")
    ax.set_ylabel(r"stopping time $\tau$ (samples)")
    ax.set_xticks(radii)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.01), ncols=1, frameon=False, fontsize=9, handlelength=3.2, borderaxespad=0)
    return ax


def as_png(ax: Axes) -> bytes:
    """Returns the figure that holds `ax` as the content of a PNG file."""
    content = io.BytesIO()
    ax.figure.canvas.figure.savefig(content, format="png")
    return content.getvalue()


def _caption(rows: Sequence[Row], delta: float) -> str:
    runs = sorted({row.runs for row in rows})
    count = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    many = "run" if runs[-1] == 1 else "runs"
    return (
        "Finding the best of three arms of means 0.9, 0.5 and 0.6 from samples with Gaussian noise of standard\n"
        rf"deviation 1, at a risk of error $\delta$ = {delta:g}. It is known that the last two means are alike: their squared"
        "\n"
        "difference, which is 0.01, is at most $R$. Markers and bars: mean and standard deviation of the number\n"
        f"of samples over {count} simulated {many} of SpectralTaS per $R$; all stopping rules watch the same runs.\n"
        "Black line: no method whose risk holds for all means that $R$ allows needs fewer samples on average."
    )
