"""Tapes: the k-th outcome of an arm depends on the seed, the arm and k only."""

from __future__ import annotations

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.noise import Drawing
from spectralbai.policy import LUCB, Policy, TopTwo, Uniform
from spectralbai.tape import TableTape, Tape

MEANS = np.array([0.2, 0.5, 0.7, 0.4])
GRAPH = sb.Graph.from_edges(4, [(0, 1), (2, 3)])


def tape(seed: int, problem: sb.Problem | None = None, noise: Drawing | None = None) -> Tape:
    problem = problem or sb.Problem(GRAPH, R=1.0)
    return Tape(problem.noise.draws(MEANS, noise), 4, seed)


@pytest.mark.parametrize(
    ("problem", "noise"),
    [(None, None), (sb.Problem.bounded(GRAPH, R=1.0), "uniform"), (sb.Problem.bounded(GRAPH, R=1.0), 0.1)],
)
def test_order_and_batches_do_not_matter(problem: sb.Problem | None, noise: Drawing | None) -> None:
    rng = np.random.default_rng(0)
    arms = rng.integers(0, 4, 300)
    at_once = tape(3, problem, noise).read(arms)
    one_by_one, parts, shuffled = tape(3, problem, noise), tape(3, problem, noise), tape(3, problem, noise)
    assert np.array_equal(at_once, [one_by_one.read(np.array([arm]))[0] for arm in arms])
    assert np.array_equal(at_once, np.concatenate([parts.read(part) for part in np.split(arms, [1, 7, 130])]))
    order = rng.permutation(300)
    other = shuffled.read(arms[order])
    for arm in range(4):
        assert np.array_equal(at_once[arms == arm], other[arms[order] == arm])
        n = int((arms == arm).sum())
        assert np.array_equal(tape(3, problem, noise).first(arm, n), at_once[arms == arm])


def test_arms_and_seeds_have_outcomes_of_their_own() -> None:
    outcomes = np.array([[tape(seed).first(arm, 500) - MEANS[arm] for arm in range(4)] for seed in range(3)])
    related = np.corrcoef(outcomes.reshape(12, -1)) - np.eye(12)
    assert np.abs(related).max() < 0.2
    assert np.abs(outcomes.mean(axis=2)).max() < 4 / np.sqrt(500)
    assert np.array_equal(outcomes[1, 2], tape(1).first(2, 500) - MEANS[2])


@pytest.mark.parametrize(
    "policy",
    [
        sb.SpectralRace(sb.Problem(GRAPH, 2.0), 0.1),
        sb.SpectralRace(sb.Problem(GRAPH, 0.5), 0.01),
        sb.SpectralTaS(sb.Problem(GRAPH, 2.0), 0.1, "gk16"),
        sb.SpectralTaS.as_printed(sb.Problem(GRAPH, 2.0), 0.1, iterations=20),
        Uniform(sb.Problem(GRAPH, 2.0), 0.1, "paper"),
        TopTwo(sb.Problem(GRAPH, 2.0), 0.1, "gk16"),
        LUCB(sb.Problem(GRAPH, 2.0), 0.1),
    ],
    ids=lambda policy: type(policy).__name__,
)
@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_the_kth_outcome_of_an_arm_is_the_same_for_every_policy_and_batch(policy: Policy, batch: int) -> None:
    luck, state, rng, seen = tape(5), policy.init(), np.random.default_rng(0), dict[int, list[float]]()
    while state.samples < 120 and (arms := policy.ask(state, batch, rng=rng)).size:
        outcomes = luck.read(arms)
        for arm, outcome in zip(arms.tolist(), outcomes.tolist(), strict=True):
            seen.setdefault(arm, []).append(outcome)
        state = policy.tell(state, arms, outcomes)
    assert len(seen) > 1
    for arm, outcomes_of_arm in seen.items():
        assert outcomes_of_arm == tape(5).first(arm, len(outcomes_of_arm)).tolist()
    run = sb.simulate.trace(policy, MEANS, 5, max_samples=150)  # as `simulate.run` plays
    for arm in range(4):
        own = run.outcomes[run.arms == arm]
        assert np.array_equal(own, tape(5).first(arm, own.size))


def test_policies_meet_the_same_luck() -> None:
    """A rule that ignores the graph decides at the same time, by the same outcomes, whatever R is."""
    runs = [sb.simulate.run(Uniform(sb.Problem(GRAPH, R), 0.1, "paper-printed"), 3 * MEANS, 1) for R in (2.0, 3.0)]
    assert runs[0].tau == runs[1].tau
    other = sb.simulate.run(Uniform(sb.Problem(GRAPH, 2.0), 0.1, "paper-printed"), 3 * MEANS, 2)
    assert other.tau != runs[0].tau


@pytest.mark.parametrize("fresh", [True, False])
def test_a_table_gives_an_item_its_column_however_pairs_are_asked_for(fresh: bool) -> None:
    table = np.arange(3 * 50.0).reshape(3, 50)
    arms, items = np.tile([0, 1, 2], 40), np.repeat(np.arange(40), 3)
    at_once, in_parts, backwards = (TableTape(table, fresh, seed=5) for _ in range(3))
    outcomes = at_once.read(arms, items=items)
    parts = [in_parts.read(arms[begin : begin + 7], items=items[begin : begin + 7]) for begin in range(0, 120, 7)]
    reverse = backwards.read(arms[::-1], items=items[::-1])[::-1]
    assert np.concatenate(parts).tolist() == outcomes.tolist() == reverse.tolist()
    columns = outcomes.reshape(40, 3) - [0, 50, 100]
    assert (columns == columns[:, :1]).all()
    assert (columns[:, 0].tolist() == list(range(40))) is not fresh
    if fresh:
        other = TableTape(table, fresh, seed=6).read(arms, items=items)
        assert other.tolist() != outcomes.tolist() and len(set(columns[:, 0])) < 40  # with replacement


def test_without_items_a_table_gives_random_entries_of_the_row_the_same_for_all_policies() -> None:
    table = np.arange(3 * 50.0).reshape(3, 50)
    one, other = TableTape(table, False, seed=5), TableTape(table, False, seed=5)
    outcomes = one.read(np.array([0, 1, 2, 0, 1, 0]))
    assert (outcomes // 50).tolist() == [0, 1, 2, 0, 1, 0]
    assert other.read(np.array([1, 1, 0, 0, 0])).tolist() == outcomes[[1, 4, 0, 3, 5]].tolist()
