"""The experiment of the paper."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from spectralbai import Graph, Problem, SpectralRace, SpectralTaS, reproduction, simulate
from spectralbai.documents import Rows
from spectralbai.errors import InvalidInput
from spectralbai.reproduction import CURVES, RADII, CurveRow, paired_saving, reproduce
from spectralbai.simulate import Run, RunStatus, seed_of

DELTA = 0.2


FEWER = RADII[::3]


@pytest.fixture(scope="module")
def rows() -> Rows[CurveRow]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduction, "RADII", FEWER)
        return reproduce(runs=2, delta=DELTA, seed=3)


def result(status: RunStatus, tau: int, correct: bool) -> Run:
    return Run(status, tau, 0 if correct else 1, correct, np.zeros(3), "paper", DELTA, False, 0)


def test_rows_go_by_policy_and_rule_then_by_ascending_R(rows: Rows[CurveRow]) -> None:
    assert RADII == pytest.approx(np.linspace(0.01, 0.1, 10))
    assert [(row.policy, row.rule, row.R) for row in rows] == [(*curve, R) for curve in CURVES for R in FEWER]
    assert [row.proved for row in rows] == [True] * 4 + [False] * 8
    assert {row.runs + row.undecided for row in rows} == {2}
    assert rows.columns()["R"] == [row.R for row in rows]


def test_theory_is_that_of_the_paper(rows: Rows[CurveRow]) -> None:
    kl = 0.6 * math.log(4)  # kl(.2, .8)
    times = [row.characteristic_time for row in rows[:4]]
    assert times[0] == pytest.approx(800 / 9, rel=1e-5) and times[-1] == pytest.approx(106.154, abs=1e-3)
    assert [row.lower_bound for row in rows] == pytest.approx([kl * time for time in times] * 3, rel=1e-5)


def test_every_row_has_the_runs_of_its_policy_and_R_from_the_same_seeds(rows: Rows[CurveRow]) -> None:
    seeds = [seed_of(3, run) for run in range(2)]
    for cell in (0, 3):
        problem = Problem(Graph.from_edges(3, [(1, 2)]), FEWER[cell], 1.0)
        policies = (
            SpectralRace(problem, DELTA),
            SpectralTaS(problem, DELTA, "paper"),
            SpectralTaS.as_printed(problem, DELTA, iterations=300),
        )
        for index, policy in enumerate(policies):
            taus = [simulate.run(policy, (0.9, 0.5, 0.6), seed).tau for seed in seeds]
            row = rows[4 * index + cell]
            assert (row.policy, row.rule) == CURVES[index]
            assert row.taus == tuple(taus)
            assert (row.mean_tau, row.std_tau) == pytest.approx((np.mean(taus), np.std(taus, ddof=1)))


def test_the_saving_is_compared_run_by_run() -> None:
    def row(R: float, *taus: int | None) -> CurveRow:
        return CurveRow("spectral-race", "betting", R, 90.0, 400.0, 3, 1.0, 1.0, 0, True, 0, taus)

    rows = [row(0.1, 900, 500, None, 300), row(0.05, 1, 2, 3, 4), row(0.01, 600, 400, 100, 250)]
    mean, error = paired_saving(rows)
    assert mean == pytest.approx(150)
    assert error == pytest.approx(np.std([300, 100, 50], ddof=1) / math.sqrt(3))
    assert all(map(math.isnan, paired_saving([row(0.1, None), row(0.01, 5)])))


def test_the_executor_changes_nothing_and_every_run_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduction, "RADII", RADII[:2])
    ticks: list[tuple[int, int]] = []
    with ThreadPoolExecutor(1) as executor:
        rows = reproduce(2, DELTA, 3, executor, lambda done, total: ticks.append((done, total)))
    assert rows == reproduce(2, DELTA, 3) and len(rows) == 6
    assert ticks == [(done, 12) for done in range(1, 13)]


def test_errors_and_times_are_those_of_decided_runs() -> None:
    decided = [result("decided", 100, True), result("decided", 300, False)]
    runs = [*decided, result("truncated", 9999, False), result("inconsistent", 50, False)]
    row = reproduction._row("spectral-tas", 0.01, 90.0, 400.0, runs)
    assert (row.runs, row.undecided, row.errors, row.mean_tau) == (2, 2, 1, 200)
    assert row.std_tau == pytest.approx(math.sqrt(2) * 100)


def test_a_single_run_has_no_deviation_and_none_has_no_mean() -> None:
    one, none = (
        reproduction._row("spectral-tas", 0.01, 90.0, 400.0, [result(status, 7, True)])
        for status in ("decided", "truncated")
    )
    assert one.mean_tau == 7 and math.isnan(one.std_tau)
    assert none.runs == 0 and math.isnan(none.mean_tau)


@pytest.mark.parametrize(("name", "value"), [("runs", 0), ("runs", 1.5), ("delta", 0), ("delta", 2), ("seed", -1)])
def test_bad_settings_are_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidInput, match=f"`{name}`"):
        reproduce(**{name: value})  # type: ignore[arg-type]  # the point of the test
