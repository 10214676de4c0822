"""Plans: that they are right, and that the choices they show move as they should."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.arrays import Indices, Vector
from spectralbai.inputs.history import roughness_from
from spectralbai.planning import BATCH, Variation, planned
from tests.means import mu_of

PAPER = sb.Instance(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), 0.01), [0.9, 0.5, 0.6], labels=["a", "b", "c"])
FAST = {
    "three arms": sb.Instance(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), 0.05), [2.4, 0.5, 0.7]),
    "cliques": sb.instances.cliques(2, 3, best=2.5),
    "path with tolerance": sb.Instance(
        sb.Problem(sb.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)]), 9.0, 1.0, 1.0), [0.0, 1.4, 3.6, 4.7]
    ),
    "bounded": sb.Instance(sb.Problem.bounded(sb.Graph.from_edges(3, [(1, 2)]), 0.05), [0.95, 0.1, 0.2]),
    "clicks": sb.Instance(sb.Problem.bounded(sb.Graph.from_edges(3, [(1, 2)]), 0.05, binary=True), [0.6, 0.1, 0.2]),
    "no graph": sb.Instance(sb.Problem(sb.Graph.from_edges(3, []), math.inf), [2.0, 0.0, 0.3]),
}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has plans simulate no other risk, R or tolerance than that asked for: a tenth of the runs."""
    monkeypatch.setattr(planned, "DELTAS", ())
    monkeypatch.setattr(planned, "R_FACTORS", (1.0,))
    monkeypatch.setattr(planned, "TOLERANCE_SHARES", ())


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("name", FAST)
def test_the_mean_predicted_is_within_15_percent_of_that_of_fresh_runs(name: str) -> None:
    instance = FAST[name]
    made = sb.plan(instance, 0.1, runs=2 * BATCH)
    policy = sb.SpectralRace(instance.problem, 0.1)
    fresh = np.mean([sb.simulate.run(policy, mu_of(instance), seed=10**6 + seed).tau for seed in range(48)])
    assert made.with_graph.mean == pytest.approx(fresh, rel=0.15)


def test_a_quick_plan_is_the_theory() -> None:
    made = sb.plan(PAPER, 0.01, runs=0)
    assert (made.source, made.with_graph.runs, made.delta) == ("guess", 0, 0.01)
    assert made.with_graph.characteristic_time == pytest.approx(88.889, rel=1e-3)
    assert made.without_graph.characteristic_time == pytest.approx(106.154, rel=1e-3)
    assert made.with_graph.lower_bound == pytest.approx(sb.lower_bound(PAPER.problem, mu_of(PAPER), 0.01), rel=2e-3)
    assert made.saving == pytest.approx(1 - 88.889 / 106.154, rel=1e-2)
    assert "The graph helps: at least 400 samples instead of 478" in made.advice
    assert math.isnan(made.with_graph.mean)


def test_a_simulated_plan_reads_every_risk_off_the_same_runs_and_depends_on_the_seed_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planned, "R_FACTORS", (2.0,))
    monkeypatch.setattr(planned, "TOLERANCE_SHARES", (0.4,))
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
    assert seen[-1][0] == seen[-1][1] == 8000 + 5 * BATCH


def times_of(variations: Sequence[Variation]) -> list[float]:
    return [each.forecast.characteristic_time for each in variations if each.forecast is not None]


def test_other_R_and_tolerances_are_simulated_not_rescaled() -> None:
    made = sb.plan(FAST["path with tolerance"], 0.1, runs=BATCH)
    others = [each.forecast for each in (*made.by_R, *made.by_tolerance) if each.forecast is not None]
    assert {each.runs for each in others} == {BATCH}
    wide = made.by_tolerance[-1]
    problem = replace(made.instance.problem, tolerance=wide.value)
    seeds = [int(np.random.SeedSequence((0, number)).generate_state(1, np.uint64)[0]) for number in range(BATCH)]
    alone = [sb.simulate.run(sb.SpectralRace(problem, 0.1), made.signals[0], seed).tau for seed in seeds]
    assert wide.forecast is not None and wide.forecast.mean == np.mean(alone)
    own = next(each for each in made.by_tolerance if each.value == made.instance.problem.tolerance)
    assert own.forecast == made.with_graph


