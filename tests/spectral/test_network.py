"""What is charged for bets on large graphs, compared with dense matrices on small ones."""

from __future__ import annotations

import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.errors import InvalidInput
from spectralbai.spectral import Components, Decomposition
from spectralbai.spectral.network import Columns, Network
from spectralbai.spectral.network_metric import NetworkMetric

CHAIN = [(a, a + 1) for a in range(9)]
GRAPHS = {
    "path": Graph.from_edges(10, CHAIN),
    "star": Graph.from_edges(9, [(3, a) for a in range(9) if a != 3]),
    "grid": Graph.from_edges(20, [(a, a + 1) for a in range(20) if a % 5 != 4] + [(a, a + 5) for a in range(15)]),
    "two components": Graph.from_edges(15, [*CHAIN, (10, 11, 0.5), (11, 12, 2.0), (10, 12), (12, 13)]),
    "uneven": Graph.from_edges(10, [(a, b, 10.0 ** (a % 5 - 2)) for a, b in CHAIN]),
    "neighbors": Graph.from_features(np.random.default_rng(0).random((40, 2)), 4),
}
EVERY_GRAPH = pytest.mark.parametrize("name", GRAPHS)


def inverse_of(graph: Graph) -> Matrix:
    """Returns L^+."""
    laplacian = graph.laplacian.toarray()
    member = (graph.components[:, None] == np.arange(graph.n_components)).astype(np.float64)
    level = member @ np.diag(1 / member.sum(axis=0)) @ member.T
    inverse: Matrix = np.linalg.inv(laplacian + level) - level
    return inverse


def resistance(inverse: Matrix, a: int, b: int) -> float:
    return float(inverse[a, a] + inverse[b, b] - 2 * inverse[a, b])


@EVERY_GRAPH
def test_resistances_to_the_ground_are_upper_bounds_and_hardly_larger(name: str) -> None:
    graph = GRAPHS[name]
    network, inverse = Network.on(Problem(graph, R=1.0)), inverse_of(graph)
    exact = np.array([resistance(inverse, a, int(network.grounds[network.of_arm[a]])) for a in range(graph.n_arms)])
    assert (network.resistances >= exact * (1 - 1e-12)).all()
    np.testing.assert_allclose(network.resistances, exact, rtol=1e-8, atol=1e-10)


@EVERY_GRAPH
def test_a_spanning_tree_has_no_smaller_resistances(name: str) -> None:
    network = Network.on(Problem(GRAPHS[name], R=1.0))
    assert (network.tree.to_ground >= network.resistances * (1 - 1e-6)).all()


@EVERY_GRAPH
def test_the_norm_of_a_tree_is_that_of_its_laplacian(name: str) -> None:
    graph = GRAPHS[name]
    tree = Network.on(Problem(graph, R=1.0)).tree
    below = np.flatnonzero(tree.parent >= 0)
    forest = Graph.from_edges(graph.n_arms, [(int(a), int(tree.parent[a]), 1 / tree.resistance[a]) for a in below])
    loads = graph.laplacian @ np.random.default_rng(1).standard_normal((graph.n_arms, 3))
    exact = np.sqrt(np.einsum("ak,ab,bk->k", loads, inverse_of(forest), loads))
    np.testing.assert_allclose(tree.norms(loads), exact, rtol=1e-8)
    assert (tree.norms(loads) >= exact * (1 - 1e-12)).all()


def support(problem: Problem, z: Vector, leader: int, rival: int) -> float:
    """Returns the largest z.mu of smooth means with mu_rival >= mu_leader + tolerance, by a search in s (theory 19.2).

    Without edges between the components of the two arms, s is what z sums to over that of the leader.
    """
    inverse, component = inverse_of(problem.graph), problem.graph.components
    c = np.zeros(z.size)
    c[leader], c[rival] = 1.0, -1.0

    def bound(s: float) -> float:
        w = z - s * c
        return float(np.sqrt(max(problem.radii[0] * w @ inverse @ w, 0.0)) - s * problem.tolerance)

    if component[leader] != component[rival]:
        return bound(float(z[component == component[leader]].sum()))
    low, high = 0.0, 10 * float(np.abs(z).sum())
    for _ in range(200):  # a convex function of s
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if bound(a) <= bound(b) else (a, high)
    return bound(low)


