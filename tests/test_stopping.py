"""Stopping rules: what they compute, against integrals and problems solved otherwise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from spectralbai import Graph, Problem
from spectralbai.arrays import Vector
from spectralbai.evidence.blocks import Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.responder import Responder
from spectralbai.spectral import Components
from spectralbai.stopping import RULES, Mixture
from spectralbai.stopping.integrals import log_integrals, lone_integrals
from spectralbai.stopping.mixture import PAIR_SHARE, PRIOR_SCALES, Split

FLAT = (0.0, 0.0)


def integrals(
    problem: Problem, before: Vector, means_before: Vector, u: Vector, means: Vector, level: tuple[float, float] = FLAT
) -> Vector:
    """Returns `log_integrals` at the scales of the rule; weights are counts / sigma^2."""
    components = Components.from_problem(problem)
    return log_integrals(components, before, means_before, u, means, float(problem.R), level, np.array(PRIOR_SCALES))


def log_integral_on_a_grid(
    w: float, R: float, before: Vector, means_before: Vector, u: Vector, means: Vector, level: tuple[float, float]
) -> float:
    """Returns the log of the integral for two arms joined by an edge of weight w, on a grid of the first arm and the
    difference."""
    first = means_before[0] + np.linspace(-16, 16, 601) / math.sqrt(before[0])
    log_fit, log_both = [], []
    for k in PRIOR_SCALES:
        kappa = k / R
        difference = np.linspace(-12, 12, 601) / math.sqrt(kappa * w)
        cell = math.log((first[1] - first[0]) * (difference[1] - difference[0]))
        lam = [first[:, None] + 0 * difference, first[:, None] - difference]
        log_prior = 0.5 * math.log(kappa) - 0.5 * kappa * w * difference**2
        log_prior = log_prior - sum(0.5 * level[0] * (x - level[1]) ** 2 for x in lam)
        log_prior = log_prior - sum(0.5 * n * (m - x) ** 2 for n, m, x in zip(before, means_before, lam, strict=True))
        log_fit.append(cell + logsumexp(log_prior))
        log_both.append(
            cell + logsumexp(log_prior - sum(0.5 * n * (m - x) ** 2 for n, m, x in zip(u, means, lam, strict=True)))
        )
    return float(logsumexp(log_both) - logsumexp(log_fit))


@pytest.mark.parametrize("level", [FLAT, (4.0, 0.7)])
@pytest.mark.parametrize("u", [(3.0, 8.0), (5.0, 0.0), (0.0, 0.0)])
@pytest.mark.parametrize("before", [(2.0, 3.0), (4.0, 0.0)])
def test_the_integral_over_two_joined_arms_is_the_numerical_one(
    before: tuple[float, float], u: tuple[float, float], level: tuple[float, float]
) -> None:
    problem = Problem(Graph.from_edges(2, [(0, 1, 1.7)]), R=0.4)
    data = np.array(before), np.array([0.3, -0.5]), np.array(u), np.array([0.4, 1.2])
    found = integrals(problem, *data, level)
    assert found == pytest.approx(log_integral_on_a_grid(1.7, 0.4, *data, level), abs=1e-9)


@pytest.mark.parametrize("level", [FLAT, (0.5, 2.0)])
def test_the_integral_over_a_lone_arm_is_the_closed_form(level: tuple[float, float]) -> None:
    """A later mean of n results is N(m, 1/p + 1/n) under the prior; exp(-n (mean - lam)^2 / 2) has mass sqrt(2 pi /
    n)."""
    problem = Problem(Graph.from_edges(2, []), R=1.0)
    before, means_before, u, means = (
        np.array([3.0, 1.0]),
        np.array([0.2, -1.0]),
        np.array([7.0, 1e7]),
        np.array([1.1, -0.8]),
    )
    p = before + level[0]
    m = (before * means_before + level[0] * level[1]) / p
    log_density = [
        multivariate_normal.logpdf(x, mean, 1 / a + 1 / b) for x, mean, a, b in zip(means, m, p, u, strict=True)
    ]
    expected = log_density + 0.5 * np.log(2 * np.pi / u)
    np.testing.assert_allclose(integrals(problem, before, means_before, u, means, level), expected, rtol=1e-12)


@pytest.mark.parametrize("level", [FLAT, (0.3, -1.0)])
@pytest.mark.parametrize("seed", range(6))
def test_the_integral_over_components_is_that_of_normal_mixtures(seed: int, level: tuple[float, float]) -> None:
    rng = np.random.default_rng(seed)
    graph = Graph.from_edges(6, [(0, 3, 1.0), (3, 5, 0.5), (0, 5, 2.0), (1, 4, 3.0)])
    R = float(10 ** rng.uniform(-2, 1))
    before, u = rng.integers(1, 20, 6).astype(float), rng.integers(1, 50, 6).astype(float)
    means_before, means = rng.standard_normal(6), rng.standard_normal(6)
    laplacian = graph.laplacian.toarray()
    expected = []
    for arms in ([0, 3, 5], [1, 4], [2]):
        rank = len(arms) - 1
        logs, fits = [], []
        for k in PRIOR_SCALES if rank else (1.0,):
            prior = k * rank / R * laplacian[np.ix_(arms, arms)] + level[0] * np.eye(rank + 1)
            P = prior + np.diag(before[arms])
            m = np.linalg.solve(P, before[arms] * means_before[arms] + level[0] * level[1])
            off = means_before[arms] - m
            away = m - level[1] if level[0] else m - m.mean()  # L does not see a level
            fits.append(
                0.5 * rank * math.log(k)
                - 0.5 * np.linalg.slogdet(P)[1]
                - 0.5 * (before[arms] @ off**2 + away @ prior @ away)
            )
            density = multivariate_normal.logpdf(means[arms], m, np.linalg.inv(P) + np.diag(1 / u[arms]))
            logs.append(density + 0.5 * np.log(2 * np.pi / u[arms]).sum())
        expected.append(logsumexp(np.add(fits, logs)) - logsumexp(fits))
    np.testing.assert_allclose(integrals(Problem(graph, R), before, means_before, u, means, level), expected, rtol=1e-8)


def test_nothing_after_the_split_costs_nothing() -> None:
    problem = Problem(Graph.from_edges(4, [(0, 1, 1.0), (1, 2, 1.0)]), R=0.1)
    before = np.array([2.0, 0.0, 1.0, 5.0])
    np.testing.assert_allclose(integrals(problem, before, np.ones(4), np.zeros(4), np.zeros(4)), 0.0, atol=1e-12)


@pytest.mark.parametrize("R", [1e-8, 1e-16, 1e-40])
def test_an_almost_rigid_component_is_worth_one_arm_of_all_its_results(R: float) -> None:
    problem = Problem(Graph.from_edges(3, [(0, 1, 1.0), (1, 2, 1.0)]), R)
    before, u = np.array([2.0, 0.0, 1.0]), np.array([10.0, 20.0, 0.0])
    lone = -0.5 * math.log1p(30 / 3) - 0.5 * 30 * 3 / 33 * 0.4**2
    assert integrals(problem, before, np.full(3, 0.1), u, np.array([0.5, 0.5, 9.0])) == pytest.approx(lone, abs=1e-4)


@pytest.mark.parametrize("units", [1e-6, 1e6])
def test_integrals_do_not_depend_on_units_or_origin(units: float) -> None:
    graph = Graph.from_edges(4, [(0, 1, 1.0), (1, 2, 1.0)])
    rng = np.random.default_rng(1)
    before, u = rng.integers(0, 9, 4) + np.array([1.0, 0, 0, 1]), rng.integers(0, 90, 4).astype(float)
    means_before, means = rng.standard_normal(4), rng.standard_normal(4)
    here = integrals(Problem(graph, 0.3), before, means_before, u, means)
    scaled = Problem(graph, 0.3 * units**2)
    there = integrals(scaled, before / units**2, units * (means_before + 1e3), u / units**2, units * (means + 1e3))
    np.testing.assert_allclose(there, here, rtol=1e-9)


# Named rules.


def evidence_of(problem: Problem, counts: list[int], means: list[float], best: int) -> Evidence:
    n = np.array(counts, dtype=float)
    return Evidence(problem, Data.of_sums(n, n * np.array(means)), best, 0.0)


PAPER = Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01)


def test_the_rules_say_what_they_are() -> None:
    assert list(RULES) == ["betting", "mixture", "paper", "paper-printed", "gk16", "intervals", "graph-intervals"]
    assert {name for name, rule in RULES.items() if rule.proved} == {
        "betting",
        "mixture",
        "intervals",
        "graph-intervals",
    }
    for name, rule in RULES.items():
        assert rule.name == name
    assert "Ville" in RULES["mixture"].reference and "Ville" in RULES["betting"].reference
    assert {name for name, rule in RULES.items() if rule.bets} == {"betting"}
    assert "2t(K-1)" in RULES["paper"].reference and "[KG20]" in RULES["paper"].reference
    assert "eq. (5)" in RULES["paper-printed"].reference
    assert "[GK16]" in RULES["gk16"].reference


def test_thresholds_of_the_unproved_rules_are_the_stated_formulas() -> None:
    evidence = evidence_of(PAPER, [30, 20, 50], [0.9, 0.4, 0.8], 0)
    for name, threshold in (
        ("paper", math.log(2 * 100 * 2 / 0.05)),
        ("paper-printed", math.log(2 * 100 * 2 / 0.05)),
        ("gk16", math.log((1 + math.log(100)) / 0.05)),
    ):
        assert RULES[name].read(Memory(), evidence).least_beaten(0.05)[1] == pytest.approx(threshold, rel=1e-14)


def test_the_likelihood_ratio_leaves_out_what_every_smooth_explanation_costs() -> None:
    evidence = evidence_of(PAPER, [30, 20, 50], [0.9, 0.4, 0.8], 0)
    responses = Responder(PAPER, np.array([0.9, 0.4, 0.8]), 0).respond(np.array([30.0, 20.0, 50.0]))
    assert responses.misfit > 0.1
    statistic = RULES["gk16"].read(Memory(), evidence).least_beaten(0.05)[0]
    assert statistic == pytest.approx(responses.value - responses.misfit, rel=1e-12)
    assert RULES["paper"].read(Memory(), evidence).least_beaten(0.05)[0] == statistic


def test_the_printed_rule_ignores_the_graph_and_waits_for_every_arm() -> None:
    evidence = evidence_of(PAPER, [30, 20, 50], [0.9, 0.4, 0.8], 1)
    reading = RULES["paper-printed"].read(Memory(), evidence)
    assert reading.arm == 0
    costs = [0.5 * 30 * n / (30 + n) * gap**2 for n, gap in ((20, 0.5), (50, 0.1))]
    assert reading.least_beaten(0.1)[0] == pytest.approx(min(costs), rel=1e-9)
    unseen = RULES["paper-printed"].read(Memory(), evidence_of(PAPER, [30, 0, 50], [9.0, 0.0, 0.8], 0))
    assert unseen.least_beaten(0.1)[0] == 0
    assert not unseen.decided(0.1)


def test_before_the_split_the_mixture_shows_the_least_statistic_and_decides_nothing() -> None:
    evidence = evidence_of(PAPER, [3000, 3000, 3000], [0.9, 0.2, 0.25], 0)
    reading = Mixture().read(Split(), evidence)
    assert reading.least_beaten(0.1) == (min(reading.statistic), math.inf)
    assert reading.statistic[0] > reading.statistic[1], "the least is not the first"
    assert reading.consistent(0.1) and not reading.decided(0.5)


def test_the_mixture_ignores_what_came_before_the_split_but_for_its_prior() -> None:
    """Statistic and misfit are those of later results; the penalty is minus the log integral of later results."""
    split = Data.of_sums(np.array([10.0, 4.0, 6.0]), np.array([8.0, 3.0, 1.0]))
    later_counts, later_means = np.array([40.0, 25.0, 15.0]), np.array([0.9, 0.4, 0.5])
    data = Data.of_sums(split.counts + later_counts, split.sums + later_counts * later_means)
    reading = Mixture().read(Split(split), Evidence(PAPER, data, 0, 0.0))
    responses = Responder(PAPER, later_means, 0).respond(later_counts)
    np.testing.assert_allclose(reading.statistic, responses.cost[1:], rtol=1e-9)
    total = -integrals(PAPER, split.counts, split.means, later_counts, later_means).sum()
    np.testing.assert_allclose(reading.penalty, total - math.log(1 - PAIR_SHARE), rtol=1e-12)
    assert reading.total_penalty == pytest.approx(total, rel=1e-12)


def test_with_more_components_risk_is_shared_by_the_tests_that_could_go_wrong() -> None:
    """log(tests) per challenger: n_components - 1, and one more if the challenger has neighbours."""
    graph = Graph.from_edges(5, [(0, 1, 1.0), (3, 4, 1.0)])
    problem = Problem(graph, R=1.0, sigma=2.0)
    split = Data.of_sums(np.full(5, 3.0), np.array([3.0, 2.0, 1.0, 0.0, 0.5]))
    later_counts, later_means = np.arange(5.0, 10.0), np.array([1.0, 0.8, 0.2, 0.1, 0.0])
    data = Data.of_sums(split.counts + later_counts, split.sums + later_counts * later_means)
    reading = Mixture().read(Split(split), Evidence(problem, data, 0, 0.0))
    logs = integrals(problem, split.counts / 4, split.means, later_counts / 4, later_means)
    expected = [math.log(3) - logs[0], math.log(2) - logs[0] - logs[1], *[math.log(3) - logs[0] - logs[2]] * 2]
    np.testing.assert_allclose(reading.penalty, np.array(expected) - math.log(1 - PAIR_SHARE), rtol=1e-12)
    assert reading.total_penalty == pytest.approx(-logs.sum(), rel=1e-12)


def test_where_the_graph_says_nothing_pairs_of_arms_decide() -> None:
    """The same evidence as without a graph, at a tenth of the risk; the misfit does not matter."""
    n_arms, R = 12, 1e6
    problem = Problem(
        Graph.from_edges(n_arms, [(a, a + 1, 1.0) for a in range(n_arms - 1)]), R, sigma=2.0, tolerance=0.1
    )
    split = Data.of_sums(np.full(n_arms, 4.0), 4 * np.linspace(0, 1, n_arms))
    later_counts, later_means = np.linspace(200, 400, n_arms), np.linspace(0, 1, n_arms)
    evidence = Evidence(
        problem, Data.of_sums(split.counts + later_counts, split.sums + later_counts * later_means), 11, 0.0
    )
    reading = Mixture().read(Split(split), evidence)
    free = Problem(problem.graph, math.inf, 2.0, 0.1)
    alone = Mixture().read(Split(split), replace(evidence, problem=free))
    np.testing.assert_allclose(reading.statistic, alone.statistic, rtol=1e-9)
    np.testing.assert_allclose(reading.penalty, alone.penalty - math.log(PAIR_SHARE), rtol=1e-9)
    np.testing.assert_array_equal(reading.misfit, 0)


def test_an_arm_without_results_before_the_split_is_left_to_the_graph() -> None:
    split = Data.of_sums(np.array([4.0, 0.0, 4.0]), np.array([4.0, 0.0, 1.0]))
    data = Data.of_sums(np.array([40.0, 30.0, 30.0]), np.array([40.0, 10.0, 10.0]))
    reading = Mixture().read(Split(split), Evidence(PAPER, data, 0, 0.0))
    assert np.isfinite(reading.penalty).all() and np.isfinite(reading.statistic).all()
    assert lone_integrals(np.array([0.0]), np.zeros(1), np.ones(1), np.ones(1), (0.0, 0.0))[0] == -math.inf


def test_a_known_range_informs_the_prior_in_the_units_of_the_outcomes() -> None:
    """The prior's level is centred on the middle of the range, whatever was subtracted from the outcomes."""
    rule = Mixture(mean_range=(0.0, 2.0))
    readings = []
    for origin in (0.0, 0.8):
        split = Data.of_sums(np.array([2.0, 1.0, 1.0]), np.array([2.0, 0.3, 0.4]) - origin * np.array([2.0, 1.0, 1.0]))
        later = np.array([9.0, 8.0, 7.0])
        data = Data.of_sums(split.counts + later, split.sums + later * (np.array([1.0, 0.3, 0.4]) - origin))
        readings.append(rule.read(Split(split), Evidence(PAPER, data, 0, origin)))
    np.testing.assert_allclose(readings[0].penalty, readings[1].penalty, rtol=1e-12)
    expected = -integrals(
        PAPER,
        np.array([2.0, 1.0, 1.0]),
        np.array([1.0, 0.3, 0.4]),
        np.array([9.0, 8.0, 7.0]),
        np.array([1.0, 0.3, 0.4]),
        (1.0, 1.0),
    ).sum()
    assert readings[0].total_penalty == pytest.approx(expected, rel=1e-12)


