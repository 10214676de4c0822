"""Campaigns from a shell: simulate, compare and plot, also if they are killed or interrupted."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from spectralbai.campaign import Results, RunRow
from tests.campaign.campaigns import (
    BAD_FILES,
    CLIQUES,
    HEAD,
    SMALL,
    TAS,
    RunCommand,
    count,
    n_trajectories,
    parse,
    simulated,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "campaign.toml"
    file.write_text(SMALL)
    return file


def test_simulate_compare_and_plot(
    run: RunCommand, small: tuple[Path, list[RunRow]], file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run("simulate", str(file), "--out", str(out), "--jobs", "1")
    assert done.code == 0 and f"24 runs are in {out}" in done.stdout
    assert done.stderr == f"made the folder {out}\n"
    table = run("compare", str(out), "--export", str(tmp_path / "runs.csv"))
    assert table.code == 0 and "spectral-tas" in table.stdout and "short path" in table.stdout
    assert "not finished" not in table.stdout
    cells = json.loads(run("compare", str(out), "--json").stdout)
    assert len(cells) == 12 and cells[0]["policy"] == "spectral-tas" and cells[0]["runs"] == 3
    lines = run("compare", str(out), "--csv").stdout.splitlines()
    assert len(lines) == 13 and lines[0].split(",") == list(cells[0])
    exported = (tmp_path / "runs.csv").read_text().splitlines()
    assert len(exported) == 1 + len(small[1])
    assert exported[1].startswith(
        f"cliques,spectral-tas,0.2,0,{small[1][0].seed},betting,true,decided,{small[1][0].tau},"
    )
    for options in (
        ("box",),
        ("delta",),
        ("K",),
        ("R",),
        ("proportions", "--instance", "short*", "--delta", "0.05"),
        ("graph",),
    ):
        drawn = run("plot", str(out), "--kind", *options)
        assert drawn.code == 0
        assert (out / f"{options[0]}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("case", ["unknown policy", "not TOML", "zero runs"])
def test_simulate_refuses_a_bad_file_before_any_work(run: RunCommand, file: Path, tmp_path: Path, case: str) -> None:
    text, clue = BAD_FILES[case]
    file.write_text(text)
    refused = run("simulate", str(file), "--out", str(tmp_path / "out"))
    assert refused.code == 1
    assert refused.stderr.startswith(f"error: {file}: ") and clue in refused.stderr and refused.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_simulate_refuses_what_it_cannot_use(run: RunCommand, file: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    refused = run("simulate", str(file), "--out", str(tmp_path / "taken"))
    assert refused.code == 1 and "--out" in refused.stderr
    assert run("simulate", str(tmp_path / "none.toml"), "--out", str(tmp_path / "out")).code == 1
    assert "`--jobs`" in run("simulate", str(file), "--out", str(tmp_path / "out"), "--jobs", "0").stderr
    both = run("simulate", str(file), "--out", str(tmp_path / "out"), "--jobs", "2", "--cluster", "tcp://127.0.0.1:1")
    assert both.code == 1 and "--jobs and --cluster" in both.stderr
    file.write_bytes(b"\xff\xfe")
    assert "not UTF-8" in run("simulate", str(file), "--out", str(tmp_path / "out")).stderr
    file.write_text(HEAD + '[[instances]]\nfile = "none.json"\n' + TAS)
    missing = run("simulate", str(file), "--out", str(tmp_path / "out"))
    assert missing.code == 1 and "none.json" in missing.stderr
    for name in ("-", "a\\u0000b"):
        file.write_text(HEAD + f'[[instances]]\nfile = "{name}"\n' + TAS)
        assert run("simulate", str(file), "--out", str(tmp_path / "out"), stdin=b"{}").code == 1
    outside = {
        "format": "spectralbai-instance/3",
        "n_arms": 2,
        "edges": [],
        "R": "inf",
        "low": 0,
        "high": 1,
        "mu": [0.5, 1.5],
    }
    (tmp_path / "outside.json").write_text(json.dumps(outside))
    file.write_text(HEAD + '[[instances]]\nfile = "outside.json"\n' + TAS)
    refused = run("simulate", str(file), "--out", str(tmp_path / "out"))
    assert refused.code == 1 and "[[instances]] number 1: `mu` must lie in [0, 1] as the outcomes do" in refused.stderr


def test_compare_and_plot_refuse_what_is_not_there(
    run: RunCommand, small: tuple[Path, list[RunRow]], tmp_path: Path
) -> None:
    directory = str(small[0])
    for arguments, clue in (
        (("compare", str(tmp_path)), "holds no results.sqlite"),
        (("compare", directory, "--csv", "--json"), "--csv and --json"),
        (("plot", str(tmp_path / "none")), "holds no results.sqlite"),
        (("plot", directory, "--kind", "pie"), "--kind must be one of box, R, delta, K, proportions, graph, got 'pie'"),
        (("plot", directory, "--instance", "nowhere"), 'its instances are "cliques", "short path"'),
        (("plot", directory, "--delta", "0.3"), "--delta must be a risk of the campaign, one of 0.2, 0.05, got 0.3"),
    ):
        refused = run(*arguments)
        assert refused.code == 1 and clue in refused.stderr and refused.stderr.count("\n") == 1
    assert not (tmp_path / "none").exists()


def test_plot_refuses_two_instances_at_one_place(run: RunCommand, file: Path, tmp_path: Path) -> None:
    text = HEAD.replace("runs = 3", "runs = 1") + CLIQUES + CLIQUES + 'name = "twin"\n' + TAS
    simulated(tmp_path / "twins", text)
    refused = run("plot", str(tmp_path / "twins"), "--kind", "K")
    assert refused.code == 1 and '"cliques" and "twin" both have K = 7' in refused.stderr
    assert run("plot", str(tmp_path / "twins"), "--kind", "K", "--instance", "twin").code == 0


def test_an_unfinished_campaign_says_so(run: RunCommand, small: tuple[Path, list[RunRow]], tmp_path: Path) -> None:
    with Results.begin(tmp_path, SMALL, parse(SMALL)) as results:
        results.write(small[1][:2])
    assert "not finished: 2 of 36 runs are there, each counted once per delta" in run("compare", str(tmp_path)).stdout


def command(file: Path, out: Path, jobs: int) -> subprocess.Popen[bytes]:
    arguments = ["simulate", str(file), "--out", str(out), "--jobs", str(jobs)]
    return subprocess.Popen(
        [sys.executable, "-m", "spectralbai", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored where the tests run in the background of a shell
    )


def test_killed_at_random_instants_and_resumed_gives_the_same_rows(tmp_path: Path) -> None:
    """With kill -9, once with worker processes; the reference ran undisturbed in this process."""
    file, out = tmp_path / "campaign.toml", tmp_path / "out"
    text = SMALL.replace("runs = 3", "runs = 6")
    file.write_text(text)
    expected = simulated(tmp_path / "undisturbed", text)
    rng = random.Random(0)
    for jobs in (1, 2):
        process = command(file, out, jobs)
        before = count(out)
        limit = time.monotonic() + 60
        while count(out) == before and time.monotonic() < limit and process.poll() is None:
            time.sleep(0.02)  # until something is written, then on to a random instant
        time.sleep(rng.uniform(0, 0.6))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        rows = _rows(out)
        assert before < len(rows), "something was kept"
        assert all(row in expected for row in rows)
    process = command(file, out, 1)
    assert process.communicate()[1] == b"" and process.returncode == 0
    assert _rows(out) == expected


def _rows(directory: Path) -> list[RunRow]:
    with Results.open(directory) as results:
        return [replace(row, seconds=0.0) for row in results.rows()]


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(SMALL.replace("runs = 3", "runs = 100000"))
    process = command(file, tmp_path / "out", 2)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    limit = time.monotonic() + 60
    while not count(tmp_path / "out") and time.monotonic() < limit:
        time.sleep(0.05)
    workers = [int(pid) for pid in children.read_text().split()]
    assert len(workers) >= 2
    process.send_signal(signal.SIGKILL)
    process.communicate()
    while any(_alive(pid) for pid in workers) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not any(_alive(pid) for pid in workers)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_an_interrupt_keeps_what_was_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(SMALL.replace("runs = 3", "runs = 100000"))
    process = command(file, tmp_path / "out", 2)
    limit = time.monotonic() + 60
    while not count(tmp_path / "out") and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    kept = int(stderr.split(b"interrupted: ")[1].split()[0])
    assert b"the same command goes on from there" in stderr and b"Traceback" not in stderr
    assert n_trajectories(_rows(tmp_path / "out")) == kept
