"""Studies as files."""

from __future__ import annotations

import copy
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import spectralbai as sb
from spectralbai.inputs.table import CsvTable
from spectralbai.study import export_study, import_study, results_as_csv
from tests.study.test_study import INSTANCE, LABELS, drive


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The storage of the study that is exported."""
    return f"sqlite:///{tmp_path_factory.mktemp('exported') / 'old.db'}"


@pytest.fixture(scope="module")
def exported(place: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """An export of a study with past results, told, given back and pending tickets, which tests leave as it is; and its
    state."""
    with sb.Study.create("old", INSTANCE, 0.05, place, goal="min") as study:
        study.add(LABELS, [0.1, 0.5, 0.5, 0.9, 0.9], origin="pilot, of May")
        drive(study, 1, sign=-1.0, most=20)
        study.abandon(study.ask(worker="lab")[0])
        study.ask(2, worker="lab")
        return export_study(study), study.snapshot().state.as_dict()


def test_an_exported_study_is_restored_exactly(exported: tuple[dict[str, Any], dict[str, Any]], storage: str) -> None:
    document, state = exported
    document = json.loads(json.dumps(document))
    with import_study(document, None, storage) as study:
        assert study.name == "old"
        assert study.snapshot().state.as_dict() == state  # computed again from the results
        assert export_study(study) == document
        known = study.records().observations[-1]
        assert known.ticket is not None
        assert study.tell(known.ticket, known.outcome) is False  # tickets still know what was told for them
        assert study.tell(study.status().pending[0], 0.4) is True
    with import_study(document, "copy", storage) as study:  # beside the first, whose tickets have the same ids
        assert study.snapshot().state.as_dict() == state
    with pytest.raises(sb.InvalidInput, match='there is a study "old" already'):
        import_study(document, None, storage)


def test_results_are_a_table(exported: tuple[dict[str, Any], dict[str, Any]], place: str) -> None:
    document, _ = exported
    with sb.Study.open("old", place) as study:
        rows = list(csv.DictReader(io.StringIO(results_as_csv(study))))
    told = [result for event in document["events"] if event["kind"] == "told" for result in event["results"]]
    assert [float(row["outcome"]) for row in rows] == [outcome for _, outcome, *_ in told]
    assert [LABELS.index(row["label"]) for row in rows] == [arm for arm, *_ in told]
    assert {row["origin"] for row in rows} == {"pilot, of May", ""}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["format"], "spectralbai-export/9", "must be \"spectralbai-export/6\", got 'spectralbai-export/9'"),
        (["format"], "spectralbai-export/5", "must be \"spectralbai-export/6\", got 'spectralbai-export/5'"),
        (["name"], "a\nb", "`name` must be one line"),
        (["events"], None, "$.events must be a list of events"),
        (["events", 0], 7, "$.events[0]: an event must be an object"),
        (["events", 0, "kind"], "begun", "$.events[0]: `kind` must be one of created, opened"),
        (["events", 0, "time"], "yesterday", "$.events[0]: `time` must be a time"),
        (["events", 0, "versions"], [], "$.events[0]: `versions` must be an object"),
        (["events", 0, "study", "format"], "spectralbai-study/3", 'must be "spectralbai-study/4"'),
        (["events", 0, "study", "delta"], 2, "`delta` must be a risk"),
        (["events", 0, "study", "instance", "n_arms"], 4, "$.edges"),
        (["events", 1, "revision"], 3, "$.events[1]: `revision` must be 2, got 3"),
        (["told", 0, "results", 3, 0], 5, "must be an arm between 0 and 4, got 5"),
        (["told", 0, "results", 3, 1], "0.5", "`outcome` must be a finite number, got '0.5'"),
        (["told", 0, "results", 3, 1], None, "`outcome` must be"),
        (["told", 0, "results", 3], [1, 2], "must hold lists of arm, outcome, block, ticket"),
        (["told", 0, "origin"], None, "must have tickets, or an origin"),
        (["told", 1, "results", 0, 3], "nothing", "there is no ticket 'nothing'"),
        (["asked", 0, "tickets", 0, 0], "x" * 17, "an id must be up to 16 characters"),
        (["asked", 0, "expires"], -1, "`expires` must be a time"),
        (["closed", 0, "verdict", "arm"], 3, "the rules said something else than is written down"),
        (["closed", 0, "verdict"], {}, "`verdict` is no verdict"),
    ],
)
def test_a_broken_export_is_refused_and_nothing_is_written(
    exported: tuple[dict[str, Any], dict[str, Any]], path: list[Any], value: object, message: str, tmp_path: Path
) -> None:
    document = copy.deepcopy(exported[0])
    inner: Any = document
    if path[0] in ("told", "asked", "closed"):
        kind, which, *path = path
        inner = [event for event in document["events"] if event["kind"] == kind][which]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(sb.InvalidInput) as refusal:
        import_study(document, None, f"sqlite:///{tmp_path / 'new.db'}")
    assert message in str(refusal.value)
    assert not (tmp_path / "new.db").exists()


def test_a_result_or_a_ticket_twice_is_refused(exported: tuple[dict[str, Any], dict[str, Any]], tmp_path: Path) -> None:
    for kind, message in (("told", "or is its second"), ("asked", "was handed out already")):
        document = copy.deepcopy(exported[0])
        again = copy.deepcopy([event for event in document["events"] if event["kind"] == kind][-1])
        document["events"].append({**again, "revision": len(document["events"]) + 1})
        with pytest.raises(sb.InvalidInput, match=message):
            import_study(document, None, f"sqlite:///{tmp_path / 'new.db'}")


def test_every_key_of_an_export_is_needed(exported: tuple[dict[str, Any], dict[str, Any]], tmp_path: Path) -> None:
    for key in exported[0]:
        document = {name: value for name, value in exported[0].items() if name != key}
        with pytest.raises(sb.InvalidInput, match=f"must hold {key}|the format of an exported study must be"):
            import_study(document, None, f"sqlite:///{tmp_path / 'new.db'}")
    with pytest.raises(sb.InvalidInput, match="the format of an exported study must be"):
        import_study([], None, f"sqlite:///{tmp_path / 'new.db'}")


def test_a_table_of_results_has_no_formulas_and_its_labels_are_read_back(storage: str) -> None:
    labels = ("=1+1", "-5 C", "@x", "+", "'=quoted", "plain")
    problem = sb.Problem(sb.Graph.from_edges(6, [(0, 1)]), R=1.0, sigma=0.1)
    with sb.Study.create("formulas", sb.Instance(problem, labels=labels), 0.05, storage) as study:
        study.add(labels, [-0.5] * 6, "=cmd")
        text = sb.study.results_as_csv(study)
    table = CsvTable.from_text(text)
    assert [row[1] for row in table.rows] == list(labels) and table.rows[0][2] == "-0.5"
    assert all(cell[:1] not in ("=", "+", "@") for line in text.splitlines() for cell in line.split(","))
