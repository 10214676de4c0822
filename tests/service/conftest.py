"""Services over a new storage: in a thread, or called without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from starlette.testclient import TestClient

import spectralbai as sb
from spectralbai.service import make_app
from tests.service.running import running


@pytest.fixture(scope="session")
def database(server: Callable[[], str]) -> str:
    """The address of a database that the tests of the service share."""
    return server()


@pytest.fixture
def postgresql(database: str) -> str:
    """The address of that database, emptied: quicker than to make another one."""
    engine = create_engine(make_url(database).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return database


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty storage."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'studies.db'}"
    url: str = request.getfixturevalue("postgresql")
    return url


@pytest.fixture
def studies(tmp_path: Path) -> Iterator[sb.Studies]:
    """Studies in an SQLite file."""
    with sb.Studies(f"sqlite:///{tmp_path / 'studies.db'}") as opened:
        yield opened


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Starts services that run until the end of the test, and returns their addresses."""
    with running() as start:
        yield start


@pytest.fixture
def http(studies: sb.Studies) -> Iterator[TestClient]:
    """Calls a service that needs no token."""
    with TestClient(make_app(studies), base_url="http://localhost") as client:
        yield client
