"""How figures look: curves can be distinguished by colour-blind readers and in black-and-white print."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, StrMethodFormatter


class Style(NamedTuple):
    """How a curve looks: a colour for colour-blind readers, and a marker and line for black-and-white print."""

    colour: str
    marker: str
    line: str | tuple[int, tuple[int, ...]]
    face: str
    """Colour inside the marker."""

    @property
    def marks(self) -> dict[str, Any]:
        """The look of markers, as arguments for matplotlib."""
        return {"color": self.colour, "marker": self.marker, "markerfacecolor": self.face}


# Colours of Okabe and Ito, and two of Tol.
STYLES = (
    Style("#0072B2", "o", "-", "#0072B2"),
    Style("#D55E00", "s", "--", "white"),
    Style("#009E73", "^", "-.", "#009E73"),
    Style("#CC79A7", "D", ":", "white"),
    Style("#E69F00", "v", (0, (5, 1, 1, 1, 1, 1)), "#E69F00"),
    Style("#56B4E9", "P", (0, (1, 1)), "white"),
    Style("#666666", "X", (0, (8, 3)), "#666666"),
    Style("#882255", "<", (0, (3, 1, 1, 1)), "white"),
    Style("#117733", "*", (0, (2, 2)), "#117733"),
)


WIDE = 7.2
"""Width in inches from which on text has its full size."""
SMALLEST = 6.0
"""Least size of text, in points."""
_width: ContextVar[float | None] = ContextVar("_width", default=None)


@contextmanager
def of_width(width: float | None) -> Iterator[None]:
    """Makes pictures that are drawn here that wide, in inches, with text that fits; None leaves them as they are.

    Draw them and call `as_picture` inside.
    """
    token = _width.set(width)
    try:
        with rc_context({"font.size": points(10)}):
            yield
    finally:
        _width.reset(token)


def given_width() -> float | None:
    """Returns the width of `of_width`."""
    return _width.get()


def points(size: float) -> float:
    """Returns a size of text, in points, for the width of pictures: three quarters for a column of a paper."""
    share = min((given_width() or WIDE) / WIDE, 1.0)
    return max(size * (0.6 + 0.4 * share), min(size, SMALLEST))


def new_axes(caption: str = "", size: tuple[float, float] = (7.2, 5.8)) -> Axes:
    """Returns the axes of a new figure with a caption under it; the figure is not registered with pyplot."""
    width, dpi, pad = given_width(), 200, 0.1
    if width is not None:
        size, dpi, pad = (width, size[1] * width / size[0]), 300, 0.03
    figure = Figure(figsize=size, dpi=dpi, layout=ConstrainedLayoutEngine(w_pad=pad, h_pad=pad))
    ax = figure.add_subplot()
    if caption:
        figure.supxlabel(caption, x=0.02, ha="left", fontsize=points(8.5), linespacing=1.35)
    return ax


def samples_on_y(ax: Axes, times: Sequence[float] = ()) -> None:
    """Labels the y-axis as the stopping time, in samples. It starts at 0, or is logarithmic if `times` differ much."""
    if times and max(times) > 20 * min(times):
        ax.set_yscale("log")
        ax.yaxis.set_minor_formatter(NullFormatter())
    else:
        ax.set_ylim(bottom=0)
    ax.set_ylabel(r"stopping time $\tau$ (samples)")
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    plain(ax)


def plain(ax: Axes, along: Literal["x", "y"] = "y") -> None:
    """Removes decoration: only two spines remain, and light grid lines at the ticks of the axis `along`."""
    ax.grid(axis=along, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def curve_with_bars(
    ax: Axes, x: Sequence[float], y: Sequence[float], half: Sequence[float], style: Style, label: str
) -> ErrorbarContainer:
    """Draws a curve in this style, with bars that reach `half` up and down."""
    return ax.errorbar(
        x, y, yerr=half, label=label,
        **style.marks, markersize=5.5, markeredgewidth=1.3,
        linestyle=style.line, linewidth=1.5, elinewidth=1.0, capsize=2.5,
    )  # fmt: skip


def note(ax: Axes, text: str, at: Any, offset: tuple[float, float], **look: Any) -> Annotation:
    """Writes text beside the point `at`, `offset` points away from it, and returns it."""
    return ax.annotate(text, at, xytext=offset, textcoords="offset points", **look)


def percent_on_x(ax: Axes) -> None:
    """Writes shares on the x-axis in percent, as tables do."""
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=(1, 2, 2.5, 5, 10)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.6g} %"))


def legend_above(ax: Axes, columns: int = 1) -> None:
    """Puts the legend above the axes, where it covers nothing, in at most `columns` columns and no wider than the axes.

    With several columns, call this last: anything drawn later may move the axes.
    """
    figure = ax.figure.canvas.figure
    for fewer in range(columns, 0, -1):
        legend = ax.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1.01),
            ncols=fewer,
            frameon=False,
            fontsize=points(9),
            handlelength=3.2,
            borderaxespad=0,
        )
        if fewer == 1:
            return
        legend.set_in_layout(False)  # otherwise the axes would shrink to make room for it
        with boxes_for_unknown_signs():
            figure.draw_without_rendering()
            fits = legend.get_window_extent().x1 <= ax.get_window_extent().x1
        legend.set_in_layout(True)
        if fits:
            return


def words(text: str) -> str:
    """Returns a user's text so that matplotlib shows it literally: not as a formula, nor hidden by a leading "_"."""
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def shortened(text: str, longest: int = 24) -> str:
    """Returns a label that fits. The middle of a long label is left out, since labels mostly differ at their ends."""
    return text if len(text) <= longest else f"{text[: longest // 2]}…{text[1 - longest + longest // 2 :]}"


@contextmanager
def boxes_for_unknown_signs() -> Iterator[None]:
    """Suppresses the warning for characters that the font lacks; they are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        yield
