"""Campaigns that several test files run."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from spectralbai import Instance, Table
from spectralbai.campaign import Campaign, Results, RunRow, run_campaign
from spectralbai.campaign import results as results_module

HEAD = 'format = "spectralbai-campaign/2"\nruns = 3\ndeltas = [0.2, 0.05]\n'
CLIQUES = '[[instances]]\nkind = "cliques"\nn_cliques = 2\nsize = 3\nbest = 1.5\nseed = 4\n'
PATH = '[[instances]]\nname = "short path"\nkind = "path"\nn_arms = 3\nlead = 1.0\n'
TAS = '[[policies]]\nkind = "spectral-tas"\n'
SMALL = HEAD + CLIQUES + PATH + TAS + '[[policies]]\nkind = "lucb"\n[[policies]]\nkind = "top-two"\n'


RunCommand = Callable[..., Any]


def no_file(name: str) -> Instance:
    raise AssertionError(f"{name} should not be opened")


def parse(text: str, folder: Path | None = None) -> Campaign:
    """Returns a campaign; tables that it names are in `folder`."""
    if folder is None:
        return Campaign.from_toml(text, no_file)
    return Campaign.from_toml(text, no_file, lambda name, **columns: Table.from_csv(folder / name, **columns))


def simulated(directory: Path, text: str = SMALL, folder: Path | None = None, **options: Any) -> list[RunRow]:
    """Runs a campaign to its end and returns its rows, times set to 0."""
    directory.mkdir(exist_ok=True)
    campaign = parse(text, folder)
    with Results.begin(directory, text, campaign) as results:
        run_campaign(campaign, results, **options)
        return [replace(row, seconds=0.0) for row in results.rows()]


def n_trajectories(rows: Iterable[RunRow]) -> int:
    """Returns how many simulated runs of SMALL have rows: LUCB has runs of its own for each risk."""
    return len({(row.instance, row.policy, row.run, row.policy == "lucb" and row.delta) for row in rows})


def count(directory: Path) -> int:
    """Returns the number of rows written so far."""
    try:
        connection = sqlite3.connect(f"file:{directory / results_module.FILE}?mode=ro", uri=True)
        try:
            return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.OperationalError:  # not made yet
        return 0


BAD_FILES = {
    "not TOML": (SMALL + "oops", "not TOML"),
    "no format": (SMALL.replace('format = "spectralbai-campaign/2"\n', ""), 'lacks the key "format"'),
    "other format": (
        SMALL.replace("campaign/2", "campaign/1"),
        "format must be \"spectralbai-campaign/2\", got 'spectralbai-campaign/1'; change it if",
    ),
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
    "a number too long": (SMALL.replace("runs = 3", "runs = 3" + "0" * 5000), "not TOML"),
    "nested too deep": (SMALL.replace("runs = 3", "runs = " + "[" * 5000), "not TOML"),
    "too many runs": (SMALL.replace("runs = 3", "runs = 3000000"), "at most 1,000,000"),
    "graph-elimination with another rule": (
        HEAD + PATH + '[[policies]]\nkind = "graph-elimination"\nstopping = "gk16"\n',
        "must be graph-intervals",
    ),
    "best arms tied": (HEAD + '[[instances]]\nkind = "complete"\nn_arms = 3\nlead = -1.0\n' + TAS, "`lead`"),
    "responder of means too rough": (
        HEAD + CLIQUES + 'slack = 0.5\n[[policies]]\nkind = "oracle"\n',
        'policy "oracle" on instance "cliques"',
    ),
}
