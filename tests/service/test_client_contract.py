"""The contract of studies, by a client of a running service over databases of both kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import spectralbai as sb
from tests.study.contract import ItemStudyContract, OnItems, StudyContract


@pytest.fixture
def studies(storage: str, serve: Callable[..., str]) -> Iterator[sb.Client]:
    with sb.Studies(storage) as opened, sb.Client(serve(opened)) as client:
        yield client


class TestStudiesOfAService(StudyContract):
    """Joins the contract."""


class TestStudiesWithItemsOfAService(ItemStudyContract):
    """Joins the contract of studies with items."""

    @pytest.fixture
    def studies(self, storage: str, serve: Callable[..., str]) -> Iterator[OnItems]:
        with sb.Studies(storage) as opened, sb.Client(serve(opened)) as client:
            yield OnItems(client)
