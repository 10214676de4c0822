"""Picking by a command: how its words are filled in and run, what it prints, and what the command line answers."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spectralbai as sb
from spectralbai.inputs.table import CsvTable
from spectralbai.picking.command import Command, TrialFailed
from spectralbai.picking.entries import Entries, Entry
from spectralbai.picking.template import Template

NASTY = (
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned;",
    "& touch pwned",
    "| touch pwned",
    "> pwned",
    "' ; touch pwned ; '",
    '" ; touch pwned ; "',
    "$HOME",
    "%PATH%",
    "~",
    "*",
    "a b  c",
    "\\",
    "{item}",
    "{option.text}",
    "{}",
    "%s",
    "--text=x",
    "-rf",
    "é 漢 🙂",
    "first line\nsecond line",
    "\r\n; touch pwned\n",
)
"""Texts that a shell, or a second round of filling in, would take for something else."""
SHOW = """printf '%s\\0' "$@" > argv; echo 1"""


def entries(role: Any, *labels: str, **columns: tuple[str, ...]) -> Entries:
    rows = (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))
    cells = list(rows) or [{} for _ in labels]
    return Entries(role, tuple(Entry(a, a, row) for a, row in zip(labels, cells, strict=True)), tuple(columns))


def command(words: str, timeout: float | None = None, **columns: tuple[str, ...]) -> Command:
    options, items = entries("option", "a", "b", **columns), entries("item", "x")
    return Command(Template.parsed(words, options, items), timeout)


def test_a_value_stays_one_word_and_no_shell_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = entries("option", *(f"option {n}" for n in range(len(NASTY))), text=NASTY)
    items = entries("item", "it; touch pwned", "$(touch pwned)")
    words = ("sh", "-c", SHOW, "sh", "--option={option.text}", "--", "{option.text}", "pre-{item}")
    run = Command(Template.parsed(shlex.join(words), options, items))
    for option, item in ((option, item) for option in options for item in items):
        assert run(option, item) == 1
        text = option.columns["text"]
        passed = [f"--option={text}", "--", text, f"pre-{item.label}"]
        assert Path("argv").read_bytes() == "".join(f"{word}\0" for word in passed).encode()
    assert sorted(os.listdir()) == ["argv"]


@pytest.mark.parametrize("label", [label for label in NASTY if "\n" not in label and not label.startswith("-")])
def test_labels_are_passed_on_as_they_are(label: str) -> None:
    options, items = entries("option", label, "other"), entries("item", label)
    template = Template.parsed("./score {option} {item} {}{x y}", options, items)
    assert template.filled(options.listed[0], items.listed[0]) == ["./score", label, label, "{}{x", "y}"]


def test_a_value_with_a_dash_needs_a_place_where_it_is_no_option() -> None:
    options, items = entries("option", "-rf", "b"), entries("item", "x")
    for good in ("rm -- {option} {item}", "rm --file={option} {item}", "rm x{option} {item}"):
        assert "-rf" in " ".join(Template.parsed(good, options, items).filled(options.listed[0], items.listed[0]))
    for bad in ("rm {option} {item}", "rm {item} {option}.txt", "rm {option} -- {item}"):
        with pytest.raises(sb.InvalidInput, match=r"begins with a dash .* write --option=\{option\}, or -- before it"):
            Template.parsed(bad, options, items)
    numbers = entries("option", "-0.5", "-1e3")
    assert Template.parsed("./score {option} {item}", numbers, items).words == ("./score", "{option}", "{item}")


def test_a_nul_cannot_be_passed_on() -> None:
    with pytest.raises(sb.InvalidInput, match="NUL"):
        command("./score {option.text} {item}", text=("a\0b", "c"))


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("echo 0.25", 0.25),
        ("echo starting; echo -3e-1; echo; echo ' '", -0.3),
        ("echo noise >&2; echo 7", 7.0),
        ("printf 0.5", 0.5),
    ],
)
def test_the_last_line_is_the_outcome(script: str, outcome: float) -> None:
    run = command(f"sh -c {shlex.quote(script)} {{option}} {{item}}")
    assert run(Entry("a", "a"), Entry("x", "x")) == outcome


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("true", "it printed nothing"),
        ("echo 1; echo good", "it ended with the line 'good', which is no number"),
        ("echo nan", "no number"),
        ("echo 1_000", "no number"),
        ("echo 1; echo out of memory >&2; exit 3", "exit code 3: out of memory"),
        ("kill -9 $$", "exit code -9"),
    ],
)
def test_what_went_wrong_is_said(script: str, reason: str) -> None:
    run = command(f"sh -c {shlex.quote(script)} {{option}} {{item}}")
    with pytest.raises(TrialFailed, match=reason):
        run(Entry("a", "a"), Entry("x", "x"))


def test_a_run_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    script = f"(sleep 30; touch {tmp_path}/late) & echo $! > {tmp_path}/child; wait"
    run = command(f"sh -c {shlex.quote(script)} {{option}} {{item}}", timeout=0.3)
    with pytest.raises(TrialFailed, match=r"took longer than 0.3 s"):
        run(Entry("a", "a"), Entry("x", "x"))
    child = Path(f"/proc/{int((tmp_path / 'child').read_text())}/stat")
    for _ in range(100):
        if not child.exists() or child.read_text().split()[2] == "Z":  # dead, perhaps not yet waited for
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the child goes on")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with three options, six items, and a command that scores them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPECTRALBAI_STORAGE", raising=False)
    (tmp_path / "options.csv").write_text("option,worth\nlow,2\nhigh,9\nbroken,x\n")
    (tmp_path / "items.txt").write_text("1\n2\n3\n4\n5\n6\n")
    (tmp_path / "score").write_text('#!/bin/sh\necho "$1 $2" >> calls\nexpr $1 + $2 / 3\n')
    (tmp_path / "score").chmod(0o755)
    return tmp_path


PICK = ("pick", "options.csv", "items.txt", "--run", "./score {option.worth} {item}", "--low", "0", "--high", "12")


def test_the_answer_is_printed_and_a_second_command_only_says_it_again(run: Callable[..., Any], folder: Path) -> None:
    first = run(*PICK, "--retries", "1")
    assert first.code == 0
    assert re.match('Decided after .* results: "high" has the largest mean outcome of the options not', first.stdout)
    assert "This took 8 of 18 trials: 55.6 % of them were not needed." in first.stdout
    assert 'Out of the answer, since their runs failed: "broken" (exit code' in first.stdout
    assert 'The report is in report.html; the study is "options on items".' in first.stdout
    calls = (folder / "calls").read_text().splitlines()
    right = [call for call in calls if not call.startswith("x")]
    assert len(set(right)) == len(right) == 8 and len(calls) == 10, "only what failed is repeated"
    assert "options not withdrawn" in (folder / "report.html").read_text("utf-8")
    again = run(*PICK)
    assert (again.code, again.stdout) == (0, first.stdout)
    assert (folder / "calls").read_text().splitlines() == calls


def test_the_answer_as_json(run: Callable[..., Any], folder: Path) -> None:
    done = run(*PICK, "--failed-as", "0", "--retries", "0", "--json", "--jobs", "2")
    answer = json.loads(done.stdout)
    assert (done.code, answer["option"], answer["decided"], answer["held_back"]) == (0, "high", True, {})
    assert (answer["pairs"], answer["status"]["state"]) == (18, "decided")


def test_what_is_undecided_has_an_exit_code_of_its_own(run: Callable[..., Any], folder: Path) -> None:
    done = run(*PICK, "--failed-as", "0", "--budget", "4")
    assert done.code == 3 and "Ended with the budget, after 4 results" in done.stdout


def test_known_outcomes_are_not_run(run: Callable[..., Any], folder: Path) -> None:
    (folder / "known.csv").write_text("option,item,outcome\nhigh,1,9\nhigh,2,9\nbroken,3,0\nother,1,5\n")
    done = run(*PICK, "--failed-as", "0", "--known", "known.csv", "--seed", "1")
    assert done.code == 0 and done.stderr.startswith(
        "known.csv: 3 outcomes known, and 1 outcome of other options or items left out\n"
    )
    calls = (folder / "calls").read_text().splitlines()
    assert not {"9 1", "9 2", "x 3"} & set(calls)
    used = re.search(r"(\d) more outcomes? (?:was|were) known before\.", done.stdout)
    assert used is not None and 1 <= int(used[1]) <= 3
    counted = sum(int(count) for count in re.findall(r"^(?:high|low|broken)[ *]+(\d+)", done.stdout, re.MULTILINE))
    tried = re.search(r"This took (\d+) of", done.stdout)
    assert tried is not None and counted == int(tried[1]) + int(used[1])


def test_exported_results_are_known_to_the_next_search(run: Callable[..., Any], folder: Path) -> None:
    assert run(*PICK, "--failed-as", "0", "--budget", "6").code == 3
    assert run("study", "export", "options on items", "--out", "outcomes.csv").code == 0
    tried = (folder / "calls").read_text().splitlines()
    assert run(*PICK, "--failed-as", "0", "--known", "outcomes.csv", "--name", "next").code == 0
    calls = (folder / "calls").read_text().splitlines()
    assert not set(tried) & set(calls[len(tried) :])


def test_another_command_is_refused_once_there_are_outcomes(run: Callable[..., Any], folder: Path) -> None:
    other = ("./score {option.worth} {item} more" if word == PICK[4] else word for word in PICK)
    assert run(*(("false {option} {item}" if word == PICK[4] else word) for word in PICK)).code == 1
    assert run(*PICK).code == 0, "nothing came of the first command"
    calls = (folder / "calls").read_text()
    again = run(*other)
    assert (again.code, again.stdout) == (1, "")
    assert re.fullmatch(
        r'error: the study "options on items" has \d+ outcomes of another score, '
        r'"\./score {option.worth} {item} \(cells with checksum (\w{12})\)", and not of '
        r'"\./score {option.worth} {item} more \(cells with checksum \1\)"; go on with '
        r"that one, or give the study of this one another name\n",
        again.stderr,
    )
    assert (folder / "calls").read_text() == calls
    (folder / "options.csv").write_text("option,worth\nlow,2\nhigh,8\nbroken,x\n")
    assert (again := run(*PICK)).code == 1 and "of another score" in again.stderr, "a cell has changed"
    (folder / "options.csv").write_text("worth,option,note\n2,low,good\n9,high,\nx,broken,bad\n")
    assert run(*PICK).code == 0, "other columns may change"
    assert (folder / "calls").read_text() == calls
    page = (folder / "report.html").read_text("utf-8")
    assert re.search("outcomes from</t.>.*>./score {option.worth} {item} .cells", page)


def test_similar_options_are_joined(run: Callable[..., Any], folder: Path) -> None:
    (folder / "options.csv").write_text("option,worth\na,1\nb,2\nc,9\n")
    done = run(*PICK, "--similar", "worth", "--step", "8")
    assert done.code == 0 and "features: worth (numbers)" in done.stderr
    with sb.Study.open("options on items") as study:
        assert study.definition.instance.problem.graph.n_edges == 2


def test_a_table_is_replayed(run: Callable[..., Any], folder: Path) -> None:
    rows = [f"{option},{','.join(str((option == 'b') * 0.4 + j % 5 / 10) for j in range(200))}" for option in "abc"]
    (folder / "scores.csv").write_text("\n".join(["option," + ",".join(f"q{j}" for j in range(200)), *rows]))
    table = ("pick", "--table", "scores.csv", "--low", "0", "--high", "1", "--tolerance", "0.05")
    done = run(*table, "--seed", "1")
    assert done.code == 0 and "of 600 trials" in done.stdout
    assert 'It would have picked "b", a right answer in every order.' in done.stdout
    least = json.loads(run(*table, "--seed", "1", "--goal", "min", "--json").stdout)
    assert set(least["answers"]) <= {"a", "c"} and all(least["right"]) and max(least["trials"]) < 600
    assert json.loads(run(*table, "--fresh", "--seed", "1", "--json").stdout)["decided"]


def test_tables_with_a_column_called_as_the_role_are_read_by_it() -> None:
    table = CsvTable.from_text("text,option\nhello,a\nbye,b\n")
    assert Entries.from_table("option", table).labels == ("a", "b")
    assert Entries.from_table("item", table).labels == ("hello", "bye")
