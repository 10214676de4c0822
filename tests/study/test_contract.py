"""The contract of studies, in databases of both kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import spectralbai as sb
from tests.study.contract import ItemStudyContract, OnItems, StudyContract


@pytest.fixture
def studies(storage: str) -> Iterator[sb.Studies]:
    with sb.Studies(storage) as opened:
        yield opened


class TestStudiesOfADatabase(StudyContract):
    """Joins the contract."""


class TestStudiesWithItemsOfADatabase(ItemStudyContract):
    """Joins the contract of studies with items."""

    @pytest.fixture
    def studies(self, storage: str) -> Iterator[OnItems]:
        with sb.Studies(storage) as opened:
            yield OnItems(opened)
