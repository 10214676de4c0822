"""`spectralbai study`: live studies from a shell, one group of commands a file.

stdout gets what a script needs, stderr what a person may want to know.
"""

from __future__ import annotations

import typer

from spectralbai.cli.study.files import export, import_, report
from spectralbai.cli.study.lifecycle import create, delete, join, stop, withdraw
from spectralbai.cli.study.status import list_, status
from spectralbai.cli.study.trials import abandon, ask, shares, tell

app = typer.Typer(no_args_is_help=True, help="Live studies. Ask what to try, tell the outcomes, until it says stop.")
app.command()(create)
app.command()(ask)
app.command(context_settings={"ignore_unknown_options": True})(tell)  # a negative outcome is not an option
app.command()(shares)
app.command()(abandon)
app.command()(withdraw)
app.command()(join)
app.command()(stop)
app.command()(status)
app.command("list")(list_)
app.command()(report)
app.command()(export)
app.command()(delete)
app.command("import")(import_)
