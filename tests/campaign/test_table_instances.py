"""Campaigns on items: fresh ones with outcomes drawn from means, and tables of known outcomes."""

from __future__ import annotations

import json
import math
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from spectralbai import Graph, Instance, InvalidInput, Items, Problem, SpectralRace, SpectralTaS, simulate
from spectralbai.arrays import Matrix
from spectralbai.campaign import Campaign, Results, run_campaign, summarise
from tests.campaign.campaigns import CLIQUES, HEAD, PATH, TAS, RunCommand, parse, simulated

OPTIONS = ("old", "new", "other")
N_ITEMS = 40
TABLE = '[[instances]]\nkind = "table"\nfile = "scores.csv"\n'
RACE = '[[policies]]\nkind = "spectral-race"\n'


def outcomes(seed: int = 0) -> Matrix:
    """Outcomes in [0, 1] of items that are as hard for all options; "new" is the best."""
    rng = np.random.default_rng(seed)
    hard = 0.4 * rng.random(N_ITEMS)
    return np.round(hard + [[0.2], [0.5], [0.0]] + 0.1 * rng.random((3, N_ITEMS)), 6)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a wide file, and a long one with other names of columns and clusters of four items."""
    write(tmp_path, outcomes())
    rows = [f"{o},q{j},{x},d{j // 4}\n" for o, row in zip(OPTIONS, outcomes(), strict=True) for j, x in enumerate(row)]
    (tmp_path / "long.csv").write_text("model,question,score,document\n" + "".join(rows))
    return tmp_path


def write(folder: Path, table: Matrix) -> None:
    lines = [",".join((name, *map(str, row))) for name, row in zip(OPTIONS, table.tolist(), strict=True)]
    header = ",".join(("model", *(f"q{j}" for j in range(table.shape[1]))))
    (folder / "scores.csv").write_text("\n".join((header, *lines)) + "\n")


def problem(items: Items | None, tolerance: float = 0.0) -> Problem:
    return Problem.bounded(Graph.from_edges(3, []), math.inf, tolerance=tolerance, items=items)


# Fresh items


def test_fresh_items_are_a_change_of_any_instance_and_runs_are_those_of_the_library(tmp_path: Path) -> None:
    text = HEAD + PATH + 'items = "fresh"\n' + RACE
    (named,) = parse(text).instances
    assert named.instance.problem.items == Items.fresh()
    for row in simulated(tmp_path / "fresh", text):
        run = simulate.run(SpectralRace(named.instance.problem, row.delta), named.mu, row.seed)
        assert (row.status, row.tau, row.arm, row.correct) == ("decided", run.tau, run.arm, True)
        assert row.counts == tuple(run.counts.astype(int))
    with pytest.raises(InvalidInput, match="SpectralTaS cannot try options on items; use SpectralRace"):
        parse(HEAD + PATH + 'items = "fresh"\n' + TAS)


@pytest.mark.parametrize("value", ["{ listed = 300 }", '"listed"', "7"])
def test_a_list_needs_a_table(value: str) -> None:
    with pytest.raises(InvalidInput, match='number 1: items must be "fresh" where outcomes are drawn from means, got'):
        parse(HEAD + CLIQUES + f"items = {value}\n" + RACE)


def test_a_list_in_an_instance_file_is_refused_unless_it_is_changed() -> None:
    instance = Instance(problem(Items.listed(300)), [0.2, 0.9, 0.1])
    text = HEAD + '[[instances]]\nfile = "list.json"\n'
    clue = 'items must be "fresh" where outcomes are drawn from means, got a list of 300 items; a list needs its'
    with pytest.raises(InvalidInput, match=clue):
        Campaign.from_toml(text + RACE, lambda name: instance)
    changed = Campaign.from_toml(text + 'items = "fresh"\n' + RACE, lambda name: instance)
    assert changed.instances[0].instance.problem.items == Items.fresh()


# Tables


@pytest.mark.parametrize(
    ("key", "items"), [("", None), ('items = "fresh"\n', Items.fresh()), ('items = "listed"\n', Items.listed(N_ITEMS))]
)
def test_runs_on_a_table_are_replays(folder: Path, key: str, items: Items | None) -> None:
    rows = simulated(folder / "results", HEAD + TABLE + key + RACE, folder)
    assert len(rows) == 6 and {row.instance for row in rows} == {"scores.csv"}
    for row in rows:
        run = simulate.replay(SpectralRace(problem(items), row.delta), outcomes(), row.seed)
        assert (row.status, row.tau, row.arm, row.correct) == ("decided", run.tau, run.arm, run.correct)
        assert row.counts == tuple(run.counts.astype(int))
    assert {row.arm for row in rows} == {1}


def test_one_run_is_read_at_all_risks_where_pulls_do_not_depend_on_the_risk(folder: Path) -> None:
    campaign = parse(HEAD + TABLE + TAS, folder)
    assert [each.deltas for each in campaign.trajectories] == [(0.2, 0.05)]
    policy = SpectralTaS(problem(None), 0.2, watching=(("betting", 0.05),))
    rows = simulated(folder / "results", HEAD + TABLE + TAS, folder)
    for run in range(3):
        expected = simulate.watch_table(policy, outcomes(), campaign.seed_of(run))
        assert [row.tau for row in rows if row.run == run] == [each.tau for each in expected]


def test_tables_run_on_worker_processes_and_from_what_is_stored(folder: Path) -> None:
    text = HEAD + TABLE + 'sweep = { items = ["fresh", "listed"] }\n' + RACE
    here = simulated(folder / "here", text, folder)
    assert {row.instance for row in here} == {"scores.csv items=fresh", "scores.csv items=listed"}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        assert simulated(folder / "there", text, folder, executor=executor, slots=2) == here
    stored = json.loads(json.dumps(parse(text, folder).as_dict()))
    restored = Campaign.from_dict(stored)
    assert restored.as_dict() == stored
    again = folder / "again"
    with Results.begin(again, text, restored) as results:
        run_campaign(restored, results)
        rows = list(results.rows())
    assert [(row.tau, row.arm, row.seed) for row in rows] == [(row.tau, row.arm, row.seed) for row in here]


def test_a_campaign_notices_that_its_table_has_changed(folder: Path) -> None:
    simulated(folder / "results", HEAD + TABLE + RACE, folder)
    changed = outcomes()
    changed[2, [3, 4]] = changed[2, [4, 3]]  # the means stay as they are
    write(folder, changed)
    with pytest.raises(InvalidInput, match="holds a campaign with other instances"):
        simulated(folder / "results", HEAD + TABLE + RACE, folder)


def test_columns_clusters_categories_and_the_range_are_keys(folder: Path) -> None:
    keys = """
