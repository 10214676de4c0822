"""Files written by earlier versions still open. Add those of a new version beside them; never replace one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import spectralbai as sb
from spectralbai.study import export_study, import_study, list_studies
from spectralbai.study.replay import replay

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture
def kept(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A copy of the database of a schema, of the first one if none is named."""
    shutil.copy(DATA / f"studies-{getattr(request, 'param', 1)}.db", tmp_path / "studies.db")
    return f"sqlite:///{tmp_path / 'studies.db'}"


def of_schema(number: int) -> pytest.MarkDecorator:
    """Has a test get the database of this schema: 1 was written by spectralbai 0.1.0, 2 by 0.2.0; 3 has counts, a
    failure, a withdrawal and limits; in 4 options joined while a block was open, which still is."""
    return pytest.mark.parametrize("kept", [number], indirect=True)


def test_a_kept_database_opens_and_goes_on(kept: str) -> None:
    assert [(each.name, each.state, each.best) for each in list_studies(kept)] == [
        ("running", "running", "naïve blue"),
        ("decided", "decided", "3"),
    ]
    with sb.Study.open("running", kept) as study:
        status = study.status()
        assert (status.goal, status.results, len(status.pending)) == ("min", 64, 2)
        assert study.tell(status.pending[0], 1.0) is True
        assert study.ask(worker="new")
        assert study.report().origins == {"pilot of May": 4}
    with sb.Study.open("decided", kept) as study:
        assert study.ask() == []


@pytest.mark.parametrize("name", ["running", "decided"])
def test_the_state_in_a_kept_database_is_that_of_its_results(kept: str, name: str) -> None:
    with sb.Study.open(name, kept) as study:
        told, policy, state = study.records().observations, study.definition.policy, study.snapshot().state
        rewards = study.definition.rewards([each.outcome for each in told])
    replay = policy.tell(policy.init(), [each.arm for each in told], rewards)
    assert (replay.counts == state.counts).all() and (replay.data.sums == state.data.sums).all()
    assert policy.verdict(replay).state == policy.verdict(state).state


def test_a_kept_export_is_restored(kept: str, tmp_path: Path) -> None:
    document = json.loads((DATA / "study-1.json").read_text("utf-8"))
    with (
        import_study(document, None, f"sqlite:///{tmp_path / 'new.db'}") as study,
        sb.Study.open("running", kept) as original,
    ):
        now = export_study(study)
        assert now == export_study(original)
        assert (document["format"], now["format"]) == ("spectralbai-export/1", "spectralbai-export/3")
        assert [row[:-1] for row in now["observations"]["rows"]] == document["observations"]["rows"]
        assert now["openings"]["rows"] == []
        assert [row[:-2] for row in now["tickets"]["rows"]] == document["tickets"]["rows"]
        added = {"budget": None, "until": None, "failed_as": None}
        assert now["study"] == document["study"] | {"format": "spectralbai-study/3"} | added
        assert study.status().best == original.status().best == "naïve blue"


@of_schema(2)
def test_a_kept_database_with_blocks_opens_and_goes_on(kept: str) -> None:
    with sb.Study.open("racing", kept) as study:
        state, checks = replay(study.definition, study.records())
        at = study.snapshot()
        assert [block.number for block in state.blocks] == [block.number for block in at.state.blocks]
        for mine, theirs in zip(state.verdicts, at.state.verdicts, strict=True):  # another computer may round otherwise
            assert (mine.arm, mine.candidates, mine.stopped_at) == (theirs.arm, theirs.candidates, theirs.stopped_at)
            assert mine.lacking == pytest.approx(theirs.lacking, abs=1e-6)
        assert [check.samples for check in checks] == [check.samples for check in at.checks]
        status = study.status()
        assert (status.goal, status.state, status.best) == ("min", "running", "plain")
        assert study.report().origins == {"pilot of May": 2}
        for ticket in status.pending:
            assert study.tell(ticket, -0.5) is True
        assert len(study.snapshot().checks) > len(at.checks) and study.ask(worker="new")
    with sb.Study.open("over", kept) as study:
        assert study.status().state == "decided" and study.ask() == []


