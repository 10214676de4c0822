"""What past observations say of sigma and S(mu): formulas, and coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binomtest, chi2, ncx2

from spectralbai import Graph, InvalidInput, instances
from spectralbai.history import implied_R, roughness_from, sigma_from

PAIR = Graph.from_edges(3, [(1, 2, 2.0)])
GRAPHS = {
    "a pair": (PAIR, np.array([0.9, 0.5, 0.6])),
    **{
        name: (made.problem.graph, made.mu)
        for name, made in {
            "path": instances.path(15),
            "ring": instances.ring(12),
            "cliques": instances.cliques(3, 5),
            "star": instances.star(10),
            "neighbours": instances.nearest_neighbors(30),
        }.items()
    },
}


@pytest.mark.parametrize("n", [2, 7, 50])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_upper_limit_covers_the_true_roughness_at_its_confidence(name: str, n: int) -> None:
    """Counts and sigma differ between arms; 80 % so that a mistake shows."""
    graph, mu = GRAPHS[name]
    rng = np.random.default_rng(n)
    counts = rng.integers(max(n // 2, 1), n + 1, graph.n_arms)
    sigma = rng.uniform(0.5, 2.0, graph.n_arms)
    truth, runs = graph.smoothness(mu), 200
    estimates = [
        roughness_from(graph, sigma, counts, mu + sigma / np.sqrt(counts) * rng.standard_normal(mu.size), confidence=0.8)
        for _ in range(runs)
    ]
    missed = sum(each.upper < truth for each in estimates)
    assert binomtest(missed, runs, 0.2, alternative="greater").pvalue > 0.01


@pytest.mark.parametrize("name", GRAPHS)
def test_the_estimate_has_the_bias_of_the_noise_removed(name: str) -> None:
    """Where it is not cut off at 0: far from smooth means."""
    graph, _ = GRAPHS[name]
    rng = np.random.default_rng(0)
    mu = 10 * rng.standard_normal(graph.n_arms)
    plain, estimate = np.mean(
        [
            [each.plain, each.estimate]
            for each in (roughness_from(graph, 1.0, [4] * mu.size, mu + rng.standard_normal(mu.size) / 2) for _ in range(400))
        ],
        axis=0,
    )
    truth = graph.smoothness(mu)
    bias = graph.laplacian.diagonal().sum() / 4
    error = 4 * math.sqrt((4 * np.linalg.eigvalsh(graph.laplacian.toarray())[-1] * truth / 4 + 2 * bias**2) / 400)
    assert estimate == pytest.approx(truth, abs=error)
    assert plain - estimate == pytest.approx(bias)


def test_the_limit_is_valid_against_the_exact_one_of_a_single_edge() -> None:
    """On one edge S is a noncentral chi-square: Chernoff's limit is above the exact one, and not by much."""
    scale = 2.0 * (1 / 4 + 1 / 9)  # w (sigma^2/N_1 + sigma^2/N_2)
    for plain in (0.0, 0.5, 3.0, 40.0):
        gap = math.sqrt(plain / 2.0)
        found = roughness_from(PAIR, 1.0, [1, 4, 9], [0.0, gap, 0.0])
        assert found.plain == pytest.approx(plain)
        exact = (
            scale * brentq(lambda nc, q=plain / scale: ncx2.cdf(q, 1, nc) - 0.05, 1e-9, 1e4) if chi2.cdf(plain / scale, 1) > 0.05 else 0.0
        )
        assert exact <= found.upper <= exact + scale * 6 + 2 * math.sqrt(scale * exact)


def test_more_observations_bring_the_limit_to_the_truth_and_more_confidence_takes_it_away() -> None:
    graph, mu = GRAPHS["path"]
    noise = np.random.default_rng(0).standard_normal(mu.size)
    uppers = [roughness_from(graph, 1.0, [n] * mu.size, mu + noise / math.sqrt(n)).upper for n in (1, 10, 10**3, 10**7)]
    assert sorted(uppers, reverse=True) == uppers
    assert uppers[-1] == pytest.approx(graph.smoothness(mu), rel=1e-2)
    strict, lax = (roughness_from(graph, 1.0, [10] * mu.size, mu + noise / 3, confidence=each).upper for each in (0.99, 0.8))
    assert strict > lax


def test_a_graph_without_edges_is_smooth_and_shift_and_units_do_not_matter() -> None:
    bare = roughness_from(Graph.from_edges(2, []), 1.0, [1, 1], [3.0, 5.0])
    assert (bare.plain, bare.estimate, bare.upper) == (0, 0, 0)
    one = roughness_from(PAIR, 1.0, [2, 3, 4], [0.9, 0.1, 0.6])
    other = roughness_from(PAIR, 100.0, [2, 3, 4], np.array([0.9, 0.1, 0.6]) * 100 + 1e5)
    assert (other.plain, other.estimate, other.upper) == pytest.approx((1e4 * one.plain, 1e4 * one.estimate, 1e4 * one.upper))


def test_every_arm_must_be_observed() -> None:
    with pytest.raises(InvalidInput, match='got nothing of arm "b"'):
        roughness_from(PAIR, 1.0, [2, 0, 4], [0.9, 0.0, 0.6], labels=("a", "b", "c"))
    for bad in (0.0, 1.0, 2.0):
        with pytest.raises(InvalidInput, match="confidence"):
            roughness_from(PAIR, 1.0, [2, 1, 4], [0.9, 0.0, 0.6], confidence=bad)


def test_sigma_is_pooled_within_arms_with_its_exact_interval() -> None:
    arms, outcomes = np.array([0, 0, 0, 2, 2, 1]), np.array([1.0, 2.0, 3.0, 10.0, 12.0, 5.0])
    found = sigma_from(arms, outcomes)
    assert (found.observations, found.degrees_of_freedom) == (6, 3)
    assert found.sigma == pytest.approx(math.sqrt(4 / 3))
    assert (found.low, found.high) == pytest.approx((math.sqrt(4 / chi2.ppf(0.975, 3)), math.sqrt(4 / chi2.ppf(0.025, 3))))
    with pytest.raises(InvalidInput, match="two observations"):
        sigma_from(np.array([0, 1]), np.array([1.0, 2.0]))


def test_the_interval_of_sigma_covers() -> None:
    rng = np.random.default_rng(0)
    arms = np.repeat(np.arange(5), 3)
    inside = sum(each.low <= 2.0 <= each.high for each in (sigma_from(arms, arms + 2 * rng.standard_normal(15)) for _ in range(500)))
    assert binomtest(inside, 500, 0.95).pvalue > 0.01


def test_the_R_implied_by_a_step_is_that_of_means_that_differ_by_it_everywhere() -> None:
    graph = Graph.from_edges(3, [(0, 1, 2.0), (1, 2, 0.5)])
    assert implied_R(graph, 0.3) == pytest.approx(graph.smoothness(np.array([0.0, 0.3, 0.6])))
    with pytest.raises(InvalidInput, match="step"):
        implied_R(graph, -1.0)
