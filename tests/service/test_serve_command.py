"""`spectralbai serve`, as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import spectralbai as sb
from spectralbai.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_a_sample_until_it_is_ended(folder: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-m", "spectralbai", "serve", "--sample", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONWARNINGS": ""})
    assert process.stderr is not None
    try:
        line = next(each for each in process.stderr if each.startswith("Serving "))
        found = re.search(
            r"at (http://127.0.0.1:\d+); everyone who uses this machine may call it. Ctrl-C ends it", line
        )
        assert found is not None, line
        client = sb.Client(found[1])
        assert [each.name for each in client.list()] == ["sample"]
        assert client.open("sample").ask()
        process.send_signal(how)
        process.wait(30)
        assert process.returncode in (130, -signal.SIGTERM)
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_other_machines_are_let_in_with_tokens_only(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = run(capsys, "serve", "--host", "0.0.0.0", "--port", "0")
    assert code == 1
    assert "--host 0.0.0.0 lets other machines in, and there is no token; create one first" in said


def test_a_file_of_tokens_that_was_named_must_let_somebody_in(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, said = run(capsys, "serve", "--tokens", "none.json")
    assert code == 1 and "there is no file none.json, so nobody could get in; create one: spectralbai serve" in said
    run(capsys, "serve", "token", "create", "--label", "lab", "--study", "s", "--until", "2999-12-31")
    rows = json.loads(run(capsys, "serve", "token", "list", "--json")[1])
    assert (rows[0]["study"], rows[0]["until"]) == ("s", "3000-01-01T00:00:00+00:00")
    run(capsys, "serve", "token", "revoke", "lab")
    code, _, said = run(capsys, "serve")
    assert code == 1 and "spectralbai-tokens.json has no valid token, so nobody could get in; create one" in said
    monkeypatch.setenv("SPECTRALBAI_TOKENS", "loop.json")
    (folder / "loop.json").symlink_to("loop.json")
    code, _, said = run(capsys, "serve")
    assert code == 1 and "loop.json cannot be read" in said and "Traceback" not in said


def test_a_port_that_is_taken_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, said = run(capsys, "serve", "--port", str(port))
    assert (code, said) == (
        1,
        f"error: port {port} is taken by another program; choose another one: --port {port + 1}\n",
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--port", "70000"), "--port must be at most 65535, got 70000"),
        (("--rate", "-1"), "--rate"),
        (("--proxy", "my proxy"), '--proxy must be an IP address, such as 127.0.0.1, got "my proxy"'),
        (("--host", "no such host"), "no token"),
        (("--storage", "mysql://x"), "the storage must be SQLite or PostgreSQL"),
    ],
)
def test_wrong_choices_are_refused_in_a_sentence(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    code, _, said = run(capsys, "serve", *arguments)
    assert (code, words in said) == (1, True), said


def test_tokens_are_created_listed_and_revoked(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    code, secret, said = run(capsys, "serve", "token", "create", "--read-write", "--label", "lab 3")
    assert (code, secret[:5]) == (0, "sbai_")
    assert "it is not shown again" in said
    run(capsys, "serve", "token", "create", "--read-only", "--label", "page")
    rows = json.loads(run(capsys, "serve", "token", "list", "--json")[1])
    assert [(row["label"], row["access"]) for row in rows] == [("lab 3", "read-write"), ("page", "read-only")]
    assert secret.strip() not in (folder / "spectralbai-tokens.json").read_text()
    assert "lab 3" in run(capsys, "serve", "token", "list")[1]
    assert run(capsys, "serve", "token", "revoke", "page")[0] == 0
    code, _, said = run(capsys, "serve", "token", "revoke", "page")
    assert (code, 'there is no token "page"' in said) == (1, True)


def test_a_study_is_stopped_from_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    from tests.study.contract import SLOW

    with sb.Study.create("s", SLOW) as study:
        study.tell(study.ask()[0], 0.5)
    code, out, said = run(capsys, "study", "stop", "s")
    assert (code, out) == (0, 'stopped: "s"\n')
    assert said.startswith("Stopped by hand on ") and " UTC, after 1 result, without a decision." in said
    assert run(capsys, "study", "stop", "s")[1] == '"s" was not running\n'
    assert json.loads(run(capsys, "study", "stop", "s", "--json")[1]) == {
        "stopped": "s",
        "new": False,
        "state": "ended",
    }
