"""The smooth means closest to the empirical ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralbai import Graph, InvalidInput, Problem, estimate
from spectralbai.arrays import Vector


def random_data(
    seed: int, zeros: float = 0.0, relative_R: float = 0.3, sigma_decades: float = 0.5
) -> tuple[Problem, Vector, Vector]:
    """Returns (problem, counts, means) with nan where nothing was seen; arms 0 and 1, always seen, are in the two
    components."""
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(4, 12))
    pairs = [(a, b) for b in range(2, n_arms) for a in range(b % 2, b, 2) if a == b - 2 or rng.random() < 0.3]
    edges = [(a, b, float(10 ** rng.uniform(-1, 1))) for a, b in pairs]
    graph = Graph.from_edges(n_arms, edges)
    counts = np.ceil(10 ** rng.uniform(0, 7, n_arms))
    counts[2:][rng.random(n_arms - 2) < zeros] = 0.0
    means = rng.normal(size=n_arms)
    sigma = 10 ** rng.uniform(-sigma_decades, sigma_decades, n_arms)
    problem = Problem(graph, relative_R * graph.smoothness(means), sigma=sigma)
    return problem, counts, np.where(counts > 0, means, math.nan)


@pytest.mark.parametrize("seed", range(20))
def test_the_estimate_satisfies_the_optimality_conditions(seed: int) -> None:
    """Weights times residuals are 2 gamma L mu_tilde for one gamma > 0, and S = R: enough for a convex problem."""
    problem, counts, means = random_data(seed)
    mu = estimate(problem, counts, means)
    pull = counts / problem.sigma**2 * (means - mu)
    curl = problem.graph.laplacian @ mu
    gamma = pull @ curl / (curl @ curl)
    assert gamma > 0
    assert problem.smoothness(mu) == pytest.approx(problem.R, rel=1e-11)
    np.testing.assert_allclose(pull, gamma * curl, atol=1e-8 * np.abs(pull).max())


@pytest.mark.parametrize("relative_R", [1.0 - 1e-13, 1.0, 1.0 + 1e-13, 1.1, math.inf])
def test_means_that_are_smooth_enough_come_back_unchanged(relative_R: float) -> None:
    problem, counts, means = random_data(0, relative_R=relative_R)
    np.testing.assert_array_equal(estimate(problem, counts, means), means)
    shifted = means + 1e4
    if relative_R > 1.01:
        np.testing.assert_array_equal(estimate(problem, counts, shifted), shifted)


def test_means_rougher_than_rounding_explains_do_change() -> None:
    problem, counts, means = random_data(0, relative_R=1.0 - 1e-9)
    mu = estimate(problem, counts, means)
    assert 0 < np.abs(mu - means).max() < 1e-6
    assert problem.smoothness(mu) <= problem.R * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("level", [0.0, 1e4])
def test_unobserved_arms_take_the_least_rough_values(seed: int, level: float) -> None:
    problem, counts, means = random_data(seed, zeros=0.5, relative_R=100.0)
    seen = counts > 0
    mu = estimate(problem, counts, means + level)
    np.testing.assert_array_equal(mu[seen], (means + level)[seen])
    laplacian = problem.graph.laplacian.toarray()
    unseen = ~seen
    harmonic = np.linalg.solve(laplacian[np.ix_(unseen, unseen)], -laplacian[np.ix_(unseen, seen)] @ means[seen])
    np.testing.assert_allclose(mu[unseen] - level, harmonic, atol=1e-11 if level else 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_unobserved_arms_stay_harmonic_when_the_observed_ones_are_smoothed(seed: int) -> None:
    problem, counts, means = random_data(seed, zeros=0.5, relative_R=1e-3)
    mu = estimate(problem, counts, means)
    seen = counts > 0
    if problem.smoothness(mu) < problem.R * (1 - 1e-9):
        np.testing.assert_array_equal(mu[seen], means[seen])
    curl = problem.graph.laplacian @ mu
    np.testing.assert_allclose(curl[~seen], 0.0, atol=1e-11 * np.abs(curl).max())
    assert problem.smoothness(mu) <= problem.R * (1 + 1e-11)


def test_a_point_between_two_seen_ones_is_their_weighted_mean() -> None:
    graph = Graph.from_edges(3, [(0, 1, 1.0), (1, 2, 3.0)])
    np.testing.assert_allclose(
        estimate(Problem(graph, 10.0), [5, 0, 2], [0.0, math.nan, 1.0]), [0.0, 0.75, 1.0], rtol=1e-13
    )
    # The two edges in series have weight 3/4: S = 3/4 (m_0 - m_2)^2 <= R binds at 0.03, a difference of 0.2.
    smooth = estimate(Problem(graph, 0.03), [5, 0, 2], [0.0, math.nan, 1.0])
    np.testing.assert_allclose(smooth, [0.8 * 2 / 7, 0.8 * 2 / 7 + 0.15, 0.8 * 2 / 7 + 0.2], rtol=1e-13)


def test_noisier_arms_weigh_less_by_the_square_of_sigma() -> None:
    problem = Problem(Graph.from_edges(2, [(0, 1)]), 0.01, sigma=np.array([1.0, 2.0]))
    # Precisions 3 and 1: the excess 0.9 of the difference is shared 1 to 3.
    np.testing.assert_allclose(estimate(problem, [3, 4], [0.0, 1.0]), [0.9 / 4, 1 - 0.9 * 3 / 4], rtol=1e-14)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_R_zero_gives_the_precision_weighted_mean_of_each_component(seed: int, zeros: float) -> None:
    problem, counts, means = random_data(seed, zeros=zeros, relative_R=0.0)
    problem = Problem(problem.graph, 0.0, sigma=problem.sigma)
    mu = estimate(problem, counts, means)
    for c in range(problem.graph.n_components):
        inside = (problem.graph.components == c) & (counts > 0)
        level = np.average(means[inside], weights=(counts / problem.sigma**2)[inside])
        np.testing.assert_allclose(mu[problem.graph.components == c], level, rtol=1e-13)


def test_R_infinite_ignores_the_graph() -> None:
    problem = Problem(Graph.from_edges(3, [(0, 1), (1, 2)]), math.inf)
    np.testing.assert_array_equal(estimate(problem, [1, 2, 3], [5.0, -5.0, 7.0]), [5.0, -5.0, 7.0])
    with pytest.raises(InvalidInput, match="got none in the one with arm 1"):
        estimate(problem, [1, 0, 3], [5.0, -5.0, 7.0])


@pytest.mark.parametrize("seed", range(10))
def test_only_the_ratios_of_the_counts_matter(seed: int) -> None:
    problem, counts, means = random_data(seed, zeros=0.3)
    mu = estimate(problem, counts, means)
    for factor in (1e-9, 0.3, 1e6):
        np.testing.assert_allclose(estimate(problem, factor * counts, means), mu, atol=1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_a_constant_added_to_the_means_is_added_to_the_estimate(seed: int) -> None:
    problem, counts, means = random_data(seed, zeros=0.3)
    means = np.round(means * 2**30) / 2**30  # so that the sum is exact
    np.testing.assert_allclose(
        estimate(problem, counts, means + 1e4) - 1e4, estimate(problem, counts, means), atol=1e-11
    )


def test_nan_is_allowed_only_for_arms_without_observations() -> None:
    problem = Problem(Graph.from_edges(3, [(0, 1), (1, 2)]), 1.0)
    np.testing.assert_allclose(estimate(problem, [1, 1, 0], [0.0, 0.5, math.nan]), [0.0, 0.5, 0.5])
    np.testing.assert_allclose(estimate(problem, [1, 1, 0], [0.0, 0.5, 1e300]), [0.0, 0.5, 0.5])  # not read
    with pytest.raises(InvalidInput, match="`means` must be finite, got nan at arm 1"):
        estimate(problem, [1, 1, 0], [0.0, math.nan, 0.0])


def test_a_component_without_observation_is_refused_by_the_name_of_an_arm_in_it() -> None:
    problem = Problem(Graph.from_edges(5, [(0, 2), (1, 3), (3, 4)]), 1.0)
    with pytest.raises(
        InvalidInput, match="`counts` must have an observation in each component.*the one with arm 1; pull it once"
    ):
        estimate(problem, [1, 0, 1, 0, 0], np.zeros(5))
    assert estimate(problem, [1, 0, 0, 0, 1], np.arange(5.0)).tolist() == [0.0, 4.0, 0.0, 4.0, 4.0]


def test_the_estimate_cannot_be_written_to() -> None:
    for counts in ([1, 1, 1], [1, 1, 0]):
        mu = estimate(Problem(Graph.from_edges(3, [(0, 1), (1, 2)]), 1.0), counts, [0.0, 0.1, 0.2])
        with pytest.raises(ValueError, match="read-only"):
            mu[0] = 1.0


@pytest.mark.parametrize(
    ("counts", "means", "message"),
    [
        ([1, 1], [0.1, 0.2, 0.3], r"`counts` must have shape \(n_arms,\) = \(3,\), got \(2,\)"),
        ([1, -1, 1], [0.1, 0.2, 0.3], "`counts` must be non-negative, got -1.0 at arm 1"),
        ([0, 0, 0], [0.1, 0.2, 0.3], "`counts` must have a positive entry, got zeros only"),
        ([1, 1, 1], [0.1, 0.2], r"`means` must have shape \(n_arms,\) = \(3,\), got \(2,\)"),
        ([1, 1, 1], [0.1, math.inf, 0.2], "`means` must be finite, got inf at arm 1"),
        ([1, 1, 1], ["a", "b", "c"], "`means` must hold one number per arm, got"),
        ([1, 1, 1], ["1", "2", "3"], "`means` must hold one number per arm, got"),
        ([1, 1, 1], [True, False, True], "`means` must hold one number per arm, got"),
        ([1, 1, 1], [1j, 0, 0], "`means` must hold one number per arm, got"),
        ([1, 1, 1], [[1], [2, 3], 4], "`means` must hold one number per arm, got"),
        ([1, 1, 1], None, "`means` must hold one number per arm, got None"),
    ],
)
def test_bad_input_is_refused_with_its_reason(counts: list[float], means: list[float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        estimate(Problem(Graph.from_edges(3, [(0, 1), (1, 2)]), 1.0), counts, means)
