"""Pictures as the content of files: PNG, PDF or SVG."""

from __future__ import annotations

import io
from typing import Any, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes

from spectralbai.plot.paper import fit
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
