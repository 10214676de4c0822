"""Campaigns: what a file says, what is stored, and that neither workers nor interruptions change a row."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, t

from spectralbai import Graph, Instance, InvalidInput, Problem, SpectralBAIError, SpectralTaS, lower_bound, simulate
from spectralbai.campaign import Campaign, Cell, Results, RunRow, run_campaign, runner, summarise
from spectralbai.campaign import results as results_module
from spectralbai.instances import KINDS, cliques, path
from spectralbai.policy import POLICIES, Policy, Uniform
from tests.means import mu_of

HEAD = 'format = "spectralbai-campaign/1"\nruns = 3\ndeltas = [0.2, 0.05]\n'
CLIQUES = '[[instances]]\nkind = "cliques"\nn_cliques = 2\nsize = 3\nbest = 1.5\nseed = 4\n'
PATH = '[[instances]]\nname = "short path"\nkind = "path"\nn_arms = 3\nlead = 1.0\n'
TAS = '[[policies]]\nkind = "spectral-tas"\n'
SMALL = HEAD + CLIQUES + PATH + TAS + '[[policies]]\nkind = "lucb"\n[[policies]]\nkind = "top-two"\n'


RunCommand = Callable[..., Any]


def no_file(name: str) -> Instance:
    raise AssertionError(f"{name} should not be opened")


def parse(text: str) -> Campaign:
    return Campaign.from_toml(text, no_file)


def simulated(directory: Path, text: str = SMALL, **options: Any) -> list[RunRow]:
    """Runs a campaign to its end and returns its rows, times set to 0."""
    directory.mkdir(exist_ok=True)
    campaign = parse(text)
    with Results.begin(directory, text, campaign) as results:
        run_campaign(campaign, results, **options)
        return [replace(row, seconds=0.0) for row in results.rows()]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[RunRow]]:
    directory = tmp_path_factory.mktemp("small")
    return directory, simulated(directory)


# What a file says


def test_a_campaign_is_instances_times_policies_times_risks() -> None:
    campaign = parse(SMALL)
    assert [each.name for each in campaign.instances] == ["cliques", "short path"]
    assert campaign.instances[0].instance.as_dict() == cliques(2, 3, best=1.5, seed=4).as_dict()
    assert campaign.instances[1].instance.as_dict() == path(3, lead=1.0).as_dict()
    cells = [(each.instance.name, each.policy.name, each.deltas) for each in campaign.trajectories]
    # LUCB pulls by delta, so each risk has runs of its own; the others share theirs.
    both = (0.2, 0.05)
    expected = [("spectral-tas", both), ("lucb", (0.2,)), ("lucb", (0.05,)), ("top-two", both)]
    assert cells == [(name, *cell) for name in ("cliques", "short path") for cell in expected]


def test_a_race_has_runs_of_its_own_for_every_risk_and_rules_go_by_name(tmp_path: Path) -> None:
    race = '[[policies]]\nkind = "spectral-race"\n[[policies]]\nkind = "race"\n'
    mixed = '[[policies]]\nname = "mixed"\nkind = "spectral-tas"\nstopping = "mixture"\n'
    text = HEAD.replace("runs = 3", "runs = 2") + PATH + race + mixed
    cells = [(each.policy.name, each.deltas) for each in parse(text).trajectories]
    both = [((0.2,)), ((0.05,))]
    assert cells == [(name, deltas) for name in ("spectral-race", "race") for deltas in both] + [("mixed", (0.2, 0.05))]
    rows = simulated(tmp_path / "race", text)
    rules = {row.policy: row.rule for row in rows}
    assert rules == {"spectral-race": "betting", "race": "betting", "mixed": "mixture"}
    seeds = {(row.policy, row.delta): row.seed for row in rows if row.run == 0}
    assert seeds["spectral-race", 0.2] != seeds["spectral-race", 0.05] and seeds["mixed", 0.2] == seeds["mixed", 0.05]
    with pytest.raises(InvalidInput, match='policy "spectral-race" .* must be betting for a race'):
        parse(text.replace('kind = "spectral-race"', 'kind = "spectral-race"\nstopping = "mixture"'))


def test_each_component_may_have_an_R_and_several_of_them_be_swept() -> None:
    groups = HEAD + '[[instances]]\nkind = "cliques"\nn_cliques = 2\nsize = 3\nlone_best = false\n'
    one = parse(groups + "R_by_component = [0.5, inf]\n" + TAS)
    assert one.instances[0].instance.problem.radii.tolist() == [0.5, math.inf]
    swept = parse(groups + "sweep = { R_by_component = [[0.5, 1.0], [2.0, 3.0]] }\n" + TAS)
    assert [each.instance.problem.radii.tolist() for each in swept.instances] == [[0.5, 1.0], [2.0, 3.0]]
    for line, message in (
        ("R_by_component = 0.5", "R_by_component must be a list of numbers, one per component, got 0.5"),
        ("R_by_component = [0.5]", "one for each of the 2 components of the graph, got 1 numbers"),
        ("R = 1.0\nR_by_component = [0.5, 1.0]", "R and R_by_component are both given; keep one"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            parse(groups + line + "\n" + TAS)


def test_a_sweep_makes_an_instance_per_value_and_R_overrides() -> None:
    text = HEAD + '[[instances]]\nkind = "path"\nn_arms = 4\nsweep = { R = [0.5, inf], lead = [0.3, 0.6] }\n' + TAS
    campaign = parse(text)
    found = [(each.name, each.instance.problem.R, each.instance.as_dict()["mu"]) for each in campaign.instances]
    assert [name for name, _, _ in found] == [
        "path R=0.5 lead=0.3",
        "path R=0.5 lead=0.6",
        "path R=inf lead=0.3",
        "path R=inf lead=0.6",
    ]
    assert [R for _, R, _ in found] == [0.5, 0.5, math.inf, math.inf]
    assert found[0][2] == path(4, lead=0.3).as_dict()["mu"] == found[2][2]


def test_instance_files_are_read_beside_the_campaign() -> None:
    instance = Instance(Problem(Graph.from_edges(3, [(1, 2)]), 0.01), [0.9, 0.5, 0.6])
    asked: list[str] = []

    def read(name: str) -> Instance:
        asked.append(name)
        return instance

    campaign = Campaign.from_toml(HEAD + '[[instances]]\nfile = "a/b.json"\nR = 0.02\n' + TAS, read)
    assert asked == ["a/b.json"]
    assert campaign.instances[0].name == "a/b.json"
    assert campaign.instances[0].instance.problem.R == 0.02


def test_a_campaign_survives_its_json_form() -> None:
    campaign = parse(SMALL)
    again = Campaign.from_dict(json.loads(json.dumps(campaign.as_dict())))
    assert again.as_dict() == campaign.as_dict()
    first, other = campaign.trajectories[0], again.trajectories[0]
    assert campaign.seed_of(first, 2) == again.seed_of(other, 2)


def test_noise_says_how_outcomes_in_a_range_are_drawn(tmp_path: Path) -> None:
    scores = Instance(Problem.bounded(Graph.from_edges(3, [(1, 2)]), R=0.05), [0.95, 0.1, 0.2])
    text = HEAD + '[[instances]]\nfile = "scores.json"\nsweep = { noise = ["bernoulli", 0.02] }\n' + TAS
    campaign = Campaign.from_toml(text, lambda name: scores)
    assert [each.noise for each in campaign.instances] == ["bernoulli", 0.02]
    restored = Campaign.from_dict(json.loads(json.dumps(campaign.as_dict())))
    assert restored.as_dict() == campaign.as_dict() and restored.instances[1].noise == 0.02
    with Results.begin(tmp_path, text, campaign) as results:
        run_campaign(campaign, results)
        rows = list(results.rows())
        cells = summarise(results)
    assert all(cell.lower_bound == 0 and math.isnan(cell.ratio) for cell in cells)  # scores have no lower bound
    policy = {delta: SpectralTaS(scores.problem, delta) for delta in campaign.deltas}
    for noise in ("bernoulli", 0.02):
        of_noise = [row for row in rows if row.instance == f"scores.json noise={noise}"]
        assert len(of_noise) == 6
        for row in of_noise:
            assert row.tau == simulate.run(policy[row.delta], [0.95, 0.1, 0.2], row.seed, noise=noise).tau
    for bad in ("0.5", '"gaussian"', "[0.02]"):
        with pytest.raises(InvalidInput, match="number 1: `noise` must be"):
            Campaign.from_toml(HEAD + f'[[instances]]\nfile = "x"\nnoise = {bad}\n' + TAS, lambda name: scores)
    with pytest.raises(InvalidInput, match="number 1: `noise` must be gaussian"):
        parse(HEAD + CLIQUES + "noise = 0.02\n" + TAS)


def test_seeds_differ_between_runs_cells_and_campaigns_and_not_with_what_else_is_in_the_file() -> None:
    campaign, alone = parse(SMALL), parse(HEAD + CLIQUES + TAS)
    seeds = {campaign.seed_of(each, run) for each in campaign.trajectories for run in range(50)}
    assert len(seeds) == 50 * len(campaign.trajectories)
    assert alone.seed_of(alone.trajectories[0], 7) == campaign.seed_of(campaign.trajectories[0], 7)
    other = parse(SMALL.replace("runs = 3", "runs = 3\nseed = 1"))
    assert other.seed_of(other.trajectories[0], 7) not in seeds


BAD_FILES = {
    "not TOML": (SMALL + "oops", "not TOML"),
    "no format": (SMALL.replace('format = "spectralbai-campaign/1"\n', ""), 'lacks the key "format"'),
    "other format": (SMALL.replace("campaign/1", "campaign/9"), "spectralbai-campaign/1"),
    "no runs": (SMALL.replace("runs = 3\n", ""), 'lacks the key "runs"'),
    "zero runs": (SMALL.replace("runs = 3", "runs = 0"), "`runs` must be a whole number of at least 1, got 0"),
    "runs in words": (SMALL.replace("runs = 3", 'runs = "many"'), "`runs` must be a whole number"),
    "runs a half": (SMALL.replace("runs = 3", "runs = 2.5"), "got 2.5"),
    "no deltas": (SMALL.replace("[0.2, 0.05]", "[]"), "deltas must be a list"),
    "delta alone": (SMALL.replace("[0.2, 0.05]", "0.2"), "deltas must be a list"),
    "delta of 2": (SMALL.replace("0.05]", "2]"), "between 0 and 1"),
    "delta twice": (SMALL.replace("0.05]", "0.2]"), "remove the repeats"),
    "negative seed": (SMALL.replace("runs = 3", "runs = 3\nseed = -1"), "`seed`"),
    "unknown key": (SMALL.replace("runs = 3", "runs = 3\nsede = 1"), 'did you mean "seed"?'),
    "no instances": (HEAD + TAS, 'lacks the key "instances"'),
    "instances no tables": (HEAD + "instances = [1]\n" + TAS, "[[instances]]"),
    "no policies": (HEAD + CLIQUES, 'lacks the key "policies"'),
    "unknown instance": (
        SMALL.replace('"cliques"', '"clique"'),
        '[[instances]] number 1: kind "clique" is unknown; did you mean',
    ),
    "no kind": (HEAD + "[[instances]]\nn_arms = 3\n" + TAS, "[[instances]] number 1: kind is missing"),
    "unknown policy": (
        SMALL.replace('"lucb"', '"ucb"'),
        '[[policies]] number 2: kind "ucb" is unknown; did you mean "lucb"?',
    ),
    "unknown setting": (
        SMALL + "stoping = 'paper'\n",
        '[[policies]] number 3: the table has the unknown key "stoping"',
    ),
    "unknown rule": (
        SMALL + "stopping = 'chernoff'\n",
        'policy "top-two" on instance "cliques": `stopping` must be a stopping rule or one of',
    ),
    "unknown parameter": (
        SMALL.replace("size = 3", "sizes = 3"),
        '[[instances]] number 1: the table has the unknown key "sizes"',
    ),
    "missing parameter": (SMALL.replace("size = 3\n", ""), '[[instances]] number 1: the table lacks the key "size"'),
    "bad parameter": (SMALL.replace("size = 3", 'size = "big"'), "[[instances]] number 1: `size` must be"),
    "negative R": (SMALL.replace("lead = 1.0", "lead = 1.0\nR = -1.0"), "[[instances]] number 2: `R` must be"),
    "kind and file": (SMALL.replace("lead = 1.0", 'lead = 1.0\nfile = "x"'), "kind and file are both given"),
    "same name": (SMALL.replace("short path", "cliques"), 'name "cliques" is taken twice'),
    "blank name": (SMALL.replace("short path", " "), "name must be a string that is not blank"),
    "name a number": (SMALL.replace('"short path"', "7"), "name must be a string"),
    "empty sweep": (SMALL.replace("lead = 1.0", "sweep = { lead = [] }"), "[[instances]] number 2: sweep must be"),
    "sweep of kind": (SMALL.replace("lead = 1.0", "sweep = { kind = ['ring'] }"), "cannot vary"),
    "rule a table": (SMALL + "stopping = { a = 1 }\n", "`stopping` must be a stopping rule or one of"),
    "rule nested": (SMALL + "stopping = [[1]]\n", "`stopping` must be a stopping rule or one of"),
    "range a number": (SMALL + "mean_range = 1.0\n", "mean_range must be [low, high]"),
    "range of words": (SMALL + "mean_range = ['a', 'b']\n", "`low` must be"),
    "a number too long": (SMALL.replace("runs = 3", "runs = 3" + "0" * 5000), "not TOML"),
    "nested too deep": (SMALL.replace("runs = 3", "runs = " + "[" * 5000), "not TOML"),
    "too many runs": (SMALL.replace("runs = 3", "runs = 3000000"), "at most 1000000"),
    "grub with another rule": (
        HEAD + PATH + '[[policies]]\nkind = "grub"\nstopping = "mixture"\n',
        "must be graph-intervals",
    ),
    "best arms tied": (HEAD + '[[instances]]\nkind = "complete"\nn_arms = 3\nlead = -1.0\n' + TAS, "`lead`"),
    "oracle of means too rough": (
        HEAD + CLIQUES + 'slack = 0.5\n[[policies]]\nkind = "oracle"\n',
        'policy "oracle" on instance "cliques"',
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_campaign_is_refused_naming_the_place(case: str) -> None:
    text, clue = BAD_FILES[case]
    with pytest.raises(InvalidInput) as error:
        parse(text)
    assert clue in str(error.value)


def test_a_new_policy_and_a_new_instance_kind_are_one_line_each(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As CONTRIBUTING shows: a class in POLICIES and a function in KINDS are all that a campaign needs."""

    class Stubborn(Uniform):
        def _allocation(self, mu_tilde: np.ndarray, best: int) -> np.ndarray:
            allocation: np.ndarray = np.eye(mu_tilde.size)[0] * 0.5 + 0.5 / mu_tilde.size
            return allocation

    def twins(gap: float) -> Instance:
        return Instance(Problem(Graph.from_edges(2, []), math.inf), [gap, 0.0])

    assert issubclass(Stubborn, Policy)
    monkeypatch.setitem(POLICIES, "stubborn", Stubborn)
    monkeypatch.setitem(KINDS, "twins", twins)
    rows = simulated(
        tmp_path / "new", HEAD + '[[instances]]\nkind = "twins"\ngap = 3.0\n[[policies]]\nkind = "stubborn"\n'
    )
    assert [(row.policy, row.status, row.arm) for row in rows] == [("stubborn", "decided", 0)] * 6


