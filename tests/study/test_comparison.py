"""Arms against a control, and what people read of them."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.journal.definition import Goal
from spectralbai.report.comparison import Comparison
from spectralbai.report.tables import arms_of, comparisons_of
from tests.means import mu_of
from tests.study.test_study import INSTANCE, LABELS, fill

CLICKS = sb.Instance(sb.Problem.bounded(INSTANCE.problem.graph, R=0.01, binary=True), None, LABELS)


@pytest.mark.parametrize("arm", [(0.5, 0.3, 0.8), (0.1, -0.2, 0.4), (-0.5, -0.9, -0.1)])
def test_limits_are_the_extremes_over_all_means_in_the_intervals(arm: tuple[float, float, float]) -> None:
    control = (0.4, 0.2, 0.7)
    seen = Comparison.of(arm, control)
    pairs = list(product(np.linspace(arm[1], arm[2], 41), np.linspace(control[1], control[2], 41)))
    differences, lifts = [a - c for a, c in pairs], [a / c - 1 for a, c in pairs]
    assert (seen.difference, seen.lift) == pytest.approx((arm[0] - 0.4, arm[0] / 0.4 - 1))
    assert (seen.difference_low, seen.difference_high) == pytest.approx((min(differences), max(differences)))
    assert (seen.lift_low, seen.lift_high) == pytest.approx((min(lifts), max(lifts)))


@pytest.mark.parametrize("low", [0.0, -0.1, None])
def test_there_is_no_lift_over_a_control_that_may_be_zero(low: float | None) -> None:
    seen = Comparison.of((0.5, 0.3, 0.8), (0.4, low, 0.7))
    assert (seen.lift, seen.lift_low, seen.lift_high) == (None, None, None)
    assert seen.difference_low == pytest.approx(-0.4)
    assert seen.difference_high == (None if low is None else pytest.approx(0.8 - low))


def test_unknown_ends_give_unknown_limits_and_no_more() -> None:
    seen = Comparison.of((0.5, 0.3, None), (0.4, 0.2, None))
    assert (seen.difference_low, seen.difference_high, seen.lift_low, seen.lift_high) == (None, None, -1.0, None)
    nothing = Comparison.of((None, None, None), (None, None, None))
    assert set(vars(nothing).values()) == {None}


def test_better_depends_on_the_goal_and_is_said_only_for_sure() -> None:
    above, below, both = (
        Comparison.of(arm, (0.4, 0.3, 0.5)) for arm in ((0.7, 0.6, 0.8), (0.1, 0, 0.2), (0.5, 0.4, 1))
    )
    assert [each.verdict("max") for each in (above, below, both)] == ["better", "worse", "open"]
    assert [each.verdict("min") for each in (above, below, both)] == ["worse", "better", "open"]


@pytest.mark.parametrize(("goal", "sign"), [("max", 1.0), ("min", -1.0)])
def test_a_status_compares_every_arm_but_the_control_and_ranks_the_best_first(
    goal: Goal, sign: float, tmp_path: Path
) -> None:
    with sb.Study.create("x", INSTANCE, 0.05, f"sqlite:///{tmp_path / 's.db'}", goal) as study:
        fill(study, 1, sign=sign)
        plain, status = study.status(), study.status("warm")
        told = study.records().observations
    assert plain.control is None and {arm.against for arm in plain.arms} == {None}
    assert status.control == "warm" and status.arms[1].against is None
    base = status.arms[1]
    for number, arm in enumerate(status.arms):
        assert arm.mean == pytest.approx(np.mean([each.outcome for each in told if each.arm == number]))
        assert arm.hits is None
        if arm is not base:
            assert arm.against == Comparison.of((arm.estimate, arm.low, arm.high), (base.estimate, base.low, base.high))
    estimates = [arm.estimate for arm in status.ranked]
    assert estimates == sorted(estimates, reverse=goal == "max")  # type: ignore[type-var]  # all are known
    assert status.ranked[0].label == "plain" and [arm.label for arm in status.arms] == list(LABELS)
    rows = comparisons_of(status).rows
    assert [row[0].removesuffix(" *") for row in rows] == [arm.label for arm in status.ranked]
    (control,) = (row for row in rows if row[0] == "warm")
    assert control[2:] == ("", "", "", "", "control")
    verdicts = [row[-1] for row in rows]
    assert status.compared.startswith(
        f"{verdicts.count('better')} better, {verdicts.count('worse')} worse, {verdicts.count('open')} open"
    )
    document = json.loads(json.dumps(status.as_dict(), allow_nan=False))
    assert document["control"] == "warm" and document["arms"][1]["against"] is None
    first = status.arms[0].against
    assert first is not None and document["arms"][0]["against"]["difference_low"] == first.difference_low


def test_numbers_of_a_column_have_the_same_decimals(tmp_path: Path) -> None:
    with sb.Study.create("x", INSTANCE, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        fill(study, 1)
        status = study.status("plain")
    for table in (arms_of(status), comparisons_of(status)):
        for heading, *cells in zip(table.headings, *table.rows, strict=True):
            if heading in ("raw mean", "estimate", "interval", "difference", "its interval", "lift"):
                places = {len(part) for cell in cells for part in re.findall(r"\d+(?:\.(\d+))?", cell)}
                assert len(places) == 1, heading


@pytest.mark.parametrize("goal", ["max", "min"])
def test_clicks_are_counted_and_written_as_rates(goal: Goal, tmp_path: Path) -> None:
    outcomes = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    labels = [*LABELS, "plain", "plain"]
    with sb.Study.create("x", CLICKS, 0.05, f"sqlite:///{tmp_path / 's.db'}", goal) as study:
        study.add(labels, outcomes, "pilot")
        status = study.status("warm")
    assert status.rates and [arm.hits for arm in status.arms] == [3, 0, 1, 0, 0]
    table = arms_of(status)
    raw = {row[0].removesuffix(" *"): row[1] for row in table.rows}
    assert table.headings[1] == "raw rate" and raw["plain"].startswith("3 of 3 (100") and raw["plain"].endswith(" %)")
    assert raw["cold"].startswith("0 of 1 (0")
    assert comparisons_of(status).headings[2] == "difference, % points"


def test_two_outcomes_that_are_not_0_and_1_are_counted_but_means_are_no_rates(tmp_path: Path) -> None:
    problem = sb.Problem.bounded(INSTANCE.problem.graph, R=0.01, low=-2.0, high=3.0, binary=True)
    with sb.Study.create("x", sb.Instance(problem), 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        study.add(["0", "0", "0", "1"], [3.0, -2.0, -2.0, -2.0], "pilot")
        status = study.status()
    assert not status.rates and [arm.hits for arm in status.arms] == [1, 0, 0, 0, 0]
    assert [arm.mean for arm in status.arms] == pytest.approx([-1 / 3, -2.0, None, None, None])
    assert {row[1] for row in arms_of(status).rows} == {"1 of 3 (33.3 %)", "0 of 1 (0.0 %)", "0 of 0"}


def test_an_unknown_control_is_refused_with_the_label_that_was_meant(tmp_path: Path) -> None:
    with sb.Study.create("x", INSTANCE, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        for ask in (study.status, study.report):
            with pytest.raises(sb.InvalidInput, match='"wram" is no label of an option .* did you mean "warm"'):
                ask("wram")


def test_a_page_and_a_notebook_show_the_comparison_and_escape_labels(tmp_path: Path) -> None:
    nasty = [f"<script>{k}</script>" for k in range(5)]
    instance = sb.Instance(INSTANCE.problem, None, nasty)
    with sb.Study.create("x", instance, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        study.add(nasty, [0.5, 0.2, 0.3, 0.1, 0.1], "pilot")
        report, status = study.report(nasty[1]), study.status(nasty[1])
    page, shown = report.as_html(), status._repr_html_()
    for content in (page, shown):
        assert "<script" not in content
        tables = re.findall(r'<table class="numbers">.*?</table>', content, re.DOTALL)
        assert len(tables) == 2 and "lift" in tables[1] and "control" in tables[1]
    assert "Against the control &quot;&lt;script&gt;1&lt;/script&gt;&quot;" in page
    assert report.as_dict()["status"]["control"] == nasty[1]


def test_data_that_contradict_R_leave_nothing_to_compare_by(tmp_path: Path) -> None:
    ring = sb.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    instance = sb.Instance(sb.Problem(ring, R=1e-4, sigma=0.1))
    with sb.Study.create("x", instance, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        while tickets := study.ask(4):
            study.tell_many([(ticket, float(ticket.arm % 2) * 5) for ticket in tickets])
        report = study.report("1")
    assert report.status.state == "inconsistent"
    assert report.status.compared == "not known without intervals"
    for arm in report.status.arms:
        if arm.against is not None:
            assert arm.against.difference_low is arm.against.lift is None
    assert "nothing is claimed about the means" in report.as_html()


def test_notebooks_show_plans_and_allocations() -> None:
    plan = sb.plan(INSTANCE, runs=2)._repr_html_()
    assert "with the graph" in plan and "without it" in plan and "expected trials" in plan and "<script" not in plan
    omega = sb.solve_allocation(INSTANCE.problem, mu_of(INSTANCE))
    shown = omega._repr_html_()
    largest = int(np.argmax(omega.omega))
    first = shown[shown.index("<tbody>") :].split("</tr>")[0]
    assert f">{largest}<" in first and f"{100 * omega.omega[largest]:.2f} %" in first
    assert shown.count("<tr>") == 4 + 1 + 5
