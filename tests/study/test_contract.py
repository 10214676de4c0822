"""The contract of studies, in databases of both kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import spectralbai as sb
from tests.study.contract import StudyContract


@pytest.fixture
def studies(storage: str) -> Iterator[sb.Studies]:
    with sb.Studies(storage) as opened:
        yield opened


class TestStudiesOfADatabase(StudyContract):
    """Joins the contract."""
