"""The storages there are: what they promise, and how they refuse."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url, select, text

import spectralbai as sb
from spectralbai.errors import StorageError
from spectralbai.study import list_studies
from spectralbai.study.ledger import Ledger
from spectralbai.study.schema import observations, studies
from spectralbai.study.storage import Storage
from tests.contracts.storages import Opened, StorageContract

INSTANCE = sb.Instance(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01))


class TestStorages(StorageContract):
    @pytest.fixture
    def opened(self, storage: str) -> Opened:
        return lambda create=False: Storage(storage, create=create)


def test_sqlite_survives_power_cuts_and_keeps_no_reader_waiting(tmp_path: Path) -> None:
    place = Storage(f"sqlite:///{tmp_path / 's.db'}", create=True)
    for transaction in (place.reading, place.writing):
        with transaction() as connection:
            settings = [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("journal_mode", "synchronous", "foreign_keys")
            ]
            assert settings == ["wal", 2, 1]
    place.close()


def test_a_file_of_others_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "theirs.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    (tmp_path / "empty.db").write_bytes(b"")
    before = file.read_bytes()
    for name in ("theirs.db", "empty.db"):
        with pytest.raises(sb.InvalidInput, match="holds no studies"):
            list_studies(f"sqlite:///{tmp_path / name}")
    assert file.read_bytes() == before and (tmp_path / "empty.db").read_bytes() == b""
    with pytest.raises(sb.InvalidInput, match='a database of another program: it has the table "t" and no studies'):
        sb.Study.create("a", INSTANCE, 0.05, f"sqlite:///{file}")
    assert file.read_bytes() == before and len(list(tmp_path.iterdir())) == 2
    sb.Study.create("a", INSTANCE, 0.05, f"sqlite:///{tmp_path / 'empty.db'}").close()


def test_studies_share_a_database_of_postgresql_with_other_tables(server: Callable[[], str]) -> None:
    url = server()
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE theirs (x integer)")
    engine.dispose()
    sb.Study.create("a", INSTANCE, 0.05, url).close()
    assert [each.name for each in list_studies(url)] == ["a"]


@pytest.mark.parametrize("name", ["with space.db", "100%.db", "50%20.db", "a?b=c.db", "a#b.db", "file:x.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    url = f"sqlite:///{tmp_path / name}"
    sb.Study.create("a", INSTANCE, 0.05, url).close()
    assert [each.name for each in list_studies(url)] == ["a"]
    assert (tmp_path / name).is_file()


@pytest.mark.parametrize("default", ["serializable", "repeatable read"])
def test_the_default_of_the_server_does_not_matter(server: Callable[[], str], default: str) -> None:
    """Under these a writer that has waited for its row would see what was there before, and be refused."""
    url = server()
    outside = create_engine(make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with outside.connect() as connection:
        connection.execute(
            text(f"ALTER DATABASE {make_url(url).database} SET default_transaction_isolation = '{default}'")
        )
    outside.dispose()
    with sb.Study.create("a", INSTANCE, 0.05, url) as study:
        tickets = study.ask(40)
        while len(tickets) < 40:  # blocks opened ahead of their results
            tickets += study.ask(40)
        threads = [
            threading.Thread(target=lambda part: [study.tell(t, 0.1) for t in part], args=(tickets[k::4],))
            for k in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(study.records().observations) == len(tickets)


def test_opening_what_is_not_there_makes_nothing(tmp_path: Path, server: Callable[[], str]) -> None:
    with pytest.raises(sb.InvalidInput, match="there is no database .*none.db; create a study first"):
        sb.Study.open("a", f"sqlite:///{tmp_path / 'none.db'}")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "other.db").write_bytes(b"")
    with pytest.raises(sb.InvalidInput, match="holds no studies; create one first"):
        list_studies(f"sqlite:///{tmp_path / 'other.db'}")
    with pytest.raises(sb.InvalidInput, match="holds no studies; create one first"):
        list_studies(server())


def test_files_that_cannot_be_used_are_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database at all, but long enough to look at" * 100)
    for create in (False, True):
        with pytest.raises(StorageError, match="text.db: this is not an SQLite database; give another storage"):
            Storage(f"sqlite:///{tmp_path / 'text.db'}", create=create)
    with pytest.raises(
        StorageError, match="the file cannot be opened; does its directory exist, and may you write there?"
    ):
        Storage(f"sqlite:///{tmp_path / 'nowhere' / 's.db'}", create=True)
    with pytest.raises(StorageError, match="the file cannot be opened"):
        Storage(f"sqlite:///{tmp_path}", create=True)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, for whom permissions do not matter."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_directory_without_write_permission_is_refused_in_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "shut"
    folder.mkdir()
    sb.Study.create("a", INSTANCE, 0.05, f"sqlite:///{folder / 'old.db'}").close()
    folder.chmod(0o555)
    for parent in (folder, *folder.parents):  # let nobody come as far as the folder
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o555)
    with as_nobody():
        with pytest.raises(
            StorageError, match="new.db: the file cannot be opened; does its directory exist, and may you write there?"
        ):
            sb.Study.create("a", INSTANCE, 0.05, f"sqlite:///{folder / 'new.db'}")
        with (
            pytest.raises(StorageError, match="old.db: the file"),
            sb.Study.open("a", f"sqlite:///{folder / 'old.db'}") as study,
        ):
            study.ask()
    folder.chmod(0o755)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://joe:hush@host/db", "the storage must be SQLite or PostgreSQL, got mysql"),
        ("nonsense", "the address of the storage cannot be read; give sqlite:///FILE or postgresql://"),
        ("", "the address of the storage cannot be read"),
        ("postgresql://joe:hush@host:port/db", "the address of the storage cannot be read"),
        ("sqlite://", "the address of the storage cannot be read"),
        ("sqlite+pysqlite:///x.db", "the address of the storage cannot be read"),
        ("sqlite:///:memory:", "a storage must outlive this process"),
        ("sqlite:///", "a storage must outlive this process"),
        ("sqlite://joe:hush@host/file.db", "the address of the storage cannot be read"),
        ("sqlite:///a\0b", "the address of the storage cannot be read"),
        (
            "postgresql://joe:hu@sh@host/db",
            "the address of the storage has two @; write one that belongs to the password as %40",
        ),
        ("postgresql://joe:hush@host/db?port=x", "the address of the storage has options that cannot be used"),
        ("postgresql://joe:hush@host/db?plugin=x", "the address of the storage has options that cannot be used"),
        (7, "the address of the storage cannot be read"),
    ],
)
def test_invalid_addresses_are_refused(url: Any, message: str) -> None:
    with pytest.raises(sb.InvalidInput, match=message) as refusal:
        sb.Study.create("a", INSTANCE, 0.05, url)
    assert not {"hush", "hu@sh", "sh@host"} & set(str(refusal.value).split())
    assert "hush" not in str(refusal.value)


def test_an_unknown_host_is_refused_in_a_sentence() -> None:
    with pytest.raises(StorageError, match="the database cannot be reached"):
        sb.Study.open("a", f"postgresql://joe:hush@{'x' * 70}.example/db")


def test_a_password_is_never_shown(server: Callable[[], str]) -> None:
    real = make_url(server())
    with sb.Study.create("a", INSTANCE, 0.05, real.set(password="hush").render_as_string(hide_password=False)) as study:
        assert "hush" not in repr(study)
        with pytest.raises(sb.InvalidInput) as refusal:
            sb.Study.open("b", real.set(password="hush").render_as_string(hide_password=False))
        assert "hush" not in str(refusal.value)
    for url in ("postgresql://joe:hush@127.0.0.1:1/db", "postgresql://127.0.0.1:1/db?user=joe&password=hush"):
        with pytest.raises(
            StorageError, match=r"postgresql://.*127.0.0.1:1/db: the database cannot be reached"
        ) as lost:
            sb.Study.open("a", url)
        assert "hush" not in str(lost.value) and lost.value.__cause__ is None and lost.value.__suppress_context__


def test_a_connection_lost_in_the_middle_of_a_tell_leaves_nothing_and_a_retry_is_safe(
    server: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server()
    outside = create_engine(make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with sb.Study.create("a", INSTANCE, 0.05, url) as study:
        ticket = study.ask()[0]
        append = Ledger.append

        def cut(ledger: Any, *arguments: Any) -> Any:
            after = append(ledger, *arguments)
            pid = ledger._connection.execute(text("SELECT pg_backend_pid()")).scalar()
            with outside.connect() as other:
                other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
            return after

        monkeypatch.setattr(Ledger, "append", cut)
        with pytest.raises(StorageError, match="the connection was lost; try again: a result is counted once"):
            study.tell(ticket, 0.3)
        monkeypatch.undo()
        assert study.records().observations == ()
        assert study.tell(ticket, 0.3) is True  # on a new connection, made by itself
        assert [each.outcome for each in study.records().observations] == [0.3]
    outside.dispose()


def test_connections_that_ended_between_calls_are_made_anew(server: Callable[[], str]) -> None:
    url = server()
    outside = create_engine(make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with sb.Study.create("a", INSTANCE, 0.05, url) as study:
        for _ in range(3):
            with outside.connect() as other:
                query = (
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name AND pid <> "
                    "pg_backend_pid()"
                )
                other.execute(text(query), {"name": make_url(url).database})
            assert study.tell(study.ask()[0], 0.3) is True
    outside.dispose()


def test_a_worker_that_keeps_the_row_locked_is_not_waited_for_for_ever(
    server: Callable[[], str],
) -> None:
    with sb.Studies(server(), patience=0.3) as opened:
        study = opened.create("a", INSTANCE)
        with study._upkeep.storage.writing() as holder:
            holder.execute(select(studies).with_for_update()).all()
            with pytest.raises(
                StorageError, match="another worker has kept the study locked for 0.3 seconds; try again"
            ):
                study.ask()


@pytest.mark.parametrize(
    "harm",
    [
        'UPDATE spectralbai_states SET state = \'{"format": "spectralb\'',
        'UPDATE spectralbai_states SET state = \'{"format": "spectralbai-state/1"}\'',
        "UPDATE spectralbai_states SET revision = 7",
        "UPDATE spectralbai_events SET body = '{' WHERE kind = 'created'",
        "UPDATE spectralbai_events SET body = '{}' WHERE kind = 'created'",
        "UPDATE spectralbai_observations SET outcome = 0.75 WHERE number = 2",
        "UPDATE spectralbai_observations SET arm = 'x' WHERE number = 2",
        "DELETE FROM spectralbai_observations WHERE number = 1",
        "UPDATE spectralbai_studies SET due = 'soon'",
    ],
)
def test_rows_that_are_damaged_are_said_to_be(harm: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    with sb.Study.create("a", INSTANCE, 0.05, url) as study:
        study.add(["0", "1", "2"], [0.5] * 3, "x")
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute(harm)
    connection.close()
    sentence = r'the study "a" cannot be read \(.*\); spectralbai study check says more; restore a backup or an export'
    for _ in range(2):
        with pytest.raises(sb.Damaged, match=sentence), sb.Study.open("a", url) as study:
            study.status()
            study.recent()
    with sb.Studies(url) as opened:
        opened.create("b", INSTANCE).ask()
        assert [each.state for each in opened.list()] == ["damaged", "running"]
        assert not opened.check("a").sound and opened.check("b").sound
        opened.delete("a")
        assert [each.name for each in opened.list()] == ["b"]


def test_an_acknowledgement_that_was_lost_is_made_up_for_by_a_retry(
    storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sb.Study.create("a", INSTANCE, 0.05, storage) as study:
        ticket = study.ask()[0]
        writing = study._upkeep.storage.writing

        @contextmanager
        def cut() -> Iterator[Any]:
            with writing() as connection:
                yield connection
            raise StorageError("the connection was lost")

        monkeypatch.setattr(study._upkeep.storage, "writing", cut)
        with pytest.raises(StorageError):
            study.tell(ticket, 0.3)
        monkeypatch.undo()
        assert study.tell(ticket, 0.3) is False
        assert len(study.records().observations) == 1


def test_two_may_create_at_once(storage: str) -> None:
    """Tables are made once, and of two studies of one name one is refused."""
    refused: list[str] = []

    def create(name: str) -> None:
        try:
            sb.Study.create(name, INSTANCE, 0.05, storage).close()
        except sb.InvalidInput as error:
            refused.append(str(error))

    threads = [threading.Thread(target=create, args=(name,)) for name in ("a", "b", "same", "same", "c", "d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.name for each in sorted(list_studies(storage), key=lambda each: each.name)] == [
        "a",
        "b",
        "c",
        "d",
        "same",
    ]
    assert len(refused) == 1 and 'there is a study "same" already' in refused[0]


def _tell_in_child(study: sb.Study, done: Any) -> None:
    done.put(study.tell(study.ask()[0], 0.5))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_opens_its_own_connections(storage: str) -> None:
    fork = multiprocessing.get_context("fork")
    with sb.Study.create("a", INSTANCE, 0.05, storage) as study:
        study.tell(study.ask()[0], 0.1)
        done = fork.Queue()
        child = fork.Process(target=_tell_in_child, args=(study, done))
        child.start()
        assert done.get(timeout=60) is True
        child.join()
        study.tell(study.ask()[0], 0.2)
        assert [each.outcome for each in study.records().observations] == [0.1, 0.5, 0.2]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_forked_while_a_thread_computes_does_not_wait_for_that_thread(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    with sb.Study.create("a", INSTANCE, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        tickets = study.ask(100)
        study.tell_many([(ticket, 0.5) for ticket in tickets[1:]])
        child = fork.Process(target=_see_in_child, args=(study, tickets[0]))
        with study._upkeep._updating.lock, study._statements._lock.lock:
            child.start()
        child.join(60)
        code = child.exitcode
        child.kill()
        assert code == 0 and study.status().unprocessed == 0


def _see_in_child(study: sb.Study, ticket: Any) -> None:
    study.tell(ticket, 0.5)
    assert study.status().unprocessed == 0


def test_another_process_that_keeps_the_file_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    with sb.Study.create("a", INSTANCE, 0.05, f"sqlite:///{file}") as study:
        ticket = study.ask()[0]
        other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.5, lambda: other.execute("COMMIT"))
        timer.start()
        assert study.tell(ticket, 0.1) is True
        timer.join()
        other.close()


def test_a_damaged_file_is_said_to_be(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    with sb.Study.create("a", INSTANCE, 0.05, f"sqlite:///{file}") as study:
        study.add(["0", "1", "2"] * 300, [0.5] * 900, "much")
    content = file.read_bytes()
    file.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    with pytest.raises(StorageError, match="s.db: "), sb.Study.open("a", f"sqlite:///{file}") as study:
        study.records()
        study.tell("x", 0.1)


def test_observations_are_never_changed(storage: str) -> None:
    """Rows once written are the same ever after, times and all."""
    with sb.Study.create("a", INSTANCE, 0.05, storage) as study:
        place = Storage(storage)
        seen: list[Any] = []
        for k in range(30):
            study.tell(study.ask()[0], float(k % 3))
            with place.reading() as connection:
                rows = connection.execute(select(observations).order_by(observations.c.number)).all()
            assert rows[: len(seen)] == seen and [row.number for row in rows] == list(range(1, k + 2))
            seen = list(rows)
        place.close()


def test_the_file_of_a_storage_is_its_owners(tmp_path: Path) -> None:
    file = tmp_path / "studies.db"
    with sb.Studies(f"sqlite:///{file}") as opened:
        opened.create("a", INSTANCE)
        assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.glob("studies.db*")} == {0o600}