def test_what_if_R_or_the_tolerance_were_other() -> None:
    made = sb.plan(PAPER, 0.01, runs=0)
    assert [each.value for each in made.by_R] == pytest.approx([0.001, 0.005, 0.01, 0.02, 0.1])
    assert [each.forecast is None for each in made.by_R] == [True, True, False, False, False], "R below S(mu)"
    times = []
    for each in made.by_R[2:]:
        problem = sb.Problem(PAPER.problem.graph, each.value)
        exact = sb.solve_allocation(problem, mu_of(PAPER)).characteristic_time
        assert each.forecast is not None and each.forecast.characteristic_time == pytest.approx(exact, rel=2e-3)
        assert each.forecast.lower_bound == pytest.approx(sb.lower_bound(problem, mu_of(PAPER), 0.01), rel=2e-3)
        times.append(exact)
    assert times == sorted(times)
    tolerances = times_of(made.by_tolerance)
    assert made.by_tolerance[0].value == 0 and tolerances == sorted(tolerances, reverse=True)
    assert sb.plan(FAST["no graph"], runs=0).by_R == ()


def test_a_tolerance_that_makes_every_arm_right_needs_no_trials() -> None:
    tied = sb.Instance(sb.Problem(sb.Graph.from_edges(3, [(0, 1), (1, 2)]), 0.0105), [0.1, 0.0, 0.02])
    assert times_of(sb.plan(tied, runs=0).by_tolerance)[-1] >= 0


def test_past_observations_give_the_means_sigma_and_roughness() -> None:
    rng = np.random.default_rng(0)
    arms = np.repeat([0, 1, 2], 30)
    outcomes = mu_of(PAPER)[arms] + rng.standard_normal(90)
    bare = sb.Instance(PAPER.problem, labels=PAPER.labels)
    made = sb.plan(bare, 0.1, arms=arms, outcomes=outcomes, runs=0)
    assert made.source == "observations"
    means = [outcomes[arms == arm].mean() for arm in range(3)]
    np.testing.assert_allclose(made.signals[0], sb.estimate(PAPER.problem, [30] * 3, means))
    seen = made.pilot
    assert seen is not None and seen.sigma is not None and seen.sigma.low < 1 < seen.sigma.high
    expected = roughness_from(PAPER.problem.graph, 1.0, [30] * 3, means)
    assert seen.roughness is not None and seen.roughness.upper == pytest.approx(expected.upper)
    json.dumps(made.as_dict(), allow_nan=False)
    bounded = sb.Instance(sb.Problem.bounded(PAPER.problem.graph, 0.01))
    with pytest.raises(sb.InvalidInput, match="`outcomes` must lie in .0, 1."):
        sb.plan(bounded, arms=[0, 1, 2], outcomes=[0.0, 1.0, 7.0], runs=0)
    for bad, clue in (
        ({"arms": arms}, "two lists of one length"),
        ({"arms": arms, "outcomes": outcomes[1:]}, "outcomes"),
        ({"arms": [0, 3], "outcomes": [1.0, 2.0]}, "`arms` must be an arm between 0 and 2"),
        ({"arms": [0, 1], "outcomes": [1.0, 2.0]}, 'got none of "c"'),
    ):
        with pytest.raises(sb.InvalidInput, match=clue):
            sb.plan(bare, **bad)


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
    times = times_of(made.by_tolerance)
    assert made.by_tolerance[0].value == 0 and times[0] == math.inf
    assert 0 < times[1] < math.inf
    with pytest.raises(sb.InvalidInput, match='"0" and "1" are tied at 1, so no trials tell them apart'):
        sb.plan(sb.Instance(replace(tied.problem, tolerance=0.0), tied.mu), runs=0)


