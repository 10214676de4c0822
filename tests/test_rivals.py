"""What each rival does: which arms it pulls, what it knows, and how often it is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from spectralbai import Graph, Instance, InvalidInput, Problem, simulate, solve_allocation
from spectralbai.evidence.intervals import graph_intervals, graph_precision, plain_widths
from spectralbai.policy import LUCB, POLICIES, GraphElimination, OracleSampling, Race, TopTwo, TrackAndStop, Uniform
from spectralbai.sampling.graph_elimination import Active
from tests.means import mu_of
from verification.coverage import chance

PAPER = Instance(Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01), [1.4, 0.5, 0.6])
HARD = Instance(Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01, sigma=[1, 2, 1]), [0.9, 0.5, 0.6])


@pytest.mark.parametrize("kind", POLICIES)
def test_a_policy_is_wrong_with_probability_at_most_delta(kind: str) -> None:
    policy = POLICIES[kind].on(PAPER, delta=0.2)
    runs = [simulate.run(policy, mu_of(PAPER), seed) for seed in range(20)]
    assert all(run.proved == (kind != "spectral-tas-printed") for run in runs)
    assert all(run.status != "truncated" for run in runs)
    wrong = sum(run.status != "decided" or not run.correct for run in runs)
    assert chance(wrong, 20, 0.2) > 0.01


@pytest.mark.parametrize("kind", ["track-and-stop", "top-two", "lucb"])
def test_rivals_without_structure_ignore_the_graph(kind: str) -> None:
    policy = POLICIES[kind].on(PAPER)
    assert policy.problem.R == math.inf
    bare = POLICIES[kind].on(Instance(Problem(Graph.from_edges(3, []), R=5.0), mu_of(PAPER)))
    assert (
        simulate.run(policy, mu_of(PAPER), 3, max_samples=300).tau
        == simulate.run(bare, mu_of(PAPER), 3, max_samples=300).tau
    )


def counts_after(policy: Uniform | OracleSampling | TrackAndStop, n: int) -> np.ndarray:
    return simulate.run(policy, mu_of(HARD), 0, max_samples=n).counts


def test_uniform_pulls_every_arm_equally_often() -> None:
    assert np.ptp(counts_after(Uniform(HARD.problem, 1e-9, stopping="gk16"), 301)) <= 1


def test_the_oracle_follows_the_optimal_allocation_of_the_true_means() -> None:
    policy = OracleSampling.on(HARD, delta=1e-9)
    omega = solve_allocation(HARD.problem, mu_of(HARD)).omega
    counts = counts_after(policy, 2000)
    np.testing.assert_allclose(counts / counts.sum(), omega, atol=0.03)
    with pytest.raises(InvalidInput, match="without means"):
        OracleSampling.on(Instance(HARD.problem))


def test_lucb_pulls_the_leader_and_the_rival_of_highest_upper_end() -> None:
    policy = LUCB.on(HARD, delta=0.1)
    arms, rewards = [0] * 40 + [1] * 50 + [2] * 9, [0.9] * 40 + [0.5] * 50 + [0.6] * 9
    state = policy.tell(policy.init(), arms, rewards)
    upper = np.array([0.9, 0.5, 0.6]) + plain_widths(state.counts, HARD.problem.sigma, 0.1)
    rival = 1 + int(np.argmax(upper[1:]))
    assert policy.ask(state, 2).tolist() == [0, rival]
    assert policy.ask(state, 1).tolist() == [0]
    assert policy.ask(state, 1, pending=[1, 0, 0]).tolist() == [rival]
    assert policy.horizon(state) == 2


@pytest.mark.parametrize("n", [1, 2, 7])
def test_lucb_comes_to_a_decision_however_many_it_is_asked_for(n: int) -> None:
    policy, rng = LUCB.on(PAPER, delta=0.1), np.random.default_rng(0)
    state = policy.init()
    while state.samples < 3000 and (arms := policy.ask(state, n)).size:
        state = policy.tell(state, arms, mu_of(PAPER)[arms] + rng.standard_normal(arms.size))
    assert policy.verdict(state).decided
    waiting = policy.ask(policy.init(), 10, pending=[1, 1, 1])
    assert set(waiting.tolist()) == {0, 1, 2}, "arms without a result are not all alike once pulls are pending"


def test_top_two_shares_its_pulls_between_leader_and_nearest_challenger() -> None:
    policy = TopTwo.on(HARD, delta=1e-12, stopping="gk16")
    arms, rewards = [0] * 400 + [1] * 300 + [2] * 300, [2.0] * 400 + [0.0] * 300 + [1.5] * 300
    state = policy.tell(policy.init(), arms, rewards)
    pulls = np.concatenate([policy.ask(state, 1, rng=np.random.default_rng(seed)) for seed in range(400)])
    counts = np.bincount(pulls, minlength=3)
    # Challenger 1, of sigma 2, costs 2^2 / (1/400 + 4/300), challenger 2 only .5^2 / (1/400 + 1/300).
    assert counts[1] == 0
    assert binomtest(int(counts[0]), 400).pvalue > 0.01


def test_blocks_of_top_two_are_drawn_from_the_results_seen_and_from_nothing_else() -> None:
    policy = TopTwo.on(HARD, delta=1e-6)
    first = policy.init()
    arms = policy.ask(first, 10)
    one, again, other = (policy.tell(first, arms, level + 0.1 * arms) for level in (0.0, 0.0, 1e-9 * arms))
    ahead = policy.open(policy.open(policy.open(one)))
    blocks = [block.arms.tolist() for block in ahead.blocks]
    assert blocks[0] == again.blocks[0].arms.tolist()
    assert len({tuple(block) for block in blocks}) > 1, "blocks opened from the same results have draws of their own"
    drawn = [policy.open(policy.open(state)).blocks for state in (one, other)]
    assert drawn[0][-1].arms.tolist() != drawn[1][-1].arms.tolist(), "other results give other draws"


def test_graph_elimination_pulls_the_most_uncertain_arm_left_and_never_one_eliminated() -> None:
    policy = GraphElimination(PAPER.problem, 0.1, watching=(("graph-intervals", 0.01),))
    rng, state = np.random.default_rng(0), policy.init()
    eliminated = np.zeros(3, dtype=bool)
    for _ in range(1500):
        arms = policy.ask(state, 3)
        counts = state.counts.copy()
        for arm in arms:
            if (np.bincount([0, 1, 1], counts) > 0).all():
                variance = np.diag(np.linalg.inv(graph_precision(PAPER.problem, counts)))
                assert not eliminated[arm]
                assert variance[arm] == pytest.approx(variance[~eliminated].max())
            counts[arm] += 1
        if not arms.size:
            break
        state = policy.tell(state, arms, mu_of(PAPER)[arms] + rng.standard_normal(arms.size))
        active = state.sampling
        assert isinstance(active, Active)
        assert (active.arms[eliminated] == 0).all() or eliminated.sum() == 2, "an arm eliminated stays so"
        eliminated = active.arms == 0
    assert policy.verdict(state).decided
    assert policy.verdict(state).arm == 0
    assert policy.verdict(state, 1).decided, "eliminating at the smallest risk, so that all are settled"
    estimates, widths = graph_intervals(PAPER.problem, state.counts, state.data.means, 0.01)
    assert (estimates[0] - widths[0] > (estimates + widths)[1:]).all()


def test_only_rules_whose_pulls_depend_on_delta_say_so() -> None:
    for kind, policy in POLICIES.items():
        loose, tight = (
            simulate.run(policy.on(HARD, delta=delta), mu_of(HARD), 1, max_samples=60) for delta in (0.3, 1e-12)
        )
        samples = min(loose.tau, tight.tau)
        assert samples == 60, "both should still be running"
        uses_delta = policy.on(HARD).uses_delta
        assert uses_delta == (kind in ("spectral-race", "race", "lucb", "graph-elimination"))
        if not uses_delta:
            np.testing.assert_array_equal(loose.counts, tight.counts)


def test_graph_elimination_follows_its_own_rule_only() -> None:
    with pytest.raises(InvalidInput, match="must be graph-intervals for graph-elimination"):
        GraphElimination(PAPER.problem, 0.1, stopping="gk16")
    with pytest.raises(InvalidInput, match="must be graph-intervals for graph-elimination"):
        GraphElimination(PAPER.problem, 0.1, watching=(("intervals", 0.1),))


def test_a_policy_that_knows_no_graph_forgets_it_however_it_is_made() -> None:
    for policy in (Race, TrackAndStop, TopTwo, LUCB):
        assert policy(PAPER.problem).problem.R == math.inf
