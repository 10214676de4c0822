"""What every storage of studies does.

A class that derives from this one has a fixture `opened`, which returns a function that opens the same storage, empty
at first, each time that it is called:

    class TestMyStorage(StorageContract):
        @pytest.fixture
        def opened(self, tmp_path: Path) -> Opened:
            return lambda create=False: MyStorage(..., create=create)
"""

from __future__ import annotations

import threading
from typing import Protocol

import pytest
from sqlalchemy import select, text, update

import spectralbai as sb
from spectralbai.study import list_studies
from spectralbai.study.schema import schema, studies, version
from spectralbai.study.storage import Storage

INSTANCE = sb.Instance(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01))


class Opened(Protocol):
    """Opens a storage; `create` makes its tables."""

    def __call__(self, create: bool = False) -> Storage: ...


def with_study(opened: Opened) -> Storage:
    """Returns the storage with a study "a"."""
    place = opened(create=True)
    sb.Study.create("a", INSTANCE, 0.05, place).close()
    return place


def results_in(place: Storage) -> int | None:
    with place.reading() as reader:
        found: int | None = reader.execute(select(studies.c.results)).scalar()
    return found


class StorageContract:
    """What every storage of studies does."""

    def test_what_was_written_is_there_when_it_is_opened_again(self, opened: Opened) -> None:
        with_study(opened).close()
        place = opened()
        assert [each.name for each in list_studies(place)] == ["a"]
        with sb.Study.open("a", place) as study:
            assert study.tell(study.ask(1)[0], 0.5)
        place.close()
        again = opened()
        assert results_in(again) == 1
        again.close()

    def test_readers_see_one_instant_and_wait_for_nobody(self, opened: Opened) -> None:
        place = with_study(opened)
        with place.writing() as writer:
            writer.execute(update(studies).values(results=7))
            with place.reading() as reader:  # would be refused after a while, if it had to wait for the writer
                assert reader.execute(select(studies.c.results)).scalar() == 0
        with place.reading() as reader:
            assert reader.execute(select(studies.c.results)).scalar() == 7
            with place.writing() as writer:
                writer.execute(update(studies).values(results=8))
            assert reader.execute(select(studies.c.results)).scalar() == 7
        place.close()

    def test_a_transaction_that_fails_leaves_nothing(self, opened: Opened) -> None:
        place = with_study(opened)
        with pytest.raises(KeyError), place.writing() as writer:
            writer.execute(update(studies).values(results=7))
            raise KeyError
        assert results_in(place) == 0
        place.close()

    def test_results_told_at_once_by_several_workers_all_count(self, opened: Opened) -> None:
        place = with_study(opened)
        with sb.Study.open("a", place) as study:
            tickets = study.ask(12)
            while len(tickets) < 12:  # blocks opened ahead of their results
                tickets += study.ask(12 - len(tickets))

            def tell(part: list[sb.study.Ticket]) -> None:
                for ticket in part:
                    study.tell(ticket, 0.1)

            threads = [threading.Thread(target=tell, args=(tickets[k::3],)) for k in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(study.records().observations) == results_in(place) == 12
        place.close()

    def test_what_is_not_there_is_not_found_and_a_name_taken_is_a_conflict(self, opened: Opened) -> None:
        with pytest.raises(sb.NotFound) as missing:
            opened()
        place = with_study(opened)
        with pytest.raises(sb.NotFound, match="nobody"):
            sb.Study.open("nobody", place)
        with pytest.raises(sb.Conflict) as taken:
            sb.Study.create("a", INSTANCE, 0.05, place)
        assert (missing.value.kind, taken.value.kind) == ("not-found", "conflict")
        place.close()

    def test_what_the_database_cannot_do_is_said_in_a_sentence_with_a_kind(self, opened: Opened) -> None:
        place = opened(create=True)
        for transaction in (place.reading, place.writing):
            with pytest.raises(sb.StorageError) as trouble, transaction() as connection:
                connection.execute(text("SELECT x FROM nowhere"))
            assert trouble.value.kind == "broken"
            assert str(trouble.value).startswith(place.name) and "\n" not in str(trouble.value)
        place.close()

    def test_a_newer_schema_is_refused_and_left_alone(self, opened: Opened) -> None:
        place = with_study(opened)
        with place.writing() as connection:
            connection.execute(update(schema).values(version=version() + 1))
        place.close()
        newer = f"has tables of version {version() + 1}, and {version()} is needed; a newer spectralbai wrote them"
        for create in (False, True):
            with pytest.raises(sb.InvalidInput, match=newer):
                opened(create)
