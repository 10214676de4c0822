"""What every command does, as people and scripts use it.

A command of `spectralbai.cli` is tested automatically; it needs a line in `REFUSED`, and one in `ANSWERED` if it has
--json. One from elsewhere joins by a class of its own:

    @pytest.mark.parametrize("command", [Command(("mine",), refused=("none.json",), answered=("instance.json",))])
    class TestMyCommand(CommandContract): ...
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main

from spectralbai.cli import app

Run = Callable[..., Any]
"""Runs the command line with these words, and returns its code, stdout and stderr: the fixture `run`."""
INSTANCE = {
    "format": "spectralbai-instance/3",
    "n_arms": 3,
    "edges": [[1, 2, 1.0]],
    "mu": [0.9, 0.5, 0.6],
    "R": 0.01,
    "sigma": 1.0,
    "labels": ["plain", "warm", "warmer"],
}
CAMPAIGN = """
format = "spectralbai-campaign/2"
runs = 1
deltas = [0.5]
[[instances]]
file = "instance.json"
[[policies]]
kind = "uniform"
stopping = "gk16"
"""
NOBODY = ("nobody", "--storage", "sqlite:///none.db")
SCORES = ("--low", "0", "--high", "1")
REFUSED: dict[str, tuple[str, ...]] = {
    "pick": ("none.txt", "none.csv", "--run", "echo {option} {item}", *SCORES),
    "instance": ("--edges", "none.csv", "--R", "1", "--sigma", "1", "--out", "new.json"),
    "plan": ("none.json",),
    "solve": ("none.json",),
    "reproduce": ("--runs", "0"),
    "simulate": ("none.toml", "--out", "new"),
    "compare": ("none",),
    "plot": ("none",),
    "study create": ("a", "none.json", "--storage", "sqlite:///none.db"),
    "study ask": NOBODY,
    "study tell": (NOBODY[0], "ticket", "0.5", *NOBODY[1:]),
    "study shares": NOBODY,
    "study abandon": (NOBODY[0], "ticket", *NOBODY[1:]),
    "study withdraw": (NOBODY[0], "plain", *NOBODY[1:]),
    "study void": (*NOBODY, "--id", "Monday", "--yes"),
    "study correct": (NOBODY[0], "ticket", "0.5", *NOBODY[1:], "--yes"),
    "study join": (NOBODY[0], "instance.json", *NOBODY[1:]),
    "study stop": NOBODY,
    "study status": NOBODY,
    "study list": NOBODY[1:],
    "study upgrade": NOBODY[1:],
    "study check": NOBODY,
    "backup": ("none/backup.db",),
    "restore": ("none.db",),
    "study report": NOBODY,
    "study export": NOBODY,
    "study delete": (*NOBODY, "--yes"),
    "study import": ("a", "none.json", "--storage", "sqlite:///none.db"),
    "serve token create": ("--tokens", "none/tokens.json"),
    "serve token revoke": ("nobody", "--tokens", "none.json"),
    "serve token list": ("--tokens", "instance.json"),
}
"""What each command must refuse: files, directories and studies that are not there, or numbers that cannot be."""
ANSWERED: dict[str, tuple[str, ...]] = {
    "pick": ("--table", "scores.csv", *SCORES),
    "plan": ("instance.json", "--quick"),
    "solve": ("instance.json",),
    "compare": ("campaign",),
    "study create": ("another", "instance.json"),
    "study ask": ("pages",),
    "study tell": ("pages", "TICKET", "0.5"),
    "study shares": ("pages",),
    "study abandon": ("pages", "TICKET"),
    "study withdraw": ("pages", "warm"),
    "study void": ("pages", "TICKET", "--yes"),
    "study correct": ("pages", "TICKET", "0.25", "--yes"),
    "study join": ("pages", "larger.json"),
    "study stop": ("pages",),
    "study status": ("pages",),
    "study list": (),
    "study upgrade": (),
    "study check": ("pages",),
    "backup": ("backup.db",),
    "restore": ("backup.db", "--storage", "sqlite:///restored.db"),
    "study report": ("pages",),
    "study delete": ("pages", "--yes"),
    "study import": ("copy", "exported.json"),
    "serve token list": ("--tokens", "none.json"),
}
"""What each command that has --json can answer; TICKET is one of the study "pages"."""


class Command(NamedTuple):
    """A command by its words, and arguments that it must refuse and can answer; None where it has no --json."""

    words: tuple[str, ...]
    refused: tuple[str, ...]
    answered: tuple[str, ...] | None


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[Command]:
    """Yields the commands of the command line, with the lines of the two tables above."""
    for name, command in group.commands.items():
        path = (*words, name)
        if hasattr(command, "commands"):
            yield from commands(command, path)
            continue
        called = " ".join(path)
        has_json = any("--json" in option.opts for option in command.params)
        assert called in REFUSED, f"tests/contracts/commands.py needs a line in REFUSED for the command {called}"
        assert has_json == (called in ANSWERED), f"ANSWERED needs a line for {called} exactly if it has --json"
        yield Command(path, REFUSED[called], ANSWERED.get(called))


COMMANDS: dict[str, Command] = {" ".join(command.words): command for command in commands(typer.main.get_command(app))}


def prepared(run: Run, folder: Path, command: Command) -> tuple[str, ...]:
    """Makes what the arguments that can be answered speak of, and returns them."""
    assert command.answered is not None
    if command.words[0] in ("study", "backup", "restore"):
        assert run("study", "create", "pages", "instance.json").code == 0
        larger = INSTANCE | {"n_arms": 4, "mu": [0.9, 0.5, 0.6, 0.5], "labels": ["plain", "warm", "warmer", "new"]}
        (folder / "larger.json").write_text(json.dumps(larger))
    if "scores.csv" in command.answered:
        (folder / "scores.csv").write_text("option,q1,q2\nold,0,1\nnew,1,1\n")
    if "exported.json" in command.answered:
        assert run("study", "export", "pages", "--out", "exported.json").code == 0
    if command.words[0] == "restore":
        assert run("backup", "backup.db").code == 0
    if "campaign" in command.answered:
        (folder / "campaign.toml").write_text(CAMPAIGN)
        assert run("simulate", "campaign.toml", "--out", "campaign", "--jobs", "1").code == 0
    ticket = run("study", "ask", "pages").stdout.split()[0] if "TICKET" in command.answered else ""
    if command.words[-1] in ("void", "correct"):
        assert run("study", "tell", "pages", ticket, "0.5").code == 0
    return tuple(ticket if word == "TICKET" else word for word in command.answered)


class CommandContract:
    """What every command does."""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A working directory with an instance file."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("SPECTRALBAI_STORAGE", raising=False)
        (tmp_path / "instance.json").write_text(json.dumps(INSTANCE))
        return tmp_path

    def test_help_says_what_it_does_and_what_each_option_means(self, command: Command, run: Run) -> None:
        code, stdout, stderr = run(*command.words, "--help")
        assert (code, stderr) == (0, "")
        usage, _, rest = stdout.partition("\n\n")
        assert usage.startswith(f"Usage: spectralbai {' '.join(command.words)}") and len(rest.split()[0]) > 1
        bare = [line for line in rest.splitlines() if line.startswith("  --") and len(line.split()) == 1]
        assert all(rest.splitlines()[rest.splitlines().index(line) + 1].startswith("    ") for line in bare)

    def test_a_refusal_is_one_line_on_stderr_and_leaves_nothing(self, command: Command, run: Run, folder: Path) -> None:
        code, stdout, stderr = run(*command.words, *command.refused)
        assert (code, stdout) == (1, "")
        assert stderr.startswith("error: ") and stderr.count("\n") == 1 and stderr.endswith("\n")
        assert [each.name for each in folder.iterdir()] == ["instance.json"]

    def test_an_option_that_it_does_not_have_is_wrong_usage(self, command: Command, run: Run) -> None:
        code, stdout, stderr = run(*command.words, *command.refused, "--no-such-option")
        assert (code, stdout) == (2, "") and "--no-such-option" in stderr

    def test_with_json_the_answer_is_json_and_remarks_go_to_stderr(
        self, command: Command, run: Run, folder: Path
    ) -> None:
        if command.answered is None:
            assert "--json" not in run(*command.words, "--help").stdout
            return
        code, stdout, stderr = run(*command.words, *prepared(run, folder, command), "--json")
        assert code == 0 and not stderr.startswith("error")
        assert json.loads(stdout, parse_constant=pytest.fail) is not None
