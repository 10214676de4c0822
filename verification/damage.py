"""Storages with damaged cells, rows and bits: `python -m verification.damage [--storages N]`.

None may give anything but a sentence, other studies must go on, and every change of an outcome, an arm or a ticket must
be found by a check.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import spectralbai as sb
from spectralbai.study import export_study, results_as_csv
from verification.workers import INSTANCE

VALUES: tuple[Any, ...] = (
    None,
    "",
    "x",
    "\U0001f600",
    b"\xff\xfe",
    -1,
    0,
    7,
    2**62,
    1e308,
    -0.5,
    float("inf"),
    "{",
    "[]",
    "null",
)
TABLES = ("studies", "events", "states", "tickets", "observations")
OUTCOMES = {
    ("events", "body"), ("events", "bulk"), ("events", "kind"), ("events", "revision"), ("events", "time"),
    ("tickets", "id"), ("tickets", "arm"), ("tickets", "block"), ("tickets", "result"), ("tickets", "worker"),
    ("observations", "number"), ("observations", "arm"), ("observations", "outcome"), ("observations", "block"),
    ("observations", "ticket"), ("observations", "told"), ("observations", "origin"),
}  # fmt: skip
"""What a check must find every change of."""


class Spread(Exception):
    """Damage of one study did harm to another."""


def filled(file: Path) -> None:
    """Makes a storage with two studies."""
    rng = random.Random(1)
    with sb.Studies(f"sqlite:///{file}") as studies:
        for name in ("a", "b"):
            study = studies.create(name, INSTANCE)
            while study.revision < 60:
                study.tell_many([(ticket, rng.random()) for ticket in study.ask(4, worker="w")])
            study.abandon(*study.ask(1))


def damaged_cells(file: Path, rng: random.Random, most: int) -> Iterator[tuple[tuple[str, str], str, tuple[Any, ...]]]:
    """Yields changes of single cells of the first study: the table and the column, a statement, and its values."""
    with closing(sqlite3.connect(file)) as connection:
        connection.text_factory = bytes
        (study,) = connection.execute("SELECT id FROM spectralbai_studies ORDER BY created LIMIT 1").fetchone()
        for _ in range(most):
            table = rng.choice(TABLES)
            columns = [row[1].decode() for row in connection.execute(f"PRAGMA table_info(spectralbai_{table})")]
            column = rng.choice(
                [each for each in columns if each not in ("study",) and (table, each) != ("studies", "id")]
            )
            here = "id" if table == "studies" else "study"
            rows = connection.execute(f"SELECT rowid FROM spectralbai_{table} WHERE {here} = ?", (study,)).fetchall()
            value = rng.choice(VALUES)
            (rowid,) = rng.choice(rows)
            yield (
                (table, column),
                f"UPDATE OR IGNORE spectralbai_{table} SET {column} = ? WHERE rowid = ?",
                (value, rowid),
            )


def use_everything(url: str) -> bool:
    """Does everything with the studies of a storage; returns whether a check finds the first study sound. Anything but
    a refusal of this package ends with its exception, as does anything wrong with the second study."""
    with sb.Studies(url) as studies:
        lines = studies.list()
        studies.pending()
        name = next((each.name for each in lines if each.name != "b"), None)
        if name is None:
            return False
        try:
            sound = studies.check(name).sound
        except sb.SpectralBAIError:
            sound = False
        for what in (
            "ask",
            "status",
            "report",
            "recent",
            "pending",
            "log",
            "export",
            "csv",
            "shares",
            "verdicts",
            "tell",
        ):
            with suppress(sb.SpectralBAIError), studies.open(name) as study:
                if what in ("export", "csv"):
                    (export_study if what == "export" else results_as_csv)(study)
                elif what == "tell":
                    study.tell_many((ticket, 0.25) for ticket in study.ask(3))
                elif what == "report":
                    study.report().as_dict()
                else:
                    getattr(study, what)()
        with suppress(sb.SpectralBAIError):
            studies.export_readable(name)
        other = studies.open("b")
        if not (other.tell(other.ask()[0], 0.25) and other.status().results and studies.check("b").sound):
            raise Spread('the study "b" is damaged too')
        studies.delete(name)
        if [each.name for each in studies.list()] != ["b"]:
            raise Spread(f'"{name}" is still there')
        return sound


def campaign(storages: int, folder: Path, seed: int = 0) -> Counter[str]:
    """Damages so many storages: single cells of half of them, rows of a quarter, and bits of the others."""
    rng = random.Random(seed)
    whole = folder / "whole.db"
    filled(whole)
    counts: Counter[str] = Counter()
    cells = damaged_cells(whole, rng, storages)
    for number in range(storages):
        copy = folder / f"{number}.db"
        content = bytearray(whole.read_bytes())
        kind = ("cell", "cell", "row", "bit")[number % 4]
        place, change, values = next(cells)
        if kind == "bit":
            content[rng.randrange(4096, len(content))] ^= 1 << rng.randrange(8)
        copy.write_bytes(content)
        changed = kind == "bit"
        if kind != "bit":
            if kind == "row":
                change, values = f"DELETE FROM spectralbai_{place[0]} WHERE rowid = ?", values[-1:]
            with closing(sqlite3.connect(copy)) as connection, connection:
                with suppress(sqlite3.Error):  # some changes the database itself refuses
                    query = f"SELECT * FROM spectralbai_{place[0]} WHERE rowid = ?"
                    before = connection.execute(query, values[-1:]).fetchall()
                    connection.execute(change, values)
                    changed = connection.execute(query, values[-1:]).fetchall() != before
        try:
            sound = use_everything(f"sqlite:///{copy}")
        except (sb.SpectralBAIError, Spread) as error:
            if kind != "bit":
                raise SystemExit(f"{place}, {change} {values}: {error}") from None
            sound = False  # the file itself is damaged, which is a sentence too
        except Exception as error:
            raise SystemExit(f"{kind} of {place}, {change} {values}: {error!r}") from error
        if changed and sound and (kind == "row" or (kind == "cell" and place in OUTCOMES)):
            raise SystemExit(f"{kind} of {place}, {change} {values}: no check found it")
        counts[f"{kind}, {'changed' if changed else 'as before'}, {'sound' if sound else 'found'}"] += 1
        for ending in ("", "-wal", "-shm"):
            Path(f"{copy}{ending}").unlink(missing_ok=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storages", type=int, default=200)
    chosen = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        counts = campaign(chosen.storages, Path(folder))
    print(f"{counts.total()} damaged storages, no traceback; {time.monotonic() - begin:.0f} s")
    for what, count in sorted(counts.items()):
        print(f"  {what}: {count}")


if __name__ == "__main__":
    main()
