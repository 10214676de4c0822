"""The command line: answers on stdout, refusals as one line on stderr, and the four exit codes."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from spectralbai import __version__, reproduction
from spectralbai.allocation import SOLVERS
from spectralbai.cli import main

PAPER: dict[str, Any] = {
    "format": "spectralbai-instance/3",
    "n_arms": 3,
    "edges": [[1, 2, 1.0]],
    "mu": [0.9, 0.5, 0.6],
    "R": 0.01,
    "sigma": 1.0,
    "labels": ["new", "old", "[b]older[/b]"],
}


SMALL = ("--runs", "2", "--delta", "0.2")
FEWER = (0.01, 0.04, 0.1)


Run = Callable[..., Any]


def as_bytes(**changes: Any) -> bytes:
    """Returns the paper's instance as a file, with changes; None removes a key."""
    return json.dumps({key: value for key, value in (PAPER | changes).items() if value is not None}).encode()


def refusal(result: Any) -> str:
    """Returns the message of a refusal, having checked its form."""
    assert (result.code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1 and result.stderr.endswith("\n")
    return str(result.stderr)


def test_solve_prints_times_saving_certificate_and_allocation(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "paper.json"
    file.write_bytes(as_bytes())
    code, stdout, stderr = run("solve", str(file))
    assert (code, stderr) == (0, "")
    for expected in (
        "88.8889",
        "106.154",
        "16.3%",
        "1.19",
        "S(mu) = 0.01, R = 0.01",
        "certified",
        "new",
        "50.00%",
        "[b]older[/b]",
    ):
        assert expected in stdout
    assert "\x1b" not in stdout
    assert max(map(len, stdout.splitlines())) <= 80


def test_solve_as_json_is_complete_and_strict_json(run: Run) -> None:
    code, stdout, _ = run("solve", "-", "--json", stdin=as_bytes())
    answer = json.loads(stdout, parse_constant=pytest.fail)
    assert code == 0
    assert answer["format"] == "spectralbai-solve/2"
    assert answer["labels"] == PAPER["labels"]
    assert (answer["best"], answer["status"]) == (0, "certified")
    assert sum(answer["omega"]) == pytest.approx(1)
    assert answer["lower"] <= 0.01125 <= answer["upper"]  # T_R* = 800/9, exactly
    assert (
        answer["gap"] == pytest.approx(answer["upper"] / answer["lower"] - 1) and answer["gap"] <= answer["tol"] == 1e-6
    )
    assert answer["without_graph"]["characteristic_time"] == pytest.approx(106.154, abs=1e-3)
    assert answer["saving"] == pytest.approx(1 - 88.8889 / 106.154, abs=1e-4)


def test_solve_writes_an_infinite_R_as_a_string_and_saves_nothing(run: Run) -> None:
    answer = json.loads(run("solve", "-", "--json", stdin=as_bytes(R="inf")).stdout)
    assert (answer["R"], answer["saving"], answer["solver"]) == ("inf", 0, "closed-form")


def test_solve_accepts_a_byte_order_mark(run: Run) -> None:
    assert run("solve", "-", stdin=b"\xef\xbb\xbf" + as_bytes()).code == 0


def test_solve_without_labels_numbers_the_arms(run: Run) -> None:
    assert json.loads(run("solve", "-", "--json", stdin=as_bytes(labels=None)).stdout)["labels"] == ["0", "1", "2"]


def test_solve_of_many_arms_shows_the_largest_shares_and_counts_the_rest(run: Run) -> None:
    n_arms = 40
    mu = [1.0] + [0.8 - 0.01 * k for k in range(n_arms - 1)]
    stdin = as_bytes(n_arms=n_arms, edges=[], mu=mu, labels=[f"arm-{k}" for k in range(n_arms)])
    stdout = run("solve", "-", stdin=stdin).stdout
    shown = [line.split()[0] for line in stdout.splitlines() if line.startswith("arm-")]
    omega = json.loads(run("solve", "-", "--json", stdin=stdin).stdout)["omega"]
    assert shown == [f"arm-{k}" for k in sorted(range(n_arms), key=lambda arm: -omega[arm])[:20]]
    assert "and 20 more arms" in stdout


def test_solve_shows_unprintable_labels_escaped(run: Run) -> None:
    stdout = run("solve", "-", stdin=as_bytes(labels=["a\x1b[31m", "b", "c"])).stdout
    assert "\x1b" not in stdout and "a\\x1b[31m" in stdout


def test_an_unfinished_answer_exits_with_3_and_valid_bounds(run: Run) -> None:
    options = ("solve", "-", "--solver", "mirror-ascent", "--max-iterations", "20")
    code, stdout, _ = run(*options, "--json", stdin=as_bytes())
    answer = json.loads(stdout)
    assert (code, answer["status"], answer["solver"], answer["iterations"]) == (3, "unfinished", "mirror-ascent", 20)
    assert answer["lower"] < 0.01125 < answer["upper"]
    assert answer["gap"] > 1e-3
    code, stdout, _ = run(*options, stdin=as_bytes())
    assert code == 3 and "unfinished: gap" in stdout and "<= 1/T_R* <=" in stdout


def test_tol_is_handed_on(run: Run) -> None:
    answer = json.loads(run("solve", "-", "--json", "--tol", "0.5", stdin=as_bytes()).stdout)
    assert answer["tol"] == 0.5 and 1e-6 < answer["gap"] <= 0.5


@pytest.mark.parametrize(
    ("content", "clues"),
    [
        (b"", ["line 1, column 1", "not JSON"]),
        (b'{\n  "n_arms": 3,,\n}', ["line 2, column 15", "not JSON"]),
        (b'{\n "labels": ["\xff"]}', ["line 2", "UTF-8"]),
        (b'{"R": 1, "R": 2}', ['"R"', "once"]),
        (b'{"R": Infinity}', ["Infinity", '"inf"']),
        (b'{"mu": [NaN]}', ["NaN"]),
        (b"[" * 100_000, ["nesting"]),
        (b'{"R": ' + b"9" * 5000 + b"}", ["too long"]),
        (b"[1, 2]", []),
        (as_bytes(format=None), ["format"]),
        (as_bytes(format="spectralbai-instance/99"), ["format", "99"]),
        (as_bytes(n_arms=None), ["n_arms"]),
        (as_bytes(n_arms="three"), ["n_arms", "three"]),
        (as_bytes(colour="red"), ["colour"]),
        (as_bytes(edges=[[1, 2, 1.0], [2, 1, 1.0]]), ["edges[1]"]),
        (as_bytes(edges=[[1, "two", 1.0]]), ["edges[0]", "two"]),
        (as_bytes(edges=[[1, 3, 1.0]]), ["edges[0]", "3"]),
        (as_bytes(edges=[[1, 2, -1.0]]), ["edges[0]", "-1"]),
        (as_bytes(mu=[0.9, 0.5]), ["mu"]),
        (as_bytes(mu=[0.9, "x", 0.6]), ["mu[1]", "x"]),
        (as_bytes(R=-1), ["R", "-1"]),
        (as_bytes(R="lots"), ["R", "lots"]),
        (as_bytes(sigma=0), ["sigma"]),
        (as_bytes(tolerance=-1), ["tolerance"]),
        (as_bytes(labels=["a", "a", "b"]), ["labels[1]"]),
        (as_bytes(mu=None), ['"mu"', "add", "3 numbers"]),
    ],
)
def test_a_bad_file_is_refused_in_one_line_that_names_the_file_and_the_place(
    run: Run, tmp_path: Path, content: bytes, clues: list[str]
) -> None:
    file = tmp_path / "bad.json"
    file.write_bytes(content)
    message = refusal(run("solve", str(file)))
    for clue in [str(file), *clues]:
        assert clue in message
    assert "standard input" in refusal(run("solve", "-", stdin=content))


@pytest.mark.parametrize(
    ("changes", "clue"),
    [
        ({"R": 0.001}, "S(mu) <= R"),
        ({"mu": [0.9, 0.9, 0.9]}, "unique best arm"),
        ({"R": 10**400}, "R"),
        ({"mu": [10**400, 0.5, 0.6]}, "mu"),
    ],
)
def test_means_that_break_the_hypotheses_are_refused(run: Run, changes: dict[str, Any], clue: str) -> None:
    assert clue in refusal(run("solve", "-", stdin=as_bytes(**changes)))


@pytest.mark.parametrize(
    ("options", "clue"),
    [
        (("--solver", "magic"), "magic"),
        (("--tol", "0"), "`tol`"),
        (("--tol", "nan"), "`tol`"),
        (("--max-iterations", "0"), "`max_iterations`"),
    ],
)
def test_options_that_break_a_rule_are_refused(run: Run, options: tuple[str, str], clue: str) -> None:
    assert clue in refusal(run("solve", "-", *options, stdin=as_bytes()))


def test_missing_files_and_folders_are_refused_by_name(run: Run, tmp_path: Path) -> None:
    assert f"{tmp_path}/none.json: No such file" in refusal(run("solve", str(tmp_path / "none.json")))
    assert f"{tmp_path}: Is a directory" in refusal(run("solve", str(tmp_path)))


@pytest.mark.parametrize(
    "arguments", [("solve",), ("solve", "-", "--tol", "small"), ("solve", "-", "--colour"), ("resolve",)]
)
def test_wrong_usage_exits_with_2_and_says_how(run: Run, arguments: tuple[str, ...]) -> None:
    code, stdout, stderr = run(*arguments)
    assert (code, stdout) == (2, "") and "Usage: spectralbai" in stderr


def test_an_interrupt_exits_with_130_and_no_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("spectralbai.allocation.solve_allocation", interrupt)
    code, stdout, stderr = run("solve", "-", stdin=as_bytes())
    assert (code, stdout) == (130, "") and "Traceback" not in stderr


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory, quiet: Callable[[str], str]) -> tuple[str, Path]:
    """Returns what a small reproduction prints, and where it writes."""
    out = tmp_path_factory.mktemp("reproduced") / "new"
    stdout, stderr = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
        patch.setattr(reproduction, "RADII", FEWER)
        with pytest.raises(SystemExit) as exit_:
            main(["reproduce", *SMALL, "--jobs", "1", "--out", str(out)])
    assert (exit_.value.code, quiet(stderr.getvalue())) == (0, f"made the folder {out}\n")
    return stdout.getvalue(), out


def test_reproduce_prints_a_row_per_R_and_says_what_is_proved_and_where_the_picture_is(
    reproduced: tuple[str, Path],
) -> None:
    stdout, out = reproduced
    rows = [line.split() for line in stdout.splitlines() if line.startswith("0.")]
    assert [row[0] for row in rows] == [f"{R:.2f}" for R in FEWER]
    kl = 0.6 * math.log(4)  # kl(.2, .8)
    assert float(rows[0][1]) == pytest.approx(800 / 9, abs=1e-3) and float(rows[0][2]) == pytest.approx(
        kl * 800 / 9, abs=0.1
    )
    assert "delta = 0.2, runs per R: 2\n" in stdout and "Wrong decisions: spectral-race betting " in stdout
    assert stdout.count("(proved)") == 1 and stdout.count("(not proved)") == 2
    assert stdout.splitlines()[-1] == f"The picture is in {out}/figure.png, its numbers in {out}/figure.csv"


def test_reproduce_writes_a_csv_and_a_png_and_nothing_else(reproduced: tuple[str, Path]) -> None:
    _, out = reproduced
    assert sorted(path.name for path in out.iterdir()) == ["figure.csv", "figure.png"]
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    header, *lines = (out / "figure.csv").read_text().splitlines()
    assert header == "policy,rule,R,characteristic_time,lower_bound,runs,mean_tau,std_tau,errors,proved"
    rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    curves = (
        ("spectral-race", "betting", "true"),
        ("spectral-tas", "paper", "false"),
        ("spectral-tas-printed", "paper-printed", "false"),
    )
    assert [(row["policy"], row["rule"], row["proved"], float(row["R"])) for row in rows] == [
        (*curve, R) for curve in curves for R in FEWER
    ]
    assert all(
        0 <= int(row["errors"]) <= int(row["runs"]) <= 2 and float(row["mean_tau"]) > 0
        for row in rows
        if row["runs"] != "0"
    )


def test_reproduce_gives_the_same_csv_for_any_number_of_jobs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduction, "RADII", (0.01, 0.1))
    for jobs in ("1", "2"):
        assert run("reproduce", *SMALL, "--jobs", jobs, "--out", str(tmp_path / jobs)).code == 0
    assert (tmp_path / "1" / "figure.csv").read_bytes() == (tmp_path / "2" / "figure.csv").read_bytes()


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every simulation fail."""
    monkeypatch.setattr("spectralbai.reproduction.reproduce", lambda *_: pytest.fail("it went to work"))


@pytest.mark.parametrize(
    ("options", "clue"),
    [
        (("--runs", "0"), "`--runs` must be a whole number of at least 1, got 0"),
        (("--delta", "2"), "`delta` must be a risk between 0 and 1"),
        (("--delta", "nan"), "`delta`"),
        (("--jobs", "0"), "`--jobs` must be a whole number of at least 1, got 0"),
        (("--seed", "-1"), "`--seed`"),
    ],
)
def test_reproduce_refuses_bad_options_before_any_work(
    run: Run, idle: None, tmp_path: Path, options: tuple[str, str], clue: str
) -> None:
    out = tmp_path / "out"
    assert clue in refusal(run("reproduce", *options, "--out", str(out)))
    assert not out.exists()


def test_reproduce_refuses_a_folder_it_cannot_write_to_before_any_work(
    run: Run, idle: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for out in (file, file / "below"):
        assert f"{file} is no directory" in refusal(run("reproduce", "--out", str(out)))
    assert file.read_text() == "mine"
    (tmp_path / "taken" / "figure.png").mkdir(parents=True)
    assert "figure.png is a directory" in refusal(run("reproduce", "--out", str(tmp_path / "taken")))

    def deny(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", deny)  # a superuser may write anywhere
    assert f"{tmp_path} is no directory that can be written to (Permission denied)" in refusal(
        run("reproduce", "--out", str(tmp_path))
    )


def test_reproduce_without_matplotlib_says_how_to_install_it_before_any_work(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None; from spectralbai.cli import main; main(['reproduce', '--out', "
        "sys.argv[1]])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'spectralbai[plot]'" in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_interrupted_reproduction_leaves_earlier_files_as_they_were(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "figure.csv").write_text("old")
    monkeypatch.setattr("spectralbai.reproduction.reproduce", interrupt)
    for jobs in ("1", "2"):
        code, stdout, stderr = run("reproduce", "--jobs", jobs, "--out", str(tmp_path), "--force")
        assert (code, stdout) == (130, "") and "Traceback" not in stderr
    assert [path.name for path in tmp_path.iterdir()] == ["figure.csv"] and (
        tmp_path / "figure.csv"
    ).read_text() == "old"


def test_version_and_help(run: Run) -> None:
    assert run("--version").stdout == f"spectralbai {__version__}\n"
    assert "reproduce" in run("--help").stdout
    assert "Example" in run("solve", "--help").stdout


@pytest.mark.parametrize("group", [(), ("study",), ("serve",), ("serve", "token")])
def test_what_commands_do_is_said_in_a_line_each(group: tuple[str, ...], run: Run) -> None:
    commands = run(*group, "--help").stdout.partition("Commands:\n")[2]
    assert commands and "..." not in commands


def test_the_help_of_solve_names_every_solver(run: Run) -> None:
    shown = run("solve", "--help").stdout
    assert [name for name in SOLVERS if name not in shown] == []


def test_the_command_line_starts_without_numerical_modules() -> None:
    code = "import sys, spectralbai.cli; print({'numpy', 'scipy', 'numba', 'rich.table'} & set(sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "set()"
    )


def test_a_terminal_that_cannot_show_a_label_gets_a_replacement(quiet: Callable[[str], str]) -> None:
    command = [sys.executable, "-m", "spectralbai", "solve", "-"]
    narrow = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, input=as_bytes(labels=["é", "b", "c"]), capture_output=True, env=narrow)
    assert (done.returncode, quiet(done.stderr.decode())) == (0, "") and b"50.00%" in done.stdout


def test_solve_says_that_the_time_of_scores_is_no_lower_bound(run: Run, tmp_path: Path) -> None:
    instance = {
        "format": "spectralbai-instance/3",
        "n_arms": 3,
        "edges": [[1, 2, 1.0]],
        "mu": [0.9, 0.5, 0.6],
        "R": 0.01,
        "low": 0,
        "high": 1,
    }
    file = tmp_path / "scores.json"
    file.write_text(json.dumps(instance))
    shown = run("solve", str(file)).stdout
    assert "outcomes in [0, 1]" in shown and "no bound for scores" in shown
    assert json.loads(run("solve", str(file), "--json").stdout)["divergence"] is None
    file.write_text(json.dumps(instance | {"binary": True}))
    clicks = run("solve", str(file))
    assert "outcomes 0 or 1" in clicks.stdout and "no bound" not in clicks.stdout and "binary" in clicks.stdout
    answer = json.loads(run("solve", str(file), "--json").stdout)
    assert (answer["divergence"], answer["solver"], answer["without_graph"]["solver"]) == ("binary",) * 3
    assert answer["without_graph"]["characteristic_time"] == pytest.approx(18.77783879, rel=1e-6)
