"""The studies of a storage, over one set of connections."""

from __future__ import annotations

from pathlib import Path

import pytest

import spectralbai as sb
from spectralbai.cli import EXIT_CODES
from spectralbai.study import export_study

INSTANCE = sb.instances.cliques(1, 3)


def kinds(error: type[sb.SpectralBAIError]) -> set[str]:
    """The kinds of an error and of all below it."""
    return {error.kind}.union(*(kinds(each) for each in error.__subclasses__()))


def test_studies_are_created_opened_listed_imported_and_deleted(storage: str) -> None:
    with sb.Studies(storage) as studies:
        assert studies.list() == []
        first = studies.create("first", INSTANCE, 0.1)
        ticket = first.ask()[0]
        first.tell(ticket, 0.5)
        first.close()  # the connections belong to `studies`
        assert first.status().results == 1
        copy = studies.import_(export_study(studies.open("first")), "second")
        assert [each.outcome for each in copy.records().observations] == [0.5]
        assert {each.name for each in studies.list()} == {"first", "second"}
        studies.delete("first")
        assert [each.name for each in studies.list()] == ["second"]
        with pytest.raises(sb.NotFound, match="no longer there"):
            first.ask()
    with sb.Study.open("second", storage) as study:
        assert study.status().results == 1


def test_every_error_has_a_kind(storage: str) -> None:
    with sb.Studies(storage) as studies:
        study = studies.create("a", INSTANCE)
        ticket = study.ask()[0]
        study.tell(ticket, 0.5)
        with pytest.raises(sb.NotFound, match='holds no study "b"'):
            studies.open("b")
        with pytest.raises(sb.NotFound, match="no ticket"):
            study.tell("0123", 0.5)
        with pytest.raises(sb.NotFound, match="no label"):
            study.withdraw("nobody")
        with pytest.raises(sb.Conflict, match="a study .a. already"):
            studies.create("a", INSTANCE)
        with pytest.raises(sb.Conflict, match="has the outcome 0.5 already"):
            study.tell(ticket, 0.6)
        with pytest.raises(sb.Conflict, match="cannot be given back"):
            study.abandon(ticket)
        with pytest.raises(sb.InvalidInput) as refused:
            study.ask(0)
        assert refused.value.kind == "refused"


def test_a_study_refuses_its_own_results(storage: str) -> None:
    with sb.Studies(storage) as studies:
        study = studies.create("a", INSTANCE)
        ticket = study.ask()[0]
        study.tell(ticket, 0.5)
        study.add([ticket.label], [0.25], "pilot")
        with pytest.raises(sb.Conflict, match=f'already, such as that of "{ticket.id}"'):
            study.add([ticket.label], [0.5], "again", tickets=[ticket.id])
        with pytest.raises(sb.Conflict, match='already, such as that of "pilot"'):
            study.add([ticket.label], [0.25], "again", origins=["pilot"])
        assert study.add([ticket.label], [0.25], "pilot", origins=["pilot"]) == 0
        assert study.status().results == 2


def test_a_storage_without_studies_is_refused_where_none_is_to_be_created(tmp_path: Path) -> None:
    with pytest.raises(sb.NotFound, match="there is no database"):
        sb.Studies(f"sqlite:///{tmp_path}/none.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_every_kind_of_error_has_an_exit_code() -> None:
    assert kinds(sb.SpectralBAIError) == set(EXIT_CODES)
