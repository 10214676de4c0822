"""The graph of an instance: means as colours, an allocation as sizes, the best arm marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.patches import Circle
from matplotlib.patheffects import withStroke

from spectralbai.arrays import Matrix, Vector
from spectralbai.graph import Categories
from spectralbai.instance import Instance
from spectralbai.layout import layout
from spectralbai.plot.files import fit
from spectralbai.plot.style import (
    boxes_for_unknown_signs,
    given_width,
    legend_above,
    new_axes,
    note,
    points,
    shortened,
    words,
)

MOST_LABELS = 150
"""Most arms for which a place for the label is searched."""
MOST_RIMS = 400
"""With more arms than this, dots are too small for a rim, and only the named arms get a label."""
MOST_CATEGORIES = 60
"""With more categories than this, their names are not written."""
BESIDE = ((0, 1), (1, 0), (-1, 0), (0, -1), (0.7, 0.7), (-0.7, 0.7), (0.7, -0.7), (-0.7, -0.7))
"""Directions from an arm in which there may be room for its label: (right, up), the best first."""
ALIGNED = {-1: ("right", "top"), 0: ("center", "center"), 1: ("left", "bottom")}
"""How the text of a label is aligned, across and upright, by the sign of its direction."""
OPTIMAL = r"share of the pulls in the optimal allocation $\omega^*$"


def plot_graph(
    instance: Instance,
    omega: Sequence[float] | None = None,
    ax: Axes | None = None,
    *,
    best: int | None = None,
    named: Sequence[int] = (),
    area_is: str = OPTIMAL,
    colour_is: str = r"mean $\mu$",
    star_is: str = "best arm",
) -> Axes:
    """Returns axes with the graph: an arm's colour is its mean, its area its share in `omega`; a star marks the best.

    `best` is by default the arm with the largest mean. Labels are written where they cover neither arms nor other
    labels: first for the best arm, then for `named`, then for the other arms, those with extreme means first.
    `area_is`, `colour_is` and `star_is` name what is shown, if it is something else.
    """
    graph, mu = instance.problem.graph, instance.mu
    ax = ax or new_axes(size=(5.2, 4.4 if graph.n_arms <= 40 else 5.6))
    places = layout(graph)
    if isinstance(graph, Categories):
        _draw_categories(ax, graph, places)
    else:
        widths = 0.5 + 1.5 * graph.weights / graph.weights.max() if graph.n_edges else []
        ax.add_collection(LineCollection(list(places[graph.pairs]), colors="0.75", linewidths=widths, zorder=1))
    share = np.full(graph.n_arms, 1 / graph.n_arms) if omega is None else np.array(omega)
    colours = np.zeros(graph.n_arms) if mu is None else mu
    arms, area = _draw_arms(ax, places, share, colours)
    if mu is not None:
        best = int(np.argmax(mu)) if best is None else best
        name = f"{star_is}: {words(shortened(instance.labels[best]))}"
        x, y = places[best]
        area_of_star = 110 * _scale()
        ax.scatter(
            x, y, s=area_of_star, marker="*", color="white", edgecolors="black", linewidths=0.8, zorder=3, label=name
        )
        ax.figure.canvas.figure.colorbar(arms, ax=ax, label=colour_is, shrink=0.8)
    if omega is not None:
        lines = "circles: categories" if isinstance(graph, Categories) else "lines: edges, wider if heavier"
        ax.set_xlabel(f"area: {area_is}\n{lines}")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.set_aspect("equal", "datalim")
    ax.margins(0.12)
    if mu is not None:
        legend_above(ax)
    if given_width() is not None:
        fit(ax)  # no text moves the arms any more
    first = [*([] if best is None else [best]), *named]
    if graph.n_arms <= MOST_RIMS:
        order = np.argsort(-colours, kind="stable")
        first += np.column_stack([order, order[::-1]]).ravel().tolist()  # the largest, the least, the second largest...
    _write_labels(ax, [words(shortened(label)) for label in instance.labels], places, area, first)
    return ax


def _draw_arms(ax: Axes, places: Matrix, share: Vector, colours: Vector) -> tuple[PathCollection, Vector]:
    """Draws a dot for each arm; returns the dots and their areas."""
    area = (25 + 400 * share / share.max()) * min(1.0, 12 / share.size) * _scale()
    rim = 0.7
    if share.size > MOST_RIMS:
        area, rim = np.maximum(area, 1.0), 0.0  # black rims would hide the colours of many small dots
    x, y = places.T
    dots = ax.scatter(x, y, s=area, c=colours, cmap="cividis", edgecolors="black", linewidths=rim, zorder=2)
    return dots, area


def _scale() -> float:
    """Returns the scale of areas, as that of text."""
    return (points(10) / 10) ** 2


def _draw_categories(ax: Axes, graph: Categories, places: Matrix) -> None:
    """Draws a circle around the arms of each category, with its name below."""
    named = graph.n_components <= MOST_CATEGORIES
    for category, name in enumerate(graph.categories):
        own = places[graph.of_arm == category]
        radius = 0.5 * np.sqrt(len(own)) + 0.35
        centre = own.mean(axis=0)
        if len(own) > 1:
            ax.add_patch(Circle(tuple(centre), radius, fill=False, edgecolor="0.75", linewidth=0.8, zorder=1))
        if named:
            below = (centre[0], centre[1] - radius)
            note(ax, words(shortened(name)), below, (0, -2), fontsize=points(7), color="0.35", ha="center", va="top")


def _write_labels(ax: Axes, labels: Sequence[str], places: Matrix, area: Vector, first: Iterable[int]) -> None:
    """Writes labels beside their arms, where they cover neither arms nor other labels; `first` is their order, and may
    name an arm twice."""
    figure = ax.figure.canvas.figure
    with boxes_for_unknown_signs():
        figure.draw_without_rendering()
        centres = ax.transData.transform(places)
        pixel = figure.dpi / 72
        radii = np.sqrt(area / np.pi) * pixel
        taken = np.column_stack([centres - radii[:, None], centres + radii[:, None]])  # x0, y0, x1, y1 of each
        frame = figure.bbox
        rim = [withStroke(linewidth=1.5, foreground="white")]  # edges may pass behind
        for arm in list(dict.fromkeys(first))[:MOST_LABELS]:
            label, at, gap = labels[arm], places[arm], radii[arm] / pixel + 2
            for right, up in BESIDE:
                offset, ha, va = (right * gap, up * gap), ALIGNED[np.sign(right)][0], ALIGNED[np.sign(up)][1]
                text = note(ax, label, at, offset, fontsize=points(7.5), ha=ha, va=va, zorder=4, path_effects=rim)
                text.set_in_layout(False)  # so that the label does not move the axes
                x0, y0, x1, y1 = text.get_window_extent().extents
                inside = x0 >= frame.x0 and x1 <= ax.get_window_extent().x1 and y0 >= frame.y0 and y1 <= frame.y1
                apart = (taken[:, 0] >= x1) | (taken[:, 2] <= x0) | (taken[:, 1] >= y1) | (taken[:, 3] <= y0)
                if inside and apart.all():
                    taken = np.vstack([taken, (x0, y0, x1, y1)])
                    break
                text.remove()
