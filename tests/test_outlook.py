"""The posterior that bets are made from, against dense linear algebra."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.arrays import Matrix
from spectralbai.evidence.blocks import Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.outlook import DOUBT, Outlook
from tests.states import sums_only

TWO = Graph.from_edges(6, [(0, 2, 1.0), (2, 4, 3.0), (1, 3, 1.0), (3, 5, 0.5)])


def outlook(R: float, seed: int = 0, sigma: list[float] | float = 1.0, every: bool = True) -> Outlook:
    rng = np.random.default_rng(seed)
    arms = np.concatenate([np.arange(6), rng.integers(6, size=30)])
    arms = arms if every else arms[arms != 4]
    data = Data.none(6).plus(arms, rng.normal(0, 1, arms.size) + 0.2 * arms)
    return Outlook(Evidence(Problem(TWO, R, sigma), data, 3, 0.0))


def dense(seen: Outlook) -> tuple[Matrix, Matrix]:
    """Returns the posterior precision, and what it is to be solved for."""
    problem, data = seen.problem, seen.evidence.data
    precision = np.diag(data.counts / problem.sigma**2) + 4 / problem.R * problem.graph.laplacian.toarray()
    return precision, data.sums / problem.sigma**2


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_posterior_is_that_of_means_that_vary_smoothly(seed: int, every: bool) -> None:
    seen = outlook(0.7, seed, [1, 2, 0.5, 1, 1, 3], every)
    precision, pull = dense(seen)
    mean, variance = seen.posterior
    np.testing.assert_allclose(mean, np.linalg.solve(precision, pull), rtol=1e-8)
    np.testing.assert_allclose(variance, np.diag(np.linalg.inv(precision)), rtol=1e-8)


def test_without_a_graph_the_posterior_is_each_arm_on_its_own() -> None:
    seen = outlook(math.inf)
    data = seen.evidence.data
    np.testing.assert_allclose(seen.posterior[0], data.means)
    np.testing.assert_allclose(seen.posterior[1], 1 / data.counts)
    assert seen.misfit == 0 and seen.radii.tolist() == [math.inf]


def test_chances_are_those_of_the_posterior_and_the_same_every_time() -> None:
    seen = outlook(0.7)
    precision, pull = dense(seen)
    draws = np.random.default_rng(5).multivariate_normal(
        np.linalg.solve(precision, pull), np.linalg.inv(precision), 20_000
    )
    exact = np.bincount(draws.argmax(axis=1), minlength=6) / 20_000
    assert seen.chances.sum() == pytest.approx(1)
    np.testing.assert_allclose(seen.chances, exact, atol=0.1)  # four deviations of 400 draws
    np.testing.assert_array_equal(seen.chances, outlook(0.7).chances)


def test_results_much_rougher_than_R_give_challengers_the_benefit_of_the_doubt() -> None:
    counts = np.full(6, 100.0)
    for rough, doubted in ((0.0, False), (0.7, True)):
        means = np.array([0.0, 0.0, rough, 0.0, 0.0, rough])
        seen = Outlook(Evidence(Problem(TWO, 0.01), sums_only(counts, counts * means), 0, 0.0))
        assert (seen.radii[0] > 0.01) == doubted
        if doubted:
            assert seen.radii[0] == pytest.approx(seen.problem.smoothness(means), rel=1e-6)
            np.testing.assert_allclose(seen.mu, means, atol=1e-6)
    assert seen.freedom == 4


def test_R_is_doubted_about_as_seldom_as_said_where_it_is_right() -> None:
    """The means are as smooth as can be, so that all roughness is noise: at most as often as in the worst case."""
    problem, rng, counts = Problem(TWO, 1e-9), np.random.default_rng(6), np.full(6, 50.0)
    doubted = 0
    for _ in range(400):
        sums = math.sqrt(50) * rng.standard_normal(6)
        doubted += Outlook(Evidence(problem, sums_only(counts, sums), 0, 0.0)).radii[0] > 1e-9
    assert 0.06 * 400 < doubted < 1.5 * DOUBT * 400


def test_evidence_against_challengers_is_never_negative_and_zero_where_they_lead() -> None:
    seen = outlook(math.inf)
    means, counts = seen.evidence.data.means, seen.evidence.data.counts
    leader = int(np.argsort(means)[3])
    strength = seen.strength(leader, 0.0)
    ahead = means >= means[leader]
    assert strength[ahead].max() == pytest.approx(0, abs=1e-12)
    expected = 0.5 * (means[leader] - means) ** 2 / (1 / counts + 1 / counts[leader])
    np.testing.assert_allclose(strength[~ahead], expected[~ahead], rtol=1e-9)
