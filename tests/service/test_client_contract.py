"""The contract of studies, by a client of a running service over databases of both kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import spectralbai as sb
from tests.study.contract import StudyContract


@pytest.fixture
def studies(storage: str, serve: Callable[..., str]) -> Iterator[sb.Client]:
    with sb.Studies(storage) as opened, sb.Client(serve(opened)) as client:
        yield client


class TestStudiesOfAService(StudyContract):
    """Joins the contract."""
