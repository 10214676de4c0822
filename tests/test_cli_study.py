"""The commands of `spectralbai study`, as a script would use them."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spectralbai as sb
from spectralbai.cli.study import app

ROOT = Path(__file__).parent.parent
INSTANCE = {
    "format": "spectralbai-instance/3",
    "n_arms": 3,
    "edges": [[1, 2, 1.0]],
    "R": 0.01,
    "low": -1,
    "high": 1,
    "labels": ["plain", "a warm one", "warmer"],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with an instance file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPECTRALBAI_STORAGE", raising=False)
    (tmp_path / "instance.json").write_text(json.dumps(INSTANCE))
    return tmp_path


@pytest.fixture
def study(run: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a command of `study`; a study "pages" is there."""
    assert run("study", "create", "pages", "instance.json", "--delta", "0.1").code == 0
    return lambda *arguments, **more: run("study", *arguments, **more)


def answers(result: Any) -> Any:
    assert (result.code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_a_study_is_made_in_the_working_directory(run: Callable[..., Any], folder: Path) -> None:
    result = run("study", "create", "pages", "instance.json")
    assert (result.code, result.stdout) == (0, 'The study "pages" is ready; next: spectralbai study ask pages\n')
    assert (folder / "spectralbai.db").is_file()
    made = answers(run("study", "create", "other", "-", "--goal", "min", "--json", stdin=json.dumps(INSTANCE).encode()))
    assert (made["name"], made["goal"], made["delta"]) == ("other", "min", 0.05)


def test_asking_and_telling_from_a_script(study: Callable[..., Any]) -> None:
    result = study("ask", "pages", "-n", "2", "--worker", "me")
    assert (result.code, result.stderr) == (0, "")
    tickets = [line.split(" ", 1) for line in result.stdout.splitlines()]
    assert [label for _, label in tickets] == ["plain", "a warm one"]
    assert study("tell", "pages", tickets[0][0], "-0.25").stdout == "recorded 1 result\n"
    assert study("tell", "pages", tickets[0][0], "-0.25").stdout == "recorded 0 results; 1 known already\n"
    assert study("abandon", "pages", tickets[1][0]).stdout == "given back\n"
    given = answers(study("ask", "pages", "--json", "--lease", "60"))
    assert (given[0]["label"], given[0]["block"]) == ("a warm one", 0) and given[0].keys() == {
        "ticket",
        "arm",
        "label",
        "item",
        "block",
        "worker",
        "issued",
        "expires",
    }
    assert answers(study("tell", "pages", given[0]["ticket"], "0.5", "--json")) == {"recorded": 1, "known": 0}
    assert answers(study("status", "pages", "--json"))["results"] == 2
    assert answers(study("list", "--json"))[0]["results"] == 2


def test_many_results_are_told_through_a_pipe(study: Callable[..., Any]) -> None:
    given = study("ask", "pages", "--n", "3").stdout.splitlines()
    assert [line.split(" ", 1)[1] for line in given] == ["plain", "a warm one"]  # all that the first block has
    given += study("ask", "pages").stdout.splitlines()  # of the next block
    tickets = [line.split()[0] for line in given]
    lines = "".join(f"{ticket} 0.{k}\n" for k, ticket in enumerate(tickets))
    assert study("tell", "pages", "-", stdin=lines.encode()).stdout == "recorded 3 results\n"
    assert study("tell", "pages", "-", stdin=lines.encode()).stdout == "recorded 0 results; 3 known already\n"
    assert study("tell", "pages", "-", stdin=b"").stdout == "recorded 0 results\n"


def tell_all(study: Callable[..., Any], outcomes: dict[str, float]) -> int:
    """Asks and tells, with one outcome per label, until nothing is left to do; returns how many results that took."""
    told = 0
    while given := study("ask", "pages", "-n", "20").stdout.splitlines():
        pairs = [line.split(" ", 1) for line in given]
        lines = "".join(f"{ticket} {outcomes[label]}\n" for ticket, label in pairs)
        assert study("tell", "pages", "-", stdin=lines.encode()).code == 0
        told += len(given)
        assert told < 500, "this is easy to decide"
    return told


def test_past_results_inform_a_study_and_do_not_decide_it(study: Callable[..., Any], folder: Path) -> None:
    rows = "plain,1\na warm one,-1\nwarmer,-1\n" * 60
    (folder / "past.csv").write_text("page,outcome\n" + rows)
    assert study("import", "pages", "past.csv", "--origin", "last year").stdout == "recorded 180 results\n"
    assert (
        study("import", "pages", "past.csv", "--origin", "last year").stdout
        == "all of these results are known already\n"
    )
    seen = answers(study("status", "pages", "--json"))
    assert (seen["state"], seen["results"], seen["best"], seen["candidates"]) == ("running", 180, None, None)
    assert [arm["estimate"] for arm in seen["arms"]] == pytest.approx([1.0, -1.0, -1.0])
    assert study("ask", "pages").stdout.count("\n") == 1


def test_a_decided_study_gives_no_tickets_and_exit_code_0(study: Callable[..., Any]) -> None:
    told = tell_all(study, {"plain": 1.0, "a warm one": -1.0, "warmer": -1.0})
    result = study("ask", "pages")
    assert (result.code, result.stdout) == (0, "")
    assert f'Decided after {told} results: "plain" has the largest mean outcome' in result.stderr
    assert study("ask", "pages", "--json").stdout == "[]\n"


def test_a_status_is_a_table_for_people(study: Callable[..., Any]) -> None:
    lines = study("ask", "pages", "-n", "4", "--worker", "[bold]me[/bold]").stdout.splitlines()
    for line, outcome in zip(lines, ("0.5", "0.25"), strict=True):
        study("tell", "pages", line.split()[0], outcome)
    assert study("ask", "pages", "--worker", "[bold]me[/bold]").stdout
    result = study("status", "pages")
    assert result.code == 0
    for words in (
        'Not decided after 2 results: 3 of 3 options may be the best. The answer would be "plain" now. About ',
        "delta = 0.1, rule betting (risk proved)",
        "0 of 3 options are out; the account against ",
        "account",
        "leads",
        "1 of 10",
        "plain *",
        "[bold]me[/bold]",
    ):
        assert words in result.stdout
    assert "pages" in study("list").stdout


def test_options_join_and_the_status_says_when(study: Callable[..., Any], folder: Path) -> None:
    larger = {**INSTANCE, "n_arms": 4, "edges": [[1, 2, 1.0], [2, 3, 1.0]], "R": 0.02}
    larger["labels"] = [*INSTANCE["labels"], "hot"]  # type: ignore[misc]  # a list
    (folder / "larger.json").write_text(json.dumps(larger))
    for _ in range(3):
        ticket = study("ask", "pages").stdout.split()[0]
        assert study("tell", "pages", ticket, "0.5").code == 0
    done = study("join", "pages", "larger.json")
    assert (done.code, done.stdout) == (0, "1 option joined (hot); 1 edge became 2; R = 0.01 became 0.02\n")
    assert "Not decided after 3 results" in done.stderr
    assert "\nhot joined after 3 results\n" in study("status", "pages").stdout
    assert [arm["joined_at"] for arm in answers(study("status", "pages", "--json"))["arms"]] == [None, None, None, 3]
    larger |= {"n_arms": 5, "labels": [*larger["labels"], "hotter"]}  # type: ignore[misc]  # a list
    again = study("join", "pages", "-", "--json", stdin=json.dumps(larger).encode())
    assert json.loads(again.stdout)["joined"] == ["hotter"]


def test_a_report_is_a_page_and_json(study: Callable[..., Any], folder: Path) -> None:
    study("tell", "pages", study("ask", "pages").stdout.split()[0], "0.5")
    (folder / "out").mkdir()
    assert (
        study("report", "pages", "--out", "out/page.html").stdout
        == "The report is in out/page.html, for programs in out/page.json\n"
    )
    assert (folder / "out" / "page.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert json.loads((folder / "out" / "page.json").read_text("utf-8"))["status"]["results"] == 1
    assert answers(study("report", "pages", "--json"))["format"] == "spectralbai-report/3"


def test_a_control_is_an_option_of_status_and_report(study: Callable[..., Any], folder: Path) -> None:
    tell_all(study, {"plain": 1.0, "a warm one": -1.0, "warmer": -1.0})
    shown = study("status", "pages", "--control", "warmer").stdout
    assert 'against "warmer": ' in shown and "difference" in shown and "lift" in shown
    assert answers(study("status", "pages", "--control", "warmer", "--json"))["control"] == "warmer"
    assert answers(study("report", "pages", "--control", "warmer", "--json"))["status"]["control"] == "warmer"
    assert study("report", "pages", "--control", "warmer").code == 0
    assert "Against the control &quot;warmer&quot;" in (folder / "report.html").read_text("utf-8")
    for command in ("status", "report"):
        refused = study(command, "pages", "--control", "warmr")
        assert (refused.code, refused.stdout) == (1, "")
        assert refused.stderr == 'error: "warmr" is no label of an option of this study; did you mean "warmer"?\n'


def test_a_study_moves_to_another_storage(study: Callable[..., Any], folder: Path) -> None:
    study("tell", "pages", study("ask", "pages").stdout.split()[0], "0.5")
    assert study("export", "pages", "--out", "pages.json").code == 0
    assert json.loads(study("export", "pages").stdout) == json.loads((folder / "pages.json").read_text("utf-8"))
    moved = study("import", "moved", "pages.json", "--storage", "sqlite:///other.db")
    assert moved.stdout == 'The study "moved" is restored, with 1 result\n'
    assert [each["name"] for each in answers(study("list", "--json", "--storage", "sqlite:///other.db"))] == ["moved"]
    assert study("export", "pages", "--out", "pages.csv").code == 0
    doubled = study("import", "pages", "pages.csv", "--origin", "again")
    assert (doubled.code, doubled.stdout) == (
        1,
        "",
    ) and 'these results are in the study "pages" already' in doubled.stderr
    (folder / "dated.csv").write_text("label,outcome,origin\nplain,0.5,May\n")
    for words in ("recorded 1 result\n", "all of these results are known already\n"):
        assert study("import", "pages", "dated.csv", "--origin", "May").stdout == words
    study("create", "anew", "instance.json")
    assert study("import", "anew", "pages.csv", "--origin", "pages").stdout == "recorded 1 result\n"
    assert (
        (folder / "pages.csv")
        .read_text("utf-8")
        .startswith("number,label,outcome,told,ticket,worker,origin\n1,plain,0.5,")
    )


def test_the_storage_may_come_from_the_environment(
    study: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setenv("SPECTRALBAI_STORAGE", "sqlite:///there.db")
    assert study("create", "x", "instance.json").code == 0
    assert (folder / "there.db").is_file()
    assert [each["name"] for each in answers(study("list", "--json"))] == ["x"]
    monkeypatch.setenv("SPECTRALBAI_STORAGE", "postgresql://joe:hush@127.0.0.1:1/db")
    for arguments in (("list",), ("status", "x"), ("create", "y", "instance.json"), ("--help",), ("list", "--help")):
        result = study(*arguments)
        assert "hush" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ask", "page"), 'sqlite:///spectralbai.db holds no study "page"; did you mean "pages"?'),
        (("ask", "pages", "--n", "0"), "`n` must be a whole number of at least 1, got 0"),
        (("ask", "pages", "--lease", "-1"), "`lease` must be a positive number of seconds, got -1.0"),
        (("tell", "pages", "0123", "0.5"), '"0123" is no ticket of the study "pages"; tell under the id that ask gave'),
        (("tell", "pages"), "a ticket and its outcome are needed, or --counts FILE --id NAME"),
        (("tell", "pages", "TICKET", "0.5", "--failed", "broke"), 'a failed trial has no outcome, got "0.5"'),
        (("tell", "pages", "-", "--failed", "broke"), "--failed goes with one ticket"),
        (("tell", "pages", "TICKET", "--failed", "a\nb"), "`reason` must be one line"),
        (("tell", "pages", "TICKET", "0.5", "--id", "day"), "--id and --past go with --counts"),
        (("tell", "pages", "TICKET", "0.5", "--past"), "--id and --past go with --counts"),
        (("tell", "pages", "TICKET", "--counts", "past.csv", "--id", "x"), "--counts replaces the ticket"),
        (("tell", "pages", "--counts", "past.csv"), "--id is needed: a unique name for these counts"),
        (("tell", "pages", "--counts", "none.csv", "--id", "x"), "none.csv: No such file or directory"),
        (("tell", "pages", "--counts", "past.csv", "--id", "x"), "past.csv: counts need the columns label, trials"),
        (("tell", "pages", "--counts", "more.csv", "--id", "x"), "more.csv: line 2: 3 clicks of 2 visitors"),
        (("tell", "pages", "--counts", "half.csv", "--id", "x"), 'half.csv: line 2, column "trials": a whole number'),
        (
            ("tell", "pages", "--counts", "twice.csv", "--id", "x"),
            'twice.csv: line 3: "plain" is already on line 2',
        ),
        (("tell", "pages", "--counts", "other.csv", "--id", "x"), '"other" is no label of an option'),
        (("tell", "pages", "--counts", "fine.csv", "--id", " "), "`id` must be one line"),
        (("shares", "pages", "--n", "0"), "`--n` must be"),
        (("shares", "nothing"), 'holds no study "nothing"'),
        (("withdraw", "pages", "nothing"), '"nothing" is no label of an option of this study'),
        (("withdraw", "nothing", "plain"), 'holds no study "nothing"'),
        (("join", "pages", "instance.json"), "must hold new options after the 3 present ones, got none"),
        (("join", "pages", "none.json"), "none.json: No such file or directory"),
        (("join", "nothing", "instance.json"), 'holds no study "nothing"'),
        (("create", "x", "instance.json", "--budget", "0"), "`budget` must be"),
        (("create", "x", "instance.json", "--until", "soon"), "--until must be a date such as 2026-05-31"),
        (("create", "x", "instance.json", "--until", "2001-01-01"), "`until` must be in the future"),
        (("create", "x", "instance.json", "--failed-as", "7"), "`failed_as` must lie in [-1, 1], got 7"),
        (("tell", "pages", "TICKET", "high"), 'the outcome must be a number, got "high"; decimals have a point'),
        (("tell", "pages", "TICKET", "0,5"), 'the outcome must be a number, got "0,5"; decimals have a point'),
        (("tell", "pages", "TICKET", "nan"), "`outcome` must be a finite number, got nan"),
        (("tell", "pages", "TICKET", "1.5"), "`outcome` must lie in [-1, 1], got 1.5; correct it"),
        (("tell", "pages", "-", "0.5"), "leave the outcome out"),
        (("abandon", "pages", "0123"), '"0123" is no ticket of the study "pages"'),
        (
            ("create", "pages", "instance.json"),
            'there is a study "pages" already; choose another name, or go on with it',
        ),
        (("create", "x", "none.json"), "none.json: No such file or directory"),
        (("create", "x", "instance.json", "--goal", "best"), "`goal` must be max or min, got 'best'"),
        (("create", "x", "instance.json", "--delta", "0"), "`delta` must be a risk between 0 and 1"),
        (("import", "pages", "none.csv", "--origin", "x"), "none.csv: No such file or directory"),
        (("import", "pages", "other.csv", "--origin", "x"), 'error: other.csv: line 2, column "label": "other" is no'),
        (("import", "pages", "past.csv"), "--origin is needed: where the results come from"),
        (("import", "pages", "cut.csv", "--origin", "x"), "cut.csv: line 3: 1 cells for 2 columns"),
        (("import", "pages", "quote.csv", "--origin", "x"), "quote.csv: line 2: not CSV"),
        (
            ("import", "pages", "wrong.csv", "--origin", "x"),
            'wrong.csv: line 3, column "page": "warmest" is no label of an option; did you mean "warmer"?',
        ),
        (
            ("import", "pages", "far.csv", "--origin", "x"),
            'far.csv: line 2, column "outcome": an outcome must lie in [-1, 1], got 3; correct it',
        ),
        (("import", "x", "cut.json"), "cut.json: line 1, column"),
        (
            ("import", "x", "instance.json"),
            'error: the format of an exported study must be "spectralbai-export/6", got',
        ),
        (("import", "x", "cut.json", "--origin", "x"), "--origin is for past results in a CSV file"),
        (
            ("report", "pages", "--out", "instance.json/page.html"),
            "--out: instance.json is no directory that can be written to",
        ),
        (("report", "pages", "--out", "page.json"), "--out must name a page, such as report.html"),
        (("export", "pages", "--out", "instance.json/x"), "--out: instance.json is no directory"),
        (("status", "pages", "--storage", "sqlite:///none.db"), "there is no database none.db"),
        (
            ("status", "pages", "--storage", "oracle://scott:tiger@x/y"),
            "the storage must be SQLite or PostgreSQL, got oracle",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(
    study: Callable[..., Any], folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    (folder / "past.csv").write_text("page,outcome\nplain,0.5\n")
    (folder / "cut.csv").write_text("page,outcome\nplain,0.5\nwar")
    (folder / "quote.csv").write_text('page,outcome\n"plain,0.5\n')
    (folder / "wrong.csv").write_text("page,outcome\nplain,0.5\nwarmest,0.2\n")
    (folder / "far.csv").write_text("page,outcome\nplain,3\n")
    for name, text in {
        "more.csv": "label,visitors,clicks\nplain,2,3\n",
        "half.csv": "label,trials,successes\nplain,2.5,1\n",
        "twice.csv": "label,trials,successes\nplain,2,1\nplain,2,1\n",
        "other.csv": "label,trials,successes\nother,2,1\n",
        "fine.csv": "label,trials,successes\nplain,2,1\n",
    }.items():
        (folder / name).write_text(text)
    (folder / "cut.json").write_text('{"format": "spectralbai-export/6", "na')
    ticket = study("ask", "pages").stdout.split()[0]
    before = study("export", "pages").stdout
    files = sorted(folder.rglob("*"))
    result = study(*(ticket if each == "TICKET" else each for each in arguments))
    assert (result.code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert message in result.stderr
    assert study("export", "pages").stdout == before
    assert sorted(folder.rglob("*")) == files


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b"{0} 0.5\n{1}", "standard input ends within a line: was it cut short? Nothing was recorded"),
        (b"{0} 0.5\n{1} 0.5 0.5\n", "standard input, line 2: a ticket and an outcome are needed"),
        (b"{0} 0.5\n{1} x\n", 'standard input, line 2: the outcome must be a number, got "x"'),
        (b"{0} 0.5\n{1} 7\n", "`outcome` must lie in [-1, 1]"),
        (b"{0} 0.5\n\xff 1\n", "standard input is not UTF-8 text"),
    ],
)
def test_a_pipe_cut_short_records_nothing(study: Callable[..., Any], lines: bytes, message: str) -> None:
    for ticket, place in zip(study("ask", "pages", "-n", "2").stdout.splitlines(), (b"{0}", b"{1}"), strict=True):
        lines = lines.replace(place, ticket.split()[0].encode())
    result = study("tell", "pages", "-", stdin=lines)
    assert result.code == 1 and message in result.stderr
    assert answers(study("status", "pages", "--json"))["results"] == 0


CLICKS = {**INSTANCE, "low": 0, "high": 1, "binary": True, "labels": ["terse", "step by step", "few shots"]}
QUESTIONS = [f"question {number}" for number in range(1, 13)]


@pytest.fixture
def prompts(run: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """Runs a command of `study`; a study "prompts" of three options on twelve items is there."""
    (folder / "clicks.json").write_text(json.dumps(CLICKS))
    (folder / "questions.txt").write_text("\n".join(QUESTIONS) + "\n")
    (folder / "known.csv").write_text("prompt,question 1,question 2\nterse,1,0\nfew shots,,1\n")
    assert run("study", "create", "prompts", "clicks.json", "--items", "questions.txt").code == 0
    return lambda *arguments, **more: run("study", *arguments, **more)


def test_a_study_on_items_from_a_script(prompts: Callable[..., Any], folder: Path) -> None:
    known = prompts("import", "prompts", "known.csv", "--origin", "last year")
    assert known.stdout == (
        '3 pairs will not be tried; 1 of 4 pairs is missing: option "few shots", item "question 1"\n'
    )
    again = prompts("import", "prompts", "known.csv", "--origin", "last year")
    assert again.stdout.startswith("all of these pairs are known already; 1 of 4 pairs is missing")
    tried: set[tuple[str, str]] = set()
    while lines := prompts("ask", "prompts", "-n", "5").stdout.splitlines():
        asked = [line.split(" ", 1) for line in lines]
        pairs = [tuple(rest.split("\t")) for _, rest in asked]
        outcomes = [str(QUESTIONS.index(item) % 2) for _, item in pairs]  # ties: every item is needed
        tried |= set(pairs)
        told = "".join(f"{ticket} {outcome}\n" for (ticket, _), outcome in zip(asked, outcomes, strict=True))
        assert prompts("tell", "prompts", "-", stdin=told.encode()).stdout.startswith(f"recorded {len(asked)} result")
    assert not {("terse", "question 1"), ("terse", "question 2"), ("few shots", "question 2")} & tried
    status = prompts("status", "prompts")
    assert "Decided after" in status.stdout and "12 of 12 items are done" in status.stdout
    assert prompts("check", "prompts").code == 0, "the table of results and the log agree"
    written = prompts("export", "prompts", "--table", "--out", "scores.csv")
    assert written.stdout.startswith("The table is in scores.csv: 3 options on 12 items")
    table = sb.Table.from_csv(folder / "scores.csv")
    assert set(table.items) == set(QUESTIONS)
    assert table.outcomes[0, table.items.index("question 2")] == 0.0, "known, and used when its turn came"
    assert prompts("export", "prompts", "--table").stdout == (folder / "scores.csv").read_text()
    assert prompts("create", "next", "clicks.json", "--items", "questions.txt", "--fresh").code == 0
    assert answers(prompts("import", "next", "scores.csv", "--origin", "before", "--json")) == {
        "recorded": table.outcomes.size - len(table.missing),
        "known": 0,
    }
    prompts("export", "prompts", "--out", "results.csv")
    assert prompts("import", "next", "results.csv", "--origin", "results").stdout.startswith("all of these pairs are")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("create", "x", "clicks.json", "--fresh"), "--fresh is about the items of --items"),
        (("create", "x", "clicks.json", "--items", "none.txt"), "none.txt: No such file"),
        (("create", "x", "clicks.json", "--items", "empty.txt"), "empty.txt: there is no name; write one a line"),
        (("create", "x", "clicks.json", "--items", "twice.txt"), 'the item "question 1" is there twice'),
        (("create", "x", "noise.json", "--items", "questions.txt"), "use Problem.bounded for a list"),
        (("import", "prompts", "other.csv", "--origin", "x"), 'other.csv: "question 13" is no item of this study'),
        (("import", "prompts", "option.csv", "--origin", "x"), 'option.csv: "long" is no label of an option'),
        (("import", "prompts", "nothing.csv", "--origin", "x"), "nothing.csv: no pair has an outcome"),
        (("import", "prompts", "range.csv", "--origin", "x"), 'range.csv: "terse" on "question 1": `outcome` must be'),
        (("import", "prompts", "known.csv"), "--origin is needed"),
        (("export", "prompts", "--table"), 'the study "prompts" has no table: no outcome on an item is told yet'),
        (("export", "pages", "--table", "--out", "t.csv"), 'the study "pages" has no table: its options have no items'),
        (("shares", "prompts"), "are tried on items, and results must say on which; use tickets, from ask"),
    ],
)
def test_bad_input_about_items_is_one_sentence_and_changes_nothing(
    prompts: Callable[..., Any], folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    prompts("create", "pages", "instance.json")
    noise = {key: value for key, value in INSTANCE.items() if key not in ("low", "high")}
    (folder / "noise.json").write_text(json.dumps({**noise, "sigma": 1.0}))
    for name, text in {
        "empty.txt": "\n \n",
        "twice.txt": "question 1\nquestion 2\nquestion 1\n",
        "other.csv": "option,question 13\nterse,1\nfew shots,1\n",
        "option.csv": "option,item,outcome\nlong,question 1,1\n",
        "nothing.csv": "option,item,outcome\nterse,question 1,\n",
        "range.csv": "option,item,outcome\nterse,question 1,0.5\n",
    }.items():
        (folder / name).write_text(text)
    before, files = prompts("export", "prompts").stdout, sorted(folder.rglob("*"))
    result = prompts(*arguments)
    assert (result.code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert message in result.stderr
    assert prompts("export", "prompts").stdout == before
    assert sorted(folder.rglob("*")) == files
    assert {each["name"] for each in answers(prompts("list", "--json"))} == {"prompts", "pages"}


def test_every_command_has_help_and_json_where_it_answers() -> None:
    names = {command.name or command.callback.__name__: command for command in app.registered_commands}  # type: ignore[union-attr]
    counted = {"tell", "shares", "withdraw", "join", "stop", "void", "correct"}
    assert set(names) == counted | {
        "create",
        "ask",
        "abandon",
        "status",
        "list",
        "report",
        "export",
        "import",
        "delete",
        "upgrade",
        "check",
    }
    for name in set(names) - {"export"}:  # which prints JSON anyway
        assert "as_json" in names[name].callback.__annotations__


def test_telling_loads_no_compiled_code_unless_a_check_is_due(study: Callable[..., Any]) -> None:
    """A shell script starts a process for each result: most need no mathematics."""
    with sb.Study.open("pages") as opened:
        opened.add(["plain", "a warm one", "warmer"] * 100, [0.5, 0.1, 0.2] * 100, "pilot")
        while opened.snapshot().state.blocks[0].free.size < 3:
            opened.tell(opened.ask()[0], 0.1)
        ticket = opened.ask()[0]
    script = (
        "import sys, spectralbai as sb; sb.Study.open('pages').tell(sys.argv[1], 0.5); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script, ticket.id], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_deleting_needs_a_yes(study: Callable[..., Any]) -> None:
    study("tell", "pages", study("ask", "pages").stdout.split()[0], "0.5")
    result = study("delete", "pages", stdin=b"y\n")
    assert (result.code, result.stdout) == (1, "")
    assert result.stderr == (
        'error: to delete the study "pages", with 1 result, somebody has to confirm it at a terminal; or add --yes\n'
    )
    assert study("status", "pages").code == 0
    assert study("delete", "pages", "--yes").stdout == 'The study "pages" is deleted, with 1 result\n'
    assert answers(study("list", "--json")) == []
    assert 'holds no study "pages"' in study("delete", "pages", "--yes").stderr
    study("create", "again", "instance.json")
    assert answers(study("delete", "again", "--yes", "--json")) == {"deleted": "again", "results": 0}


@pytest.mark.parametrize(("answer", "code"), [(b"pages", 0), (b"y", 0), (b"page", 1), (b"", 1), (b"yes", 1)])
def test_at_a_terminal_deleting_asks_first(
    study: Callable[..., Any], warm: list[str], answer: bytes, code: int
) -> None:
    ours, theirs = os.openpty()
    os.write(ours, answer + b"\n")
    command = [*warm, "spectralbai", "study", "delete", "pages"]
    done = subprocess.run(command, stdin=theirs, capture_output=True, text=True, timeout=60)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == code
    assert done.stderr.startswith('The study "pages" has 0 results. Type its name, or y, to delete it for good: ')
    assert len(answers(study("list", "--json"))) == code


def ask_into(pipe: int, n: int, warm: list[str]) -> subprocess.Popen[bytes]:
    command = [*warm, "spectralbai", "study", "ask", "counted", "-n", str(n)]
    return subprocess.Popen(command, stdout=pipe, stderr=subprocess.PIPE)


def test_tickets_that_nobody_can_read_are_given_back(study: Callable[..., Any], folder: Path, warm: list[str]) -> None:
    many = {"format": INSTANCE["format"], "n_arms": 1000, "edges": [], "R": "inf", "low": 0, "high": 1}
    (folder / "big.json").write_text(json.dumps(many))
    study("create", "counted", "big.json")
    reading, writing = os.pipe()
    os.close(reading)
    process = ask_into(writing, 10, warm)
    os.close(writing)
    said = process.communicate(timeout=60)[1].splitlines()
    assert [line for line in said if not line.startswith(b"Compiling")] == [] and process.returncode == 141
    assert answers(study("status", "counted", "--json"))["pending"] == []
    reading, writing = os.pipe()
    size = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    process = ask_into(writing, 1000, warm)
    os.close(writing)
    first = os.read(reading, 10)
    while int.from_bytes(fcntl.ioctl(reading, termios.FIONREAD, b"\0" * 4), sys.byteorder) < size - 100:
        time.sleep(0.05)  # until the pipe is full
    os.close(reading)
    said = process.communicate(timeout=60)[1].splitlines()
    assert [line for line in said if not line.startswith(b"Compiling")] == [] and process.returncode == 141
    pending = answers(study("status", "counted", "--json"))["pending"]
    assert 50 < len(pending) < 300 and any(each["ticket"].startswith(first.decode()) for each in pending)


@pytest.mark.parametrize("until", ["9999-12-31", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00+23:00", "tomorrow", ""])
def test_a_date_that_is_invalid_or_beyond_the_calendar_is_refused_in_a_sentence(
    study: Callable[..., Any], until: str
) -> None:
    code, stdout, stderr = study("create", "more", "instance.json", "--until", until)
    assert (code, stdout) == (1, "") and stderr.startswith("error: --until must be a date") and stderr.count("\n") == 1


def test_the_end_of_a_day_is_meant_however_it_is_written(study: Callable[..., Any]) -> None:
    made = [
        answers(study("create", f"study {text}", "instance.json", "--json", "--until", text))["until"]
        for text in ("2096-05-31", "20960531", "2096-06-01T00:00", "2096-06-01T02:00+02:00")
    ]
    assert len(set(made)) == 1
