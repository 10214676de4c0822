"""The tables of a storage of studies, and their version.

Observations are appended and never changed. A study's row is what its writers lock; the state, which is large, has its
own table, so that telling a result does not rewrite it.
"""

from __future__ import annotations

from sqlalchemy import Column, Double, ForeignKey, Index, Integer, MetaData, String, Table, Text, UniqueConstraint

VERSION = 1
"""Of these tables. A later version must bring older storages up to date when it opens them, and refuse newer ones."""

metadata = MetaData()

schema = Table("spectralbai_schema", metadata, Column("version", Integer, primary_key=True))

studies = Table(
    "spectralbai_studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("created", Double, nullable=False),  # all times are seconds since 1970, UTC
    Column("definition", Text, nullable=False),  # JSON, spectralbai-study/1
    Column("versions", Text, nullable=False),  # JSON: of everything, when the study was created
    Column("results", Integer, nullable=False),  # results told so far
    Column(
        "progress", String(12), nullable=False
    ),  # at the last check: "running", "inconsistent", "decided", or "doubted" since
    Column("best", Integer),  # the arm recommended then, if any
    Column("due", Integer, nullable=False),  # results at which the state is to be brought up to date
    Column("claimed", Double, nullable=False),  # until when a worker has promised to do that
)

states = Table(
    "spectralbai_states",
    metadata,
    Column("study", ForeignKey(studies.c.id), primary_key=True),
    Column("seen", Integer, nullable=False),  # results that the state holds
    Column("state", Text, nullable=False),  # JSON, spectralbai-state/1
)

tickets = Table(
    "spectralbai_tickets",
    metadata,
    Column("study", ForeignKey(studies.c.id), primary_key=True),
    Column("id", String(16), primary_key=True),
    Column("arm", Integer, nullable=False),
    Column("worker", String(100), nullable=False),
    Column("issued", Double, nullable=False),
    Column("expires", Double, nullable=False),
    Column("abandoned", Double),
    Column("result", Integer),  # number of the observation told for it
    Index("spectralbai_open_tickets", "study", "result", "expires"),
)

observations = Table(
    "spectralbai_observations",
    metadata,
    Column("study", ForeignKey(studies.c.id), primary_key=True),
    Column("number", Integer, primary_key=True),  # 1, 2, ... in the order told
    Column("arm", Integer, nullable=False),
    Column("outcome", Double, nullable=False),  # as told, in the user's units and sign
    Column("told", Double, nullable=False),
    Column("ticket", String(16)),
    Column("origin", String(200)),  # where a result without a ticket comes from
    UniqueConstraint("study", "ticket"),
)

checks = Table(
    "spectralbai_checks",
    metadata,
    Column("study", ForeignKey(studies.c.id), primary_key=True),
    Column("samples", Integer, primary_key=True),
    Column("arm", Integer, nullable=False),
    Column("statistic", Double),  # none if no challenger can win
    Column("threshold", Double),  # none before the rule has one
)
