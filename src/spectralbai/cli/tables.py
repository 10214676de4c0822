"""How answers are laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType


def print_plain(*parts: RenderableType, least_width: int = 0, err: bool = False) -> None:
    """Prints strings and tables below one another, strings as they are: no markup, for they may hold a user's words.

    Tables are fitted to the terminal, but not below `least_width`; strings are left to it. They go to stderr if `err`.
    """
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    console.width = max(console.width, least_width)
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, str))
    # echo replaces what the terminal cannot show, where print would raise
    typer.echo("\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n")), err=err)
