"""Races on graphs through the code for large ones, compared with the code for small ones, which is exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spectralbai import Graph, Instance, Problem, SpectralRace, checks, instances, simulate
from spectralbai.arrays import Vector
from spectralbai.errors import InvalidInput
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.intervals import pooled_intervals
from spectralbai.evidence.network_outlook import NetworkOutlook
from spectralbai.evidence.outlook import Outlook, separable
from spectralbai.spectral import Network, network
from spectralbai.stopping.bets import BetTable
from spectralbai.stopping.network_bets import NetworkTable


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treats graphs of more than ten arms as large."""
    monkeypatch.setattr(network, "DENSE_UP_TO", 10)


def two_ways(problem: Problem, seed: int, results: int) -> tuple[Outlook, NetworkOutlook]:
    """Returns the beliefs from random results by both methods."""
    rng = np.random.default_rng(seed)
    n_arms, smoothing = problem.n_arms, np.linalg.inv(np.eye(problem.n_arms) + problem.graph.laplacian.toarray())
    mu = smoothing @ rng.standard_normal(n_arms)
    mu *= np.sqrt(0.5 * problem.radii[0] / problem.graph.roughness(mu))
    if problem.outcome_range is not None:
        mu = 0.5 + mu - mu.mean()
    arms = np.concatenate([np.unique(problem.components, return_index=True)[1], rng.integers(n_arms, size=results)])
    data = Data.none(n_arms).plus(arms, problem.noise.draws(mu)(rng, arms))
    evidence = Evidence.with_leader(problem, data, 0.0, 0)
    return Outlook(evidence), NetworkOutlook(evidence, Network.on(problem))


NEAR = Graph.from_features(np.random.default_rng(0).random((40, 2)), 4)
PARTS = Graph.from_edges(20, [(a, a + 1) for a in range(19) if a != 9])
PROBLEMS = {
    "neighbors": Problem(NEAR, R=2.0),
    "doubted": Problem(NEAR, R=0.001, sigma=0.1),
    "tolerance": Problem(NEAR, R=2.0, tolerance=0.2),
    "components": Problem(PARTS, R=2.0),
    "binary": Problem.bounded(NEAR, R=0.1, binary=True),
}
EVERY_PROBLEM = pytest.mark.parametrize("name", PROBLEMS)


@EVERY_PROBLEM
@pytest.mark.parametrize("results", [100, 2000])
def test_beliefs_are_those_of_dense_matrices(name: str, results: int) -> None:
    dense, sparse = two_ways(PROBLEMS[name], 1, results)
    np.testing.assert_allclose(sparse.mu, dense.mu, rtol=1e-3, atol=1e-3)
    assert pytest.approx(dense.radii[0], rel=1e-3) == sparse.R
    assert sparse.misfit == pytest.approx(dense.misfit, rel=1e-3, abs=1e-3)
    for ours, theirs in zip(sparse.posterior, dense.posterior, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)
    leader, tolerance = dense.evidence.best, dense.problem.tolerance
    exact, near = dense.strength(leader, tolerance), sparse.strength(leader, tolerance)
    np.testing.assert_allclose(near, exact, rtol=0.15, atol=0.1)
    np.testing.assert_allclose(sparse.chances, dense.chances, atol=0.12)


@EVERY_PROBLEM
def test_bets_pay_nearly_what_those_of_dense_matrices_do(name: str) -> None:
    dense, sparse = two_ways(PROBLEMS[name], 2, 400)
    rng, problem = np.random.default_rng(3), PROBLEMS[name]
    arms = np.sort(rng.integers(problem.n_arms, size=30))
    outcomes = problem.noise.draws(np.clip(dense.mu, 0, 1) if name == "binary" else dense.mu)(rng, arms)
    block = Block(arms, outcomes, dense.evidence.data, dense.evidence.best)
    exact, near = BetTable(block, dense), NetworkTable(block, sparse)
    pay = exact.against_arms(block.best, problem.tolerance)
    np.testing.assert_allclose(
        near.against_arms(block.best, problem.tolerance), pay, atol=0.08 + 0.1 * np.abs(pay).max()
    )
    assert near.against_R() == pytest.approx(exact.against_R(), rel=0.2, abs=0.05)


def outcome(instance: Instance, seed: int, delta: float = 0.05) -> simulate.Run:
    assert instance.mu is not None
    return simulate.run(SpectralRace(instance.problem, delta), instance.mu, seed=seed)


