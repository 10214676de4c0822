"""One R for each component, where it is used: allocations, beliefs, bets, intervals, plans and what people read."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from spectralbai import (
    Allocation,
    Graph,
    Instance,
    InvalidInput,
    Problem,
    SpectralRace,
    SpectralTaS,
    closest_alternative,
    simulate,
    solve_allocation,
)
from spectralbai.arrays import Matrix, Vector
from spectralbai.cli import app
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.intervals import graph_intervals, graph_precision, pooled_intervals, pools_of
from spectralbai.evidence.outlook import Outlook, separable
from spectralbai.planning import plan
from spectralbai.spectral import Components
from spectralbai.stopping.bets import BetTable
from tests.states import sums_only

SLACK = 2.5e-6  # two certified values agree up to twice the relative gap asked of each
quick = settings(max_examples=20, deadline=None, derandomize=True, database=None)
seeds = st.integers(0, 10_000)

# Allocations.


def random_instance(seed: int, tolerance: float = 0.0) -> tuple[Problem, Vector]:
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(4, 11))
    label = np.append([0, 1], rng.integers(0, 3, n_arms - 2))
    pairs = [(a, b) for a in range(n_arms) for b in range(a) if label[a] == label[b]]
    graph = Graph.from_edges(n_arms, [(a, b, rng.uniform(0.2, 3)) for a, b in pairs if rng.random() < 0.8])
    mu = rng.uniform(size=n_arms)
    sigma = 10 ** rng.uniform(-0.5, 0.5, n_arms) if seed % 2 else np.ones(n_arms)
    R = rng.choice([1.0, 1.3, 5.0], graph.n_components) * graph.roughness_by_component(mu) + 1e-3
    return Problem(graph, R, sigma, tolerance), mu


def assert_certified(found: Allocation) -> None:
    assert found.status == "certified"
    assert 0 < found.lower <= found.upper <= found.lower * (1 + 1e-6)


@quick
@given(seeds, st.sampled_from([0.0, 0.03]))
def test_bounds_are_as_close_as_asked_and_the_allocation_is_worth_the_lower_one(seed: int, tolerance: float) -> None:
    problem, mu = random_instance(seed, tolerance)
    found = solve_allocation(problem, mu)
    assert_certified(found)
    value = closest_alternative(problem, mu, found.omega, found.best).cost
    assert value == pytest.approx(found.lower, rel=1e-9)


@quick
@given(seeds)
def test_the_value_lies_between_those_of_two_choices_of_one_R(seed: int) -> None:
    problem, mu = random_instance(seed)
    R = float(problem.radii.sum())
    shared = solve_allocation(Problem(problem.graph, R, problem.sigma), mu)
    wide = solve_allocation(Problem(problem.graph, np.full(problem.radii.size, R), problem.sigma), mu)
    free = solve_allocation(Problem(problem.graph, math.inf, problem.sigma), mu)
    found = solve_allocation(problem, mu)
    for less, more in ((free, wide), (wide, shared), (shared, found)):
        assert less.lower <= more.lower * (1 + SLACK)


@quick
@given(seeds)
def test_the_value_does_not_depend_on_the_order_of_the_arms_nor_on_units(seed: int) -> None:
    problem, mu = random_instance(seed)
    graph, order = problem.graph, np.random.default_rng(seed).permutation(problem.n_arms)
    new = np.argsort(order)
    edges = [(*new[pair].tolist(), w) for pair, w in zip(graph.pairs, graph.weights, strict=True)]
    moved = Graph.from_edges(graph.n_arms, edges)
    R = problem.radii[graph.components][order][np.unique(moved.components, return_index=True)[1]]
    other = Problem(moved, 4 * R * (1 + 1e-9), 2 * problem.sigma[order])
    assert solve_allocation(other, 2 * mu[order] + 5).lower == pytest.approx(
        solve_allocation(problem, mu).lower, rel=SLACK
    )


def test_mirror_ascent_agrees() -> None:
    problem, mu = random_instance(3)
    best = solve_allocation(problem, mu)
    other = solve_allocation(problem, mu, tol=0.2, solver="mirror-ascent", max_iterations=300)
    assert other.lower <= best.upper and best.lower <= other.upper


def test_a_component_of_R_zero_is_one_arm_and_the_others_keep_their_R() -> None:
    graph = Graph.from_edges(8, [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7)])
    mu, sigma = np.array([0.9, 0.8, 0.85, 0.3, 0.3, 0.3, 0.75, 0.75]), np.array([1.0, 1, 1, 2, 0.5, 1, 1, 1])
    rigid, nearly = (solve_allocation(Problem(graph, [0.05, R, 1e-4], sigma), mu) for R in (0.0, 1e-12))
    assert_certified(rigid)
    assert rigid.lower == pytest.approx(nearly.lower, rel=1e-4)
    assert rigid.omega[[3, 5]].tolist() == [0.0, 0.0] and rigid.omega[4] > 0 and rigid.best == 0
    with pytest.raises(InvalidInput, match="so arm 0 cannot be the only best one of its component"):
        solve_allocation(Problem(graph, [0.0, 1.0, 1.0]), [0.9, 0.9, 0.9, 0.3, 0.3, 0.3, 0.5, 0.5])


def test_an_R_for_each_category_takes_far_fewer_samples_than_their_sum_for_all() -> None:
    """One R for all lets every category be as rough as all of them together."""
    labels = [str(c) for c in range(6) for _ in range(12)] + ["alone"]
    noise = 0.03 * np.random.default_rng(0).standard_normal(72)
    mu = np.append(np.repeat(np.linspace(0.2, 0.6, 6), 12) + noise, 0.9)
    graph = Graph.from_categories(labels)
    R = 1.5 * graph.roughness_by_component(mu)
    shared, each = (solve_allocation(Problem(graph, given), mu, tol=1e-3) for given in (float(R.sum()), R))
    assert each.characteristic_time < 0.5 * shared.characteristic_time


# Beliefs.

TWO = Graph.from_edges(7, [(0, 2, 1.0), (2, 4, 3.0), (1, 3, 1.0), (3, 5, 0.5)])


def outlook(R: list[float], seed: int = 0, sigma: float | list[float] = 1.0) -> Outlook:
    rng = np.random.default_rng(seed)
    arms = np.concatenate([np.arange(7), rng.integers(7, size=30)])
    data = Data.none(7).plus(arms, rng.normal(0, 1, arms.size) + 0.2 * arms)
    return Outlook(Evidence(Problem(TWO, R, sigma), data, 3, 0.0))


@pytest.mark.parametrize("R", [[0.7, 0.1, 0.0], [0.7, math.inf, 0.0], [1e-90, 5.0, 0.0]])
def test_the_posterior_has_the_stiffness_of_each_component(R: list[float]) -> None:
    """Theory 16.9, with dense linear algebra."""
    seen = outlook(R, sigma=[1, 2, 0.5, 1, 1, 3, 1])
    problem, data = seen.problem, seen.evidence.data
    stiffness = 2 / np.maximum([R[c] if c < 2 else math.inf for c in TWO.components], 1e-9)
    precision = np.diag(data.counts / problem.sigma**2) + stiffness[:, None] * TWO.laplacian.toarray()
    mean, variance = seen.posterior
    np.testing.assert_allclose(mean, np.linalg.solve(precision, data.sums / problem.sigma**2), rtol=1e-5)
    np.testing.assert_allclose(variance, np.diag(np.linalg.inv(precision)), rtol=1e-5)


def test_where_results_are_too_rough_the_R_of_rough_components_is_raised_and_no_other() -> None:
    counts, means = np.full(7, 100.0), np.array([0.0, 0.0, 0.7, 0.0, 0.0, 0.1, 0.0])
    seen = Outlook(Evidence(Problem(TWO, [0.01, 0.5, 0.0]), sums_only(counts, counts * means), 0, 0.0))
    rough = TWO.roughness_by_component(means)
    assert seen.radii == pytest.approx([rough[0], 0.5, 0.0], rel=1e-6) and (seen.radii >= [rough[0], 0.5, 0.0]).all()
    np.testing.assert_allclose(seen.mu, means, atol=1e-6)
    smooth = Outlook(Evidence(Problem(TWO, [2.0, 0.5, 0.0]), sums_only(counts, counts * means), 0, 0.0))
    assert smooth.misfit == 0 and smooth.radii.tolist() == [2.0, 0.5, 0.0]


def test_arms_are_separable_where_the_responder_finds_an_alternative() -> None:
    for R in ([0.01, 0.5, 0.0], [0.5, 0.01, 0.0], [math.inf, 0.2, 0.0]):
        for tolerance in (0.15, 0.6, 0.99):
            problem = Problem(TWO, R, tolerance=tolerance)
            parts = Components.from_problem(problem)
            for b in range(7):
                seen = Outlook(Evidence(problem, sums_only(np.ones(7), np.zeros(7)), b, 0.0)).decomposition
                cost = seen.respond(np.zeros(7), b, parts.radii, tolerance).cost
                others = np.arange(7) != b
                np.testing.assert_array_equal(separable(problem)[b][others], np.isfinite(cost)[others])


# Bets, on a tight null.

DELTA, RUNS, BLOCKS = 0.2, 4000, 120
ENDS = Graph.from_edges(4, [(0, 2), (1, 3)])
PLANS = ((4, 4, 4, 4), (2, 6, 3, 5), (6, 2, 5, 3))


@dataclass(frozen=True)
class Null:
    """Arms 0 and 1, tied for the best, are in two components; each has a mate as far from it as R lets it be.

    Arm 1 leads, so that bets against arm 0 are wrong. Where the means are as rough as R says, both prices of smoothness
    are positive, and the level of the estimate is off: every payoff has expectation 1.
    """

    mates: tuple[float, float]
    """How far arm 2 is below arm 0 and arm 3 above arm 1."""
    part: float = 1.0
    """R as a part of what it should be."""

    def pay(self, counts: tuple[int, ...], outcomes: Vector) -> float:
        problem = Problem(ENDS, np.square(self.mates) * self.part)
        below, above = (0.95 * math.sqrt(self.part) * each for each in self.mates)
        estimate = 3.0 + np.array([-0.15, 0.15, -0.15 - below, 0.15 + above])
        data = sums_only(np.full(4, 1e6), 1e6 * estimate)
        table = BetTable(
            Block(np.repeat(np.arange(4), counts), outcomes, data, 1), Outlook(Evidence(problem, data, 1, 0))
        )
        found = table._decomposition.respond(table.outlook.mu, 1, table.outlook.radii, 0.0)
        assert (found.gamma[0] > 0).all() and found.nu[0] > 0
        return float(table.against_arms(1, 0.0)[0])

    def crossings(self) -> int:
        """Returns in how many runs the wealth against arm 0 reaches 1/delta; payoffs are affine in the results."""
        rng, mu = np.random.default_rng(0), np.array([0.0, 0.0, -self.mates[0], self.mates[1]])
        wealth, peak = np.zeros(RUNS), np.zeros(RUNS)
        made = []
        for counts in PLANS:
            first = np.concatenate([[0], np.cumsum(counts)[:-1]])
            base = self.pay(counts, np.zeros(sum(counts)))
            slope = [self.pay(counts, np.eye(sum(counts))[k]) - base for k in first]
            made.append((np.array(counts), base, np.array(slope)))
        for k in range(BLOCKS):
            pulls, base, slopes = made[k % len(made)]
            sums: Matrix = pulls * mu + np.sqrt(pulls) * rng.standard_normal((RUNS, 4))
            wealth += base + sums @ slopes
            peak = np.maximum(peak, wealth)
        return int((peak >= -math.log(DELTA)).sum())


@pytest.mark.parametrize("mates", [(1.0, 1.0), (0.5, 2.0)])
def test_bets_across_components_cross_about_as_often_as_they_may(mates: tuple[float, float]) -> None:
    crossed = Null(mates).crossings()
    assert 0.12 * RUNS < crossed <= 0.22 * RUNS, "the null is tight, and the rate at most delta"
    assert Null(mates, part=0.8).crossings() > 0.3 * RUNS, "means rougher than R should be noticed"


def test_races_and_tracking_decide_rightly_and_a_wrong_R_is_refuted() -> None:
    graph = Graph.from_edges(9, [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7)])
    mu = np.array([0.5, 0.52, 0.48, 0.0, 0.02, -0.02, 0.2, 0.22, 1.0])
    R = 1.5 * graph.roughness_by_component(mu)
    for policy in (SpectralRace(Problem(graph, R), 0.05), SpectralTaS(Problem(graph, R, tolerance=0.1), 0.05)):
        run = simulate.run(policy, mu, seed=1)
        assert (run.status, run.correct) == ("decided", True)
    rough = np.array([0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1])
    run = simulate.run(SpectralRace(Problem(graph, np.append(R[:3], 0.0)), 0.05), rough, seed=1, max_samples=4000)
    assert run.status == "inconsistent"


# Intervals.


def test_pools_and_widths_use_the_R_of_each_component() -> None:
    problem = Problem(TWO, [0.2, math.inf, 0.0])
    pools = {tuple(members.tolist()) for members in pools_of(problem)}
    assert (0, 2, 4) in pools and (1, 3) not in pools and (1, 3, 5) not in pools
    counts = np.array([3.0, 8.0, 2.0, 5.0, 2.0, 7.0, 1.0])
    data = sums_only(counts, counts * 0.1)
    low, high = np.array(pooled_intervals(Problem(TWO, [0.2, 1.5, 0.0]), data, 0.0, 0.1))
    for R, arms in ((0.2, [0, 2, 4]), (1.5, [1, 3, 5])):
        alike = np.array(pooled_intervals(Problem(TWO, R), data, 0.0, 0.1))
        np.testing.assert_allclose([low[arms], high[arms]], alike[:, arms], rtol=1e-12)


def test_graph_intervals_regularise_each_component_by_its_R() -> None:
    counts, means = np.array([3.0, 8.0, 2.0, 5.0, 2.0, 7.0, 1.0]), np.linspace(0, 1, 7)
    each = graph_precision(Problem(TWO, [0.2, 1.5, 0.0]), counts)
    for R, arms in ((0.2, [0, 2, 4]), (1.5, [1, 3, 5])):
        block = np.ix_(arms, arms)
        np.testing.assert_allclose(each[block], graph_precision(Problem(TWO, R), counts)[block])
    np.testing.assert_array_equal(each, each.T)
    estimates, widths = graph_intervals(Problem(TWO, [0.2, math.inf, 0.0]), counts, means, 0.1)
    np.testing.assert_allclose(estimates[[1, 3, 5, 6]], means[[1, 3, 5, 6]])
    assert np.isfinite(widths).all()


# Refusals, plans, and what people read.


def test_rigid_components_are_refused() -> None:
    with pytest.raises(InvalidInput, match="`R` must be positive, got 0, which makes all means of a component equal"):
        SpectralTaS(Problem(TWO, [0.2, 0.0, 0.0]))


def test_a_plan_draws_signals_as_rough_as_each_R_and_multiplies_all_of_them() -> None:
    problem = Problem(TWO, [0.2, 1.5, 0.0], tolerance=0.3)
    made = plan(Instance(problem), runs=0)
    for mu in made.signals:
        np.testing.assert_allclose(TWO.roughness_by_component(mu), [0.2, 1.5, 0.0], rtol=1e-6)
    assert [each.value for each in made.by_R] == [0.1, 0.5, 1.0, 2.0, 10.0]
    assert made.by_R[0].forecast is None and made.by_R[2].forecast == made.with_graph
    json.dumps(made.as_dict(), allow_nan=False)
    with pytest.raises(InvalidInput, match='"mu" is missing, and R = 0.2 to inf, one per component tells nothing'):
        plan(Instance(Problem(TWO, [0.2, math.inf, 0.0])), runs=0)


def test_commands_say_all_R(tmp_path: Any) -> None:
    file = tmp_path / "two.json"
    mu = [0.5, 0.0, 0.52, 0.1, 0.5, 0.1, 0.9]
    file.write_text(json.dumps(Instance(Problem(TWO, [0.2, 1.5, 0.0]), mu).as_dict()))
    shown = CliRunner().invoke(app, ["solve", str(file)])
    assert shown.exit_code == 0 and "R = 0.2 to 1.5, one per component" in shown.output
    assert json.loads(CliRunner().invoke(app, ["solve", str(file), "--json"]).output)["R"] == [0.2, 1.5, 0.0]
    shown = CliRunner().invoke(app, ["plan", str(file), "--quick"])
    assert shown.exit_code == 0 and "R = 0.2 to 1.5, one per component, tolerance 0" in shown.output
    assert "times R" in shown.output


def test_a_campaign_lists_all_R_and_has_no_place_for_them_on_an_axis(tmp_path: Any) -> None:
    mu = [0.5, 0.0, 0.52, 0.1, 0.5, 0.1, 2.0]
    (tmp_path / "two.json").write_text(json.dumps(Instance(Problem(TWO, [0.2, math.inf, 0.0]), mu).as_dict()))
    (tmp_path / "it.toml").write_text(
        'format = "spectralbai-campaign/2"\nseed = 1\nruns = 1\ndeltas = [0.1]\n'
        '[[instances]]\nfile = "two.json"\n[[policies]]\nkind = "spectral-race"\n'
    )
    out = str(tmp_path / "out")
    assert CliRunner().invoke(app, ["simulate", str(tmp_path / "it.toml"), "--out", out, "--jobs", "1"]).exit_code == 0
    (cell,) = json.loads(CliRunner().invoke(app, ["compare", out, "--json"]).output)
    assert cell["R"] == [0.2, "inf", 0.0]
    assert ",0.2 inf 0.0," in CliRunner().invoke(app, ["compare", out, "--csv"]).output
    shown = CliRunner().invoke(app, ["plot", out, "--kind", "R", "--out", str(tmp_path / "x.png")])
    assert shown.exit_code != 0 and "has an R for each component" in str(shown.exception)
