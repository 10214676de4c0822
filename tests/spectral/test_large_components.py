"""The faster decomposition of large components, compared with the usual one on small graphs."""

from __future__ import annotations

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.arrays import Vector
from spectralbai.spectral import Components, Decomposition, large_components


def _decomposed(problem: sb.Problem, counts: Vector, monkeypatch: pytest.MonkeyPatch, large: int) -> Decomposition:
    monkeypatch.setattr(large_components, "LARGE", large)
    return Decomposition.of(Components.from_problem(problem), counts, problem.sigma)


def _problem(seed: int) -> tuple[sb.Problem, Vector]:
    """Returns a problem of two components, of 25 and 5 arms, and smooth means."""
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.random((25, 2)), 5 + rng.random((5, 2))])
    graph = sb.Graph.from_features(points[rng.permutation(30)], 4)
    assert graph.n_components == 2
    return sb.Problem(graph, 0.5, sigma=rng.uniform(0.5, 2, 30)), rng.random(30)


def _counts(kind: str, problem: sb.Problem, rng: np.random.Generator) -> Vector:
    counts = rng.integers(1, 1000, 30).astype(np.float64)
    if kind == "some":
        counts[rng.random(30) < 0.6] = 0
        counts[np.unique(problem.components, return_index=True)[1]] = 1
    if kind == "one each":
        counts[:] = 0
        counts[np.unique(problem.components, return_index=True)[1]] = 3
    if kind == "one component":
        counts[problem.components == 0] = 0
    return counts


KINDS = ("all", "some", "one each", "one component")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_basis_diagonalises_both_matrices(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = _problem(seed)
    parts = _decomposed(problem, _counts(kind, problem, np.random.default_rng(seed)), monkeypatch, 4)
    basis = parts.basis
    assert np.linalg.matrix_rank(basis) == 30
    np.testing.assert_allclose(basis.T @ (parts.u[:, None] * basis), np.diag(parts.theta), atol=1e-12)
    np.testing.assert_allclose(
        basis.T @ problem.graph.laplacian.toarray() @ basis, np.diag(parts.rough), atol=1e-12 * parts.rough.max()
    )
    assert (parts.theta[parts.components.offsets[:-1]] >= 0).all()
    assert (parts.rough[parts.components.offsets[:-1]] == 0).all()
    assert (parts.rough > 0).sum() == 28


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_component", [False, True])
def test_best_responses_are_those_of_the_usual_decomposition(
    kind: str, by_component: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, mu = _problem(1)
    if by_component:
        problem = sb.Problem(problem.graph, [0.4, 0.2], problem.sigma)
    counts = _counts(kind, problem, np.random.default_rng(5))
    usual, fast = (_decomposed(problem, counts, monkeypatch, large) for large in (100, 4))
    radii, best = usual.components.radii, int(np.argmax(mu))
    for tolerance in (0.0, 0.1):
        one, other = (parts.respond(mu, best, radii, tolerance) for parts in (usual, fast))
        np.testing.assert_allclose(other.cost, one.cost, rtol=1e-9, atol=1e-11)
        heavy = counts > 0
        np.testing.assert_allclose(other.gap[:, heavy], one.gap[:, heavy], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(fast.project(mu, radii), usual.project(mu, radii), rtol=1e-9, atol=1e-11)


def test_very_different_weights_are_left_to_the_usual_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = _problem(2)
    counts = np.ones(30)
    counts[3] = 1e-9
    usual, same = (_decomposed(problem, counts, monkeypatch, large) for large in (100, 4))
    np.testing.assert_allclose(same.theta.min(), usual.theta.min(), rtol=1e-9)
