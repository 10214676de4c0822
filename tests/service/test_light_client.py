"""The client needs the standard library only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import spectralbai as sb

SCORES = sb.Instance(sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1), labels=["old", "new"])
BLOCKED = 'import sys\nfor name in ("numpy", "scipy", "numba", "sqlalchemy"):\n    sys.modules[name] = None\n'
WORK = """
import spectralbai.client
study = spectralbai.client.Client(sys.argv[1]).open("pages")
for ticket in study.ask():
    study.tell(ticket, 0.5)
status, records = study.status(), study.records()
print(status.results, len(records.observations), len(records.openings[0].arms) > 0, bool(status.answer))
"""
READ = """
import json
from spectralbai.report import Status
print(Status.from_dict(json.load(sys.stdin)).answer)
"""


def run(program: str, *arguments: str, given: str = "") -> str:
    """Returns what a program prints in a process without numpy and SQLAlchemy."""
    command = [sys.executable, "-c", BLOCKED + program, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_study_of_a_service_is_used_without_numpy_and_sqlalchemy(tmp_path: Path, serve: Callable[..., str]) -> None:
    with sb.Studies(f"sqlite:///{tmp_path}/studies.db") as studies:
        studies.create("pages", SCORES)
        assert run(WORK, serve(studies)) == "1 1 True True"


def test_a_status_is_built_from_its_document_without_numpy(tmp_path: Path) -> None:
    with sb.Study.create("pages", SCORES, storage=f"sqlite:///{tmp_path}/studies.db") as study:
        status = study.status()
    assert run(READ, given=json.dumps(status.as_dict())) == status.answer