def beliefs(problem: Problem, seed: int, part: float = 0.7) -> tuple[Indices, Vector, Vector]:
    """Returns some arms, weights for them, and estimates of all means."""
    rng = np.random.default_rng(seed)
    n = problem.n_arms
    smoothing = np.linalg.inv(np.eye(n) + problem.graph.laplacian.toarray())
    nu = smoothing @ rng.standard_normal(n)
    nu *= np.sqrt(0.7 * problem.radii[0] / problem.graph.roughness(nu))
    leader = int(nu.argmax())
    arms = np.union1d(rng.choice(n, max(2, round(part * n)), replace=False), leader)
    return arms, rng.integers(1, 9, arms.size).astype(np.float64), nu


@pytest.mark.parametrize("tolerance", [0.0, 0.3])
@EVERY_GRAPH
def test_bets_are_charged_with_at_least_the_largest_value_under_the_claim(name: str, tolerance: float) -> None:
    bets = 0
    for seed in range(3):
        problem = Problem(GRAPHS[name], R=3.0, tolerance=tolerance)
        arms, u, nu = beliefs(problem, seed)
        leader = int(nu.argmax())
        metric = NetworkMetric(Network.on(problem), arms, u)
        found = metric.compare(nu, leader, 3.0, tolerance, np.arange(problem.n_arms))
        for rival in np.flatnonzero(found.lead).tolist():
            z = np.zeros(problem.n_arms)
            z[arms] = found.directions[rival]
            exact = support(problem, z, leader, rival)
            assert exact - 1e-9 * np.abs(z).sum() <= found.most[rival] <= exact + 0.02 * found.lead[rival] + 1e-6
            assert found.lead[rival] == pytest.approx(z @ (nu - nu[leader]) - found.most[rival], abs=1e-9)
            assert found.variance[rival] == pytest.approx((found.directions[rival] ** 2 / u).sum())
            bets += 1
    assert bets > 10


@pytest.mark.parametrize("tolerance", [0.0, 0.3])
@EVERY_GRAPH
def test_bets_are_worth_nearly_what_exact_best_responses_are(name: str, tolerance: float) -> None:
    for seed in range(3):
        problem = Problem(GRAPHS[name], R=3.0, tolerance=tolerance)
        arms, u, nu = beliefs(problem, seed)
        leader = int(nu.argmax())
        found = NetworkMetric(Network.on(problem), arms, u).compare(nu, leader, 3.0, tolerance, np.arange(nu.size))
        weights = np.zeros(nu.size)
        weights[arms] = u
        to = Components.from_problem(problem)
        exact = Decomposition.of(to, weights, np.ones(nu.size)).respond(nu, leader, to.radii, tolerance)
        rows = np.flatnonzero(np.isfinite(exact.cost) & (exact.cost > 1e-3))
        assert (found.value[rows] >= 0.95 * exact.cost[rows]).all()
        assert (found.value[rows] <= exact.cost[rows] * (1 + 1e-6)).all()


def test_without_pulls_in_its_component_no_bet_is_made_against_an_arm() -> None:
    problem = Problem(GRAPHS["two components"], R=3.0)
    arms, nu = np.array([0, 3, 7]), np.where(np.arange(15) < 10, 1.0, 0.0)
    metric = NetworkMetric(Network.on(problem), arms, np.ones(3))
    assert not metric.compare(nu, 0, 3.0, 0.0, np.arange(10, 15)).lead.any()
    assert not metric.compare(nu, 11, 3.0, 0.0, np.arange(15)).lead.any()


@EVERY_GRAPH
def test_what_is_charged_for_a_direction_against_smoothness_is_the_largest_value(name: str) -> None:
    problem = Problem(GRAPHS[name], R=0.01)
    arms, u, _ = beliefs(problem, 0)
    nu = np.random.default_rng(5).standard_normal(problem.n_arms)
    direction, most = NetworkMetric(Network.on(problem), arms, u).against_smoothness(nu, 0.01)
    z = np.zeros(problem.n_arms)
    z[arms] = direction
    exact = np.sqrt(0.01 * z @ inverse_of(problem.graph) @ z)
    assert exact * (1 - 1e-9) <= most <= exact * (1 + 1e-4) + 1e-7 and z @ nu > most


