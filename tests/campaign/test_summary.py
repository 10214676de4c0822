"""Campaigns: what the summary says."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta, t

from spectralbai import lower_bound
from spectralbai.campaign import Cell, Results, RunRow, summarise
from spectralbai.instances import path
from tests.campaign.campaigns import CLIQUES, HEAD, SMALL, TAS, RunCommand, parse, simulated
from tests.means import mu_of


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
