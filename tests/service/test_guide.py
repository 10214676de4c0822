"""What docs/service.md shows is what happens; `test_page` runs its JavaScript."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import spectralbai as sb
from spectralbai.cli import main
from tests.study.contract import MEANS, SCORES

GUIDE = (Path(__file__).parents[2] / "docs" / "service.md").read_text("utf-8")
HOST, SITE = "localhost:8000", "https://studies.example.org"


def example(language: str) -> str:
    """Returns the example in a language, of which there is one."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    return str(found)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_examples_for_python_and_the_shell(
    studies: sb.Studies, serve: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = serve(studies, every=0.05)
    study = studies.create("sample", SCORES, 0.05)
    shell = example("sh").replace(HOST, url.removeprefix("http://")).replace("curl -sN", "curl -sN --max-time 0.5")
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 28, done.stderr  # events do not end by themselves
    told, status, events = re.fullmatch(r"(\{.*?\})(\{.*\})(retry: .*)", done.stdout, re.DOTALL).groups()  # type: ignore[union-attr]
    assert json.loads(told) == {"recorded": 1, "known": 0}
    assert json.loads(status)["results"] == study.status().results == 1
    assert '"study":"sample"' in events
    text = example("python").replace(SITE, url)
    exec(compile(text, "docs/service.md", "exec"), {"outcome_of": MEANS.__getitem__})
    assert capsys.readouterr().out == f"{study.status().answer}\n"
    assert study.status().state == "decided"


def test_the_commands_for_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^    (spectralbai serve token .*)$", GUIDE, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(command, comments=True)[1:])
        assert not ended.value.code, capsys.readouterr().err


def test_requests_in_examples_and_in_the_table_are_those_of_the_service(http: TestClient) -> None:
    described = http.get("/api/openapi.json").json()["paths"]
    known = {re.sub(r"\{name\}", "NAME", path) for path in described}
    for path in re.findall(r"(?:localhost:8000|example\.org)(/api/[\w./-]+)", GUIDE):
        assert path.replace("sample", "NAME") in known
    named = re.findall(r'\$\{url\}/(\w+)|\$api/(\w+)|path_append\("(\w+)"\)', GUIDE)
    assert {"".join(each) for each in named} == {"ask", "tell", "status"}
    shown: set[str] = set()
    for cell in re.findall(r"^\| (`(?:GET|POST).*?) \|", GUIDE, re.MULTILINE):
        words = re.findall(r"[\w./]+", re.sub(r"GET|POST|DELETE|`", " ", cell))
        shown |= {word if word.startswith("/") else f"/api/studies/NAME/{word.removeprefix('.../')}" for word in words}
    of_the_page = {"/api/login", "/api/logout", "/api/session"}
    assert shown == known - of_the_page