def test_options_tied_in_a_pilot_have_no_upper_end() -> None:
    instance = sb.Instance(sb.Problem.bounded(sb.Graph.from_edges(3, []), math.inf))
    made = sb.plan(instance, arms=[0, 1, 2, 0], outcomes=[1.0, 1.0, 0.0, 1.0], runs=0)
    assert made.with_graph.characteristic_time == math.inf and made.saving == 0
    assert made.advice.startswith('"0" and "1" are tied in the observations')
    assert made.range is not None and 0 < made.range.low < made.range.high == math.inf
    json.dumps(made.as_dict(), allow_nan=False)


class Pilot(TypedDict):
    """Past results, as `sb.plan` takes them."""

    arms: Indices
    outcomes: Vector


def pilot(instance: sb.Instance, tries: int, noise: float | None = None, seed: int = 0) -> Pilot:
    """Returns so many outcomes of every arm."""
    assert instance.mu is not None
    arms = np.repeat(np.arange(instance.problem.n_arms), tries)
    return {
        "arms": arms,
        "outcomes": instance.problem.noise.draws(instance.mu, noise)(np.random.default_rng(seed), arms),
    }


@pytest.mark.usefixtures("alone")
def test_a_pilot_gives_a_range_which_narrows_as_it_grows_and_holds_the_number_to_expect() -> None:
    instance = FAST["cliques"]
    policy = sb.SpectralRace(instance.problem, 0.1)
    fresh = np.mean([sb.simulate.run(policy, mu_of(instance), s).tau for s in range(32)])
    ratios = []
    for tries in (5, 40, 1000):
        found = sb.plan(instance, 0.1, **pilot(instance, tries), runs=0).range
        assert found is not None and found.low < fresh < found.high
        ratios.append(found.high / found.low)
    assert ratios == sorted(ratios, reverse=True) and ratios[-1] < 3.5
    simulated = sb.plan(instance, 0.1, **pilot(instance, 1000), runs=BATCH).range
    assert simulated is not None and simulated.low < fresh < simulated.high and simulated.high / simulated.low < 2
    assert sb.plan(instance, 0.1, runs=0).range is None


def test_plausible_means_follow_the_observations_and_obey_R() -> None:
    instance = FAST["three arms"]
    for tries in (10, 1000):
        made = sb.plan(instance, 0.1, **pilot(instance, tries), runs=0)
        assert made.pilot is not None
        drawn = np.array(made.pilot.plausible)
        assert all(instance.problem.smooth(mu) for mu in drawn)
        assert drawn[:, 0].std() == pytest.approx(1 / math.sqrt(tries), rel=0.3)
        assert drawn[:, 0].mean() == pytest.approx(made.signals[0][0], abs=0.4 / math.sqrt(tries))


@pytest.mark.usefixtures("alone")
def test_scores_are_planned_with_the_spread_of_the_pilot() -> None:
    scores = FAST["bounded"]
    calm = sb.plan(sb.Instance(scores.problem), 0.1, **pilot(scores, 20, 0.05), runs=BATCH)
    wild = sb.plan(sb.Instance(scores.problem), 0.1, **pilot(scores, 20), runs=BATCH)
    assert calm.pilot is not None and calm.pilot.spread == pytest.approx(0.05, rel=0.3) and not calm.pilot.at_ends
    assert wild.pilot is not None and wild.pilot.spread is None and wild.pilot.at_ends
    assert calm.with_graph.characteristic_time < 0.1 * wild.with_graph.characteristic_time
    policy = sb.SpectralRace(scores.problem, 0.1)
    fresh = [sb.simulate.run(policy, mu_of(scores), s, noise=0.05).tau for s in range(BATCH)]
    assert calm.with_graph.mean == pytest.approx(np.mean(fresh), rel=0.15)
    assert calm.range is not None and calm.range.low < np.mean(fresh) < calm.range.high