def test_races_end_with_the_same_answers_and_about_as_many_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    made = instances.nearest_neighbors(30, lead=0.8)
    assert made.mu is not None
    exact = [outcome(made, seed) for seed in range(5)]
    monkeypatch.setattr(network, "DENSE_UP_TO", 10)
    sparse = [outcome(replace(made, problem=replace(made.problem)), seed) for seed in range(5)]
    assert [run.arm for run in sparse] == [run.arm for run in exact] == [int(np.argmax(made.mu))] * 5
    apart = np.log([run.tau for run in sparse]) - np.log([run.tau for run in exact])
    assert abs(apart.mean()) <= 2 * apart.std(ddof=1) / np.sqrt(5) + 0.05


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("tolerance", [0.0, 0.15])
@pytest.mark.parametrize("binary", [False, True])
def test_races_with_outcomes_in_a_range_end(binary: bool, tolerance: float) -> None:
    mu = np.append(np.linspace(0.2, 0.4, 14), 0.9)
    edges = [(a, a + 1) for a in range(13)] + [(6, 14, 0.1)]
    problem = Problem.bounded(Graph.from_edges(15, edges), 0.1, tolerance=tolerance, binary=binary)
    run = outcome(Instance(problem, mu), 0)
    assert run.status == "decided" and run.arm == 14


@pytest.mark.usefixtures("small")
def test_a_wrong_R_is_refuted() -> None:
    problem = Problem(Graph.from_edges(15, [(a, a + 1) for a in range(14)]), R=0.01)
    run = simulate.run(SpectralRace(problem, 0.05), np.arange(15) % 2 * 2.0, seed=0)
    assert run.status == "inconsistent"


@pytest.mark.usefixtures("small")
def test_with_a_few_arms_at_a_time_the_race_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from spectralbai.evidence import network_outlook
    from spectralbai.sampling import network_race

    for module in (network_outlook, network_race):
        monkeypatch.setattr(module, "ARMS_TRIED", 12)
    made = instances.nearest_neighbors(60, lead=0.8)
    run = outcome(made, 0)
    assert run.status == "decided" and run.correct


@pytest.mark.usefixtures("small")
def test_arms_that_a_tolerance_cannot_separate_are_those_of_dense_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(NEAR, R=0.05, tolerance=0.2)
    rows = np.array([separable(problem)[leader] for leader in range(40)])
    monkeypatch.setattr(network, "DENSE_UP_TO", 100)
    exact = separable(replace(problem))
    assert isinstance(exact, np.ndarray) and 0.1 < exact.mean() < 0.9
    off = ~np.eye(40, dtype=bool)
    np.testing.assert_array_equal(rows[off], exact[off])


def ends(problem: Problem, data: Data) -> tuple[Vector, Vector]:
    intervals = pooled_intervals(problem, data, 0.0, 0.05)
    assert intervals is not None
    return intervals


def test_intervals_are_a_little_wider_than_with_dense_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, counts = Problem(NEAR, R=0.05), (np.arange(40) % 3).astype(np.float64)
    data = Data(counts, 0.01 * counts * np.arange(40), counts)
    low, high = ends(problem, data)
    monkeypatch.setattr(network, "DENSE_UP_TO", 10)
    wide_low, wide_high = ends(replace(problem), data)
    assert (wide_low <= low + 1e-9).all() and (wide_high >= high - 1e-9).all()
    assert (wide_high - wide_low).mean() < 1.15 * (high - low).mean()


def test_too_many_arms_for_the_memory_are_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(Graph.from_edges(3000, [(a, a + 1) for a in range(2999)]), R=1.0)
    monkeypatch.setattr(checks, "_memory", lambda: 50_000_000)
    with pytest.raises(InvalidInput, match=r"the race on 3,000 arms would need about .* GB"):
        SpectralRace(problem)


@pytest.mark.usefixtures("small")
def test_arms_can_join_and_be_withdrawn() -> None:
    before = Problem(Graph.from_edges(14, [(a, a + 1) for a in range(13)]), R=1.0)
    after = Problem(Graph.from_edges(16, [*((a, a + 1) for a in range(13)), (0, 14), (14, 15)]), R=1.0)
    mu, rng = np.append(np.linspace(0.0, 0.5, 14), [0.9, 1.6]), np.random.default_rng(0)
    policy = SpectralRace(before, 0.05)
    state = policy.init()
    for _ in range(5):
        arms = policy.ask(state, policy.horizon(state))
        state = policy.tell(state, arms, mu[arms] + rng.standard_normal(arms.size))
    policy = policy.joined(after)
    state = policy.withdraw(policy.join(state), 13)
    while (arms := policy.ask(state, policy.horizon(state))).size:
        state = policy.tell(state, arms, mu[arms] + rng.standard_normal(arms.size))
    assert policy.verdict(state).decided and policy.verdict(state).arm == 15
