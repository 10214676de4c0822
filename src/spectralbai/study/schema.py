"""The tables of a storage of studies, and their version.

A study is its log, the table of events, to which rows are only added. The tables of tickets and results say the same as
its events, in a form that is quick to search; `journal.records` says how they follow. The row of a study counts what
has happened, and writers lock it. The state, which is large, is in a table of its own, so that telling a result does
not rewrite it.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Column, Connection, ForeignKey, Index, MetaData, Table, UniqueConstraint
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import BigInteger, Double, Integer, String, Text

FIRST = 6
"""The first version of these tables that was released."""
STEPS: list[Callable[[Connection], object]] = []
"""What converts the tables to each later version, in order: number i makes version FIRST + i + 1 of FIRST + i. They run
when somebody says `spectralbai study upgrade`, after a backup, and never when a storage is opened."""


def version() -> int:
    """Returns the version of these tables: older and newer ones are refused."""
    return FIRST + len(STEPS)


metadata = MetaData()

schema = Table(
    "spectralbai_schema",
    metadata,
    Column("version", Integer, primary_key=True),
    Column("tried", Text),  # what a service last wrote, to try whether it can
)

studies = Table(
    "spectralbai_studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("created", Double, nullable=False),  # all times are seconds since 1970, UTC
    # What identifies the study as it is now:
    Column("revision", Integer, nullable=False),  # number of events; every change raises it
    Column("folded", Integer, nullable=False),  # revision up to which the stored state is folded
    Column("defined", Integer, nullable=False),  # revision of the last event that changed the definition
    Column("head", String(32), nullable=False),  # checksum of the last event
    # What is to be done:
    Column("results", Integer, nullable=False),  # results told so far
    Column("known", Integer, nullable=False),  # how many of them were known from elsewhere
    Column("due", Integer, nullable=False),  # number of results at which the stored state must be updated
    Column("oldest", Integer),  # number of the oldest open block, if any
    Column("missing", Integer),  # results that this block still needs; at 0 the stored state must be updated, too
    Column("claimed", Double, nullable=False),  # time until which a worker has promised to do that
    # What a list of studies shows:
    Column("options", Integer, nullable=False),
    Column("goal", String(3), nullable=False),
    Column("delta", Double, nullable=False),
    Column("budget", BigInteger),
    Column("until", Double),
    Column("stopped", Double),
    Column("progress", String(12), nullable=False),  # running, inconsistent, decided or doubted, in the stored state
    Column("best", Text),  # label of the arm recommended there, if any
    Column("damage", Text),  # what is wrong with its records, if somebody noticed
)


def _of_studies(name: str, *columns: SchemaItem) -> Table:
    """Returns a table of which each row belongs to a study."""
    return Table(f"spectralbai_{name}", metadata, Column("study", ForeignKey(studies.c.id), primary_key=True), *columns)


events = _of_studies(
    "events",
    Column("revision", Integer, primary_key=True),  # 1, 2, ... in the order of the log
    Column("kind", String(20), nullable=False),
    Column("time", Double, nullable=False),
    Column("body", Text, nullable=False),  # JSON
    Column("bulk", Text),  # JSON of the part that is long and seldom read
    Column("by", String(100)),  # who did it, if somebody did it by hand
    Column("checksum", String(32), nullable=False),  # see `checksums`
    Index("spectralbai_kinds", "study", "kind", "revision"),
)

states = _of_studies(
    "states",
    Column("revision", Integer, nullable=False),  # as in `studies.folded`
    Column("state", Text, nullable=False),  # JSON, spectralbai-state
    Column("checksum", BigInteger, nullable=False),
)

tickets = _of_studies(
    "tickets",
    Column("id", String(16), primary_key=True),
    Column("arm", Integer, nullable=False),
    Column("block", Integer, nullable=False),
    Column("item", Integer),  # the item on which the arm is to be tried, if trials have items
    Column("worker", String(100), nullable=False),
    Column("issued", Double, nullable=False),
    Column("expires", Double, nullable=False),
    Column("checksum", BigInteger, nullable=False),  # of the columns so far, which never change
    Column("abandoned", Double),
    Column("failed", String(200)),
    Column("result", Integer),  # number of its result
    Index("spectralbai_open_tickets", "study", "result", "expires"),
    Index("spectralbai_slots", "study", "block"),
)

observations = _of_studies(
    "observations",
    Column("number", Integer, primary_key=True),  # 1, 2, ... in the order told
    Column("arm", Integer, nullable=False),
    Column("outcome", Double, nullable=False),  # as told, in the user's units and sign
    Column("block", Integer),
    Column("item", Integer),
    Column("told", Double, nullable=False),
    Column("ticket", String(16)),
    Column("origin", String(200)),
    Column("checksum", BigInteger, nullable=False),
    UniqueConstraint("study", "ticket"),
)

deletions = Table(
    "spectralbai_deletions",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("name", String(100), nullable=False),
    Column("created", Double, nullable=False),
    Column("results", Integer, nullable=False),
    Column("deleted", Double, nullable=False),
    Column("by", String(100), nullable=False),
)
