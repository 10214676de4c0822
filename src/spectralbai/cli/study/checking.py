"""The log of a study folded again, and all that is stored compared with it."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

from spectralbai.cli.extensions import Import
from spectralbai.cli.study.common import Json, StorageUrl
from spectralbai.cli.tables import print_json
from spectralbai.errors import InvalidInput
from spectralbai.text.wording import in_words


def check(
    name: Annotated[str | None, Argument(help="Name of the study.", metavar="NAME")] = None,
    all_: Annotated[bool, Option("--all", help="Check every study of the storage.")] = False,
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Checks that a study is as it was written.

    The exit code is 1 if it is not. Its log is folded again, and compared with its checksums and with its state,
    results and tickets.
    """
    from spectralbai.study import Studies

    if all_ == (name is not None):
        raise InvalidInput("name a study to check, or check all of them with --all")
    with Studies(storage, create=False) as studies:
        checks = [studies.check(name)] if name is not None else studies.check_all()
    if as_json:
        print_json([each.as_dict() for each in checks])
    else:
        for each in checks:
            typer.echo(f'"{each.name}": {in_words(each.events, "event")}, {in_words(each.results, "result")}', nl=False)
            typer.echo("; as they were written" if each.sound else f"; DAMAGED: {each.damage[0]}")
            for more in each.damage[1:]:
                typer.echo(f"    {more}")
    if not all(each.sound for each in checks):
        raise typer.Exit(1)
