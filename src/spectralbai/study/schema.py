"""The tables of a storage of studies, and their version.

Observations are appended and never changed. Writers lock the study's row in the table of studies. The state, which is
large, is in a separate table, so that telling a result does not rewrite it.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from sqlalchemy import Column, Connection, ForeignKey, Index, MetaData, Table, UniqueConstraint, select, text, update
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import Double, Integer, String, Text, TypeDecorator

from spectralbai import run_lengths

VERSION = 4
"""Version of these tables: older storages are converted when they are opened (`migrate`), newer ones refused."""


class Json(TypeDecorator[Any]):
    """A value kept as the text of its JSON form; lists are read as tuples."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: object) -> str:
        return json.dumps(value)

    def process_result_value(self, value: Any, dialect: object) -> Any:
        found = json.loads(value)
        return tuple(found) if isinstance(found, list) else found


class Numbers(TypeDecorator[Any]):
    """Numbers, or none, kept as JSON text that is short even if there are thousands; they are read as a tuple."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: object) -> str | None:
        return None if value is None else json.dumps(run_lengths.as_json(value))

    def process_result_value(self, value: Any, dialect: object) -> tuple[Any, ...] | None:
        return None if value is None else _numbers(value)


@lru_cache(maxsize=8)  # candidates seldom change from one check to the next
def _numbers(text: str) -> tuple[Any, ...]:
    return tuple(run_lengths.from_json(json.loads(text)))


metadata = MetaData()

schema = Table("spectralbai_schema", metadata, Column("version", Integer, primary_key=True))

studies = Table(
    "spectralbai_studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("created", Double, nullable=False),  # all times are seconds since 1970, UTC
    Column("definition", Text, nullable=False),  # JSON, spectralbai-study/1 to 3; it changes when arms join
    Column("versions", Text, nullable=False),  # JSON: versions of all software when the study was created
    Column("results", Integer, nullable=False),  # results told so far
    Column("progress", String(12), nullable=False),  # running, inconsistent, decided or doubted, at the last check
    Column("best", Integer),  # the arm recommended at the last check, if any
    Column("due", Integer, nullable=False),  # number of results at which the stored state must be updated
    Column("claimed", Double, nullable=False),  # time until which a worker has promised to do that
    Column("first_block", Integer),  # number of the oldest open block, if any (since 2)
    Column("missing", Integer),  # results that this block still needs; at 0 the stored state must be updated, too
)


def _of_studies(name: str, *columns: SchemaItem) -> Table:
    """Returns a table of which each row belongs to a study."""
    return Table(f"spectralbai_{name}", metadata, Column("study", ForeignKey(studies.c.id), primary_key=True), *columns)


states = _of_studies(
    "states",
    Column("seen", Integer, nullable=False),  # number of results in the state
    Column("state", Text, nullable=False),  # JSON, spectralbai-state/1 to 4
    Column("opened", Integer, nullable=False, server_default="0"),  # number of blocks opened (since 2)
    Column("withdrawn", Integer, nullable=False, server_default="0"),  # number of arms withdrawn (since 3)
    Column("joined", Integer, nullable=False, server_default="0"),  # how many times arms joined (since 4)
)

blocks = _of_studies(  # since 2
    "blocks",
    Column("number", Integer, primary_key=True),  # 0, 1, ... in the order opened
    Column("results", Integer, nullable=False),  # number of results in the state when the block was opened
    Column("opened", Double, nullable=False),
    Column("arms", Json, nullable=False),  # the arm of each slot
)

tickets = _of_studies(
    "tickets",
    Column("id", String(16), primary_key=True),
    Column("arm", Integer, nullable=False),
    Column("worker", String(100), nullable=False),
    Column("issued", Double, nullable=False),
    Column("expires", Double, nullable=False),
    Column("abandoned", Double),
    Column("result", Integer),  # number of the observation told for it
    Column("block", Integer),  # number of its block (since 2); none if pulls do not come in blocks
    Column("failed", String(200)),  # why its trial failed, if it did (since 3)
    Index("spectralbai_open_tickets", "study", "result", "expires"),
    Index("spectralbai_slots", "study", "block"),  # since 2
)

observations = _of_studies(
    "observations",
    Column("number", Integer, primary_key=True),  # 1, 2, ... in the order told
    Column("arm", Integer, nullable=False),
    Column("outcome", Double, nullable=False),  # as told, in the user's units and sign
    Column("told", Double, nullable=False),
    Column("ticket", String(16)),
    Column("origin", String(200)),  # where a result without a ticket comes from
    Column("block", Integer),  # number of its block, if it came from counts without tickets (since 3)
    UniqueConstraint("study", "ticket"),
)

withdrawals = _of_studies(  # since 3
    "withdrawals",
    Column("arm", Integer, primary_key=True),
    Column("results", Integer, nullable=False),  # number of results at that time
    Column("opened", Integer, nullable=False),  # number of blocks opened before
    Column("withdrawn", Double, nullable=False),
)

joins = _of_studies(  # since 4
    "joins",
    Column("number", Integer, primary_key=True),  # 0, 1, ... in their order
    Column("results", Integer, nullable=False),  # number of results at that time
    Column("opened", Integer, nullable=False),  # number of blocks opened before
    Column("withdrawn", Integer, nullable=False),  # number of arms withdrawn before
    Column("joined", Double, nullable=False),
    Column("blocks", Json, nullable=False),  # numbers of the blocks that stayed open
    Column("before", Json, nullable=False),  # the instance until then; the study's row has the present one
)

checks = _of_studies(
    "checks",
    Column("samples", Integer, primary_key=True),
    Column("arm", Integer, nullable=False),
    Column("statistic", Double),  # none if no challenger can win
    Column("threshold", Double),  # none before the rule has one
    Column("candidates", Numbers),  # the candidates (since 2); none if the rule does not eliminate arms
    Column("lacking", Numbers),  # nats that the account against each arm lacks; present if candidates are
)


def migrate(connection: Connection, found: int) -> None:
    """Converts the tables from version `found` to this one; processes of older versions that are running can go on."""
    if found < 2:
        of_rows = studies.c.first_block, studies.c.missing, states.c.opened, tickets.c.block
        _add_columns(connection, *of_rows, checks.c.candidates, checks.c.lacking)
        blocks.create(connection)
        next(index for index in tickets.indexes if index.name == "spectralbai_slots").create(connection)
        doubted = select(states.c.study, states.c.state).join(studies).where(studies.c.progress == "doubted")
        for row in connection.execute(doubted).all():  # since version 2 the state also says whether it is doubted
            state = json.loads(row.state)
            state["watches"][0]["doubted"] = True
            connection.execute(update(states).where(states.c.study == row.study).values(state=json.dumps(state)))
    if found < 3:
        _add_columns(connection, observations.c.block, tickets.c.failed, states.c.withdrawn)
        withdrawals.create(connection)
    if found < 4:
        _add_columns(connection, states.c.joined)
        joins.create(connection)
    connection.execute(update(schema).values(version=VERSION))


def _add_columns(connection: Connection, *columns: Column[Any]) -> None:
    for column in columns:
        kind = column.type.compile(connection.dialect)
        default = " NOT NULL DEFAULT 0" if not column.nullable else ""
        connection.execute(text(f"ALTER TABLE {column.table.name} ADD COLUMN {column.name} {kind}{default}"))
