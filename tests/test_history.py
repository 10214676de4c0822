"""What past observations say of sigma and S(mu): formulas, and coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, chi2

from spectralbai import Graph, InvalidInput, instances
from spectralbai.inputs.history import implied_R, implied_radii, roughness_from, sigma_from, step_inside
from tests.means import mu_of
from verification.coverage import chance

PAIR = Graph.from_edges(3, [(1, 2, 2.0)])
GRAPHS = {
    "a pair": (PAIR, np.array([0.9, 0.5, 0.6])),
    **{
        name: (made.problem.graph, mu_of(made))
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
    """Counts and sigma differ between arms. The confidence is only 80 %, so that a mistake would show."""
    graph, mu = GRAPHS[name]
    rng = np.random.default_rng(n)
    counts = rng.integers(max(n // 2, 1), n + 1, graph.n_arms)
    sigma = rng.uniform(0.5, 2.0, graph.n_arms)
    truth, runs = graph.smoothness(mu), 200
    estimates = [
        roughness_from(
            graph, sigma, counts, mu + sigma / np.sqrt(counts) * rng.standard_normal(mu.size), confidence=0.8
        )
        for _ in range(runs)
    ]
    missed = sum(each.upper < truth for each in estimates)
    assert chance(missed, runs, 0.2) > 0.01


@pytest.mark.parametrize("name", GRAPHS)
def test_the_estimate_has_the_bias_of_the_noise_removed(name: str) -> None:
    """The means are far from smooth, so that the estimate is not cut off at 0."""
    graph, _ = GRAPHS[name]
    rng = np.random.default_rng(0)
    mu = 10 * rng.standard_normal(graph.n_arms)
    plain, estimate = np.mean(
        [
            [each.plain, each.estimate]
            for each in (
                roughness_from(graph, 1.0, [4] * mu.size, mu + rng.standard_normal(mu.size) / 2) for _ in range(400)
            )
        ],
        axis=0,
    )
    truth = graph.smoothness(mu)
    bias = graph.laplacian.diagonal().sum() / 4
    error = 4 * math.sqrt((4 * np.linalg.eigvalsh(graph.laplacian.toarray())[-1] * truth / 4 + 2 * bias**2) / 400)
    assert estimate == pytest.approx(truth, abs=error)
    assert plain - estimate == pytest.approx(bias)


@pytest.mark.parametrize("name", ["ring", "path", "cliques"])
def test_the_limit_stays_valid_for_bounded_outcomes_and_a_sigma_too_large(name: str) -> None:
    """Clicks of small probability, with the sigma of Hoeffding's lemma; and Gaussian noise with twice its sigma."""
    graph, mu = GRAPHS[name]
    rng = np.random.default_rng(1)
    p = 0.02 + 0.1 * (mu - mu.min()) / np.ptp(mu)
    clicks = [
        roughness_from(graph, 0.5, [50] * p.size, rng.binomial(50, p) / 50, confidence=0.8).upper for _ in range(100)
    ]
    assert sum(upper < graph.smoothness(p) for upper in clicks) == 0
    noise = [
        roughness_from(
            graph, 2.0, [5] * mu.size, mu + rng.standard_normal(mu.size) / math.sqrt(5), confidence=0.8
        ).upper
        for _ in range(100)
    ]
    assert sum(upper < graph.smoothness(mu) for upper in noise) == 0


def test_the_noise_alone_exceeds_its_quantile_no_more_often_than_allowed_and_the_quantile_is_not_wasteful() -> None:
    """At mu = 0 the limit is that quantile plus what was seen; on one edge the noise is a chi-square."""
    scale = 2.0 * (1 / 4 + 1 / 9)  # w (sigma^2/N_1 + sigma^2/N_2)
    quantile = roughness_from(PAIR, 1.0, [1, 4, 9], [0.0, 0.0, 0.0], confidence=0.95).upper
    exact = scale * chi2.ppf(0.95, 1)
    assert exact <= quantile <= 2.5 * exact
    seen = 0.7
    found = roughness_from(PAIR, 1.0, [1, 4, 9], [0.0, math.sqrt(seen / 2), 0.0])
    assert found.plain == pytest.approx(seen)
    assert math.sqrt(found.upper) == pytest.approx(math.sqrt(seen) + math.sqrt(quantile), rel=1e-4)


def test_more_observations_lower_the_limit_to_the_truth_and_more_confidence_raises_it() -> None:
    graph, mu = GRAPHS["path"]
    noise = np.random.default_rng(0).standard_normal(mu.size)
    uppers = [roughness_from(graph, 1.0, [n] * mu.size, mu + noise / math.sqrt(n)).upper for n in (1, 10, 10**3, 10**9)]
    assert sorted(uppers, reverse=True) == uppers
    assert uppers[-1] == pytest.approx(graph.smoothness(mu), rel=1e-2)
    strict, lax = (
        roughness_from(graph, 1.0, [10] * mu.size, mu + noise / 3, confidence=each).upper for each in (0.99, 0.8)
    )
    assert strict > lax


