"""Algorithm 1 as printed, held against a transcription of the paper in a few lines of numpy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq

import spectralbai as sb
from spectralbai.policy.policy import Policy
from spectralbai.sampling.printed import constants, mirror_ascent
from spectralbai.tape import Tape

MEANS = np.array([0.9, 0.5, 0.6])
Vector = NDArray[np.float64]


def paper(R: float = 0.01) -> sb.Problem:
    return sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R)


def response(problem: sb.Problem, mu: Vector, omega: Vector) -> Vector:
    """The best response: of the closest means with lam_i >= lam_best and lam' L lam <= R, for every i, the closest.

    As in the paper, the two arms are merged if they tie, and the price of smoothness is searched for.
    """
    n, best, laplacian = mu.size, int(np.argmax(mu)), problem.graph.laplacian.toarray()

    def closest(merge: Vector) -> Vector:
        """The closest smooth means of the form merge @ x."""
        weights, L = merge.T @ np.diag(omega) @ merge, merge.T @ laplacian @ merge

        def x(gamma: float) -> Vector:
            return np.linalg.solve(weights + 2 * gamma * L, merge.T @ (omega * mu))

        def excess(gamma: float) -> float:
            return float(x(gamma) @ L @ x(gamma) - problem.radii[0])

        gamma = 0.0
        if excess(0.0) > 0:
            gamma = brentq(excess, 0.0, 2.0 ** next(k for k in range(60) if excess(2.0**k) < 0), xtol=1e-15, rtol=1e-13)
        lam: Vector = merge @ x(gamma)
        return lam

    smooth, responses = closest(np.eye(n)), []
    for i in (i for i in range(n) if i != best):
        merge = np.delete(np.eye(n), best, axis=1)
        merge[best] = merge[i]
        responses.append(smooth if smooth[i] > smooth[best] else closest(merge))
    return min(responses, key=lambda lam: float(omega @ (mu - lam) ** 2))


def ascent(problem: sb.Problem, mu: Vector, steps: int) -> Vector:
    """Theorem 9: omega_1 uniform, eta = sqrt(2 log K / t) / L, the average of the iterates."""
    n = mu.size
    spread = max(0.5 * (a - b) ** 2 for a in mu for b in mu)
    eta = np.sqrt(2 * np.log(n) / steps) / spread
    omega, iterates = np.full(n, 1 / n), []
    for _ in range(steps):
        iterates.append(omega)
        omega = omega * np.exp(eta * 0.5 * (mu - response(problem, mu, omega)) ** 2)
        omega = omega / omega.sum()
    average: Vector = np.mean(iterates, axis=0)
    return average


def project(omega: Vector, epsilon: float) -> Vector:
    """The closest point of {w >= epsilon, sum w = 1} in the maximum norm: max(omega - c, epsilon), c by bisection."""
    low, high = -1.0, 1.0
    for _ in range(100):
        c = (low + high) / 2
        low, high = (c, high) if np.maximum(omega - c, epsilon).sum() > 1 else (low, c)
    return np.maximum(omega - low, epsilon)


def transcription(problem: sb.Problem, delta: float, steps: int, tape: Tape) -> Iterator[tuple[int, float, float]]:
    """Algorithm 1: (arm, statistic, threshold) for every result after the first of each arm, until it stops."""
    n = problem.n_arms
    outcomes = [[tape.first(arm, 1)[0]] for arm in range(n)]
    targets = np.ones(n)  # the first pulls, one of each arm, were on target
    while True:
        mu, counts, t = (
            np.array([np.mean(x) for x in outcomes]),
            np.array([len(x) for x in outcomes]),
            sum(map(len, outcomes)),
        )
        targets = targets + project(ascent(problem, mu, steps), (n**2 + t) ** -0.5 / 2)
        arm = int(np.argmax(targets - counts))
        outcomes[arm].append(tape.first(arm, len(outcomes[arm]) + 1)[-1])
        mu, counts, t = np.array([np.mean(x) for x in outcomes]), np.array([len(x) for x in outcomes]), t + 1
        a = int(np.argmax(mu))
        pooled = [(counts[a] * mu[a] + counts[b] * mu[b]) / (counts[a] + counts[b]) for b in range(n)]
        Z = min(
            counts[a] * (mu[a] - pooled[b]) ** 2 / 2 + counts[b] * (mu[b] - pooled[b]) ** 2 / 2
            for b in range(n)
            if b != a
        )
        threshold = np.log(2 * t * (n - 1) / delta)
        yield arm, Z, threshold
        if threshold < Z:
            return


@pytest.mark.parametrize(("R", "means", "seed"), [(0.01, (2.4, 0.5, 0.6), 1), (0.1, (2.0, 0.5, 0.6), 2)])
def test_every_step_is_that_of_the_paper(R: float, means: tuple[float, ...], seed: int) -> None:
    problem, steps, delta = paper(R), 20, 0.1
    policy = sb.SpectralTaS.as_printed(problem, delta, steps)
    draw = problem.noise.draws(np.array(means))
    tape = Tape(draw, 3, seed)
    state = policy.init()
    for _ in range(3):
        arms = policy.ask(state)
        state = policy.tell(state, arms, tape.read(arms))
    assert state.counts.tolist() == [1, 1, 1]
    lines = list(transcription(problem, delta, steps, Tape(draw, 3, seed)))
    assert len(lines) > 5
    for arm, statistic, threshold in lines:
        assert not policy.verdict(state).decided
        arms = policy.ask(state)
        assert arms.tolist() == [arm]
        state = policy.tell(state, arms, tape.read(arms))
        verdict = policy.verdict(state)
        assert (verdict.statistic, verdict.threshold) == pytest.approx((statistic, threshold), rel=1e-9)
    assert policy.verdict(state).decided
    assert not policy.verdict(state).proved
    assert policy.verdict(state).arm == int(np.argmax(state.data.means))
    assert sb.simulate.run(policy, means, seed).tau == 3 + len(lines)


@pytest.mark.parametrize("seed", range(3))
def test_the_compiled_loop_plays_the_same_run(seed: int) -> None:
    policy = sb.SpectralTaS.as_printed(paper(), 0.05, 30)
    draw = policy.problem.noise.draws(MEANS)
    step_by_step = Policy.play(policy, Tape(draw, 3, seed), 100_000)
    compiled = policy.play(Tape(draw, 3, seed), 100_000)
    assert compiled.as_dict() == step_by_step.as_dict()
    assert compiled.samples > 300  # more than one part
    ended = policy.play(Tape(draw, 3, seed), 290)
    assert ended.as_dict() == Policy.play(policy, Tape(draw, 3, seed), 290).as_dict()
    assert ended.samples == 290


def test_mirror_ascent_is_that_of_the_theorem() -> None:
    """On graphs and means of many kinds, rough ones included, the allocation of every arm."""
    rng = np.random.default_rng(4)
    for n_arms, R in ((2, 0.01), (4, 0.3), (5, 0.02), (6, 1e-4), (4, np.inf)):
        edges = [(a, b) for a in range(n_arms) for b in range(a) if rng.random() < 0.6] or [(0, 1)]
        problem = sb.Problem(sb.Graph.from_edges(n_arms, edges), R)
        for _ in range(4):
            mu = rng.standard_normal(n_arms)
            found = mirror_ascent(mu, constants(problem), 15)
            np.testing.assert_allclose(found, ascent(problem, mu, 15), atol=1e-8)


def test_unequal_noise_weighs_the_responses() -> None:
    problem = sb.Problem(sb.Graph.from_edges(3, [(0, 1), (1, 2)]), 0.05, sigma=[0.5, 1.0, 2.0])
    mu = np.array([0.3, 1.0, -0.4])
    found = mirror_ascent(mu, constants(problem), 1)
    np.testing.assert_allclose(found, np.full(3, 1 / 3))
    two = mirror_ascent(mu, constants(problem), 2)
    lam = sb.closest_alternative(problem, mu, np.full(3, 1 / 3)).lam
    precision = np.array([4.0, 1.0, 0.25])
    eta = np.sqrt(np.log(3)) / (0.5 * 1.4**2 * 4)
    second = np.exp(eta * 0.5 * precision * (mu - lam) ** 2)
    np.testing.assert_allclose(two, (1 / 3 + second / second.sum()) / 2, atol=1e-9)


def test_equal_means_get_equal_shares() -> None:
    assert mirror_ascent(np.full(3, 0.7), constants(paper()), 50).tolist() == [1 / 3] * 3


def test_where_smooth_means_let_a_challenger_win_they_are_the_response() -> None:
    problem = sb.Problem(sb.Graph.from_edges(4, [(0, 1, 9.0), (1, 2, 0.1), (2, 3, 9.0), (0, 3, 0.1)]), 1e-3)
    rng, cases = np.random.default_rng(0), 0
    for _ in range(60):
        mu = rng.standard_normal(4)
        best = int(np.argmax(mu))
        cases += bool(np.argmax(sb.estimate(problem, np.ones(4), mu)) != best)
        np.testing.assert_allclose(mirror_ascent(mu, constants(problem), 3), ascent(problem, mu, 3), atol=1e-8)
    assert cases > 5


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), 0.01, tolerance=0.1), "a tolerance of 0.1"),
        (sb.Problem(sb.Graph.from_edges(4, [(0, 1), (2, 3)]), [0.1, 0.2]), "an R for each component"),
    ],
)
def test_what_the_paper_does_not_know_is_refused(problem: sb.Problem, said: str) -> None:
    with pytest.raises(sb.InvalidInput, match=said):
        sb.SpectralTaS.as_printed(problem)


def test_other_rules_are_refused() -> None:
    from spectralbai.policy.printed import PrintedTaS

    with pytest.raises(sb.InvalidInput, match="stops by paper-printed alone, got 'gk16'"):
        PrintedTaS(paper(), 0.1, "gk16")
    with pytest.raises(sb.InvalidInput, match="stops by paper-printed alone"):
        PrintedTaS(paper(), 0.1, watching=(("gk16", 0.1),))
    with pytest.raises(sb.InvalidInput, match="`iterations`"):
        sb.SpectralTaS.as_printed(paper(), 0.1, 0)
