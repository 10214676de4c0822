"""Plans: that they are right, and that the choices they show move as they should."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.history import roughness_from
from spectralbai.planning import BATCH

PAPER = sb.Instance(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), 0.01), [0.9, 0.5, 0.6], labels=["a", "b", "c"])
FAST = {
    "three arms": sb.Instance(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), 0.05), [2.4, 0.5, 0.7]),
    "cliques": sb.instances.cliques(2, 3, best=2.5),
    "path with tolerance": sb.Instance(
        sb.Problem(sb.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)]), 9.0, 1.0, 0.8), [0.0, 1.0, 2.4, 2.8]
    ),
    "bounded": sb.Instance(sb.Problem.bounded(sb.Graph.from_edges(3, [(1, 2)]), 0.05), [0.95, 0.1, 0.2]),
    "clicks": sb.Instance(sb.Problem.bounded(sb.Graph.from_edges(3, [(1, 2)]), 0.05, binary=True), [0.6, 0.1, 0.2]),
    "no graph": sb.Instance(sb.Problem(sb.Graph.from_edges(3, []), math.inf), [2.0, 0.0, 0.3]),
    "sigma per arm": sb.Instance(
        sb.Problem(sb.Graph.from_edges(4, [(0, 1), (2, 3)]), 1.0, [0.5, 1.0, 1.0, 0.7]), [2.0, 1.2, 0.0, 0.3]
    ),
}


@pytest.mark.parametrize("name", FAST)
def test_the_mean_predicted_is_within_15_percent_of_that_of_fresh_runs(name: str) -> None:
    instance = FAST[name]
    made = sb.plan(instance, 0.1, runs=96)
    policy = sb.SpectralRace(instance.problem, 0.1)
    fresh = np.mean([sb.simulate.run(policy, instance.mu, seed=10**6 + seed).tau for seed in range(96)])
    assert made.with_graph.mean == pytest.approx(fresh, rel=0.15)


def test_a_quick_plan_is_the_theory() -> None:
    made = sb.plan(PAPER, 0.01, runs=0)
    assert (made.source, made.with_graph.runs, made.delta) == ("guess", 0, 0.01)
    assert made.with_graph.characteristic_time == pytest.approx(88.889, rel=1e-3)
    assert made.without_graph.characteristic_time == pytest.approx(106.154, rel=1e-3)
    assert made.with_graph.lower_bound == pytest.approx(sb.lower_bound(PAPER.problem, PAPER.mu, 0.01), rel=2e-3)
    assert made.saving == pytest.approx(1 - 88.889 / 106.154, rel=1e-2)
    assert "The graph helps: at least 400 samples instead of 478" in made.advice
    assert math.isnan(made.with_graph.mean)


def test_a_simulated_plan_reads_every_risk_off_the_same_runs_and_depends_on_the_seed_alone() -> None:
    made, again, other = (sb.plan(FAST["three arms"], 0.1, runs=BATCH, seed=seed) for seed in (0, 0, 1))
    assert made.as_dict() == again.as_dict() != other.as_dict()
    assert [each.delta for each in made.by_delta] == [0.1, 0.05, 0.01]
    assert [each.runs for each in made.by_delta] == [BATCH] * 3
    means = [each.mean for each in made.by_delta]
    assert means == sorted(means)
    assert made.with_graph == made.by_delta[0]
    assert made.with_graph.q05 <= made.with_graph.median <= made.with_graph.q95
    assert made.with_graph.mean_low < made.with_graph.mean < made.with_graph.mean_high


def test_simulation_ends_early_once_the_mean_is_known() -> None:
    seen: list[tuple[int, int]] = []
    made = sb.plan(FAST["no graph"], 0.1, runs=2000, on_run=lambda *progress: seen.append(progress))
    for each in (made.with_graph, made.without_graph):
        assert each.runs < 2000 and each.runs % BATCH == 0
        assert each.mean_high - each.mean < 0.11 * each.mean
    assert seen[-1] == (8000, 8000)


def test_what_if_R_or_the_tolerance_were_other() -> None:
    made = sb.plan(PAPER, 0.01, runs=0)
    assert [each.value for each in made.by_R] == pytest.approx([0.001, 0.005, 0.01, 0.02, 0.1])
    times = [each.characteristic_time for each in made.by_R]
    assert [math.isnan(time) for time in times] == [True, True, False, False, False], "R below S(mu) has no plan"
    assert times[2] < times[3] < times[4]
    for each in made.by_R[2:]:
        exact = sb.solve_allocation(sb.Problem(PAPER.problem.graph, each.value), PAPER.mu).characteristic_time
        assert each.characteristic_time == pytest.approx(exact, rel=2e-3)
        assert each.samples == pytest.approx(made.with_graph.lower_bound * exact / times[2], rel=2e-3)
    tolerances = [each.characteristic_time for each in made.by_tolerance]
    assert made.by_tolerance[0].value == 0 and tolerances == sorted(tolerances, reverse=True)
    assert sb.plan(FAST["no graph"], runs=0).by_R == ()


def test_a_tolerance_that_makes_every_arm_right_needs_no_trials() -> None:
    tied = sb.Instance(sb.Problem(sb.Graph.from_edges(3, [(0, 1), (1, 2)]), 0.0105), [0.1, 0.0, 0.02])
    assert sb.plan(tied, runs=0).by_tolerance[-1].characteristic_time >= 0


def test_past_observations_give_the_means_sigma_and_roughness() -> None:
    rng = np.random.default_rng(0)
    arms = np.repeat([0, 1, 2], 30)
    outcomes = PAPER.mu[arms] + rng.standard_normal(90)
    bare = sb.Instance(PAPER.problem, labels=PAPER.labels)
    made = sb.plan(bare, 0.1, arms=arms, outcomes=outcomes, runs=0)
    assert made.source == "observations"
    means = [outcomes[arms == arm].mean() for arm in range(3)]
    np.testing.assert_allclose(made.signals[0], sb.estimate(PAPER.problem, [30] * 3, means))
    assert made.sigma is not None and made.sigma.low < 1 < made.sigma.high
    expected = roughness_from(PAPER.problem.graph, 1.0, [30] * 3, means)
    assert made.roughness is not None and made.roughness.upper == pytest.approx(expected.upper)
    json.dumps(made.as_dict(), allow_nan=False)
    bounded = sb.Instance(sb.Problem.bounded(PAPER.problem.graph, 0.01))
    with pytest.raises(sb.InvalidInput, match="`outcomes` must lie in .0, 1."):
        sb.plan(bounded, arms=[0, 1, 2], outcomes=[0.0, 1.0, 7.0], runs=0)
    with pytest.raises(sb.InvalidInput, match='"0" and "1" are tied at 1: no number of trials'):
        sb.plan(sb.Instance(replace(bounded.problem, R=9.0)), arms=[0, 1, 2], outcomes=[1.0, 1.0, 0.0], runs=0)
    for bad, clue in (
        ({"arms": arms}, "two lists of one length"),
        ({"arms": arms, "outcomes": outcomes[1:]}, "outcomes"),
        ({"arms": [0, 3], "outcomes": [1.0, 2.0]}, "`arms` must be an arm between 0 and 2"),
        ({"arms": [0, 1], "outcomes": [1.0, 2.0]}, 'got none of "c"'),
    ):
        with pytest.raises(sb.InvalidInput, match=clue):
            sb.plan(bare, **bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("components", [1, 2])
def test_without_a_guess_random_signals_are_as_rough_as_R_allows(components: int) -> None:
    edges = [(a, a + 1) for a in range(5) if components == 1 or a != 2]
    for problem in (
        sb.Problem(sb.Graph.from_edges(6, edges), 2.0),
        sb.Problem.bounded(sb.Graph.from_edges(6, edges), 0.05),
    ):
        made = sb.plan(sb.Instance(problem), 0.1, runs=0)
        assert made.source == "random signals" and len(made.signals) > 3
        low, high = problem.outcome_range or (-math.inf, math.inf)
        for mu in made.signals:
            assert problem.smoothness(mu) <= problem.R
            assert low <= mu.min() and mu.max() <= high
        assert problem.outcome_range or problem.smoothness(made.signals[0]) == pytest.approx(problem.R, rel=1e-6)
    for silent in (sb.Problem(sb.Graph.from_edges(3, [(0, 1)]), math.inf), sb.Problem(sb.Graph.from_edges(3, []), 1.0)):
        with pytest.raises(sb.InvalidInput, match='"mu" is missing'):
            sb.plan(sb.Instance(silent))


def test_tied_means_need_a_tolerance_and_are_never_good_enough_without() -> None:
    tied = sb.Instance(sb.Problem(sb.Graph.from_edges(3, [(0, 1), (1, 2)]), 2.0, tolerance=0.3), [1.0, 1.0, 0.0])
    made = sb.plan(tied, runs=0)
    assert made.by_tolerance[0].value == 0 and made.by_tolerance[0].characteristic_time == math.inf
    assert 0 < made.by_tolerance[1].characteristic_time < math.inf


def test_a_graph_that_is_not_used_is_not_judged() -> None:
    made = sb.plan(FAST["no graph"], 0.1, runs=BATCH)
    assert made.with_graph == made.without_graph and made.saving == 0
    assert made.advice.startswith("The graph is not used (it has no edges): about")
    free = sb.Instance(sb.Problem(PAPER.problem.graph, math.inf), PAPER.mu)
    assert sb.plan(free, 0.01, runs=0).advice == "The graph is not used (R = inf): at least 478 samples."


def test_advice_is_in_plain_words() -> None:
    assert sb.plan(sb.instances.cliques(5, 10), runs=0).advice.startswith("The graph is worth it: at least")
    assert sb.plan(sb.instances.path(9), runs=0).advice.startswith("The graph hardly helps")


def test_bad_arguments_are_refused() -> None:
    for arguments, clue in (
        (("file",), "`instance` must be"),
        ((PAPER, 1.5), "delta"),
        ((sb.Instance(PAPER.problem, [0.9, 0.1, 0.8]), 0.1), "R"),
    ):
        with pytest.raises(sb.InvalidInput, match=clue):
            sb.plan(*arguments, runs=0)  # type: ignore[arg-type]


def test_scores_in_a_range_are_planned_without_a_lower_bound() -> None:
    scores = FAST["bounded"]
    made = sb.plan(scores, 0.1, runs=0)
    document = made.as_dict()
    assert [each["lower_bound"] for each in document["by_delta"]] == [None] * 3
    assert {each["samples"] for each in document["by_R"] if each["characteristic_time"]} == {None}
    assert "at least" not in made.advice and "T* of" in made.advice
    unused = sb.plan(sb.Instance(replace(scores.problem, R=math.inf), scores.mu), 0.1, runs=0)
    assert unused.advice == "The graph is not used (R = inf)."
    simulated = sb.plan(scores, 0.1, runs=BATCH)
    assert math.isnan(simulated.with_graph.lower_bound) and simulated.by_tolerance[0].samples > 0


def test_clicks_are_planned_with_the_bound_of_relative_entropy() -> None:
    problem = sb.Problem.bounded(sb.Graph.from_edges(3, [(1, 2)]), 0.05, binary=True)
    made = sb.plan(sb.Instance(problem, [0.95, 0.1, 0.2]), 0.1, runs=0)
    assert made.with_graph.lower_bound == pytest.approx(sb.lower_bound(problem, [0.95, 0.1, 0.2], 0.1), rel=2e-3)
    assert "at least" in made.advice
