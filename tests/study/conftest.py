"""Both kinds of storage, a new one for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from spectralbai.report import pictures


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty storage."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'studies.db'}"
    url: str = request.getfixturevalue("server")()
    return url


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the pictures out of reports, which take most of the time, where the test is of the words."""
    monkeypatch.setattr(pictures, "pictures", lambda *_: ())
