"""The Hessian of the best-response costs against finite differences of their gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.allocation.curvature import NODE_RATIO
from spectralbai.allocation.curvature import curvature as kernel
from spectralbai.responder import Responder
from spectralbai.spectral import Responses
from spectralbai.spectral.secular import Answers, Question


def curvature(seen: Responses, p: np.ndarray, ratio: float = NODE_RATIO) -> np.ndarray:
    """Returns the Hessian at best responses whose arms are in component order."""
    found = Answers(seen.gamma, seen.nu, seen.coef, seen.gap, seen.cost, seen.misfit, seen.rests)
    question = Question(seen.best, seen.radii, seen.tolerance, seen.means)
    return kernel(p, ratio, question, np.array(seen.decomposition.sigma), seen.decomposition.factors, found)


def random_oracle(seed: int, room: float, n_arms: int = 7, several: bool = False) -> Responder:
    """Returns a responder at R = room * S(mu); if `several`, on three components, each with its R."""
    rng = np.random.default_rng(seed)
    pairs = [(a, b) for a in range(n_arms) for b in range(a) if not several or a % 3 == b % 3]
    edges = [(a, b, rng.uniform(0.3, 2)) for a, b in pairs if rng.random() < (0.9 if several else 0.4)]
    graph = Graph.from_edges(n_arms, edges)
    mu = rng.uniform(size=n_arms)
    R = room * (graph.roughness_by_component(mu) if several else graph.smoothness(mu))
    best = int(np.argsort(mu)[-3]) if several else int(np.argmax(mu))  # in the middle, lam_best may have to bend
    return Responder(Problem(graph, R, 10 ** rng.uniform(-0.3, 0.3, n_arms)), mu, best).renumbered()


def numerical_hessian(responder: Responder, omega: np.ndarray, p: np.ndarray) -> np.ndarray:
    rows = np.flatnonzero(p)
    columns = []
    for a in range(omega.size):
        step = np.zeros(omega.size)
        step[a] = 1e-5 * omega[a]
        ahead, behind = (p[rows] @ responder.respond(omega + sign * step).gradient[rows] for sign in (1, -1))
        columns.append((ahead - behind) / (2 * step[a]))
    return np.array(columns)


def weights_on(chosen: np.ndarray, responses: Responses, seed: int) -> np.ndarray:
    p = np.zeros(responses.omega.size)
    rows = np.flatnonzero(chosen & np.isfinite(responses.cost))
    p[rows] = np.random.default_rng(seed).uniform(0.5, 2, rows.size)
    return p


REGIMES: dict[
    str, tuple[float, Callable[[Responses], np.ndarray]]
] = {  # room for roughness, and which challengers it is about
    "smoothness costs nothing": (1e6, lambda r: (r.gamma[:, 0] == 0) & (r.nu > 0)),
    "both constraints bind": (1.0, lambda r: (r.gamma[:, 0] > 0) & (r.nu > 0)),
    "only smoothness binds": (0.02, lambda r: (r.gamma[:, 0] > 0) & (r.nu == 0)),
    "all together": (1.2, lambda r: np.ones(r.gamma[:, 0].size, dtype=bool)),
}


@pytest.mark.parametrize(
    ("room", "bends"),
    [(1e6, (False, False)), (1.0, (True, True)), (1.0, (False, True)), (1.0, (True, False)), (1.2, None)],
)
def test_where_each_component_has_its_R_the_derivative_of_the_gradient_too(
    room: float, bends: tuple[bool, bool] | None
) -> None:
    """`bends` says in which of the two components of a challenger smoothness has a price; None: all challengers,
    those of the best arm's component too."""
    tried = 0
    for seed in range(20):
        responder = random_oracle(seed, room, 10, several=True)
        omega = np.random.default_rng(seed + 100).dirichlet(np.full(responder.mu.size, 3.0))
        responses = responder.respond(omega)
        component = responses.decomposition.components.of_arm
        away = component != component[responder.best]
        chosen = np.ones(away.size, dtype=bool)
        if bends is not None:
            chosen = away & (responses.nu > 0) & ((responses.gamma > 0) == bends).all(axis=1)
        p = weights_on(chosen, responses, seed)
        if not p.any():
            continue
        tried += 1
        numerical = -numerical_hessian(responder, omega, p)
        exact = curvature(responses, p, ratio=1.0)
        np.testing.assert_allclose(exact, numerical, atol=3e-6 * np.abs(numerical).max())
        np.testing.assert_allclose(exact, exact.T, atol=1e-12 * np.abs(exact).max())
        assert np.abs(exact @ omega).max() <= 1e-8 * np.abs(exact).max()
    assert tried >= 3


@pytest.mark.parametrize("regime", REGIMES)
def test_exact_curvature_is_the_derivative_of_the_gradient(regime: str) -> None:
    room, select = REGIMES[regime]
    tried = 0
    for seed in range(8):
        responder = random_oracle(seed, room)
        omega = np.random.default_rng(seed + 100).dirichlet(np.full(responder.mu.size, 3.0))
        responses = responder.respond(omega)
        p = weights_on(select(responses), responses, seed)
        if not p.any():
            continue
        tried += 1
        numerical = -numerical_hessian(responder, omega, p)
        exact = curvature(responses, p, ratio=1.0)
        np.testing.assert_allclose(exact, numerical, atol=2e-6 * np.abs(numerical).max())
        np.testing.assert_allclose(exact, exact.T, atol=1e-12 * np.abs(exact).max())
    assert tried >= 3


@pytest.mark.parametrize("several", [False, True])
def test_interpolated_curvature_is_never_too_small(several: bool) -> None:
    interpolated = 0
    for seed in range(12):
        responder = random_oracle(seed, 1.0, n_arms=15, several=several)
        omega = np.random.default_rng(seed).dirichlet(np.full(responder.mu.size, 3.0))
        responses = responder.respond(omega)
        p = weights_on(np.ones(omega.size, dtype=bool), responses, seed)
        exact = curvature(responses, p, ratio=1.0)
        units = np.sqrt(omega)  # the Hessian grows as 1/omega: compare in units that make it of order one
        difference = units[:, None] * (curvature(responses, p) - exact) * units
        size = np.abs(units[:, None] * exact * units).max()
        assert np.linalg.eigvalsh(difference).min() >= -1e-11 * size
        interpolated += np.abs(difference).max() > 1e-6 * size
    assert interpolated >= 3


def test_curvature_vanishes_along_the_allocation() -> None:
    # f_i(c omega) = c f_i(omega): its gradient does not change along omega.
    for seed in range(5):
        responder = random_oracle(seed, 1.5)
        omega = np.random.default_rng(seed).dirichlet(np.ones(responder.mu.size))
        responses = responder.respond(omega)
        p = weights_on(np.ones(omega.size, dtype=bool), responses, seed)
        exact = curvature(responses, p, ratio=1.0)
        assert np.abs(exact @ omega).max() <= 1e-9 * np.abs(exact).max()
