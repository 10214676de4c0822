"""The option --import: modules that register rules, policies, noise and the like, before a command looks for them."""

from __future__ import annotations

from typing import Annotated

from typer import Option


def _load(modules: list[str] | None) -> list[str]:
    from spectralbai import plugins

    plugins.load(modules or ())
    return modules or []


Import = Annotated[
    list[str] | None,
    Option(
        "--import",
        callback=_load,
        help="Module of your own rules, noise and the like, here or installed; may be repeated.",
        metavar="MODULE",
    ),
]
"""A parameter of every command that looks things up by name; the work is done when it is parsed."""