@EVERY_GRAPH
def test_columns_that_are_solved_for_badly_are_charged_for(name: str) -> None:
    problem = Problem(GRAPHS[name], R=1.0)
    network, inverse = Network.on(problem), inverse_of(problem.graph)
    good, rng = network.columns(np.arange(problem.n_arms)), np.random.default_rng(2)
    bad = good.values * 0.9 + 0.01 * rng.standard_normal(good.values.shape)
    columns = Columns(good.arms, bad, network.errors(good.arms, bad))
    z = problem.graph.laplacian @ rng.standard_normal((problem.n_arms, 4))
    bound = network.most(z.T.copy(), np.zeros(4), np.zeros(4, dtype=np.intp), columns, 1.0)
    exact = np.sqrt(np.einsum("ak,ab,bk->k", z, inverse, z))
    assert (bound >= exact).all()
    assert (network.most(z.T.copy(), np.zeros(4), np.zeros(4, dtype=np.intp), good, 1.0) < 1.001 * exact + 1e-5).all()


def test_a_problem_with_another_arm_has_another_factor() -> None:
    before = Problem(GRAPHS["path"], R=1.0)
    after = Problem(Graph.from_edges(11, [*CHAIN, (0, 10), (10, 9)]), R=1.0)
    Network.on(before).resistances  # noqa: B018  # computed, and kept
    network, inverse = Network.on(after), inverse_of(after.graph)
    exact = [resistance(inverse, a, int(network.grounds[0])) for a in range(11)]
    np.testing.assert_allclose(network.resistances, exact, rtol=1e-9, atol=1e-12)


def test_weights_too_different_for_certain_bounds_are_refused() -> None:
    graph = Graph.from_edges(4, [(0, 1, 1e15), (1, 2, 1e-3), (2, 3, 1e15)])
    with pytest.raises(InvalidInput, match="too different"):
        Network.on(Problem(graph, R=1.0)).resistances  # noqa: B018


def test_only_large_graphs_with_one_R_are_networks() -> None:
    small = Graph.from_edges(10, CHAIN)
    large = Graph.from_edges(1300, [(a, a + 1) for a in range(1299) if a != 649])
    assert Network.of(Problem(small, R=1.0)) is None
    assert Network.of(Problem(large, R=1.0)) is not None
    assert Network.of(Problem(large, R=[1.0, 2.0])) is None
    assert Network.of(Problem(large, R=np.inf)) is None


@EVERY_GRAPH
def test_how_far_an_arm_can_be_from_an_average_is_bounded(name: str) -> None:
    graph = GRAPHS[name]
    network, inverse = Network.on(Problem(graph, R=1.0)), inverse_of(graph)
    members = np.flatnonzero(graph.components == 0)
    weights = np.random.default_rng(3).dirichlet(np.ones(members.size))
    apart = np.eye(graph.n_arms)[members]
    apart[:, members] -= weights
    exact = np.sqrt(np.einsum("ka,ab,kb->k", apart, inverse, apart))
    bound = network.spread_around(members, weights)
    assert (bound >= exact).all()
    np.testing.assert_allclose(bound, exact, rtol=1e-5, atol=1e-5)


@EVERY_GRAPH
def test_resistances_inside_a_pool_are_no_smaller_than_those_of_the_graph(name: str) -> None:
    graph = GRAPHS[name]
    network, inverse = Network.on(Problem(graph, R=1.0)), inverse_of(graph)
    arm = int(np.argmax(graph.laplacian.diagonal()))
    pool = np.union1d(arm, graph.laplacian[[arm]].indices)
    place = network.inside(pool[None])[0]
    for i, a in enumerate(pool.tolist()):
        for j, b in enumerate(pool.tolist()):
            assert float(((place[i] - place[j]) ** 2).sum()) >= resistance(inverse, a, b) * (1 - 1e-9)
    whole = np.flatnonzero(graph.components == graph.components[arm])
    place = network.inside(whole[None])[0]
    assert float(((place[0] - place[-1]) ** 2).sum()) == pytest.approx(
        resistance(inverse, int(whole[0]), int(whole[-1])), rel=1e-6
    )
