"""Tests of spectralbai.instances: every generator on a list of contracts, then its own topology and signal."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest

from spectralbai import instances
from spectralbai.arrays import Vector
from spectralbai.errors import InvalidInput
from spectralbai.graph import Graph
from spectralbai.instance import Instance
from spectralbai.instances import attached

GENERATORS: dict[str, tuple[Callable[..., Instance], dict[str, Any]]] = {
    "path": (instances.path, {"n_arms": 12}),
    "ring": (instances.ring, {"n_arms": 12}),
    "grid": (instances.grid, {"rows": 3, "columns": 4}),
    "star": (instances.star, {"n_arms": 12}),
    "complete": (instances.complete, {"n_arms": 12}),
    "cliques": (instances.cliques, {"n_cliques": 3, "size": 4}),
    "cliques without a lone arm": (instances.cliques, {"n_cliques": 3, "size": 4, "lone_best": False}),
    "catalogue": (instances.catalogue, {"n_categories": 3, "size": 4}),
    "catalogue without a lone arm": (instances.catalogue, {"n_categories": 3, "size": 4, "lone_best": False}),
    "stochastic_block": (instances.stochastic_block, {"n_blocks": 3, "size": 4}),
    "barabasi_albert": (instances.barabasi_albert, {"n_arms": 12}),
    "nearest_neighbors": (instances.nearest_neighbors, {"n_arms": 12}),
    "karate_club": (instances.karate_club, {}),
    "les_miserables": (instances.les_miserables, {}),
    "florentine_families": (instances.florentine_families, {}),
}
UNTYPED: Any = instances  # refusals are of what the types forbid, too
WITH_LEAD = [name for name, (generator, _) in GENERATORS.items() if "lead" in inspect.signature(generator).parameters]
SMOOTH = [name for name in WITH_LEAD if name != "stochastic_block"]


def make(name: str, **options: Any) -> Instance:
    generator, arguments = GENERATORS[name]
    return generator(**arguments | options)


def means(instance: Instance) -> Vector:
    assert instance.mu is not None
    return instance.mu


def networkx_graph(graph: Graph) -> nx.Graph[int]:
    other: nx.Graph[int] = nx.Graph()
    other.add_nodes_from(range(graph.n_arms))
    other.add_weighted_edges_from(zip(*graph.pairs.T.tolist(), graph.weights.tolist(), strict=True))
    return other


def test_every_public_generator_is_tested() -> None:
    assert {generator.__name__ for generator, _ in GENERATORS.values()} == set(instances.KINDS)


@pytest.mark.parametrize("name", GENERATORS)
def test_the_same_seed_gives_the_same_instance(name: str) -> None:
    assert make(name, seed=5).as_dict() == make(name, seed=5).as_dict()


@pytest.mark.parametrize("name", GENERATORS)
def test_another_seed_gives_other_means(name: str) -> None:
    assert not np.array_equal(means(make(name, seed=5)), means(make(name, seed=6)))


@pytest.mark.parametrize("name", GENERATORS)
def test_R_is_slack_times_the_smoothness_of_the_means(name: str) -> None:
    for options, slack in (({}, 1.5), ({"slack": 3.0}, 3.0)):
        instance = make(name, **options)
        mu = means(instance)
        R = float(instance.problem.radii.sum())  # of a catalogue: of all its categories
        assert R == pytest.approx(slack * mu @ instance.problem.graph.laplacian.toarray() @ mu, rel=1e-9)
        assert R > 0


@pytest.mark.parametrize("name", GENERATORS)
def test_sigma_and_tolerance_are_those_asked_for(name: str) -> None:
    plain = make(name).problem
    assert (set(plain.sigma.tolist()), plain.tolerance) == ({1.0}, 0.0)
    problem = make(name, sigma=0.5, tolerance=0.1).problem
    assert (set(problem.sigma.tolist()), problem.tolerance) == ({0.5}, 0.1)


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generated_instance_survives_json(name: str) -> None:
    d = make(name).as_dict()
    assert Instance.from_dict(json.loads(json.dumps(d, allow_nan=False))).as_dict() == d


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("seed", range(5))
def test_a_smooth_signal_runs_from_zero_to_one_and_its_best_arm_leads(name: str, seed: int) -> None:
    mu = np.sort(means(make(name, seed=seed, lead=0.25)))
    assert mu[0] == 0.0
    assert mu[-1] == 1.25
    assert mu[-2] <= 1.0


@pytest.mark.parametrize("name", WITH_LEAD)
def test_the_lead_is_added_to_the_best_arm_only(name: str) -> None:
    flat, raised = means(make(name, lead=0.0)), means(make(name, lead=0.25))
    expected = flat + 0.25 * (np.arange(flat.size) == np.argmax(flat))
    np.testing.assert_allclose(raised, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    "make_instance", [lambda s: instances.path(60, lead=0.0, seed=s), lambda s: instances.grid(8, 8, lead=0.0, seed=s)]
)
def test_a_smooth_signal_is_far_smoother_than_its_entries_shuffled(make_instance: Callable[[int], Instance]) -> None:
    for seed in range(5):
        instance = make_instance(seed)
        shuffled = np.random.default_rng(seed).permutation(means(instance))
        assert instance.problem.smoothness(means(instance)) < 0.3 * instance.problem.smoothness(shuffled)


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        (instances.path(7), nx.path_graph(7)),
        (instances.ring(7), nx.cycle_graph(7)),
        (instances.star(7), nx.star_graph(6)),
        (instances.complete(7), nx.complete_graph(7)),
        (instances.grid(3, 5), nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 5), ordering="sorted")),
        (instances.grid(1, 2), nx.path_graph(2)),
        (instances.cliques(3, 4, lone_best=False), nx.disjoint_union_all([nx.complete_graph(4)] * 3)),
        (instances.cliques(3, 4), nx.disjoint_union_all([nx.complete_graph(4)] * 3 + [nx.empty_graph(1)])),
    ],
)
def test_a_topology_is_that_of_networkx_with_unit_weights(instance: Instance, expected: nx.Graph[int]) -> None:
    graph = networkx_graph(instance.problem.graph)
    assert nx.utils.graphs_equal(nx.Graph(graph.edges), nx.Graph(expected.edges))
    assert set(graph.nodes) == set(expected.nodes)
    assert set(instance.problem.graph.weights.tolist()) == {1.0}


def test_a_lone_best_arm_comes_last_without_edges_above_the_levels_of_the_cliques() -> None:
    instance = instances.cliques(5, 10, levels=(0.1, 0.3), spread=0.0, best=0.7, seed=3)
    mu = means(instance)
    assert mu.size == 51
    assert mu[-1] == 0.7
    assert 50 not in instance.problem.graph.pairs
    assert ((mu[:-1] >= 0.1) & (mu[:-1] <= 0.3)).all()
    assert len(set(mu[:-1].tolist())) == 5
    assert all(np.ptp(clique) == 0 for clique in mu[:-1].reshape(5, 10))


def test_without_a_lone_arm_one_arm_of_the_cliques_is_the_best() -> None:
    winners = set()
    for seed in range(20):
        mu = means(instances.cliques(3, 4, lone_best=False, spread=0.0, seed=seed))
        assert mu.size == 12
        assert mu.max() == 0.9
        assert (mu <= 0.6).sum() == 11
        winners.add(int(np.argmax(mu)))
    assert len(winners) > 5


def test_the_spread_is_the_standard_deviation_within_a_clique() -> None:
    clique = means(instances.cliques(1, 400, spread=0.02, seed=1))[:-1]
    assert 0.018 < clique.std() < 0.022


def test_a_stochastic_block_model_joins_arms_as_often_as_asked() -> None:
    instance = instances.stochastic_block(4, 50, p_inside=0.4, p_across=0.1, seed=2)
    a, b = instance.problem.graph.pairs.T
    inside = int((a // 50 == b // 50).sum())
    # Six standard deviations of binomials on 4900 and 15000 pairs.
    assert abs(inside - 0.4 * 4900) < 6 * math.sqrt(4900 * 0.24)
    assert abs(a.size - inside - 0.1 * 15000) < 6 * math.sqrt(15000 * 0.09)
    sure = instances.stochastic_block(3, 4, p_inside=1, p_across=0, seed=2).problem.graph
    assert np.array_equal(sure.pairs, instances.cliques(3, 4, lone_best=False).problem.graph.pairs)


def test_the_means_of_a_stochastic_block_model_follow_its_blocks() -> None:
    mu = means(instances.stochastic_block(3, 20, spread=0.0, lead=0.5))
    assert len(set(mu.tolist())) == 4
    assert np.sort(mu)[-1] == pytest.approx(np.sort(mu)[-2] + 0.5)


def test_preferential_attachment_adds_its_edges_and_favours_the_well_joined() -> None:
    graph = attached(400, 3, np.random.default_rng(4))
    assert graph.n_edges == 3 * (400 - 3)
    assert graph.n_components == 1
    newer_end = graph.pairs[:, 1]
    assert (np.bincount(newer_end, minlength=400)[4:] == 3).all()
    degrees = np.bincount(graph.pairs.ravel())
    # Uniform attachment keeps the largest degree near 3 (1 + log 400) = 21.
    assert degrees.max() > 35


def test_nearest_neighbours_have_at_least_as_many_edges_as_asked() -> None:
    graph = instances.nearest_neighbors(60, neighbors=4, seed=1).problem.graph
    degrees = np.bincount(graph.pairs.ravel(), minlength=60)
    assert degrees.min() >= 4
    assert graph.n_edges <= 240
    assert ((graph.weights > 0) & (graph.weights <= 1)).all()
    assert len(set(graph.weights.tolist())) > 100


@pytest.mark.parametrize(
    ("generate", "message"),
    [
        (lambda: UNTYPED.path(1), "`n_arms` must be a whole number of at least 2, got 1"),
        (lambda: UNTYPED.ring(2), "`n_arms` must be a whole number of at least 3, got 2"),
        (lambda: UNTYPED.star(2.5), "`n_arms` must be a whole number of at least 2, got 2.5"),
        (lambda: UNTYPED.complete(True), "`n_arms` must be a whole number of at least 2, got True"),
        (lambda: UNTYPED.grid(0, 4), "`rows` must be a whole number of at least 1, got 0"),
        (lambda: UNTYPED.grid(4, "2"), "`columns` must be a whole number of at least 1, got '2'"),
        (lambda: UNTYPED.grid(1, 1), "`n_arms` must be at least 2, got 1"),
        (lambda: UNTYPED.cliques(0, 4), "`n_cliques` must be a whole number of at least 1, got 0"),
        (lambda: UNTYPED.cliques(2, 0), "`size` must be a whole number of at least 1, got 0"),
        (lambda: UNTYPED.cliques(1, 1, lone_best=False), "`n_arms` must be at least 2, got 1"),
        (lambda: UNTYPED.cliques(2, 3, lone_best="no"), "`lone_best` must be True or False, got 'no'"),
        (lambda: UNTYPED.cliques(2, 3, levels=0.5), "`levels` must be (low, high), got 0.5"),
        (
            lambda: UNTYPED.cliques(2, 3, levels=(0.6, 0.2)),
            "`levels` must be (low, high) with low <= high, got (0.6, 0.2); swap them",
        ),
        (lambda: UNTYPED.cliques(2, 3, levels=(0.2, math.nan)), "`levels` must be two finite numbers, got nan"),
        (lambda: UNTYPED.cliques(2, 3, spread=-0.1), "`spread` must be a finite non-negative number, got -0.1"),
        (lambda: UNTYPED.cliques(2, 3, best=math.inf), "`best` must be a finite number, got inf"),
        (
            lambda: UNTYPED.cliques(2, 3, best=0.1),
            "`best` must be above the mean of every other arm, got 0.1 and another mean of 0.",
        ),
        (lambda: UNTYPED.stochastic_block(0, 3), "`n_blocks` must be a whole number of at least 1, got 0"),
        (
            lambda: UNTYPED.stochastic_block(2, 3, p_inside=1.5),
            "`p_inside` must be a probability between 0 and 1, got 1.5",
        ),
        (
            lambda: UNTYPED.stochastic_block(2, 3, p_across=-0.5),
            "`p_across` must be a probability between 0 and 1, got -0.5",
        ),
        (
            lambda: UNTYPED.stochastic_block(2, 3, spread=0, lead=0),
            "`mu` must have a unique best arm when tolerance is 0",
        ),
        (lambda: UNTYPED.barabasi_albert(4, 4), "`attachments` must be below the number of arms 4, got 4"),
        (lambda: UNTYPED.barabasi_albert(4, 0), "`attachments` must be a whole number of at least 1, got 0"),
        (lambda: UNTYPED.nearest_neighbors(5, 5), "`neighbors` must be below the number of arms 5, got 5"),
        (lambda: UNTYPED.path(5, lead=-0.1), "`lead` must be a finite non-negative number, got -0.1"),
        (lambda: UNTYPED.path(5, slack=0), "`slack` must be a finite positive number, got 0"),
        (lambda: UNTYPED.path(5, slack=math.inf), "`slack` must be a finite positive number, got inf"),
        (lambda: UNTYPED.path(5, sigma=-1), "`sigma` must be a finite positive number, or one per arm, got -1"),
        (lambda: UNTYPED.path(5, tolerance=-1), "`tolerance` must be a finite non-negative number, got -1"),
        (lambda: UNTYPED.path(5, seed=-1), "`seed` must be a whole number of at least 0, got -1"),
        (lambda: UNTYPED.path(5, seed=None), "`seed` must be a whole number of at least 0, got None"),
    ],
)
def test_bad_arguments_are_refused(generate: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        generate()


def test_a_catalogue_has_the_means_of_cliques_and_an_R_for_each_category() -> None:
    one, other = make("catalogue", seed=3), make("cliques", seed=3)
    np.testing.assert_array_equal(means(one), means(other))
    rough = one.problem.graph.roughness_by_component(means(one))
    np.testing.assert_allclose(one.problem.radii, 1.5 * rough)
    assert (one.problem.graph.components == other.problem.graph.components).all()
    with pytest.raises(InvalidInput, match="`best` must be above the mean of every other arm, got 0.1"):
        make("catalogue", best=0.1)
    with pytest.raises(InvalidInput, match="`lone_best` must be True or False, got 'no'"):
        make("catalogue", lone_best="no")
    with pytest.raises(InvalidInput, match="`best` must be a finite number, got 'x'"):
        make("catalogue", best="x")
