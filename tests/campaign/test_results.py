"""Campaigns: what is stored, and that neither workers nor interruptions change a row."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from spectralbai import InvalidInput, SpectralBAIError, simulate
from spectralbai.campaign import Results, RunRow, run_campaign, runner, summarise
from spectralbai.campaign import results as results_module
from spectralbai.policy import POLICIES
from tests.campaign.campaigns import HEAD, PATH, SMALL, TAS, RunCommand, count, n_trajectories, parse, simulated


def test_every_cell_has_its_runs_and_they_are_those_of_the_library(small: tuple[Path, list[RunRow]]) -> None:
    _, rows = small
    campaign = parse(SMALL)
    assert len(rows) == 2 * 3 * 2 * 3
    for trajectory in campaign.trajectories:
        for run in range(3):
            seed = campaign.seed_of(run)
            policy = POLICIES[trajectory.policy.kind].on(trajectory.instance.instance, delta=trajectory.deltas[0])
            policy = replace(policy, watching=tuple((policy.stopping, delta) for delta in trajectory.deltas[1:]))
            for delta, seen in zip(
                trajectory.deltas, simulate.watch(policy, trajectory.instance.mu, seed), strict=True
            ):
                cell = (trajectory.instance.name, trajectory.policy.name, delta, run, seed)
                expected = RunRow(
                    *cell,
                    seen.rule,
                    seen.proved,
                    seen.status,
                    seen.tau,
                    seen.arm,
                    seen.correct,
                    tuple(map(int, seen.counts)),
                    0.0,
                )
                assert expected in rows


def test_an_executor_changes_no_row(small: tuple[Path, list[RunRow]], tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as executor:
        assert simulated(tmp_path / "other", executor=executor, slots=5) == small[1]


def test_a_campaign_interrupted_keeps_what_was_finished_and_goes_on(
    small: tuple[Path, list[RunRow]], tmp_path: Path
) -> None:
    directory = tmp_path / "stopped"
    stops = iter([5, 11])
    for stop in stops:

        def interrupt(there: int, total: int, stop: int = stop) -> None:
            assert total == 24
            if there == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            simulated(directory, on_run=interrupt)
        with Results.open(directory) as results:
            assert n_trajectories(results.rows()) == stop
    seen: list[int] = []
    assert simulated(directory, on_run=lambda there, total: seen.append(there)) == small[1]
    assert seen == sorted(seen) and sorted(set(seen)) == list(range(11, 25))
    seen.clear()
    assert simulated(directory, on_run=lambda there, total: seen.append(there)) == small[1]
    assert seen == [24], "nothing left to do"


def test_two_that_begin_a_campaign_at_one_instant_share_it(tmp_path: Path) -> None:
    campaign = parse(SMALL)
    first = Results(tmp_path / results_module.FILE)
    with ThreadPoolExecutor(1) as pool:
        with first._writing() as connection:
            second = pool.submit(lambda: Results.begin(tmp_path, SMALL, campaign).close())
            time.sleep(0.2)  # it has looked at the file, or waits for its turn
            connection.execute("CREATE TABLE campaign (source TEXT NOT NULL, definition TEXT NOT NULL)")
            connection.execute("CREATE TABLE sessions (started TEXT NOT NULL, versions TEXT NOT NULL)")
            connection.execute("INSERT INTO campaign VALUES (?, ?)", (SMALL, json.dumps(campaign.as_dict())))
            connection.execute(f"PRAGMA user_version = {results_module.SCHEMA}")
        second.result()
    assert len(first.sessions) == 1
    first.close()


def test_another_campaign_is_refused_and_nothing_is_lost(small: tuple[Path, list[RunRow]]) -> None:
    directory, rows = small
    for changed, what in (("deltas = [0.2]", "deltas"), ("runs = 4", "runs"), ("seed = 5", "instances")):
        text = SMALL.replace("deltas = [0.2, 0.05]", changed) if "deltas" in changed else SMALL
        text = text.replace("runs = 3", changed) if "runs" in changed else text
        text = text.replace("seed = 4", changed) if "seed" in changed else text
        with pytest.raises(InvalidInput, match=f"holds a campaign with other {what}"):
            simulated(directory, text)
    assert simulated(directory, "# only a comment is new\n" + SMALL) == rows


def test_the_file_holds_the_campaign_seeds_and_versions(small: tuple[Path, list[RunRow]]) -> None:
    with Results.open(small[0]) as results:
        assert results.campaign.as_dict() == parse(SMALL).as_dict()
        assert set(results.sessions[0]) == {"python", "spectralbai", "numpy", "scipy", "numba", "machine"}
    connection = sqlite3.connect(small[0] / results_module.FILE)
    assert connection.execute("SELECT source FROM campaign").fetchone() == (SMALL,)
    assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    connection.close()


def test_files_that_are_not_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds no results.sqlite; make it with"):
        Results.open(tmp_path)
    (tmp_path / results_module.FILE).write_bytes(b"not a database" * 100)
    with pytest.raises(SpectralBAIError, match="not a database"):
        Results.open(tmp_path)
    with pytest.raises(SpectralBAIError, match="not a database"):
        Results.begin(tmp_path, SMALL, parse(SMALL))
    (tmp_path / results_module.FILE).unlink()


@pytest.mark.parametrize(("version", "got"), [(2, "2"), (9, "9"), (0, "no results")])
def test_results_of_other_versions_are_refused_in_a_sentence(tmp_path: Path, version: int, got: str) -> None:
    connection = sqlite3.connect(tmp_path / results_module.FILE)
    connection.executescript(f"CREATE TABLE runs (x); PRAGMA user_version = {version};")
    connection.close()
    sentence = f"must have the format 3, got {got}; simulate again in another directory, or use the version"
    with pytest.raises(InvalidInput, match=sentence):
        Results.open(tmp_path)
    with pytest.raises(InvalidInput, match=sentence):
        Results.begin(tmp_path, SMALL, parse(SMALL))


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM campaign",
        "UPDATE campaign SET definition = '{'",
        "UPDATE campaign SET definition = '{}'",
        "UPDATE campaign SET definition = '[]'",
        "UPDATE runs SET counts = '[1,' WHERE run = 0",
        "UPDATE runs SET instance = 'zz' WHERE run = 0 AND delta = 0.2 AND policy = 'lucb' AND instance = 'cliques'",
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(small: tuple[Path, list[RunRow]], tmp_path: Path, damage: str) -> None:
    shutil.copy(small[0] / results_module.FILE, tmp_path)
    connection = sqlite3.connect(tmp_path / results_module.FILE)
    connection.executescript(damage)
    connection.close()
    with pytest.raises(SpectralBAIError, match="is damaged"), Results.open(tmp_path) as results:
        summarise(results)


def test_what_is_finished_is_written_while_a_long_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On an executor after a while; without one before the next run begins."""
    text = HEAD + PATH + TAS
    campaign = parse(text)
    seen: list[int] = []

    def slow(task: runner.Task) -> runner.Finished:
        if seen:  # the second run looks at what is there of the first
            time.sleep(2.5 * runner.CHUNK_SECONDS)
            seen.append(count(directory))
        else:
            seen.append(0)
        return work(task)

    work = runner.work
    monkeypatch.setattr(runner, "work", slow)
    for executor in (None, ThreadPoolExecutor(1)):
        directory = tmp_path / str(executor is None)
        seen.clear()
        simulated(directory, text, executor=executor, slots=2)
        assert seen[0] == 0 and min(seen[1:]) >= 2, seen
    assert campaign.runs == 3


