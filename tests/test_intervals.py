"""Confidence intervals for all arms and all times: formulas, and coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.intervals import graph_intervals, graph_precision, plain_widths
from spectralbai.evidence.memory import Memory
from spectralbai.stopping import RULES
from tests.states import sums_only
from verification.coverage import chance, strayed

DELTA = 0.2
PATH = Problem(Graph.from_edges(4, [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)]), R=0.03, sigma=[1.0, 0.5, 2.0, 1.0])
PATH_MEANS = np.array([0.0, 0.1, 0.2, 0.3])
PAIR = Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01)
FREE = Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=math.inf, sigma=[1.0, 2.0, 0.5])


def misses(problem: Problem, mu: np.ndarray, with_graph: bool, runs: int, narrow: float) -> tuple[int, int]:
    """Counts runs in which some interval misses its mean at some time, as it is and `narrow` times as wide; arms are
    pulled by what was seen."""
    missed = missed_by_narrow = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        counts, sums = np.zeros(mu.size), np.zeros(mu.size)
        far = 0.0
        for t in range(150):
            arm = t if t < mu.size else int(rng.integers(mu.size)) if t % 2 else int(np.argmax(sums / counts))
            counts[arm] += 1
            sums[arm] += mu[arm] + problem.sigma[arm] * rng.standard_normal()
            means = sums / np.maximum(counts, 1)
            if with_graph:
                estimates, widths = graph_intervals(problem, counts, means, DELTA)
            else:
                estimates, widths = means, plain_widths(counts, problem.sigma, DELTA)
            far = max(far, strayed(mu, estimates - widths, estimates + widths))
            if far > 1:
                break
        missed += far > 1
        missed_by_narrow += far > narrow
    return missed, missed_by_narrow


@pytest.mark.parametrize(
    ("problem", "mu", "with_graph"),
    [
        (PATH, PATH_MEANS, True),
        (PAIR, np.array([0.9, 0.5, 0.6]), True),
        (FREE, np.array([5.0, 1.0, 1.1]), True),
        (PATH, PATH_MEANS, False),
    ],
)
def test_intervals_miss_with_probability_at_most_delta_and_half_as_wide_they_miss_more(
    problem: Problem, mu: np.ndarray, with_graph: bool
) -> None:
    """The means are as rough as R allows."""
    missed, missed_by_narrow = misses(problem, mu, with_graph, 50, narrow=0.3)
    assert chance(missed, 50, DELTA) > 0.01
    assert chance(missed_by_narrow, 50, DELTA) < 0.01


def test_plain_widths_are_those_of_the_mixture_of_normals() -> None:
    """At the end of the interval the mixture's likelihood ratio is exactly K / delta (theory 8.1)."""
    counts, sigma = np.array([1.0, 7.0, 400.0, 0.0]), np.array([1.0, 2.0, 0.5, 1.0])
    widths = plain_widths(counts, sigma, 0.05)
    z = widths[:3] * counts[:3] / sigma[:3]
    ratio = np.exp(z**2 / (2 * (counts[:3] + 1))) / np.sqrt(counts[:3] + 1)
    np.testing.assert_allclose(ratio, 4 / 0.05)
    assert widths[3] == math.inf


def test_graph_estimates_minimise_the_penalised_squares() -> None:
    """And so are invariant to a shift; without a graph they are the means."""
    rng = np.random.default_rng(0)
    counts, means = np.array([3.0, 0.0, 5.0, 1.0]), rng.standard_normal(4)
    estimates, widths = graph_intervals(PATH, counts, means, 0.1)

    def penalised(lam: np.ndarray) -> float:
        return float((counts / PATH.sigma**2 * (means - lam) ** 2).sum() + PATH.smoothness(lam) / PATH.R)

    for _ in range(50):
        assert penalised(estimates) <= penalised(estimates + 1e-3 * rng.standard_normal(4))
    shifted, same = graph_intervals(PATH, counts, means + 100, 0.1)
    np.testing.assert_allclose(shifted, estimates + 100)
    np.testing.assert_allclose(same, widths)
    plain, _ = graph_intervals(FREE, np.array([3.0, 2.0, 1.0]), means[:3], 0.1)
    np.testing.assert_allclose(plain, means[:3])
    np.testing.assert_array_equal(graph_precision(FREE, np.array([3.0, 2.0, 1.0])), np.diag([3.0, 0.5, 4.0]))


def test_nothing_is_known_before_every_component_has_its_first_result() -> None:
    assert np.isinf(graph_intervals(PAIR, np.array([0.0, 5.0, 5.0]), np.zeros(3), 0.1)[1]).all()
    assert np.isinf(graph_intervals(PAIR, np.array([1.0, 0.0, 5.0]), np.zeros(3), 0.1)[1]).all()
    assert np.isfinite(graph_intervals(PAIR, np.array([1.0, 5.0, 0.0]), np.zeros(3), 0.1)[1]).all()


@pytest.mark.parametrize("name", ["intervals", "graph-intervals"])
def test_the_rule_stops_when_one_interval_is_above_all_others_up_to_the_tolerance(name: str) -> None:
    problem = Problem(PAIR.graph, 0.01, tolerance=0.1)
    counts, means = np.array([3000.0, 2000.0, 2500.0]), np.array([0.9, 0.5, 0.55])
    reading = RULES[name].read(Memory(), Evidence(problem, sums_only(counts, counts * means), 0, 0.0))
    for delta in np.logspace(-300, -0.1, 40):
        if name == "intervals":
            estimates, widths = means, plain_widths(counts, problem.sigma, delta)
        else:
            estimates, widths = graph_intervals(problem, counts, means, delta)
        above = (estimates[0] - widths[0] + 0.1 > (estimates + widths)[1:]).all()
        assert reading.decided(delta) == above
        statistic, threshold = reading.least_beaten(delta)
        assert (statistic > threshold) == above
    assert reading.decided(0.5) and not reading.decided(1e-300)
    assert reading.arm == 0 and reading.consistent(0.5)


@pytest.mark.parametrize("R", [1e-15, 1e-18, 1e-30, 1e-300])
def test_a_tiny_R_ties_the_arms_of_a_component_and_nothing_breaks(R: float) -> None:
    clique = Graph.from_edges(5, [(a, b, 1.0) for a in range(4) for b in range(a)])
    problem = Problem(clique, R, sigma=[1, 2, 1, 1, 1])
    counts, means = np.array([3.0, 2.0, 1.0, 4.0, 5.0]), np.array([0.3, 0.1, 0.2, 0.5, 0.0])
    estimates, widths = graph_intervals(problem, counts, means, 0.1)
    weights = counts[:4] / problem.sigma[:4] ** 2
    np.testing.assert_allclose(estimates[:4], weights @ means[:4] / weights.sum(), rtol=1e-6)
    np.testing.assert_allclose(widths[:4] / widths[4], math.sqrt(5 / weights.sum()), rtol=1e-6)


def test_before_every_arm_has_a_result_nothing_is_decided() -> None:
    counts = np.array([5.0, 0.0, 5.0])
    reading = RULES["intervals"].read(Memory(), Evidence(FREE, sums_only(counts, counts), 0, 0.0))
    assert reading.least_beaten(0.1) == (0.0, math.inf)
    assert not reading.decided(0.1)
