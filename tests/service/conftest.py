"""Services over a new storage, in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import spectralbai as sb
from tests.service.running import running
from tests.study.conftest import server, storage

__all__ = ["server", "storage"]


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