@pytest.mark.usefixtures("alone")
def test_a_graph_that_is_not_used_is_not_judged() -> None:
    made = sb.plan(FAST["no graph"], 0.1, runs=BATCH)
    assert made.with_graph == made.without_graph and made.saving == 0
    assert made.advice.startswith("The graph is not used (it has no edges): about")
    free = sb.Instance(sb.Problem(PAPER.problem.graph, math.inf), PAPER.mu)
    assert sb.plan(free, 0.01, runs=0).advice == "The graph is not used (R = inf): at least 478 samples."


def test_advice_is_in_plain_words() -> None:
    assert sb.plan(sb.instances.cliques(5, 10), runs=0).advice.startswith("The graph is worth it: at least")
    hard = sb.plan(sb.instances.path(9), runs=0).advice
    assert hard.startswith("The graph hardly helps") and "Leave the graph out with R = inf" in hard
    assert re.search(r"A tolerance of [\d.]+ would help: at least [\d,]+ samples\.$", hard)


def test_bad_arguments_are_refused() -> None:
    for arguments, clue in (
        (("file",), "`instance` must be"),
        ((PAPER, 1.5), "delta"),
        ((sb.Instance(PAPER.problem, [0.9, 0.1, 0.8]), 0.1), "R"),
    ):
        with pytest.raises(sb.InvalidInput, match=clue):
            sb.plan(*arguments, runs=0)


def test_scores_in_a_range_are_planned_without_a_lower_bound(request: pytest.FixtureRequest) -> None:
    scores = FAST["bounded"]
    made = sb.plan(scores, 0.1, runs=0)
    document = made.as_dict()
    assert [each["lower_bound"] for each in document["by_delta"]] == [None] * 3
    assert {each["forecast"]["lower_bound"] for each in document["by_R"] if each["forecast"]} == {None}
    assert "at least" not in made.advice and "T* of" in made.advice
    unused = sb.plan(sb.Instance(replace(scores.problem, R=math.inf), scores.mu), 0.1, runs=0)
    assert unused.advice == "The graph is not used (R = inf)."
    request.getfixturevalue("alone")
    simulated = sb.plan(scores, 0.1, runs=BATCH)
    assert math.isnan(simulated.with_graph.lower_bound) and simulated.by_tolerance[0].forecast.mean > 0  # type: ignore[union-attr]


def test_clicks_are_planned_with_the_bound_of_relative_entropy() -> None:
    problem = sb.Problem.bounded(sb.Graph.from_edges(3, [(1, 2)]), 0.05, binary=True)
    made = sb.plan(sb.Instance(problem, [0.95, 0.1, 0.2]), 0.1, runs=0)
    assert made.with_graph.lower_bound == pytest.approx(sb.lower_bound(problem, [0.95, 0.1, 0.2], 0.1), rel=2e-3)
    assert "at least" in made.advice


def test_a_pilot_of_many_options_in_categories_needs_no_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    made = sb.instances.catalogue(6, 100, spread=0.01, sigma=0.5)
    assert made.mu is not None
    arms = np.repeat(np.arange(601), 8)
    outcomes = made.mu[arms] + 0.5 * np.random.default_rng(0).standard_normal(arms.size)
    monkeypatch.setattr("spectralbai.checks.os.sysconf", lambda name: 1000)
    found = sb.plan(sb.Instance(made.problem), arms=arms, outcomes=outcomes, runs=0)
    assert found.range is not None and found.pilot is not None and found.pilot.roughness is None
    taus = [sb.simulate.run(sb.SpectralRace(made.problem, 0.05), made.mu, seed).tau for seed in range(4)]
    assert found.range.low < np.mean(taus) < found.range.high
    assert found.rules_of_thumb[0] < 601, "options that are never tried cost nothing"
