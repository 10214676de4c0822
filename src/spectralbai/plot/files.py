"""Pictures as the content of files: PNG, PDF or SVG, and of a given width, such as a column of a paper."""

from __future__ import annotations

import io
import math
import re
import textwrap
from itertools import pairwise
from typing import Any, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.text import Text

from spectralbai.plot.style import boxes_for_unknown_signs, given_width, points, words

Format = Literal["png", "pdf", "svg"]
# No dates: the same picture has the same bytes. Commands recognise their own files by these names.
METADATA: dict[Format, dict[str, Any]] = {
    "png": {"Software": "spectralbai"},
    "pdf": {"Creator": "spectralbai", "CreationDate": None},
    "svg": {"Creator": "spectralbai", "Date": None},
}
TRUETYPE = 42
"""The only kind of fonts in PDF files that all publishers accept."""
HEIGHT, HEIGHT_OF_MAP = 0.6, 0.8
"""Height of the axes as a part of the width of the figure, and the same if both directions have one scale."""
LONGEST = 0.4
"""Most room for a label of a tick that is turned, as a part of the width of the figure."""
MARGIN = 0.03
"""Inches that stay free beside text."""
SLANTED, UPRIGHT = 30, 90
"""Degrees by which the labels of ticks are turned if they would touch, and if each is as long as it likes."""
FORMULA = re.compile(r"\$[^$]*\$")
TALL = 40.0
"""Inches that are enough for any text above and below the axes."""


def as_png(ax: Axes, title: str = "") -> bytes:
    """Returns the figure of `ax`, with a title if given, as a PNG whose metadata name spectralbai as the software."""
    return as_picture(ax, "png", title)


def as_picture(ax: Axes, form: Format = "png", title: str = "") -> bytes:
    """Returns the figure of `ax` as the content of a file; within `of_width`, all text is made to fit."""
    content, figure = io.BytesIO(), ax.figure.canvas.figure
    looks = rc_context({"pdf.fonttype": TRUETYPE, "svg.hashsalt": "spectralbai"})
    with looks, boxes_for_unknown_signs():
        if title:
            figure.suptitle(words(title), x=0.02, ha="left", fontsize=points(10))
        if given_width() is not None:
            fit(ax)
        figure.savefig(content, format=form, metadata=METADATA[form])
    return content.getvalue()


def fit(ax: Axes) -> None:
    """Breaks all text that is wider than its room into lines, turns labels of ticks that touch one another, and makes
    the figure as high as the axes and the text need."""
    figure = ax.figure.canvas.figure
    margin = MARGIN * figure.dpi
    width = figure.get_size_inches()[0]
    for text in figure.texts:  # caption and title
        text.set_text(" ".join(text.get_text().split()))
        _break(text, figure.bbox.width - 2 * margin - text.get_window_extent().x0)
    _break_ticks(ax, LONGEST * figure.bbox.width)
    legend = ax.get_legend()
    if legend is not None:
        legend.set_in_layout(False)  # otherwise the axes would become narrower than a wide legend
    figure.set_size_inches(width, TALL)  # so that there is room for the axes, whatever the text
    figure.draw_without_rendering()
    frame = ax.get_window_extent()
    centre = (frame.x0 + frame.x1) / 2
    _break(ax.xaxis.label, 2 * min(centre, figure.bbox.x1 - centre) - 2 * margin)
    _turn_ticks(ax, 2 * margin)
    if legend is not None:
        for text in legend.get_texts():
            text.set_text(text.get_text().replace("\n", " "))
            _break(text, frame.x1 - text.get_window_extent().x0)
        legend.set_in_layout(True)
    figure.draw_without_rendering()
    around = TALL - ax.get_window_extent().height / figure.dpi
    share = HEIGHT
    if ax.get_aspect() != "auto":
        share = HEIGHT_OF_MAP
        ax.autoscale()  # the limits were those of a tall figure
    figure.set_size_inches(width, around + share * width)
    figure.draw_without_rendering()
    _break(ax.yaxis.label, ax.get_window_extent().height, upright=True)


def _break_ticks(ax: Axes, room: float) -> None:
    """Breaks the labels of the x-axis that are names."""
    labels = ax.get_xticklabels()
    before = [label.get_text() for label in labels]
    for label in labels:
        _break(label, room, upright=label.get_rotation() == UPRIGHT)
    after = [label.get_text() for label in labels]
    if after != before:
        ax.set_xticks(ax.get_xticks(), after)


def _turn_ticks(ax: Axes, gap: float) -> None:
    """Turns the labels of the x-axis if there are less than `gap` pixels between two."""
    labels = [label for label in ax.get_xticklabels() if label.get_text()]
    boxes = [label.get_window_extent() for label in labels]
    if any(left.x1 + gap > right.x0 for left, right in pairwise(boxes)) and not labels[0].get_rotation():
        for label in ax.get_xticklabels():
            label.set(rotation=SLANTED, horizontalalignment="right", rotation_mode="anchor")


def _break(text: Text, room: float, upright: bool = False) -> None:
    """Breaks text into lines that take at most `room` pixels; words and formulas stay whole."""

    def size() -> float:
        box = text.get_window_extent()
        return float(box.height if upright else box.width)

    if not text.get_text() or size() <= room:
        return
    lines = [FORMULA.sub(lambda formula: formula[0].replace(" ", "\0"), line) for line in text.get_text().split("\n")]
    least = max(len(word) for line in lines for word in line.split())
    longest = max(map(len, lines))
    start = math.ceil(1.3 * longest * room / size())  # characters are nearly alike: more of them cannot fit
    for most in range(max(min(longest, start), least), least - 1, -1):
        broken = [part for line in lines for part in textwrap.wrap(line, most, break_long_words=False)]
        text.set_text("\n".join(broken).replace("\0", " "))
        if size() <= room:
            return
