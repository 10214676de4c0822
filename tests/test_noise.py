"""Each kind of noise: messages, estimated variances and draws; what all kinds do is in
`tests/contracts/noise_models.py`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spectralbai import Graph, InvalidInput, Problem, SpectralTaS, simulate
from spectralbai.arrays import Vector
from spectralbai.noise import Binary, Bounded, Drawing, Noise, SubGaussian, document, noise_from_dict, register_noise

GRAPH = Graph.from_edges(3, [(1, 2, 1.0)])
GAUSS = SubGaussian(np.array([1.0, 2.0, 3.0]))
SCORES = Bounded(-1.0, 3.0)
CLICKS = Binary(-1.0, 3.0)
PULLS = np.repeat([0, 1, 2], 4000)


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(InvalidInput) as error:
        call(*arguments)
    return str(error.value)


# Outcomes and means.


def test_truth_values_are_clicks() -> None:
    assert Binary(0, 1).check_outcomes("rewards", np.array([True, False])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("noise", "bad", "must"),
    [
        (GAUSS, 1e76, "must be between -1e75 and 1e75, got 1e+76{}; measure in other units"),
        (GAUSS, -1e76, "must be between -1e75 and 1e75, got -1e+76{}; measure"),
        (SCORES, 3.5, "must lie in [-1, 3], got 3.5{}; correct it or widen the range"),
        (SCORES, -1.5, "must lie in [-1, 3], got -1.5{}; correct it or widen the range"),
        (SCORES, 3.00000001, "must lie in [-1, 3], got 3.00000001{}; correct it"),
        (CLICKS, 0.5, "must be -1 or 3, got 0.5{}; correct it, or leave out binary for scores between them"),
        (CLICKS, 5.0, "must be -1 or 3, got 5{}; correct it"),
    ],
)
def test_an_outcome_that_cannot_be_is_refused_with_value_place_and_remedy(noise: Noise, bad: float, must: str) -> None:
    assert f"`outcome` {must.format('')}" in refusal(noise.check_outcome, "outcome", bad)
    assert f"`rewards` {must.format(' at position 1')}" in refusal(noise.check_outcomes, "rewards", [3.0, bad, bad])


def test_a_place_is_named_as_it_is_and_an_option_in_quotes() -> None:
    assert refusal(SCORES.check_outcome, "--outcome", 7).startswith("`--outcome` must lie in [-1, 3], got 7;")
    assert refusal(SCORES.check_outcome, "line 3", 7).startswith("line 3 must lie in [-1, 3], got 7;")
    assert refusal(SCORES.check_outcome, "$.x", 7).startswith("$.x must lie")


@pytest.mark.parametrize("noise", [SCORES, CLICKS])
def test_means_lie_in_the_range_of_the_outcomes(noise: Noise) -> None:
    assert noise.check_means("mu", np.array([-1.0, 0.3, 3.0])).tolist() == [-1.0, 0.3, 3.0]
    for bad in (-1.5, 3.5):
        found = refusal(noise.check_means, "mu", np.array([0.0, bad, 0.0]))
        assert found == f"`mu` must lie in [-1, 3] as the outcomes do, got {bad} at arm 1; change it or widen the range"


def test_gaussian_means_need_only_be_numbers_that_can_be_squared() -> None:
    assert GAUSS.check_means("mu", np.array([-1e75, 0.0, 1e75])).size == 3
    assert "got 1e+76 at arm 2; measure in other units" in refusal(GAUSS.check_means, "mu", np.array([0, 0, 1e76]))


# Constants and variances.


def test_sigma_is_half_the_range_by_hoeffding() -> None:
    for noise in (SCORES, CLICKS):
        assert noise.sigmas(2).tolist() == [2.0, 2.0]
    assert GAUSS.sigmas(3).tolist() == [1.0, 2.0, 3.0]


def statistics(outcomes: list[list[float]], origin: float) -> tuple[Vector, Vector, Vector, float]:
    shifted = [np.array(each) - origin for each in outcomes]
    counts, sums, squares = (
        np.array([float(f(each)) for each in shifted]) for f in (np.size, np.sum, lambda x: np.sum(x**2))
    )
    return counts, sums, squares, origin


@pytest.mark.parametrize("origin", [0.0, -1.0, 2.5])
def test_a_gaussian_variance_is_sigma_squared_whatever_was_seen(origin: float) -> None:
    seen = statistics([[1.0, 5.0], [2.0], []], origin)
    assert GAUSS.variances(*seen, leader=1).tolist() == [1.0, 4.0, 9.0]


@pytest.mark.parametrize("origin", [0.0, -1.0, 3.0])
def test_the_variance_of_clicks_is_shrunk_to_that_of_all_and_half_way_to_the_leader(
    origin: float,
) -> None:
    seen = statistics([[3.0] * 9 + [-1.0], [-1.0] * 4, []], origin)
    pooled = (9 + 1.5) / (14 + 3)
    shares = np.array([(9 + 3 * pooled) / 13, 3 * pooled / 7, pooled])
    shares = (shares + shares[0]) / 2
    np.testing.assert_allclose(CLICKS.variances(*seen, leader=0), 16 * shares * (1 - shares), rtol=1e-12)


@pytest.mark.parametrize("origin", [0.0, -1.0, 2.5])
def test_the_variance_of_scores_is_shrunk_to_that_of_all_and_half_way_to_the_leader(
    origin: float,
) -> None:
    outcomes = [[0.0, 1.0, 2.0, 1.0], [0.5, 0.7], [2.0], []]
    pooled = (2.0 + 0.02) / (3 + 1)
    own = np.array([(2.0 + 3 * pooled) / 6, (0.02 + 3 * pooled) / 4, pooled, pooled])
    found = SCORES.variances(*statistics(outcomes, origin), leader=1)
    np.testing.assert_allclose(found, (own + own[1]) / 2, rtol=1e-12)


@pytest.mark.parametrize("noise", [SCORES, CLICKS])
def test_variances_stay_positive_and_within_what_the_range_allows(noise: Noise) -> None:
    nothing: list[list[float]] = [[], [], []]
    same, ends = [[3.0] * 50, [3.0] * 2, []], [[3.0, -1.0], [3.0, -1.0], [3.0, -1.0]]
    assert noise.variances(*statistics(nothing, 0.0), leader=2).tolist() == [4.0, 4.0, 4.0]
    for seen in (same, ends):
        found = noise.variances(*statistics(seen, 3.0), leader=2)
        assert (found > 0).all() and (found <= 4.0).all()
    assert noise.variances(*statistics(same, 3.0), leader=0)[0] < 0.2


def test_estimated_variances_come_near_the_true_ones() -> None:
    mu = np.array([2.5, 0.0, -0.5])
    for noise, kind, truth in ((SCORES, 0.3, np.full(3, 0.09)), (CLICKS, None, (3 - mu) * (mu + 1))):
        drawn = noise.draws(mu, kind)(np.random.default_rng(3), PULLS).reshape(3, -1)
        seen = statistics(drawn.tolist(), float(drawn[0, 0]))
        found = [noise.variances(*seen, leader=arm)[arm] for arm in range(3)]
        np.testing.assert_allclose(found, truth, rtol=0.05)


# Draws.


def test_seeds_give_the_same_draws_as_in_earlier_versions() -> None:
    """Runs of earlier versions can be repeated."""
    mu, arms = np.array([2.0, 0.0, -0.5]), np.array([0, 2, 2, 1, 0])
    cases: tuple[tuple[Noise, Drawing | None, Callable[[np.random.Generator], Vector]], ...] = (
        (GAUSS, None, lambda rng: mu[arms] + GAUSS.sigma[arms] * rng.standard_normal(5)),
        (SCORES, None, lambda rng: np.where(rng.random(5) * 4 < mu[arms] + 1, 3.0, -1.0)),
        (CLICKS, None, lambda rng: np.where(rng.random(5) * 4 < mu[arms] + 1, 3.0, -1.0)),
        (SCORES, "uniform", lambda rng: mu[arms] + np.array([1.0, 1.0, 0.5])[arms] * rng.uniform(-1, 1, 5)),
    )
    for noise, kind, expected in cases:
        found = noise.draws(mu, kind)(np.random.default_rng(5), arms)
        assert found.tolist() == expected(np.random.default_rng(5)).tolist()


def test_giving_the_default_by_name_changes_nothing() -> None:
    mu = np.array([2.0, 0.0, -0.5])
    cases: tuple[tuple[Noise, Drawing], ...] = ((GAUSS, "gaussian"), (SCORES, "bernoulli"), (CLICKS, "bernoulli"))
    for noise, kind in cases:
        one, other = (noise.draws(mu, each)(np.random.default_rng(1), PULLS) for each in (None, kind))
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("noise", "kind", "spread"),
    [
        (GAUSS, None, [1.0, 2.0, 3.0]),
        (SCORES, "bernoulli", [math.sqrt(3), math.sqrt(3), 0.0]),
        (SCORES, "uniform", [1 / math.sqrt(3), 1 / math.sqrt(3), 0.0]),
        (CLICKS, None, [math.sqrt(3), math.sqrt(3), 0.0]),
    ],
)
def test_draws_have_the_means_and_spreads_asked_for(noise: Noise, kind: Drawing | None, spread: list[float]) -> None:
    mu = np.array([2.0, 0.0, -1.0])
    drawn = noise.draws(mu, kind)(np.random.default_rng(0), PULLS)
    assert noise.check_outcomes("drawn", drawn).size == PULLS.size
    np.testing.assert_allclose(drawn.reshape(3, -1).mean(axis=1), mu, atol=0.15)
    np.testing.assert_allclose(drawn.reshape(3, -1).std(axis=1), spread, rtol=0.05)


@pytest.mark.parametrize("spread", [1e-160, 1e-9, 0.02, 0.8, 1.7])
def test_scores_have_the_mean_and_the_spread_asked_for(spread: float) -> None:
    mu = np.array([2.0, 1.0, 0.0])
    drawn = SCORES.draws(mu, spread)(np.random.default_rng(0), PULLS)
    assert SCORES.check_outcomes("drawn", drawn).size == PULLS.size
    by_arm = drawn.reshape(3, -1)
    np.testing.assert_allclose(by_arm.mean(axis=1), mu, atol=1e-14 + 4 * spread / math.sqrt(4000))
    np.testing.assert_allclose((by_arm - mu[:, None]).std(axis=1), spread, rtol=0.04, atol=1e-14)
    assert np.array_equal(drawn, SCORES.draws(mu, spread)(np.random.default_rng(0), PULLS))


def test_scores_do_not_leave_the_range_by_rounding() -> None:
    noise = Bounded(-0.3, 0.1)
    assert noise.low + (noise.high - noise.low) > noise.high
    drawn = noise.draws(np.array([0.09]), 0.06)(np.random.default_rng(0), np.zeros(4000, dtype=np.intp))
    assert drawn.max() == noise.high


@pytest.mark.parametrize(
    ("noise", "mu", "kind", "message"),
    [
        (GAUSS, [0, 0, 0], "uniform", "`noise` must be gaussian, with spread sigma, got 'uniform'; use Problem.b"),
        (GAUSS, [0, 0, 0], 0.5, "`noise` must be gaussian, with spread sigma, got 0.5"),
        (SCORES, [0, 0, 0], "gaussian", "`noise` must be bernoulli, uniform or the standard deviation of the scores"),
        (SCORES, [0, 0, 0], 0.0, "`noise` must be a positive standard deviation, got 0.0"),
        (SCORES, [0, 0, 0], math.nan, "`noise` must be a positive standard deviation, got nan"),
        (SCORES, [0, 0, 0], True, "`noise` must be a positive standard deviation, got True; give a number"),
        (
            SCORES,
            [0, 2.9, 0],
            1.0,
            "`noise` must be below 0.6245, the largest spread of outcomes in [-1, 3] with mean 2.9 at arm 1, got 1",
        ),
        (SCORES, [1, 1, 1], 2.0, "`noise` must be below 2, the largest"),
        (SCORES, [0, 3, 0], 1e-9, "`noise` must be below 0, the largest spread"),
        (SCORES, [0, 4, 0], None, "`mu` must lie in [-1, 3] as the outcomes do, got 4 at arm 1"),
        (CLICKS, [0, 4, 0], None, "`mu` must lie in [-1, 3] as the outcomes do, got 4 at arm 1"),
        (CLICKS, [0, 0, 0], "uniform", "`noise` must be bernoulli where only -1 and 3 occur, got 'uniform'; leave out"),
        (CLICKS, [0, 0, 0], 0.1, "`noise` must be bernoulli where only -1 and 3 occur, got 0.1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(noise: Noise, mu: list[float], kind: Any, message: str) -> None:
    assert message in refusal(noise.draws, np.array(mu, dtype=float), kind)


def test_a_run_on_scores_of_a_given_spread_differs_from_one_on_clicks() -> None:
    policy, mu = SpectralTaS(Problem.bounded(GRAPH, R=0.05), 0.1, stopping="gk16"), [0.95, 0.1, 0.2]
    scores, again, clicks = (simulate.run(policy, mu, seed=1, noise=noise) for noise in (0.02, 0.02, None))
    assert (scores.status, scores.arm) == (clicks.status, clicks.arm) == ("decided", 0)
    assert scores.counts.tolist() == again.counts.tolist() != clicks.counts.tolist()


# Signs and files.


@pytest.mark.parametrize(
    ("noise", "keys"),
    [
        (GAUSS, {"sigma": [1.0, 2.0, 3.0]}),
        (SubGaussian.of(0.5, 3), {"sigma": 0.5}),
        (SCORES, {"low": -1.0, "high": 3.0}),
        (CLICKS, {"low": -1.0, "high": 3.0, "binary": True}),
    ],
)
def test_noise_is_written_in_a_few_keys(noise: Noise, keys: dict[str, Any]) -> None:
    assert noise.as_dict() == keys


def test_a_file_may_say_that_outcomes_are_not_binary_or_nothing_at_all() -> None:
    assert noise_from_dict({"low": 0, "high": 1, "binary": False}, 3) == Bounded(0.0, 1.0)
    assert noise_from_dict({}, 3).as_dict() == {"sigma": 1.0}


def test_noise_is_described_in_a_few_words() -> None:
    found = [noise.described() for noise in (GAUSS, SubGaussian.of(0.5, 3), SCORES, CLICKS)]
    assert found == ["sigma 1 to 3", "sigma 0.5", "outcomes in [-1, 3]", "outcomes -1 or 3"]


def test_a_policy_of_clicks_takes_nothing_between_them() -> None:
    policy = SpectralTaS(Problem.bounded(GRAPH, R=0.05, binary=True), 0.1, stopping="gk16")
    assert policy.tell(policy.init(), [0, 1], [0.0, 1.0]).samples == 2
    with pytest.raises(InvalidInput, match=re.escape("`rewards` must be 0 or 1, got 0.5 at position 1")):
        policy.tell(policy.init(), [0, 1], [0.0, 0.5])


def test_a_registered_kind_of_noise_is_read_from_a_file_and_others_are_refused_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(document, "READERS", {})
    register_noise("halved", lambda d, n_arms: SubGaussian.of(d["sigma"] / 2, n_arms))
    assert noise_from_dict({"noise": {"kind": "halved", "sigma": 3.0}}, 2).sigmas(2).tolist() == [1.5, 1.5]
    for bad, message in (
        ({"noise": {"kind": "halve"}}, '$.noise must be of a known kind, got "halve"; did you mean "halved"?'),
        ({"noise": {"kind": "x"}}, 'got "x"; import the module that defines it first'),
        ({"noise": {"sigma": 1.0}}, "$.noise must be an object with a \"kind\", got {'sigma': 1.0}"),
        ({"noise": "halved"}, "$.noise must be an object with a \"kind\", got 'halved'"),
        ({"noise": {"kind": "halved"}, "low": 0.0}, '$ has both "noise" and "low"; remove one of them'),
    ):
        assert message in refusal(noise_from_dict, bad, 2)
    found = refusal(register_noise, "halved", lambda d, n_arms: SubGaussian.of(1.0, n_arms))
    assert found == "`kind` must be new, got 'halved', which is registered already; choose another word"