file = "long.csv"
columns = { option = "model", item = "question", outcome = "score", cluster = "document" }
by_cluster = true
items = "listed"
low = -1
high = 2.0
tolerance = 0.25
categories = ["a", "a", "b"]
R = 0.3
"""
    (named,) = parse(HEAD + '[[instances]]\nname = "documents"\nkind = "table"\n' + keys + RACE, folder).instances
    made = named.instance
    assert named.name == "documents" and made.labels == OPTIONS and named.outcomes is not None
    np.testing.assert_allclose(named.outcomes, outcomes().reshape(3, 10, 4).mean(axis=2), rtol=1e-12)
    assert made.problem.items == Items.listed(10) and made.problem.outcome_range == (-1.0, 2.0)
    assert (made.problem.tolerance, made.problem.R) == (0.25, 0.3)
    assert made.problem.graph.pairs.tolist() == [[0, 1]]
    apart = keys.replace("R = 0.3", "R_by_component = [0.2, 0.0]")
    (named,) = parse(HEAD + '[[instances]]\nkind = "table"\n' + apart + RACE, folder).instances
    assert named.instance.problem.radii.tolist() == [0.2, 0.0]


def test_items_of_a_table_have_no_lower_bound_and_clicks_that_stand_for_themselves_have_one(folder: Path) -> None:
    write(folder, (outcomes() > 0.5).astype(float))
    text = HEAD.replace("runs = 3", "runs = 1") + TABLE + "binary = true\ntolerance = 0.1\n"
    for key, bounded in (("", True), ('items = "fresh"\n', False), ('items = "listed"\n', False)):
        campaign = parse(text + key + RACE, folder)
        with Results.begin(folder / f"results {key[9:12]}", text, campaign) as results:
            run_campaign(campaign, results)
            assert [cell.lower_bound > 0 for cell in summarise(results)] == [bounded] * 2


BAD_TABLES = {
    "no file": ('kind = "table"\n', 'number 1: the table lacks the key "file"; add it'),
    "file a number": ('kind = "table"\nfile = 7\n', "file must be a path in quotes, got 7"),
    "missing file": ('kind = "table"\nfile = "none.csv"\n', "none.csv: there is no such file"),
    "noise": ('kind = "table"\nfile = "scores.csv"\nnoise = 0.1\n', "noise says how outcomes are drawn from means"),
    "items in number": (
        'kind = "table"\nfile = "scores.csv"\nitems = { listed = 40 }\n',
        'items must be "fresh" or "listed", got {\'listed\': 40}; leave it out if every trial',
    ),
    "unknown key": ('kind = "table"\nfile = "scores.csv"\nlowest = 0\n', 'the table has the unknown key "lowest"'),
    "unknown column": (
        'kind = "table"\nfile = "scores.csv"\ncolumns = { options = "model" }\n',
        'columns has the unknown key "options"; did you mean "option"?',
    ),
    "columns a list": (
        'kind = "table"\nfile = "scores.csv"\ncolumns = ["model"]\n',
        "columns must be names of columns",
    ),
    "by_cluster": ('kind = "table"\nfile = "scores.csv"\nby_cluster = 1\n', "by_cluster must be true or false, got 1"),
    "no clusters": (
        'kind = "table"\nfile = "scores.csv"\nby_cluster = true\n',
        "scores.csv: the items of this table are",
    ),
    "range": (
        'kind = "table"\nfile = "scores.csv"\nhigh = 0.9\n',
        'scores.csv, option "new": `outcomes` must lie in [0, 0.9]',
    ),
    "categories without R": (
        'kind = "table"\nfile = "scores.csv"\ncategories = ["a", "a", "b"]\n',
        "categories need R, or R_by_component with one for each, or R = inf; add one",
    ),
    "too few categories": (
        'kind = "table"\nfile = "scores.csv"\nR = 1.0\ncategories = ["a", "a"]\n',
        "categories must be a list of 3 names, one for each option in the order of the file, got ['a', 'a']",
    ),
    "file of instances": ('kind = "path"\nfile = "scores.csv"\n', 'keep one, or use kind = "table"'),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_refused_naming_the_place(folder: Path, case: str) -> None:
    keys, clue = BAD_TABLES[case]
    with pytest.raises(InvalidInput, match=re.escape(clue)) as error:
        parse(HEAD + "[[instances]]\n" + keys + RACE, folder)
    assert str(error.value).startswith("[[instances]] number 1: ")


def test_pairs_that_are_missing_are_named(folder: Path) -> None:
    (folder / "scores.csv").write_text("model,q1,q2\nold,0.1,0.2\nnew,0.5,\n")
    clue = 'scores.csv: 2 options on 2 items; 1 of 4 pairs is missing: option "new", item "q2"; complete the file'
    with pytest.raises(InvalidInput, match=re.escape(clue)):
        parse(HEAD + TABLE + RACE, folder)


def test_the_command_reads_tables_beside_the_campaign(folder: Path, run: RunCommand) -> None:
    text = HEAD.replace("runs = 3", "runs = 1") + TABLE + 'items = "listed"\n' + RACE
    (folder / "campaign.toml").write_text(text)
    done = run("simulate", str(folder / "campaign.toml"), "--out", str(folder / "out"), "--jobs", "1")
    assert done.code == 0 and "2 runs are in" in done.stdout
    with Results.open(folder / "out") as results:
        assert [row.arm for row in results.rows()] == [1, 1]
