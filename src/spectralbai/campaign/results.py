"""The results of a campaign in one SQLite file. Rows are written in chunks, each in one transaction, so that the file
can be read at any time."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from spectralbai.allocation import samples_needed, solve_allocation
from spectralbai.campaign.definition import Campaign
from spectralbai.closing import Closing
from spectralbai.documents import Rows, software
from spectralbai.errors import InvalidInput, SpectralBAIError

FILE = "results.sqlite"
SCHEMA = 3
"""Version of the results, kept in the file as PRAGMA user_version."""

TABLES = """
CREATE TABLE campaign (source TEXT NOT NULL, definition TEXT NOT NULL);
CREATE TABLE sessions (started TEXT NOT NULL, versions TEXT NOT NULL);
CREATE TABLE theory (instance TEXT PRIMARY KEY, lower REAL NOT NULL, upper REAL NOT NULL, omega TEXT NOT NULL);
CREATE TABLE runs (
    instance TEXT NOT NULL, policy TEXT NOT NULL, delta REAL NOT NULL, run INTEGER NOT NULL, seed INTEGER NOT NULL,
    rule TEXT NOT NULL, proved INTEGER NOT NULL, status TEXT NOT NULL, tau INTEGER NOT NULL, arm INTEGER NOT NULL,
    correct INTEGER NOT NULL, counts TEXT NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (instance, policy, delta, run)
);
"""


@dataclass(frozen=True)
class RunRow:
    """One run of one cell."""

    instance: str
    policy: str
    delta: float
    run: int
    seed: int
    rule: str
    proved: bool
    status: str
    """"decided", "inconsistent" or "truncated"."""
    tau: int
    arm: int
    correct: bool
    counts: tuple[int, ...]
    """Pulls per arm over the whole run, which lasts until the smallest delta has decided."""
    seconds: float
    """Time of the whole run."""


COLUMNS = tuple(RunRow.__dataclass_fields__)


@dataclass(frozen=True)
class Theory:
    """Certified bounds of 1/T* of an instance, and its optimal allocation; 0, inf and () if R is below S(mu).

    For scores in a range they are computed for Gaussian outcomes, and give no lower bound on the samples.
    """

    lower: float
    upper: float
    omega: tuple[float, ...]


class Results(Closing):
    """The results in a directory, as a context manager: leaving it closes the file."""

    def __init__(self, path: Path) -> None:
        """Use `Results.open` or `Results.begin`."""
        self.path = path
        with _sentences(path):
            self._connection = sqlite3.connect(path, timeout=30, isolation_level=None)
            self._connection.execute("PRAGMA synchronous = FULL")  # committed chunks survive a power cut

    @property
    def schema(self) -> int:
        """The version of the results; 0 if there is nothing in the file."""
        version: int = self._read("PRAGMA user_version")[0][0]
        return version

    @classmethod
    def open(cls, directory: Path) -> Results:
        """Returns the results of a campaign that was begun earlier."""
        path = directory / FILE
        if not path.is_file():
            raise InvalidInput(
                f"{directory} holds no {FILE}; make it with: spectralbai simulate FILE --out {directory}"
            )
        results = cls(path)
        results._check_schema()
        return results

    @classmethod
    def begin(cls, directory: Path, source: str, campaign: Campaign) -> Results:
        """Returns the results of this campaign in the directory, which is made if needed: new ones, or earlier ones to
        go on with."""
        directory.mkdir(parents=True, exist_ok=True)
        path, definition = directory / FILE, campaign.as_dict()
        results = cls(path)
        with results._writing() as connection:  # nobody else can begin it meanwhile
            if not results._read("SELECT 1 FROM sqlite_master"):
                for statement in TABLES.split(";"):
                    connection.execute(statement)
                connection.execute("INSERT INTO campaign VALUES (?, ?)", (source, json.dumps(definition)))
                connection.execute(f"PRAGMA user_version = {SCHEMA}")
        results._check_schema()
        changed = _difference(results.definition, definition)
        if changed:
            raise InvalidInput(
                f"{path} holds a campaign with other {changed}; choose another directory, or the file it was begun with"
            )
        now = (datetime.now(UTC).isoformat(timespec="seconds"), json.dumps(software()))
        with results._writing() as connection:
            connection.execute("INSERT INTO sessions VALUES (?, ?)", now)
        return results

    def _check_schema(self) -> None:
        schema = self.schema
        if schema != SCHEMA:
            self.close()
            raise InvalidInput(
                f"{self.path} must have the format {SCHEMA}, got {schema or 'no results'}; simulate again in another "
                "directory, or use the version of spectralbai that wrote it"
            )

    def _read(self, query: str, *values: object) -> list[Any]:
        with _sentences(self.path):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Yields the connection in a transaction: all that is written is kept, or nothing."""
        with _sentences(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Closes the connection to the file."""
        self._connection.close()

    @cached_property
    def definition(self) -> dict[str, Any]:
        with _sentences(self.path):
            ((text,),) = self._read("SELECT definition FROM campaign")
            definition: dict[str, Any] = json.loads(text)
        return definition

    @cached_property
    def campaign(self) -> Campaign:
        with _sentences(self.path):
            return Campaign.from_dict(self.definition)

    @property
    def sessions(self) -> list[dict[str, str]]:
        """The versions of all software, one dictionary for each time that the campaign was started or continued."""
        with _sentences(self.path):
            return [json.loads(versions) for (versions,) in self._read("SELECT versions FROM sessions ORDER BY rowid")]

    def done(self) -> set[tuple[str, str, float, int]]:
        """Returns (instance, policy, delta, run) of every row."""
        return set(self._read("SELECT instance, policy, delta, run FROM runs"))

    def write(self, rows: Iterable[RunRow]) -> None:
        """Writes rows, all or none; rows that exist already are not changed."""
        values = [(*(getattr(row, name) for name in COLUMNS[:-2]), json.dumps(row.counts), row.seconds) for row in rows]
        with self._writing() as connection:
            connection.executemany(f"INSERT OR IGNORE INTO runs VALUES ({', '.join('?' * len(COLUMNS))})", values)

    def rows(self) -> Rows[RunRow]:
        """Returns every row, in the order of the campaign file; policies that it does not have come last."""
        campaign = self.campaign
        instances = {each.name: position for position, each in enumerate(campaign.instances)}
        policies = {each.name: position for position, each in enumerate(campaign.policies)}
        with _sentences(self.path):
            found = self._read(f"SELECT {', '.join(COLUMNS)} FROM runs")
            last = len(policies)
            found.sort(key=lambda row: (instances[row[0]], policies.get(row[1], last), row[1], -row[2], row[3]))
            return Rows(RunRow, (_row(**dict(zip(COLUMNS, row, strict=True))) for row in found))

    def theory(self, name: str) -> Theory:
        """Returns the bounds of an instance; they are computed once and stored."""
        stored = self._read("SELECT lower, upper, omega FROM theory WHERE instance = ?", name)
        found = stored[0] if stored else None
        if found is None:
            instance = next(each for each in self.campaign.instances if each.name == name)
            try:
                allocation = solve_allocation(instance.instance.problem, instance.mu, tol=1e-4)
                found = (allocation.lower, allocation.upper, json.dumps(allocation.omega.tolist()))
            except InvalidInput:  # R is below S(mu), which campaigns allow: then there are no bounds
                found = (0.0, math.inf, "[]")
            # Reading works on a read-only folder too, where the bounds cannot be stored.
            with suppress(SpectralBAIError), self._writing() as connection:
                connection.execute("INSERT OR IGNORE INTO theory VALUES (?, ?, ?, ?)", (name, *found))
        lower, upper, omega = found
        return Theory(lower, upper, tuple(json.loads(omega)))

    def lower_bound(self, name: str, delta: float) -> float:
        """Returns the number of samples that every policy of risk `delta` needs on average; 0 if no bound is known: R
        is below S(mu), outcomes are scores in a range, or options are tried on the items of a table."""
        instance = next(each for each in self.campaign.instances if each.name == name)
        problem = instance.instance.problem
        # Outcomes on one item of a table depend on each other, and their differences may need fewer trials.
        if problem.noise.divergence is None or (instance.outcomes is not None and problem.items is not None):
            return 0.0
        return samples_needed(self.theory(name).upper, delta)


def _row(proved: int, correct: int, counts: str, **others: Any) -> RunRow:
    return RunRow(proved=bool(proved), correct=bool(correct), counts=tuple(json.loads(counts)), **others)


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """Turns errors of SQLite, or from a damaged file, into a SpectralBAIError with one clear sentence."""
    try:
        yield
    except sqlite3.Error as error:
        reason = str(error)
        if "full" in reason:
            reason = "the disk is full; make room and run the same command again: nothing written before is lost"
        raise SpectralBAIError(f"{path}: {reason}") from None
    except SpectralBAIError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SpectralBAIError(
            f"{path} is damaged ({type(error).__name__}: {error}); restore it, or choose another directory"
        ) from None


def _difference(found: dict[str, object], asked: dict[str, object]) -> str:
    """Returns the keys that differ between two definitions, as text; "" if none does."""
    asked = json.loads(json.dumps(asked))
    return " and ".join(key for key in asked if found.get(key) != asked[key])
