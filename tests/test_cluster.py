"""Campaigns on a real dask cluster: a scheduler and two worker processes on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("distributed")

from spectralbai.campaign import Campaign, Results, RunRow, run_campaign
from spectralbai.cli.work import cluster

TEXT = """
format = "spectralbai-campaign/2"
runs = 4
deltas = [0.2, 0.05]
[[instances]]
kind = "cliques"
n_cliques = 2
size = 3
[[instances]]
kind = "path"
n_arms = 3
lead = 1.0
[[policies]]
kind = "spectral-tas"
[[policies]]
kind = "lucb"
"""


class Cluster(NamedTuple):
    address: str
    workers: list[subprocess.Popen[bytes]]


def dask(*arguments: str, folder: Path | None = None) -> subprocess.Popen[bytes]:
    command, silent = [sys.executable, "-m", "dask", *arguments], subprocess.DEVNULL
    return subprocess.Popen(command, cwd=folder, stdout=silent, stderr=silent)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Cluster]:
    file = tmp_path / "scheduler.json"
    scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    limit = time.monotonic() + 60
    while not file.exists() and time.monotonic() < limit:
        time.sleep(0.05)
    address = json.loads(file.read_text())["address"]
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path))
    workers = [dask("worker", address, *options, folder=tmp_path) for _ in range(2)]
    from distributed import Client

    with Client(address, timeout=30, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
    yield Cluster(address, workers)
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[RunRow]:
    return simulated(tmp_path_factory.mktemp("local"))


def simulated(directory: Path, **options: Any) -> list[RunRow]:
    directory.mkdir(exist_ok=True)
    campaign = Campaign.from_toml(TEXT, lambda name: pytest.fail(name))
    with Results.begin(directory, TEXT, campaign) as results:
        run_campaign(campaign, results, **options)
        return [replace(row, seconds=0.0) for row in results.rows()]


def test_a_cluster_gives_the_rows_of_this_machine_though_a_worker_is_killed(
    started: Cluster, expected: list[RunRow], run: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(TEXT)
    done = run("simulate", str(file), "--out", str(tmp_path / "out"), "--cluster", started.address)
    assert (done.code, done.stderr) == (0, f"made the folder {tmp_path / 'out'}\n")
    with Results.open(tmp_path / "out") as results:
        assert [replace(row, seconds=0.0) for row in results.rows()] == expected

    killed: list[int] = []

    def kill_one(there: int, total: int) -> None:
        if there > total / 4 and not killed:
            started.workers[0].kill()
            killed.append(there)

    with cluster(started.address) as (executor, threads):
        assert threads == 2
        rows = simulated(tmp_path / "again", executor=executor, slots=2 * threads, on_run=kill_one)
    assert killed and rows == expected


def test_workers_import_rules_of_a_file_of_their_own(started: Cluster, tmp_path: Path) -> None:
    (tmp_path / "my_rules.py").write_bytes((Path(__file__).parent / "outsiders" / "own_rules.py").read_bytes())
    (tmp_path / "campaign.toml").write_text(TEXT.replace('"lucb"', '"own"'))
    arguments = ("campaign.toml", "--out", "out", "--cluster", started.address, "--import", "my_rules")
    command = [sys.executable, "-m", "spectralbai", "simulate", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0 and "16 runs are in out" in done.stdout, done.stderr
    with Results.open(tmp_path / "out") as results:
        assert {row.rule for row in results.rows() if row.policy == "own"} == {"own-lead"}


def test_a_worker_without_spectralbai_is_refused(started: Cluster, run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "without.py").write_text("import sys; sys.modules['spectralbai'] = None")
    (tmp_path / "campaign.toml").write_text(TEXT)
    options = ("--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path))
    started.workers.append(dask("worker", started.address, *options, "--preload", str(tmp_path / "without.py")))
    from distributed import Client

    with Client(started.address, timeout=30, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=60)
    arguments = ("--out", str(tmp_path / "out"), "--cluster", started.address)
    code, _, stderr = run("simulate", str(tmp_path / "campaign.toml"), *arguments)
    assert code == 1 and "has no spectralbai; install spectralbai" in stderr


IMPATIENT = """
import sys
from spectralbai import cli
from spectralbai.cli import work

work.CONNECTING = 1
for address in sys.argv[1:]:
    try:
        cli.main(["simulate", "campaign.toml", "--out", "out", "--cluster", address])
    except SystemExit as end:
        print(end.code)
"""


def test_a_cluster_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """In a process of its own: what dask starts to connect is not ended at once if that fails."""
    (tmp_path / "campaign.toml").write_text(TEXT)
    addresses = ("tcp://127.0.0.1:9", "nonsense://x", "127.0.0.1")
    done = subprocess.run(
        [sys.executable, "-c", IMPATIENT, *addresses], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert done.stdout == "1\n1\n1\n", done.stderr
    for address, line in zip(addresses, done.stderr.splitlines(), strict=True):
        assert f"no dask scheduler answers at {address}" in line
    assert not (tmp_path / "out").exists()
