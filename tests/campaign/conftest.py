"""A small campaign, run once."""

from __future__ import annotations

from pathlib import Path

import pytest

from spectralbai.campaign import RunRow
from tests.campaign.campaigns import simulated


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[RunRow]]:
    directory = tmp_path_factory.mktemp("small")
    return directory, simulated(directory)