def test_a_graph_without_edges_is_smooth_and_shift_and_units_do_not_matter() -> None:
    bare = roughness_from(Graph.from_edges(2, []), 1.0, [1, 1], [3.0, 5.0])
    assert (bare.plain, bare.estimate, bare.upper) == (0, 0, 0)
    one = roughness_from(PAIR, 1.0, [2, 3, 4], [0.9, 0.1, 0.6])
    other = roughness_from(PAIR, 100.0, [2, 3, 4], np.array([0.9, 0.1, 0.6]) * 100 + 1e5)
    assert (other.plain, other.estimate, other.upper) == pytest.approx(
        (1e4 * one.plain, 1e4 * one.estimate, 1e4 * one.upper)
    )


def test_every_arm_must_be_observed() -> None:
    with pytest.raises(InvalidInput, match='got none of "b"'):
        roughness_from(PAIR, 1.0, [2, 0, 4], [0.9, 0.0, 0.6], labels=("a", "b", "c"))
    for bad in (0.0, 1.0, 2.0):
        with pytest.raises(InvalidInput, match="confidence"):
            roughness_from(PAIR, 1.0, [2, 1, 4], [0.9, 0.0, 0.6], confidence=bad)


@pytest.mark.parametrize("sigma", [0.0, -1.0, [1.0, 2.0], "one", 1e200])
def test_an_invalid_sigma_is_refused(sigma: object) -> None:
    with pytest.raises(InvalidInput, match="sigma"):
        roughness_from(PAIR, sigma, [2, 1, 4], [0.9, 0.0, 0.6])  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", [1e-60, 1e-6, 1e6, 1e60])
def test_units_of_any_size_work(unit: float) -> None:
    graph = Graph.from_edges(3, [(0, 1, 1e-6), (1, 2, 1e6)])
    one, other = (roughness_from(graph, u, [1, 1, 9], np.array([0.1, 0.5, 0.6]) * u) for u in (1.0, unit))
    assert (other.upper / unit / unit, other.plain / unit / unit) == pytest.approx((one.upper, one.plain))


def test_sigma_is_pooled_within_arms_with_its_exact_interval() -> None:
    arms, outcomes = np.array([0, 0, 0, 2, 2, 1]), np.array([1.0, 2.0, 3.0, 10.0, 12.0, 5.0])
    found = sigma_from(arms, outcomes)
    assert (found.observations, found.degrees_of_freedom) == (6, 3)
    assert found.sigma == pytest.approx(math.sqrt(4 / 3))
    assert (found.low, found.high) == pytest.approx(
        (math.sqrt(4 / chi2.ppf(0.975, 3)), math.sqrt(4 / chi2.ppf(0.025, 3)))
    )
    with pytest.raises(InvalidInput, match="two observations"):
        sigma_from(np.array([0, 1]), np.array([1.0, 2.0]))


def test_the_interval_of_sigma_covers() -> None:
    rng = np.random.default_rng(0)
    arms = np.repeat(np.arange(5), 3)
    inside = sum(
        each.low <= 2.0 <= each.high
        for each in (sigma_from(arms, arms + 2 * rng.standard_normal(15)) for _ in range(500))
    )
    assert binomtest(inside, 500, 0.95).pvalue > 0.01


def test_the_R_implied_by_a_step_is_that_of_means_that_differ_by_it_everywhere() -> None:
    graph = Graph.from_edges(3, [(0, 1, 2.0), (1, 2, 0.5)])
    assert implied_R(graph, 0.3) == pytest.approx(graph.smoothness(np.array([0.0, 0.3, 0.6])))
    with pytest.raises(InvalidInput, match="step"):
        implied_R(graph, -1.0)


def test_the_step_inside_categories_is_found_from_some_of_their_arms() -> None:
    """Its upper limit is above the true step in about 95 of 100 pilots, and its estimate near it on average."""
    graph = Graph.from_categories([str(arm // 40) for arm in range(400)])
    rng, step, sigma = np.random.default_rng(0), 0.3, 0.5
    found = []
    for _ in range(200):
        mu = rng.uniform(0, 1, 10)[graph.components] + step / math.sqrt(2) * rng.standard_normal(400)
        arms = np.repeat(rng.choice(400, 80, replace=False), 3)
        found.append(step_inside(graph, arms, mu[arms] + sigma * rng.standard_normal(arms.size), sigma))
    estimates, uppers = np.array(found).T
    assert np.median(estimates) == pytest.approx(step, rel=0.1)
    assert 180 <= (uppers >= step).sum() <= 199


def test_the_radii_implied_by_a_step_are_those_of_pairs_that_far_apart() -> None:
    graph = Graph.from_categories(list("aaabbc"), 2.0)
    np.testing.assert_allclose(implied_radii(graph, 0.5), [3 * 2 * 0.25, 1 * 2 * 0.25, 0.0])
    assert implied_radii(graph, 0.5).sum() == pytest.approx(implied_R(graph, 0.5))


def test_a_pilot_without_two_arms_of_one_category_is_refused() -> None:
    graph = Graph.from_categories(list("aabb"))
    with pytest.raises(InvalidInput, match="needs a category of which two options were observed, got none"):
        step_inside(graph, np.array([0, 0, 2]), np.array([0.1, 0.2, 0.3]), 0.1)
