"""What the README and the guides show is what happens."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spectralbai import Table
from spectralbai.campaign import Campaign
from spectralbai.cli.files import read_instance

ROOT = Path(__file__).parent.parent
PAGES = (
    "README.md",
    "docs/command_line.md",
    "docs/campaigns.md",
    "docs/planning.md",
    "docs/studies.md",
    "docs/items.md",
    "docs/sklearn.md",
    "docs/programs.md",
    "docs/workers.md",
    "docs/withdrawals.md",
    "docs/control.md",
    "docs/tutorials/prompts.md",
    "docs/tutorials/research.md",
    "docs/tutorials/clicks.md",
    "docs/tutorials/doses.md",
    "docs/tutorials/catalogue.md",
    "docs/tutorials/learners.md",
)
README = "".join((ROOT / name).read_text("utf-8") for name in PAGES)
PYTHON = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", README, re.DOTALL)
CONSOLE = re.findall(r"```console\n\$ (.*?(?:\n> .*?)*)\n(?!> )(.*?)```", README, re.DOTALL)
SHELL = re.findall(r"```sh\n((?:(?!```).)*)```\n```text\n(.*?)```", README, re.DOTALL)
LOOP = re.findall(r"```sh\n(while .*?)```\n", README, re.DOTALL)
ENVIRONMENT = {**os.environ, "COLUMNS": "140"}
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]\d+)?")


def assert_same(printed: str, shown: str) -> None:
    """Compares words exactly and numbers to 1 %, since the last digits may depend on the machine; the gap is
    rounding and luck."""
    printed, shown = (re.sub(r"gap [^,]*|\d+ steps?", "", text).strip() for text in (printed, shown))
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    assert [float(n) for n in NUMBER.findall(printed)] == pytest.approx(
        [float(n) for n in NUMBER.findall(shown)], rel=1e-2
    )


def test_every_example_is_found() -> None:
    assert len(PYTHON) == README.count("```python") >= 1
    assert len(CONSOLE) == README.count("```console") >= 1
    assert len(SHELL) + len(LOOP) == README.count("```sh") == 8


@pytest.mark.parametrize(("code", "shown"), PYTHON)
def test_the_python_examples_print_what_they_show(code: str, shown: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    assert_same(printed.getvalue(), shown)


@pytest.mark.parametrize(("command", "shown"), CONSOLE)
def test_the_console_examples_print_what_they_show(
    command: str, shown: str, tmp_path: Path, warm: list[str], quiet: Callable[[str], str]
) -> None:
    done = in_shell(command.replace("\n> ", "\n"), tmp_path, warm)
    assert (done.returncode, quiet(done.stderr)) == (0, "")
    assert_same(done.stdout, shown)


@pytest.mark.parametrize(("script", "shown"), SHELL)
def test_the_shell_scripts_print_what_they_show(script: str, shown: str, tmp_path: Path, warm: list[str]) -> None:
    done = in_shell(script, tmp_path, warm)
    assert done.returncode == 0
    assert_same(done.stdout, shown)


def test_the_loop_shown_first_runs_until_the_study_has_decided(tmp_path: Path, warm: list[str]) -> None:
    (loop,) = LOOP
    once = "[ -e tried ] || { touch tried; exit; }"  # a trial that prints nothing has failed, and is done again
    (tmp_path / "trial").write_text(f'#!/bin/sh\n{once}\ncase "$1" in 1) echo 1.2 ;; *) echo -0.4 ;; esac\n')
    (tmp_path / "trial").chmod(0o755)
    problem = '{"format": "spectralbai-instance/3", "n_arms": 3, "edges": [[0, 2, 1.0]], "R": 0.01, "sigma": 0.3}'
    done = in_shell(
        f"echo '{problem}' | spectralbai study create doses -\n{loop}\nspectralbai study list --json", tmp_path, warm
    )
    assert done.returncode == 0
    assert '"state": "decided"' in done.stdout and '"best": "1"' in done.stdout
    assert (tmp_path / "tried").exists()


def test_the_worked_example_decides_in_time(tmp_path: Path) -> None:
    """Two worker processes tune a scikit-learn model; a large tolerance ends them soon, the cap where the
    machine is slow."""
    command = [
        sys.executable,
        str(ROOT / "examples" / "tune.py"),
        "--seconds",
        "25",
        "--tolerance",
        "0.3",
        "--report",
        str(tmp_path / "report.html"),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    )
    first, *arms, workers = done.stdout.splitlines()
    assert re.match(r"(Decided|Not decided) after [\d,]+ results", first) and "gamma" in first
    assert len(arms) == 5 and len(workers.split(",")) == 2
    assert (tmp_path / "report.html").read_text("utf-8").count("<img") == 4


def in_shell(script: str, folder: Path, warm: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a script as a user of a shell would, in a folder with the examples."""
    start = shlex.join(warm)
    here = f'spectralbai() {{ {start} spectralbai "$@"; }}\npython3() {{ {start} python "$@"; }}\n'
    (folder / "examples").symlink_to(ROOT / "examples")
    return subprocess.run(
        ["sh", "-c", here + script], capture_output=True, text=True, encoding="utf-8", cwd=folder, env=ENVIRONMENT
    )


def test_the_campaign_files_shown_and_kept_are_campaigns() -> None:
    shown = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    kept = [path.read_text("utf-8") for path in sorted((ROOT / "examples").glob("*.toml"))]
    paper, table = str(ROOT / "examples" / "paper.json"), Table([[0.9, 0.5], [0.8, 0.3]])
    assert len(shown) == 4 and len(kept) >= 2
    for text in (*shown, *kept):
        campaign = Campaign.from_toml(text, lambda name: read_instance(paper), lambda name: table)
        assert campaign.trajectories
