"""Tables of earlier versions are converted by a command, after a backup, all or none."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, text, update

import spectralbai as sb
from spectralbai.study import export_study, list_studies, schema
from spectralbai.study.storage import Storage
from tests.study.contract import SLOW, drive
from tests.study.test_durable_blocks import check_replay


def add_a_column(connection: Connection) -> None:
    """A step such as a later version may have."""
    connection.execute(text("ALTER TABLE spectralbai_tickets ADD COLUMN colour VARCHAR(10)"))
    connection.execute(text("UPDATE spectralbai_tickets SET colour = 'blue' WHERE result IS NOT NULL"))


def fail(connection: Connection) -> None:
    add_a_column(connection)
    raise ZeroDivisionError


@pytest.fixture
def filled(storage: str) -> str:
    """A storage of the version of now, with a study that has results."""
    with sb.Study.create("old", SLOW, 0.05, storage) as study:
        drive(study, 20)
        study.ask(2)
    return storage


def colours(storage: str) -> list[str | None] | None:
    """Returns the column that the step adds, if it is there."""
    place = Storage._unchecked(sb.study.storage._parse(storage))
    try:
        with place.reading() as connection:
            if "colour" not in {each["name"] for each in inspect(connection).get_columns("spectralbai_tickets")}:
                return None
            return list(connection.execute(text("SELECT colour FROM spectralbai_tickets")).scalars())
    finally:
        place.close()


def set_version(storage: str, version: int) -> None:
    place = Storage(storage)
    with place.writing() as connection:
        connection.execute(update(schema.schema).values(version=version))
    place.close()


def test_tables_of_an_earlier_version_are_refused_and_converted_by_the_command(
    filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = schema.version()
    with sb.Study.open("old", filled) as study:
        before, told = export_study(study), len(study.records().observations)
    assert Storage.upgrade(filled, backed_up=True) == (first, None), "nothing to do"
    monkeypatch.setattr(schema, "STEPS", steps := [*schema.STEPS, add_a_column])
    monkeypatch.setattr("spectralbai.study.storage.STEPS", steps)
    for create in (False, True):
        with pytest.raises(sb.InvalidInput) as refusal:
            Storage(filled, create=create)
        assert "spectralbai study upgrade" in str(refusal.value) and "\n" not in str(refusal.value)
        assert f"version {first}, and {first + 1} is needed" in str(refusal.value)
    assert colours(filled) is None, "opening converts nothing"
    if filled.startswith("postgresql"):
        with pytest.raises(sb.InvalidInput, match="make a backup of .* first.*--backed-up"):
            Storage.upgrade(filled)
        assert colours(filled) is None
    found, backup = Storage.upgrade(filled, backed_up=True)
    assert found == first and (backup is not None) == filled.startswith("sqlite")
    seen = colours(filled)
    assert seen is not None and seen.count("blue") == told and seen.count(None) == 2
    with sb.Study.open("old", filled) as study:
        assert export_study(study) == before
        drive(study, 10)
        check_replay(study)
    assert Storage.upgrade(filled) == (first + 1, None)
    if backup is not None:
        monkeypatch.undo()  # as the version before
        with sb.Study.open("old", f"sqlite:///{backup}") as study:
            assert export_study(study) == before and colours(f"sqlite:///{backup}") is None


def test_a_backup_that_is_there_is_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, first = tmp_path / "s.db", schema.version()
    sb.Study.create("old", SLOW, 0.05, f"sqlite:///{file}").close()
    monkeypatch.setattr(schema, "STEPS", steps := [*schema.STEPS, add_a_column])
    monkeypatch.setattr("spectralbai.study.storage.STEPS", steps)
    there = tmp_path / f"s.db.version-{first}"
    there.write_text("precious")
    for backed_up in (False, True):
        with pytest.raises(sb.InvalidInput, match="there is a backup .* already; move it away first"):
            Storage.upgrade(f"sqlite:///{file}", backed_up=backed_up)
    assert there.read_text() == "precious" and colours(f"sqlite:///{file}") is None
    there.unlink()
    assert Storage.upgrade(f"sqlite:///{file}") == (first, str(there))
    with sqlite3.connect(there) as connection:
        assert connection.execute("SELECT version FROM spectralbai_schema").fetchall() == [(first,)]
    connection.close()


def test_a_step_that_fails_leaves_the_tables_as_they_were(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with sb.Study.open("old", filled) as study:
        before = export_study(study)
    with monkeypatch.context() as patch:
        patch.setattr(schema, "STEPS", steps := [*schema.STEPS, fail])
        patch.setattr("spectralbai.study.storage.STEPS", steps)
        with pytest.raises(ZeroDivisionError):
            Storage.upgrade(filled, backed_up=True)
    assert colours(filled) is None
    with sb.Study.open("old", filled) as study:
        assert export_study(study) == before and study.ask()


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (4, "a version that was never released wrote them: create the studies again"),
        (99, "a newer spectralbai wrote them: upgrade it here"),
    ],
)
def test_tables_that_nobody_can_convert_are_refused_in_a_sentence(filled: str, version: int, words: str) -> None:
    set_version(filled, version)
    for use in (lambda: list_studies(filled), lambda: Storage.upgrade(filled, backed_up=True)):
        with pytest.raises(sb.InvalidInput) as refusal:
            use()
        assert words in str(refusal.value) and "\n" not in str(refusal.value)
    assert colours(filled) is None


def test_a_storage_that_is_not_there_is_not_made_by_an_upgrade(tmp_path: Path) -> None:
    with pytest.raises(sb.NotFound, match="there is no database"):
        Storage.upgrade(f"sqlite:///{tmp_path / 'none.db'}")
    assert list(tmp_path.iterdir()) == []
