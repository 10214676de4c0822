"""`spectralbai backup` and `spectralbai restore`: a whole storage as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from spectralbai.cli.extensions import Import
from spectralbai.cli.study.common import Json, StorageUrl, answer
from spectralbai.text.wording import in_words

if TYPE_CHECKING:
    from spectralbai.study import Check


def backup(
    dest: Annotated[Path, Argument(help="The file to write.", metavar="DEST")],
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Copies a storage to a file, while it is in use.

    The copy is checked. The file is an SQLite storage, whichever database it was copied from; spectralbai restore
    copies it back.
    """
    from spectralbai.study import backup as copy

    _say(copy(storage, dest), f"The backup {dest}", as_json)


def restore(
    file: Annotated[Path, Argument(help="The backup.", metavar="FILE")],
    storage: StorageUrl = None,
    as_json: Json = False,
    modules: Import = None,
) -> None:
    """Copies a backup to a storage without studies, and checks them."""
    from spectralbai.study import restore as copy

    _say(copy(file, storage), "The storage", as_json)


def _say(checks: list[Check], what: str, as_json: bool) -> None:
    results = sum(check.results for check in checks)
    damaged = [check.name for check in checks if not check.sound]
    studies = "1 study" if len(checks) == 1 else f"{len(checks):,} studies"
    words = f"{what} has {studies} with {in_words(results, 'result')}"
    sound = "all are as they were written"
    words += f"; damaged, as before: {', '.join(damaged)}" if damaged else f"; {sound}" if checks else ""
    answer(as_json, {"studies": len(checks), "results": results, "damaged": damaged}, words)
    if damaged:
        raise typer.Exit(1)
