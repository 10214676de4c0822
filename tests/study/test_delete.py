"""Deleting a study removes all of it, and nothing else, on both kinds of storage."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

import spectralbai as sb
from spectralbai.study import export_study, list_studies
from spectralbai.study.schema import metadata, studies
from spectralbai.study.study import Study

INSTANCE = sb.Instance(sb.Problem.bounded(sb.Graph.from_edges(3, [(1, 2)]), R=0.01))
LARGER = sb.Instance(sb.Problem.bounded(sb.Graph.from_edges(4, [(1, 2)]), R=0.01))


def filled(name: str, storage: str, stopping: str) -> Study:
    study = Study.create(name, INSTANCE, 0.1, storage, stopping=stopping)
    for _ in range(5):
        study.tell_many([(ticket, 0.5) for ticket in study.ask(8)])
    study.ask()
    study.add(["0", "1"], [1.0, 0.0], "last year")
    if stopping == "betting":
        study.withdraw("2")
        study.join(LARGER)
    return study


def rows(study: Study) -> dict[str, int]:
    """Returns how many rows of the study each table has."""
    tables = [table for table in metadata.sorted_tables if "study" in table.c]
    with study._upkeep.storage.reading() as connection:
        counts = {
            table.name: connection.execute(
                select(func.count()).select_from(table).where(table.c.study == study._upkeep.id)
            ).scalar_one()
            for table in tables
        }
        own = select(func.count()).select_from(studies).where(studies.c.id == study._upkeep.id)
        return {**counts, studies.name: connection.execute(own).scalar_one()}


@pytest.mark.parametrize("stopping", ["betting", "gk16"])
def test_a_deleted_study_leaves_no_row_and_others_as_they_were(storage: str, stopping: str) -> None:
    with filled("doomed", storage, stopping) as doomed, filled("kept", storage, stopping) as kept:
        before = export_study(kept)
        assert [name for name, count in rows(doomed).items() if not count] == (
            ["spectralbai_blocks", "spectralbai_joins", "spectralbai_withdrawals"] if stopping == "gk16" else []
        )
        doomed.delete()
        assert set(rows(doomed).values()) == {0}
        assert [each.name for each in list_studies(storage)] == ["kept"]
        assert export_study(kept) == before
        assert kept.ask()


def test_whoever_has_a_deleted_study_open_is_refused_even_if_its_name_is_taken_again(storage: str) -> None:
    with filled("pages", storage, "betting") as mine, Study.open("pages", storage) as theirs:
        ticket = theirs.ask()[0]
        mine.delete()
        with filled("pages", storage, "betting") as new:
            before = export_study(new)
            for use in (
                lambda: theirs.tell(ticket, 1.0),
                lambda: theirs.ask(),
                lambda: theirs.abandon(ticket),
                lambda: theirs.add(["0"], [1.0], "elsewhere"),
                lambda: theirs.status(),
                lambda: theirs.report(),
                lambda: theirs.records(),
                lambda: theirs.delete(),
            ):
                with pytest.raises(sb.InvalidInput, match="no longer there: it was deleted"):
                    use()
            assert export_study(new) == before


def test_many_tickets_are_given_back_at_once_or_none(storage: str) -> None:
    with Study.create("pages", INSTANCE, 0.1, storage, stopping="gk16") as study:
        given = study.ask(1200)
        study.tell(given[0], 1.0)
        with pytest.raises(sb.InvalidInput, match="has its result already"):
            study.abandon(*given)
        assert len(study.snapshot().pending) == 1199
        study.abandon(*given[1:])
        assert study.snapshot().pending == ()