def test_a_full_disk_says_so_and_loses_nothing_written(small: tuple[Path, list[RunRow]], tmp_path: Path) -> None:
    directory = tmp_path / "full"

    def fill(there: int, total: int) -> None:
        if there == 6:
            results.write([])  # what is finished so far is in memory: the disk fills before it is written
            pages = results._connection.execute("PRAGMA page_count").fetchone()[0]
            results._connection.execute(f"PRAGMA max_page_count = {pages}")

    directory.mkdir()
    campaign = parse(SMALL)
    with Results.begin(directory, SMALL, campaign) as results:
        results.write([replace(row, counts=(10**6,) * 300) for row in small[1][:2]])
        with pytest.raises(SpectralBAIError, match="the disk is full; make room and run the same command again"):
            run_campaign(campaign, results, on_run=fill)
            results.write([replace(small[1][5], counts=(10**6,) * 3000)])
    with Results.open(directory) as results:
        assert len(list(results.rows())) >= 2


def test_begin_makes_the_folder(small: tuple[Path, list[RunRow]], tmp_path: Path) -> None:
    with Results.begin(tmp_path / "of" / "today", SMALL, parse(SMALL)) as results:
        results.write(small[1])
        assert results.rows() == small[1]


def test_rows_and_cells_have_columns(small: tuple[Path, list[RunRow]], tmp_path: Path) -> None:
    directory, rows = small
    with Results.open(directory) as results:
        runs, cells = results.rows().columns(), summarise(results)
    assert list(runs) == list(results_module.COLUMNS)
    assert runs["tau"] == [row.tau for row in rows] and runs["counts"] == [row.counts for row in rows]
    assert cells.columns()["policy"] == [cell.policy for cell in cells]
    with Results.begin(tmp_path, SMALL, parse(SMALL)) as empty:
        assert empty.rows().columns() == {name: [] for name in results_module.COLUMNS}


def test_runs_of_a_policy_that_is_not_in_the_campaign_come_last(
    run: RunCommand, small: tuple[Path, list[RunRow]], tmp_path: Path
) -> None:
    """Such as those that somebody wrote from Python."""
    with Results.begin(tmp_path, SMALL, parse(SMALL)) as results:
        results.write([replace(row, policy="another") for row in small[1][:6]])
        results.write(small[1])
        assert [row.policy for row in results.rows()[:24]] == [row.policy for row in small[1][:18]] + ["another"] * 6
    table = run("compare", str(tmp_path)).stdout
    assert "another" in table and "not finished" not in table
    assert run("plot", str(tmp_path), "--kind", "delta").code == 0