@of_schema(2)
def test_a_kept_export_with_blocks_is_restored(kept: str, tmp_path: Path) -> None:
    document = json.loads((DATA / "study-2.json").read_text("utf-8"))
    with (
        import_study(document, None, f"sqlite:///{tmp_path / 'new.db'}") as study,
        sb.Study.open("racing", kept) as original,
    ):
        now = export_study(study)
        assert now == export_study(original)
        assert (document["format"], now["format"]) == ("spectralbai-export/2", "spectralbai-export/3")
        assert [row[:-1] for row in now["observations"]["rows"]] == document["observations"]["rows"]
        assert [row[:-1] for row in now["tickets"]["rows"]] == document["tickets"]["rows"]
        assert now["openings"] == document["openings"]
        assert study.status().candidates == original.status().candidates


@of_schema(3)
def test_a_kept_database_with_counts_and_a_withdrawal_opens_and_goes_on(kept: str) -> None:
    with sb.Study.open("days", kept) as study:
        assert (study.status().results, study.definition.budget) == (63, 500)
        assert study.tell_counts({"now": (12, 3), "blue": (4, 0), "bluer": (9, 2)}, "Tuesday") == 0
        assert study.tell_counts({"now": (5, 1), "blue": (5, 1), "bluer": (5, 1)}, "Wednesday") == 15
    with sb.Study.open("season", kept) as study:
        status = study.status()
        assert [arm.label for arm in status.arms if arm.withdrawn] == ["a"] and len(status.pending) == 1
        assert sum(arm.failures for arm in status.arms) == 1
        state, checks = replay(study.definition, study.records())
        at = study.snapshot()
        assert state.withdrawn == at.state.withdrawn and state.opened == at.state.opened
        assert [check.samples for check in checks] == [check.samples for check in at.checks]
        assert study.tell(status.pending[0], 0.3) is True and study.ask(worker="new")


@of_schema(3)
def test_a_kept_export_with_a_withdrawal_is_restored(kept: str, tmp_path: Path) -> None:
    document = json.loads((DATA / "study-3.json").read_text("utf-8"))
    with (
        import_study(document, None, f"sqlite:///{tmp_path / 'new.db'}") as study,
        sb.Study.open("season", kept) as original,
    ):
        assert export_study(study) == export_study(original) == document
        assert study.status().candidates == original.status().candidates


@of_schema(4)
def test_a_kept_database_with_options_that_joined_opens_and_goes_on(kept: str) -> None:
    assert [(each.name, each.n_arms) for each in list_studies(kept)] == [("shop", 6)]
    with sb.Study.open("shop", kept) as study:
        status = study.status()
        assert status.joined == "e, f joined after 14 results" and len(status.pending) == 1
        state, checks = replay(study.definition, study.records())
        at = study.snapshot()
        assert (state.joined, state.withdrawn, state.opened) == ((4,), (1,), at.state.opened)
        assert [block.n_arms for block in state.blocks] == [block.n_arms for block in at.state.blocks]
        assert at.state.blocks[0].n_arms == 4
        assert [check.samples for check in checks] == [check.samples for check in at.checks]
        assert study.tell(status.pending[0], 0.3) is True and study.ask(worker="new")
        assert study.status().candidates is not None and study.snapshot().state.blocks[0].n_arms == 6


@of_schema(4)
def test_a_kept_export_with_options_that_joined_is_restored(kept: str, tmp_path: Path) -> None:
    document = json.loads((DATA / "study-4.json").read_text("utf-8"))
    with (
        import_study(document, None, f"sqlite:///{tmp_path / 'new.db'}") as study,
        sb.Study.open("shop", kept) as original,
    ):
        assert export_study(study) == export_study(original) == document
        assert study.status().best == original.status().best


@of_schema(3)
def test_options_join_a_study_in_a_kept_database_of_schema_3(kept: str) -> None:
    with sb.Study.open("season", kept) as study:
        document = study.definition.instance.as_dict()
        labels = [*study.definition.instance.labels, "new"]
        larger = sb.Instance.from_dict({**document, "n_arms": len(labels), "labels": labels})
        assert "1 option joined (new)" in study.join(larger)
        state, checks = replay(study.definition, study.records())
        at = study.snapshot()
        assert state.joined == at.state.joined == (len(labels) - 1,)
        assert [check.samples for check in checks] == [check.samples for check in at.checks]
        study.ask(100)  # the rest of the open block
        assert "new" in {ticket.label for ticket in study.ask(100)}