def test_a_misfit_above_the_threshold_contradicts_r_and_forbids_a_decision() -> None:
    split = Data.of_sums(np.full(3, 20.0), 20 * np.array([0.9, 0.4, 0.8]))
    counts = np.full(3, 5000.0)
    data = Data.of_sums(counts, counts * np.array([0.9, 0.4, 0.8]))
    reading = Mixture().read(Split(split), Evidence(PAPER, data, 0, 0.0))
    assert reading.total_misfit > reading.total_penalty - math.log(1e-6)
    assert not reading.consistent(1e-6)
    assert not reading.decided(0.1)


def test_a_suspicious_misfit_gives_challengers_the_benefit_of_the_doubt() -> None:
    """They are tested at the roughness of the data: arms 1 and 2 then part, and no challenger costs more than
    without the graph."""
    split = Data.of_sums(np.full(3, 5.0), 5 * np.array([0.9, 0.4, 0.8]))
    later, means = np.array([60.0, 60.0, 60.0]), np.array([0.9, 0.3, 0.9])
    data = Data.of_sums(split.counts + later, split.sums + later * means)
    reading = Mixture().read(Split(split), Evidence(PAPER, data, 0, 0.0))
    roughness = ((5 * 0.8 + 60 * 0.9) / 65 - (5 * 0.4 + 60 * 0.3) / 65) ** 2
    free = Responder(Problem(PAPER.graph, roughness), means, 0).respond(later)
    np.testing.assert_allclose(reading.statistic, free.cost[1:], rtol=1e-9, atol=1e-9)
    assert reading.consistent(0.1)
