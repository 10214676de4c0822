"""Damage of one study: it is found, said in a sentence, and stays where it is."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import spectralbai as sb
from spectralbai.service import make_app
from spectralbai.study import backup, export_study, restore
from spectralbai.study.storage import Storage
from tests.study.contract import SCORES, SIX, SLOW, drive
from verification.damage import damaged_cells, use_everything


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A storage with a study that has a bit of everything, and another one."""
    file = tmp_path / "filled.db"
    with sb.Studies(f"sqlite:///{file}") as studies:
        study = studies.create("a", SCORES)
        drive(study, 40)
        study.add(["plain"], [0.5], "pilot")
        study.join(SIX)
        study.withdraw("cold")
        study.tell(study.ask(2)[0], sb.study.Failure("rain"))
        drive(studies.create("b", SLOW), 10)
    return file


CHANGES = (
    "UPDATE spectralbai_events SET body = replace(body, '0.', '0.9') WHERE kind = 'told' AND revision < 30",
    "UPDATE spectralbai_events SET body = replace(body, '\", ', '\", 1') WHERE kind = 'asked'",
    "UPDATE spectralbai_events SET time = time - 1000 WHERE revision = 5",
    "UPDATE spectralbai_events SET by = 'somebody else' WHERE kind = 'withdrawn'",
    "DELETE FROM spectralbai_events WHERE revision = 7",
    "DELETE FROM spectralbai_events WHERE revision = (SELECT max(revision) FROM spectralbai_events)",
    "UPDATE spectralbai_observations SET outcome = outcome + 0.1 WHERE number = 3",
    "UPDATE spectralbai_observations SET told = told + 1 WHERE number = 3",
    "UPDATE spectralbai_observations SET origin = 'x' WHERE number = 3",
    "DELETE FROM spectralbai_observations WHERE number = 5",
    "UPDATE spectralbai_tickets SET arm = arm + 1 WHERE rowid = 4",
    "UPDATE spectralbai_tickets SET abandoned = 1 WHERE rowid = 4",
    "UPDATE spectralbai_tickets SET result = NULL WHERE rowid = 4",
    "DELETE FROM spectralbai_tickets WHERE rowid = 6",
    "UPDATE spectralbai_states SET state = replace(state, '0.', '1.')",
    "UPDATE spectralbai_studies SET results = results + 1",
    "UPDATE spectralbai_studies SET best = 'cold'",
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_check_finds_what_was_changed_by_hand(file: Path, change: str) -> None:
    with sb.Studies(f"sqlite:///{file}") as studies:
        assert [check.sound for check in studies.check_all()] == [True, True]
        with sqlite3.connect(file) as connection:
            column = "id" if "_studies" in change else "study"
            of_a = f"{column} = (SELECT id FROM spectralbai_studies WHERE name = 'a')"
            assert connection.execute(f"{change} {'AND' if 'WHERE' in change else 'WHERE'} {of_a}").rowcount > 0
        connection.close()
        assert [check.sound for check in studies.check_all()] == [False, True]
        assert [each.state for each in studies.list()] == ["damaged", "running"]


def test_cells_of_other_values_give_sentences_and_leave_other_studies_alone(file: Path, tmp_path: Path) -> None:
    for _, change, values in damaged_cells(file, random.Random(1), 25):
        copy = tmp_path / "copy.db"
        copy.write_bytes(file.read_bytes())
        with sqlite3.connect(copy) as connection:
            connection.execute(change, values)
        connection.close()
        use_everything(f"sqlite:///{copy}")
        copy.unlink()


def test_a_damaged_study_is_shown_and_exported_as_far_as_it_can_be_read_and_deleted(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE spectralbai_events SET body = '{' WHERE kind = 'told' AND revision > 8")
        connection.execute("UPDATE spectralbai_states SET state = '{'")
    connection.close()
    with (
        sb.Studies(f"sqlite:///{file}") as studies,
        TestClient(make_app(studies), base_url="http://localhost") as http,
    ):
        for path in ("", "/status", "/report", "/export", "/results"):
            answer = http.get(f"/api/studies/a{path}")
            assert answer.status_code in (200, 503) and "Traceback" not in answer.text
        assert http.get("/api/studies/a/status").json()["kind"] == "damaged"
        assert http.get("/api/studies/a/check").json()["sound"] is False
        lines = http.get("/api/studies").json()["studies"]
        assert lines[0]["state"] == "damaged" and 'the study "a" is damaged: event ' in lines[0]["damage"]
        assert 'spectralbai_studies{state="damaged"} 1' in http.get("/metrics").text
        document = http.get("/api/studies/a/export?readable=true").json()
        assert http.post("/api/imports", json={"document": document, "name": "rest"}).status_code == 201
        assert studies.open("rest").status().results < 40
        assert http.delete("/api/studies/a").status_code == 200
        assert sorted(each.name for each in studies.list()) == ["b", "rest"]
        gone = studies.deletions()
        assert [(each.name, each.by) for each in gone] == [("a", "the service, without a token")]


def test_the_log_says_who_did_what(file: Path) -> None:
    with sb.Studies(f"sqlite:///{file}") as studies:
        log = studies.open("a").log()
        assert {entry.event.kind for entry in log if entry.by} == {"created", "joined", "withdrawn"}
        assert all(entry.by is None or entry.by.startswith("user ") for entry in log)
        assert [entry.by for entry in studies.import_(export_study(studies.open("a")), "c").log()] == [
            entry.by for entry in log
        ]


def test_a_backup_is_restored_to_either_database(storage: str, file: Path, tmp_path: Path) -> None:
    kept, back = tmp_path / "kept.db", tmp_path / "back.db"
    with sb.Studies(f"sqlite:///{file}") as studies:
        exported = {each.name: export_study(studies.open(each.name)) for each in studies.list()}
    assert all(check.sound for check in backup(f"sqlite:///{file}", kept))
    assert sorted(each.name for each in tmp_path.glob("kept.db*")) == ["kept.db"]
    with pytest.raises(sb.Conflict, match="there is a file .*kept.db already"):
        backup(f"sqlite:///{file}", kept)
    checks = restore(kept, storage)
    assert [(check.name, check.sound) for check in checks] == [("a", True), ("b", True)]
    with pytest.raises(sb.InvalidInput, match="has studies already; restore a backup to an empty storage"):
        restore(kept, storage)
    backup(storage, back)
    with sb.Studies(f"sqlite:///{back}") as studies:
        assert {each.name: export_study(studies.open(each.name)) for each in studies.list()} == exported
        studies.open("b").ask()


def test_a_backup_that_fails_leaves_no_file(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Storage) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(Storage, "finish", fail)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OSError, match="full"):
        backup(f"sqlite:///{file}", tmp_path / "kept.db")
    assert [each for each in sorted(tmp_path.iterdir()) if each not in before] == []
