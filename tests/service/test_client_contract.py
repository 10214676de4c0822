"""The contract of studies, by a client of a running service.

Over SQLite: `tests/study/test_contract.py` has both kinds of database, and `test_running.py` services over PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import spectralbai as sb
from tests.study.contract import StudyContract


@pytest.fixture
def studies(studies: sb.Studies, serve: Callable[..., str]) -> Iterator[sb.Client]:
    with sb.Client(serve(studies)) as client:
        yield client


class TestStudiesOfAService(StudyContract):
    """Joins the contract."""
