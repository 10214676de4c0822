"""The format and the width of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from spectralbai.errors import InvalidInput

if TYPE_CHECKING:
    from spectralbai.plot.files import Format

Width = Annotated[
    float | None,
    Option(help="Width of the picture in inches, with text to match; 3.25 for a column of a paper.", metavar="INCHES"),
]

FORMATS: tuple[Format, ...] = ("png", "pdf", "svg")
NARROWEST, WIDEST = 2.0, 40.0


def picture_format(option: str, path: Path) -> Format:
    """Returns the format of a picture by the suffix of its file; PNG without a suffix, as for a pipe."""
    suffix = path.suffix.lower().removeprefix(".") or "png"
    for form in FORMATS:
        if suffix == form:
            return form
    raise InvalidInput(f"{option} must end in .png, .pdf or .svg, which says the format, got {path}; choose one")


def check_width(width: float | None) -> None:
    """Raises InvalidInput for a width that no picture can have."""
    if width is not None and not NARROWEST <= width <= WIDEST:
        raise InvalidInput(f"--width must be between {NARROWEST:g} and {WIDEST:g} inches, got {width:g}")
