"""What `spectralbai pick` and `pick` refuse: one sentence with the remedy, before anything is run or written."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import spectralbai as sb

FILES: dict[str, str | bytes] = {
    "options.txt": "plain\nbrief\nkind\n",
    "items.txt": "q1\nq2\nq3\n",
    "options.csv": "option,text,size\nplain,Say it.,1\nbrief,Be brief.,2\nkind,- Please.,4\n",
    "items.csv": "item,question,cluster\nq1,one?,a\nq2,two?,a\nq3,three?,\n",
    "one.txt": "plain\n",
    "empty.txt": "\n\n",
    "empty.csv": "",
    "twice.txt": "plain\nbrief\nplain\n",
    "dashes.txt": "--help\nbrief\n",
    "tab.txt": "a\tb\nc\n",
    "lines.csv": 'option,text\n"two\nlines",x\nbrief,y\n',
    "blank.csv": "option,text\nplain,x\n,y\n",
    "torn.csv": "option,text\nplain\n",
    "latin.txt": b"caf\xe9\nbrief\n",
    "words.csv": "option,q1,q2,q3\nplain,good,1,1\nbrief,1,1,1\n",
    "scores.csv": "option,q1,q2,q3\nplain,0,1,1\nbrief,1,1,1\nkind,0,0,1\n",
    "large.csv": "option,q1,q2,q3\nplain,0,1,7\nbrief,1,1,1\nkind,0,0,1\n",
    "gaps.csv": "option,q1,q2,q3\nplain,0,,1\nbrief,1,1,1\nkind,0,0,1\n",
    "others.csv": "option,z1,z2\nodd,0,1\neven,1,1\n",
    "mine.html": "<p>my page</p>",
    "not_run": "#!/bin/sh\necho 1\n",
}
RUN = "touch ran-{option}-{item}"
SCORES = ("--low", "0", "--high", "1")


def cli(*words: str, run: str | None = RUN, ends: tuple[str, ...] = SCORES) -> tuple[str, ...]:
    """Returns the words of a command, on the usual files unless others are given first."""
    files, others = ("options.txt", "items.txt"), words
    if words and not words[0].startswith("--"):
        files, others = (words[0], words[1]), words[2:]
    return "pick", *files, *(() if run is None else ("--run", run)), *ends, *others


COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "nothing is given": (("pick", *SCORES), "OPTIONS, ITEMS and --run COMMAND are needed"),
    "no items": (("pick", "options.txt", "--run", RUN, *SCORES), "OPTIONS, ITEMS and --run COMMAND are needed"),
    "no command": (cli(run=None), "OPTIONS, ITEMS and --run COMMAND are needed"),
    "no range": (cli(ends=()), "--low and --high are needed.*never guessed"),
    "half a range": (cli(ends=("--low", "0")), "--low and --high are needed"),
    "a range upside down": (cli(ends=("--low", "1", "--high", "0")), "below"),
    "an infinite range": (cli(ends=("--low", "0", "--high", "inf")), "finite"),
    "no number as an end": (cli(ends=("--low", "nan", "--high", "1")), "finite"),
    "a negative tolerance": (cli("--tolerance", "-0.1"), "tolerance.*got -0.1"),
    "an infinite tolerance": (cli("--tolerance", "inf"), "tolerance.*got inf"),
    "a risk of 0": (cli("--delta", "0"), "delta.*got 0"),
    "a risk of 95 %": (cli("--delta", "95"), "delta.*got 95"),
    "another goal": (cli("--goal", "maximum"), "max or min"),
    "no jobs": (cli("--jobs", "0"), "--jobs"),
    "fewer than no retries": (cli("--retries", "-1"), "--retries"),
    "no time": (cli("--timeout", "0"), "--timeout"),
    "an infinite time": (cli("--timeout", "inf"), "--timeout"),
    "no budget": (cli("--budget", "0"), "budget"),
    "a negative seed": (cli("--seed", "-1"), "seed"),
    "failures out of the range": (cli("--failed-as", "-1"), "failed_as"),
    "a name of two lines": (cli("--name", "a\nb"), "name.*one line"),
    "a blank name": (cli("--name", " "), "name.*one line"),
    "options that are not there": (cli("none.txt", "items.txt"), "none.txt: No such file"),
    "items that are not there": (cli("options.txt", "none.csv"), "none.csv: No such file"),
    "options that are a folder": (cli("folder", "items.txt"), "folder: Is a directory"),
    "one option": (cli("one.txt", "items.txt"), "one.txt: 1 option listed; list at least 2"),
    "no option": (cli("empty.txt", "items.txt"), "empty.txt: 0 options listed"),
    "no item": (cli("options.txt", "empty.txt"), "empty.txt: 0 items listed"),
    "a CSV without lines": (cli("empty.csv", "items.txt"), "empty.csv: the file is empty"),
    "an option twice": (cli("twice.txt", "items.txt"), 'option 3 has the label "plain", as option 1 has'),
    "a label with a tab": (cli("tab.txt", "items.txt"), "one line"),
    "a label of two lines": (cli("lines.csv", "items.txt"), "keep the text in another column"),
    "a blank label": (cli("blank.csv", "items.txt"), "blank.csv.*blank"),
    "a torn row": (cli("torn.csv", "items.txt"), "line 2: 1 cells for 2 columns"),
    "not UTF-8": (cli("latin.txt", "items.txt"), "line 1: not UTF-8"),
    "a blank command": (cli(run=" "), "the command is blank"),
    "an open quote": (cli(run="./score '{option} {item}"), "cannot be split into words"),
    "a pipe": (cli(run="echo {option} {item} | tail -1"), 'not run by a shell, to which "\\|"'),
    "a redirection": (cli(run="echo {option} {item} > out"), 'not run by a shell, to which ">"'),
    "two commands": (cli(run="echo {option} && echo {item}"), 'not run by a shell, to which "&&"'),
    "a place that is not known": (cli(run="echo {prompt} {item}"), "unknown place {prompt}"),
    "a variable of the shell": (cli(run="echo ${HOME} {option} {item}"), "unknown place {HOME}"),
    "a column that is misspelt": (
        cli("options.csv", "items.txt", run="echo {option.txt} {item}"),
        'no option has a column "txt"; did you mean "text"',
    ),
    "a column of a text file": (
        cli(run="echo {option} {item.question}"),
        'no item has a column "question"; it has none',
    ),
    "a command without the option": (cli(run="echo {item}"), "does not say where the option goes"),
    "a command without the item": (cli(run="echo {option}"), "does not say where the item goes"),
    "a program that is not there": (cli(run="./none {option} {item}"), 'the command "./none" is not found'),
    "a program that cannot be run": (cli(run="./not_run {option} {item}"), "make it executable"),
    "a label that looks like an option": (
        cli("dashes.txt", "items.txt", run="touch {option} {item}"),
        'begins with a dash for "--help"',
    ),
    "a text that looks like an option": (
        cli("options.csv", "items.txt", run="touch {option.text} {item}"),
        'begins with a dash for "kind"',
    ),
    "similarities without a step": (cli("options.csv", "items.txt", "--similar", "size"), "--similar and --step go"),
    "a step without similarities": (cli("--step", "0.1"), "--similar and --step go together"),
    "similarities of a text file": (cli("--similar", "size", "--step", "0.1"), "must be a CSV file"),
    "similarities of no column": (
        cli("options.csv", "items.txt", "--similar", "sise", "--step", "0.1"),
        'no column "sise"; did you mean "size"',
    ),
    "a negative step": (cli("options.csv", "items.txt", "--similar", "size", "--step", "-1"), "step"),
    "a blank cluster": (cli("options.txt", "items.csv", "--fresh"), 'the item "q3" has no cluster'),
    "known scores that are not there": (cli("--known", "none.csv"), "none.csv: No such file"),
    "known scores of others": (cli("--known", "others.csv"), "no outcome is of these options and items"),
    "a known score out of the range": (cli("--known", "large.csv"), 'large.csv: .*"plain" on "q3".*got 7'),
    "a known score that is no number": (cli("--known", "words.csv"), 'a number is needed, got "good"'),
    "a page of somebody else": (cli("--out", "mine.html"), "mine.html is there already"),
    "a page nowhere": (cli("--out", "nowhere/report.html"), "no folder"),
    "a storage that is none": (cli("--storage", "mysql://x"), "sqlite:///FILE or postgresql://"),
    "a database of somebody else": (cli("--storage", "sqlite:///options.txt"), "options.txt"),
    "a table and a command": (("pick", "--table", "scores.csv", "--run", RUN, *SCORES), "needs no --run"),
    "a table and items": (("pick", "options.txt", "items.txt", "--table", "scores.csv", *SCORES), "needs no ITEMS"),
    "a table with gaps": (("pick", "--table", "gaps.csv", *SCORES), '"plain" on "q2" is missing'),
    "a table out of the range": (
        ("pick", "--table", "large.csv", *SCORES),
        '(?<=error: )the outcome of "plain" on "q3" must lie in',
    ),
    "a table, and a range the wrong way round": (
        ("pick", "--table", "large.csv", "--low", "1", "--high", "0"),
        "(?<=error: )`low` must be below",
    ),
    "a table of other options": (
        ("pick", "options.csv", "--table", "others.csv", "--similar", "size", "--step", "0.1", *SCORES),
        "must have the same options",
    ),
}


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPECTRALBAI_STORAGE", raising=False)
    (tmp_path / "folder").mkdir()
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


@pytest.mark.parametrize(("words", "reason"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_that_cannot_be_right_is_refused(
    words: tuple[str, ...], reason: str, run: Callable[..., Any], folder: Path
) -> None:
    before = contents(folder)
    code, stdout, stderr = run(*words)
    assert (code, stdout) == (1, "")
    assert re.fullmatch(rf"error: .*{reason}.*\n", stderr)
    assert contents(folder) == before, "nothing was written, and nothing was run"


def not_called(option: Any, item: Any) -> float:
    raise AssertionError("it was run")


CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "options that are no list": ({"options": 3}, "`options` must be a list, or a dict"),
    "options that are a string": ({"options": "ab"}, "`options` must be a list, or a dict"),
    "one option": ({"options": ["a"]}, "1 option listed"),
    "the same option twice": ({"options": ["a", "a"]}, 'has the label "a", as option 1 has'),
    "labels that are no strings": ({"options": {1: "a", 2: "b"}}, "labels that are strings, got 1"),
    "labels of two lines": ({"options": ["a\nb", "c"]}, "one line"),
    "no items": ({"items": []}, "0 items listed"),
    "a score that is no function": ({"score": 1.0}, "`score` must be a function"),
    "a range upside down": ({"low": 2}, "`low` must be below `high`"),
    "a range that is no numbers": ({"high": "1"}, "`high` must be a finite number"),
    "a tolerance that is no number": ({"tolerance": "0"}, "`tolerance`"),
    "a risk of 1": ({"delta": 1}, "`delta`"),
    "another goal": ({"goal": "largest"}, "`goal` must be max or min"),
    "half a job": ({"jobs": 0.5}, "`jobs`"),
    "negative retries": ({"retries": -1}, "`retries`"),
    "an executor that is none": ({"executor": "threads"}, "`executor` must be a concurrent.futures.Executor"),
    "clusters of other items": ({"clusters": ["x"], "fresh": True}, "`clusters` must be a list of 3 names"),
    "a graph of other options": ({"graph": sb.Graph.from_edges(5, [])}, "`graph` must have 2 arms"),
    "a graph that is none": ({"graph": [[0, 1]]}, "`graph` must be a spectralbai.Graph"),
    "a negative R": ({"R": -1}, "`R`"),
    "known outcomes that are no table": ({"known": {("a", "x"): 1}}, "`known` must be a spectralbai.Table"),
    "known outcomes out of the range": ({"known": sb.Table([[0, 2], [0, 1]], ["a", "b"], ["x", "y"])}, "got 2"),
    "a budget of nothing": ({"budget": 0}, "`budget`"),
    "failures out of the range": ({"failed_as": 5}, "`failed_as`"),
    "a storage that is none": ({"storage": "here"}, "sqlite:///FILE"),
    "a name of two lines": ({"name": "a\nb"}, "`name` must be one line"),
    "a seed that is no number": ({"seed": "now"}, "`seed`"),
}


@pytest.mark.parametrize(("changes", "reason"), CALLS.values(), ids=CALLS)
def test_a_call_that_cannot_be_right_is_refused(changes: dict[str, Any], reason: str, folder: Path) -> None:
    usual = dict(options=["a", "b"], items=["x", "y", "z"], score=not_called, low=0, high=1, storage="sqlite:///new.db")
    before = contents(folder)
    with pytest.raises(sb.InvalidInput, match=reason) as refused:
        sb.pick(**{**usual, **changes})
    assert "\n" not in str(refused.value)
    assert contents(folder) == before


def test_an_executor_is_left_open_for_others() -> None:
    with ThreadPoolExecutor(1) as executor:
        sb.pick(["a", "b"], ["x"], lambda option, item: option == "a", low=0, high=1, executor=executor)
        assert executor.submit(int, "3").result() == 3
