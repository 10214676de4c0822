"""Files written by earlier versions still open. Add those of a new version beside them; never replace one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import spectralbai as sb
from spectralbai.study import export_study, import_study, list_studies

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture
def kept(tmp_path: Path) -> str:
    """A copy of the database of schema 1, written by spectralbai 0.1.0."""
    shutil.copy(DATA / "studies-1.db", tmp_path / "studies.db")
    return f"sqlite:///{tmp_path / 'studies.db'}"


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
    assert policy.verdict(replay).progress == policy.verdict(state).progress


def test_a_kept_export_is_restored(kept: str, tmp_path: Path) -> None:
    document = json.loads((DATA / "study-1.json").read_text("utf-8"))
    with (
        import_study(document, None, f"sqlite:///{tmp_path / 'new.db'}") as study,
        sb.Study.open("running", kept) as original,
    ):
        assert export_study(study) == export_study(original) == document
        assert study.status().best == original.status().best == "naïve blue"
