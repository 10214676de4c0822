"""What the paper gets wrong (theory, section 11): a test for each row, unless it is beside the code that is right.

Outcomes that are exactly their means show what holds in the long run, without any luck.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.arrays import Vector
from spectralbai.evidence.blocks import Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.policy import Policy
from spectralbai.sampling import printed
from spectralbai.stopping import RULES
from spectralbai.tape import Tape

GRAPH, MEANS = sb.Graph.from_edges(3, [(1, 2)]), np.array([0.9, 0.5, 0.6])
PAPER = sb.Problem(GRAPH, 0.01)
T_R, T_INF = 800 / 9, 106.15384589


def seen(problem: sb.Problem, counts: Vector, means: Vector, best: int = 0) -> Evidence:
    return Evidence(problem, Data(counts, counts * means, counts * means**2), best, 0.0)


def statistic(rule: str, evidence: Evidence) -> float:
    return RULES[rule].read(Memory(), evidence).least_beaten(0.01)[0]


def played(policy: Policy, most: int = 1_000_000) -> Vector:
    """Returns the counts at the end of a run in which every outcome is exactly its mean."""
    return policy.play(Tape(lambda _, arms: MEANS[arms], 3, 0), most).counts


def test_the_printed_statistic_grows_by_at_most_one_over_T_inf_a_sample_whatever_R_and_the_pulls() -> None:
    rng = np.random.default_rng(0)
    allocations = [*rng.dirichlet(np.ones(3), 50), *(sb.solve_allocation(PAPER.without_graph(), MEANS).omega,)]
    for omega in allocations:
        values = {R: statistic("paper-printed", seen(sb.Problem(GRAPH, R), 1000 * omega, MEANS)) for R in (0.01, 0.1)}
        assert values[0.01] == values[0.1] <= 1000 / T_INF * (1 + 1e-6)
    assert max(values.values()) == pytest.approx(1000 / T_INF, rel=1e-6)
    best = 1000 * sb.solve_allocation(PAPER, MEANS).omega
    assert statistic("paper", seen(PAPER, best, MEANS)) == pytest.approx(1000 / T_R, rel=1e-5)


def test_alternatives_that_are_smooth_move_more_than_the_two_arms_that_the_proof_of_the_threshold_is_about() -> None:
    graph = sb.Graph.from_edges(7, [(a, b) for b in range(1, 7) for a in range(1, b)])
    problem, mu = sb.Problem(graph, 1e-3), np.array([0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.51])
    moved = {}
    for name, one in (("constrained", problem), ("unconstrained", problem.without_graph())):
        alternative = sb.closest_alternative(one, mu, np.full(7, 1 / 7))
        moved[name] = int((np.abs(alternative.lam - mu) > 0.01).sum())
    assert moved == {"constrained": 7, "unconstrained": 2}
    assert not RULES["paper"].proved and RULES["betting"].proved


def test_only_three_rules_are_proved_and_none_of_them_is_of_the_paper() -> None:
    assert {name for name, rule in RULES.items() if rule.proved} == {"betting", "intervals", "graph-intervals"}
    run = sb.simulate.run(sb.SpectralTaS.as_printed(PAPER, 0.1, 20), [3.0, 0.5, 0.6], seed=1)
    assert run.status == "decided" and not run.proved


def test_the_theorem_cited_is_about_another_statistic_on_clicks() -> None:
    """10 clicks of 100 against none; Theorem 10 of [GK16] takes the relative entropy of Bernoulli distributions."""
    clicks = sb.Problem.bounded(sb.Graph.from_edges(2, []), 1.0, binary=True)
    counts, rates = np.array([100.0, 100.0]), np.array([0.1, 0.0])
    gaussian = statistic("paper-printed", seen(clicks, counts, rates))
    assert gaussian == pytest.approx(1.0)
    bernoulli = 10 * math.log(0.1 / 0.05) + 90 * math.log(0.9 / 0.95) + 100 * math.log(1 / 0.95)
    assert bernoulli > 7 * gaussian


def test_rough_averages_need_a_response_that_does_not_tie_the_two_arms() -> None:
    problem = sb.Problem(sb.Graph.from_edges(3, [(0, 1)]), 0.04)
    mu, omega = np.array([1.0, 0.0, 0.8]), np.full(3, 1 / 3)
    assert problem.smoothness(mu) > problem.R
    response = sb.closest_alternative(problem, mu, omega)
    assert response.challenger == 2 and response.gamma > 0
    assert response.lam[2] > response.lam[0] + 0.05  # nu = 0
    assert int(np.argmax(sb.estimate(problem, omega, mu))) == 2 != int(np.argmax(mu))
    # The paper merges the two arms, so that they are equal: the closest means of this kind cost more.
    tied = min(
        float(omega @ (mu - lam) ** 2 / 2)
        for level in np.linspace(0, 1, 1001)
        for lam in [np.array([level, max(level - 0.2, 0.0), level])]
    )
    assert tied > 1.05 * response.cost


def test_R_of_a_tenth_restricts_some_responses_but_not_the_time() -> None:
    problem, omega = sb.Problem(GRAPH, 0.1), [0.9, 0.05, 0.05]
    restricted, free = (sb.closest_alternative(one, MEANS, omega) for one in (problem, problem.without_graph()))
    np.testing.assert_allclose(restricted.lam, [0.881, 0.565, 0.881], atol=5e-4)
    np.testing.assert_allclose(free.lam, [0.884, 0.5, 0.884], atol=5e-4)
    assert restricted.cost > 1.05 * free.cost
    assert sb.solve_allocation(problem, MEANS).characteristic_time == pytest.approx(T_INF, rel=1e-6)


def test_the_set_of_divergences_is_not_bounded_and_the_smallest_is_attained_all_the_same() -> None:
    for level in (10.0, 1e3, 1e6):
        lam = np.full(3, level)
        assert PAPER.smoothness(lam) <= PAPER.R and lam[1] >= lam[0]  # so it is in A_{R,i}
        assert ((MEANS - lam) ** 2 / 2).min() > level**2 / 3
    for omega in ([0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]):
        response = sb.closest_alternative(PAPER, MEANS, omega)
        assert PAPER.smoothness(response.lam) <= PAPER.R * (1 + 1e-9)
        assert np.dot(omega, (MEANS - response.lam) ** 2 / 2) == pytest.approx(response.cost, abs=1e-12)


def test_shares_of_the_pulls_converge_and_their_numbers_do_not() -> None:
    policy = sb.SpectralTaS.as_printed(PAPER, 1e-200, iterations=100)
    omega = printed.mirror_ascent(MEANS, printed.constants(PAPER), 100)
    for most in (500, 1000, 8000):
        counts = played(policy, most)
        np.testing.assert_allclose(counts / most, omega, atol=0.003)
        assert counts.min() > most / 4  # without end


def test_the_bound_is_not_true_for_every_sub_gaussian_law() -> None:
    """Outcomes are a mean plus or minus 1: as soon as an arm has shown both, its mean is known."""
    s = np.linspace(-8, 8, 400)
    assert (np.log(np.cosh(s)) <= s**2 / 2).all()  # 1-sub-Gaussian
    rng, took = np.random.default_rng(0), []
    for _ in range(300):
        samples, known = 0, np.empty(3)
        for arm, mean in enumerate(MEANS):
            shown: set[float] = set()
            while len(shown) < 2:
                shown.add(float(mean + rng.choice([-1.0, 1.0])))
                samples += 1
            known[arm] = sum(shown) / 2
        assert int(np.argmax(known)) == 0
        took.append(samples)
    assert np.mean(took) == pytest.approx(9, abs=1)
    assert sb.lower_bound(PAPER, MEANS, 0.01) > 40 * np.mean(took)


def test_the_algorithm_as_printed_is_not_asymptotically_optimal() -> None:
    delta = 1e-40
    as_printed, constrained = (
        played(policy).sum() / math.log(1 / delta)
        for policy in (sb.SpectralTaS.as_printed(PAPER, delta, 50), sb.SpectralTaS(PAPER, delta, "paper"))
    )
    assert T_R < constrained < T_INF < 0.8 * as_printed
