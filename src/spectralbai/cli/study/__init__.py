"""`spectralbai study`: live studies from a shell, one group of commands a file.

stdout gets what a script needs, stderr what a person may want to know.
"""

from __future__ import annotations

import typer

from spectralbai.cli.study.checking import check
from spectralbai.cli.study.files import export, import_, report
from spectralbai.cli.study.lifecycle import correct, create, delete, join, stop, upgrade, void, withdraw
from spectralbai.cli.study.status import list_, status
from spectralbai.cli.study.trials import abandon, ask, shares, tell

app = typer.Typer(no_args_is_help=True, help="Live studies. Ask what to try, tell the outcomes, until it says stop.")
COMMANDS = (
    *(create, ask, tell, shares, abandon, withdraw, join, stop, status, list_, report, export, delete, import_),
    *(void, correct, upgrade, check),
)
for command in COMMANDS:
    settings = {"ignore_unknown_options": True} if command is tell else None  # a negative outcome is not an option
    app.command(command.__name__.rstrip("_"), context_settings=settings)(command)