# What is stored


def test_every_cell_has_its_runs_and_they_are_those_of_the_library(small: tuple[Path, list[RunRow]]) -> None:
    _, rows = small
    campaign = parse(SMALL)
    assert len(rows) == 2 * 3 * 2 * 3
    for trajectory in campaign.trajectories:
        for run in range(3):
            seed = campaign.seed_of(trajectory, run)
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
            assert len({(row.instance, row.policy, row.seed) for row in results.rows()}) == stop
    seen: list[int] = []
    assert simulated(directory, on_run=lambda there, total: seen.append(there)) == small[1]
    assert seen == sorted(seen) and sorted(set(seen)) == list(range(11, 25))
    seen.clear()
    assert simulated(directory, on_run=lambda there, total: seen.append(there)) == small[1]
    assert seen == [24], "nothing left to do"


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
    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
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
    connection = sqlite3.connect(tmp_path / results_module.FILE)
    connection.executescript("CREATE TABLE runs (x); PRAGMA user_version = 9;")
    connection.close()
    with pytest.raises(InvalidInput, match="format 9 of another version"):
        Results.open(tmp_path)
    with pytest.raises(InvalidInput, match="format 9 of another version"):
        Results.begin(tmp_path, SMALL, parse(SMALL))


OLD = """format = "spectralbai-campaign/1"
runs = 3
deltas = [0.2, 0.05]

[[instances]]
name = "short path"
kind = "path"
n_arms = 3
lead = 1.0

[[policies]]
kind = "spectral-tas"
mean_range = [-2.0, 2.0]

[[policies]]
kind = "lucb"
"""
"""The campaign of tests/data/campaign-1.sqlite, which version 0.1.0 ran."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    (tmp_path / "old").mkdir()
    shutil.copy(Path(__file__).parent / "data" / "campaign-1.sqlite", tmp_path / "old" / results_module.FILE)
    return tmp_path / "old"


def test_results_of_version_0_1_0_are_read_as_they_were_made(old: Path, run: RunCommand, tmp_path: Path) -> None:
    with Results.open(old) as results:
        rows = results.rows()
        assert results.campaign.policies[0].settings == {"stopping": "mixture", "mean_range": [-2.0, 2.0]}
    assert len(rows) == 12 and {row.rule for row in rows} == {"mixture", "intervals"}
    policy = POLICIES["spectral-tas"].on(path(3, lead=1.0), delta=0.2, stopping="mixture", mean_range=(-2.0, 2.0))
    again = simulate.run(policy, mu_of(path(3, lead=1.0)), rows[0].seed)
    assert (again.tau, again.arm) == (rows[0].tau, rows[0].arm), "the rule mixture is what it was"
    table = run("compare", str(old), "--export", str(tmp_path / "runs.csv"))
    assert table.code == 0 and "mixture" in table.stdout and "not finished" not in table.stdout
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 13
    for kind in ("box", "delta", "proportions"):
        assert run("plot", str(old), "--kind", kind).code == 0


def test_results_of_version_0_1_0_are_not_added_to(old: Path, run: RunCommand, tmp_path: Path) -> None:
    before = (old / results_module.FILE).read_bytes()
    (tmp_path / "old.toml").write_text(OLD.replace("mean_range", 'stopping = "mixture"\nmean_range'))
    refused = run("simulate", str(tmp_path / "old.toml"), "--out", str(old))
    assert refused.code == 1 and refused.stderr.count("\n") == 1
    assert "was begun by version 0.1.0" in refused.stderr and "another directory with --out" in refused.stderr
    assert (old / results_module.FILE).read_bytes() == before


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
            seen.append(_count(directory))
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


# What it says


def cell_of(cells: list[Cell], policy: str, delta: float) -> Cell:
    return next(cell for cell in cells if (cell.instance, cell.policy, cell.delta) == ("short path", policy, delta))


def test_a_summary_is_the_statistics_of_the_rows(small: tuple[Path, list[RunRow]]) -> None:
    directory, rows = small
    with Results.open(directory) as results:
        cells = summarise(results)
    assert [(cell.instance, cell.policy, cell.delta) for cell in cells] == list(
        dict.fromkeys((row.instance, row.policy, row.delta) for row in rows)
    )
    cell = cell_of(cells, "top-two", 0.05)
    tau = np.array(
        [row.tau for row in rows if (row.instance, row.policy, row.delta) == ("short path", "top-two", 0.05)]
    )
    assert (cell.runs, cell.decided, cell.errors, cell.n_arms, cell.proved) == (3, 3, 0, 3, True)
    assert cell.mean_tau == pytest.approx(tau.mean())
    low, high = t.interval(0.95, 2, tau.mean(), tau.std(ddof=1) / math.sqrt(3))
    assert (cell.mean_tau_low, cell.mean_tau_high) == pytest.approx((low, high))
    assert (cell.q05_tau, cell.median_tau, cell.q95_tau) == pytest.approx(tuple(np.quantile(tau, [0.05, 0.5, 0.95])))
    assert cell.error_rate_low == 0 and cell.error_rate_high == pytest.approx(beta.ppf(0.975, 1, 3))
    problem = path(3, lead=1.0)
    assert cell.lower_bound == pytest.approx(lower_bound(problem.problem, mu_of(problem), 0.05), rel=1e-3)
    assert cell.ratio == pytest.approx(tau.mean() / cell.lower_bound)


def test_wrong_and_undecided_runs_are_counted_apart(small: tuple[Path, list[RunRow]], tmp_path: Path) -> None:
    rows = [row for row in small[1] if (row.instance, row.policy, row.delta) == ("short path", "lucb", 0.2)]
    text = SMALL.replace("runs = 3", "runs = 9")
    with Results.begin(tmp_path, text, parse(text)) as results:
        for k, (status, correct) in enumerate(
            [("decided", True), ("decided", False), ("truncated", False), ("inconsistent", False)]
        ):
            results.write([replace(rows[0], run=k, status=status, correct=correct)])
        (cell,) = summarise(results)
    assert (cell.runs, cell.decided, cell.errors, cell.truncated, cell.inconsistent) == (4, 2, 1, 1, 1)
    assert cell.error_rate == 0.25
    assert (cell.error_rate_low, cell.error_rate_high) == pytest.approx((beta.ppf(0.025, 1, 4), beta.ppf(0.975, 2, 3)))


def test_means_rougher_than_R_have_no_lower_bound_and_odd_names_are_drawn(run: RunCommand, tmp_path: Path) -> None:
    text = (
        HEAD.replace("runs = 3", "runs = 1\nmax_samples = 50")
        + CLIQUES
        + "slack = 0.01\nname = '$x_{'\n"
        + TAS
        + "name = '_$\\\\bad{'\n"
    )
    simulated(tmp_path / "rough", text)
    for kind in ("box", "R", "delta", "K", "proportions", "graph"):
        assert run("plot", str(tmp_path / "rough"), "--kind", kind).code == 0
    with Results.open(tmp_path / "rough") as results:
        cell = summarise(results)[0]
    assert cell.lower_bound == 0 and math.isnan(cell.ratio) and math.isnan(cell.std_tau)


# The command


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
        "format": "spectralbai-instance/1",
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
    assert "not finished: 2 of 24 runs are there" in run("compare", str(tmp_path)).stdout


def command(file: Path, out: Path, jobs: int) -> subprocess.Popen[bytes]:
    arguments = ["simulate", str(file), "--out", str(out), "--jobs", str(jobs)]
    return subprocess.Popen(
        [sys.executable, "-m", "spectralbai.cli", *arguments],
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
        before = _count(out)
        limit = time.monotonic() + 60
        while _count(out) == before and time.monotonic() < limit and process.poll() is None:
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


def _count(directory: Path) -> int:
    """Returns the number of rows written so far."""
    try:
        connection = sqlite3.connect(f"file:{directory / results_module.FILE}?mode=ro", uri=True)
        try:
            return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.OperationalError:  # not made yet
        return 0


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(SMALL.replace("runs = 3", "runs = 100000"))
    process = command(file, tmp_path / "out", 2)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    limit = time.monotonic() + 60
    while not _count(tmp_path / "out") and time.monotonic() < limit:
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
    while not _count(tmp_path / "out") and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    kept = int(stderr.split(b"interrupted: ")[1].split()[0])
    assert b"the same command goes on from there" in stderr and b"Traceback" not in stderr
    assert len({(row.instance, row.policy, row.seed) for row in _rows(tmp_path / "out")}) == kept
