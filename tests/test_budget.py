"""Budgets: that the chances are those of races cut short, and the picture of them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.planning import Budget, Chance, budget
from spectralbai.plot import plot_budget
from tests.means import mu_of

LINE = sb.Instance(
    sb.Problem(sb.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)]), 9.0, 1.0), [0.0, 1.0, 2.4, 2.8], labels=list("abcd")
)


@pytest.fixture(scope="module")
def found() -> Budget:
    return budget(LINE, 100, 0.1, runs=6)


def test_chances_are_those_of_races_cut_short(found: Budget) -> None:
    seeds = [int(np.random.SeedSequence((0, number)).generate_state(1, np.uint64)[0]) for number in range(6)]
    for chance in (found.curve[0], found.curve[-1]):
        policy = sb.SpectralRace(sb.Problem(LINE.problem.graph, 9.0, 1.0, chance.tolerance), 0.1)
        runs = [sb.simulate.run(policy, mu_of(LINE), seed, max_samples=100) for seed in seeds]
        assert chance.decided == sum(run.status == "decided" for run in runs)
        if chance.tolerance == 0:
            left = [len(run.candidates) for run in runs if run.status != "decided" and run.candidates is not None]
            assert list(found.candidates) == left
    tolerances = [each.tolerance for each in found.curve]
    assert tolerances == sorted(set(tolerances)) and tolerances[0] == 0 and tolerances[-1] == pytest.approx(2.8)
    assert found.curve[0].share < 0.5 < found.curve[-1].share
    assert all(2 <= left <= 4 for left in found.candidates)


def test_more_trials_find_smaller_tolerances(found: Budget) -> None:
    more = budget(LINE, 300, 0.1, runs=3)
    few, many = found.smallest_tolerance(0.8), more.smallest_tolerance(0.8)
    assert few is not None and many is not None and many < few
    assert few <= (found.smallest_tolerance(0.95) or math.inf)
    assert found.as_dict()["smallest_tolerance"]["0.8"] == few
    json.dumps(found.as_dict(), allow_nan=False)


def test_the_smallest_tolerance_is_one_above_which_all_are_decided() -> None:
    chances = [Chance(0.0, 10, 0), Chance(0.1, 10, 9), Chance(0.2, 10, 7), Chance(0.4, 10, 8), Chance(0.8, 10, 10)]
    made = Budget(LINE, 10, 0.1, "guess", tuple(chances), (4,))
    assert (made.smallest_tolerance(0.8), made.smallest_tolerance(0.95)) == (0.4, 0.8)
    none = Budget(LINE, 10, 0.1, "guess", (Chance(0.0, 10, 0), Chance(1.0, 10, 3)), (4,))
    assert none.smallest_tolerance(0.8) is None and none.given.share == 0


def test_from_a_pilot_every_run_has_other_means() -> None:
    arms = np.repeat(np.arange(4), 5)
    outcomes = mu_of(LINE)[arms] + np.random.default_rng(0).standard_normal(20)
    seen: list[tuple[int, int]] = []
    made = budget(
        LINE, 30, 0.1, arms=arms, outcomes=outcomes, runs=4, on_run=lambda done, most: seen.append((done, most))
    )
    assert made.source == "observations" and seen[-1][0] == seen[-1][1] == 4 * len(made.curve)


def test_bad_budgets_are_refused() -> None:
    with pytest.raises(sb.InvalidInput, match="`trials` must be a whole number of at least 1, got 0"):
        budget(LINE, 0)
    with pytest.raises(sb.InvalidInput, match="`instance` must be"):
        budget("file", 10)  # type: ignore[arg-type]
    equal = sb.Instance(sb.Problem(LINE.problem.graph, 1.0), [1.0] * 4)
    with pytest.raises(sb.InvalidInput, match="all equal"):
        budget(equal, 10)


def test_the_picture_shows_the_curve_and_what_is_decided(found: Budget) -> None:
    ax = plot_budget(found)
    curve = ax.lines[0]
    shown = [each for each in found.curve if each.tolerance > 0]
    np.testing.assert_allclose(np.asarray(curve.get_xdata()), [each.tolerance for each in shown])
    np.testing.assert_allclose(np.asarray(curve.get_ydata()), [each.share for each in shown])
    assert "100 trials" in ax.get_ylabel()
    legend = ax.get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    assert any(text.startswith("80%: tolerance") for text in texts)
