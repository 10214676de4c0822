"""Estimates, intervals and forecasts that a policy reads off a state."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import lognorm

from spectralbai import Graph, Problem, SpectralRace, SpectralTaS, estimate
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.intervals import graph_intervals, plain_widths
from spectralbai.policy import LUCB, Estimates, GraphElimination, Policy, State, TopTwo, Uniform
from spectralbai.responder import Responder
from spectralbai.sampling.tracking import Tracked
from spectralbai.stopping import RULES

PAPER = Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01)
THREE_COMPONENTS = Problem(
    Graph.from_edges(6, [(0, 1, 1.0), (1, 2, 1.0), (3, 4, 2.0)]), R=0.3, sigma=[1, 1, 2, 1, 0.5, 1]
)
PATH = Problem(Graph.from_edges(4, [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)]), R=2.0, tolerance=0.3)
FREE = Problem(Graph.from_edges(3, [(0, 1, 1.0)]), R=math.inf)


def states(policy: Policy, mu: list[float], seed: int, n: int = 5000) -> list[State]:
    """Returns the states at the checks of a run, from the start to n results or the end."""
    noise, rng = np.random.default_rng(seed), np.random.default_rng(1)
    seen = [policy.init()]
    while seen[-1].samples < n and (arms := policy.ask(seen[-1], policy.horizon(seen[-1]), rng=rng)).size:
        rewards = np.array(mu)[arms] + policy.problem.sigma[arms] * noise.standard_normal(arms.size)
        seen.append(policy.tell(seen[-1], arms, rewards))
    return seen


def assert_unknown(found: Estimates) -> None:
    np.testing.assert_array_equal(found.low, -np.inf)
    np.testing.assert_array_equal(found.high, np.inf)


# Estimates.


def test_nothing_is_known_at_first_and_no_mean_before_every_component_has_a_result() -> None:
    policy = SpectralTaS(THREE_COMPONENTS, 0.1, stopping="gk16")
    for state in (policy.init(), policy.tell(policy.init(), [0, 1, 3] * 20, [1.0, 0.5, 0.2] * 20)):
        found = policy.estimates(state)
        assert np.isnan(found.mean).all() and found.mean.shape == (6,)
        assert_unknown(found)
        assert math.isnan(policy.remaining(state))


@pytest.mark.parametrize(
    ("problem", "mu"),
    [
        (PAPER, [0.9, 0.5, 0.6]),
        (THREE_COMPONENTS, [0.0, 0.1, 0.2, 0.6, 0.5, 1.5]),
        (PATH, [0.0, 0.5, 1.0, 1.0]),
        (FREE, [1.0, 0.0, 0.2]),
    ],
)
def test_estimates_are_those_of_all_results_in_the_units_of_the_outcomes(problem: Problem, mu: list[float]) -> None:
    """Shifting all outcomes shifts everything; between checks the latest results count too."""
    policy = SpectralTaS(problem, 0.1, stopping="graph-intervals")
    rng = np.random.default_rng(0)
    arms = rng.integers(problem.n_arms, size=303)
    rewards = np.array(mu)[arms] + problem.sigma[arms] * rng.standard_normal(303)
    state = policy.tell(policy.init(), arms, rewards)
    assert state.next_reading != 304
    found = policy.estimates(state)
    means = np.bincount(arms, rewards) / state.counts
    np.testing.assert_allclose(found.mean, estimate(problem, state.counts, means), rtol=1e-6, atol=1e-9)
    assert np.isfinite(found.low).all() and np.isfinite(found.high).all()
    assert ((found.low < mu) & (mu < found.high)).all()
    evidence = Evidence(problem, state.data, state.best, 0.0)
    ends = RULES["graph-intervals"].read(state.stopping["graph-intervals"], evidence).intervals(0.1)
    assert ends is not None
    np.testing.assert_allclose([found.low, found.high], np.array(ends) + state.origin, rtol=1e-9)
    there = policy.estimates(policy.tell(policy.init(), arms, rewards + 100))
    for name in ("mean", "low", "high"):
        np.testing.assert_allclose(getattr(there, name) - 100, getattr(found, name), rtol=1e-6, atol=1e-8)
        with pytest.raises(ValueError, match="read-only"):
            getattr(found, name)[0] = 0.0
    more = policy.tell(state, [0], [mu[0] + 50.0])
    assert more.sampling is state.sampling, "no reading yet"
    assert policy.estimates(more).mean[0] > found.mean[0]


def test_intervals_stay_within_the_range_of_the_outcomes() -> None:
    policy = SpectralTaS(Problem.bounded(PAPER.graph, 0.01, low=-1.0, high=1.0), 0.1, stopping="intervals")
    state = policy.tell(policy.init(), np.tile(np.arange(3), 60), np.tile([1.0, -1.0, -1.0], 60))
    found = policy.estimates(state)
    assert (found.high[0], found.low[1], found.low[2]) == (1.0, -1.0, -1.0)
    assert (found.low[0] < found.mean[0]) and (found.mean[1] < found.high[1])


def test_whether_the_data_agree_with_R_is_known_once_it_is_tested_and_of_all_results() -> None:
    policy = SpectralTaS(PAPER, 0.1, watching=(("gk16", 0.1),))
    assert policy.estimates(policy.init()).consistent is None
    run = states(policy, [2.0, 0.5, 0.6], seed=0)
    assert policy.estimates(run[1]).consistent is None, "before the first bet"
    assert policy.verdict(run[-1]).decided
    assert policy.estimates(run[-1]).consistent is True
    assert policy.estimates(run[-1], watch=1).consistent is None, "gk16 does not ask"
    rough = states(policy, [0.9, 0.4, 0.8], seed=1, n=20_000)[-1]
    assert policy.estimates(rough).consistent is False
    free = SpectralTaS(replace(PAPER, R=math.inf), 0.1)
    assert free.estimates(states(free, [2.0, 0.5, 0.6], seed=0)[-1]).consistent is None


def test_rules_that_are_not_proved_have_no_intervals_and_each_risk_has_its_own() -> None:
    policy = SpectralTaS(
        PAPER,
        0.1,
        "graph-intervals",
        watching=(("graph-intervals", 0.001), ("paper", 0.1), ("paper-printed", 0.1), ("gk16", 0.1)),
    )
    state = states(policy, [0.9, 0.5, 0.6], seed=0, n=400)[-1]
    own, surer, *others = (policy.estimates(state, watch) for watch in range(5))
    assert (surer.low < own.low).all() and (surer.high > own.high).all()
    for other in others:
        assert_unknown(other)
        np.testing.assert_array_equal(other.mean, own.mean)


def test_interval_rules_show_the_intervals_they_stop_by() -> None:
    lucb, elimination = LUCB(FREE, 0.1), GraphElimination(THREE_COMPONENTS, 0.1)
    state = lucb.tell(lucb.init(), [0, 1] * 5, np.linspace(3, 4, 10))
    assert_unknown(lucb.estimates(state))  # as in every rule, nothing is read before each component has a result
    state = lucb.tell(state, [2], [3.5])
    found, means = lucb.estimates(state), state.data.means + state.origin
    widths = plain_widths(state.counts, FREE.sigma, 0.1)
    np.testing.assert_allclose([found.low, found.high], [means - widths, means + widths])
    assert math.isnan(lucb.remaining(state))
    state = elimination.tell(elimination.init(), [0, 3, 5, 1, 4, 4, 3], np.linspace(3, 4, 7))
    found = elimination.estimates(state)
    centre, widths = graph_intervals(THREE_COMPONENTS, state.counts, state.data.means, 0.1)
    np.testing.assert_allclose(
        [found.low, found.high], [centre - widths + state.origin, centre + widths + state.origin]
    )
    np.testing.assert_allclose(found.mean, estimate(THREE_COMPONENTS, state.counts, state.data.means) + state.origin)
    # An anchor without results: known components are not enough.
    assert_unknown(elimination.estimates(elimination.tell(elimination.init(), [1, 3, 5], [0.0, 1.0, 2.0])))


def test_an_arm_without_results_is_unknown_to_an_interval_rule_that_knows_no_graph() -> None:
    policy = SpectralTaS(PAPER, 0.1, stopping="intervals")
    found = policy.estimates(policy.tell(policy.init(), [0, 1], [1.0, 0.0]))
    assert found.low[2] == -math.inf and found.high[2] == math.inf
    assert np.isfinite(found.mean).all() and np.isfinite(found.low[:2]).all()


def test_once_R_is_refuted_nothing_is_claimed_for_good() -> None:
    policy = SpectralTaS(PAPER, 1e-6)
    state = policy.init()
    while policy.verdict(state).consistent:
        assert state.samples < 5000
        arms = policy.ask(state, 3)
        state = policy.tell(state, arms, np.array([0.9, 0.0, 0.8])[arms])
    assert_unknown(policy.estimates(state))
    calm = policy.tell(state, np.tile([1], 5000), np.full(5000, 0.79))  # arms 1 and 2 agree again
    assert_unknown(policy.estimates(calm))
    assert np.isfinite(policy.estimates(calm).mean).all()
    assert policy.remaining(calm) == 0


def test_after_a_decision_estimates_go_on() -> None:
    policy = SpectralTaS(PAPER, 0.1)
    state = states(policy, [2.0, 0.5, 0.6], seed=0)[-1]
    assert policy.verdict(state).decided
    more = policy.tell(state, np.tile([0, 1, 2], 300), np.tile([2.0, 0.5, 0.6], 300))
    before, after = policy.estimates(state), policy.estimates(more)
    assert (after.high - after.low < before.high - before.low).all()


# Forecasts.


def test_the_forecast_is_what_is_missing_over_what_a_trial_brings() -> None:
    policy = SpectralTaS(PAPER, 1e-6, stopping="gk16")
    state = next(state for state in states(policy, [0.9, 0.5, 0.6], seed=3) if state.samples >= 150)
    tracked = state.sampling
    assert isinstance(tracked, Tracked)
    assert state.samples == tracked.base, "a reading, so that the verdict is of the present data"
    verdict = policy.verdict(state)
    mu = estimate(PAPER, state.counts, state.data.means)
    growth = Responder(PAPER, mu, state.best).respond(tracked.rate).value
    assert policy.remaining(state) == pytest.approx((verdict.threshold - verdict.statistic) / growth)
    assert policy.remaining(state) > 10


def test_the_forecast_of_a_race_is_between_the_median_of_its_slowest_account_and_the_trials_so_far() -> None:
    policy = SpectralRace(PAPER, 0.01)
    state = next(state for state in states(policy, [0.9, 0.5, 0.6], seed=1) if state.samples >= 150)
    lacking, best = policy.verdict(state).lacking, state.best
    assert lacking is not None and min(lacking[:best] + lacking[best + 1 :]) > 0, "all arms race"
    shares, mu = policy.shares(state), estimate(PAPER, state.counts, state.data.means)
    assert shares is not None
    growth = Responder(PAPER, mu, state.best).respond(shares).cost
    # The lognormal law with the mean r/f and the variance 2r/f^2 of the time at which a walk of drift f and variance 2f
    # first reaches r.
    medians = []
    for arm in set(range(3)) - {best}:
        mean, variance = lacking[arm] / growth[arm], 2 * lacking[arm] / growth[arm] ** 2
        log_variance = math.log(1 + variance / mean**2)
        medians.append(lognorm(math.sqrt(log_variance), scale=mean * math.exp(-log_variance / 2)).median())
    assert policy.remaining(state) == pytest.approx(max(medians) ** 0.45 * state.samples**0.55)


def test_the_forecast_is_zero_once_settled_and_infinite_where_arms_tie() -> None:
    policy = SpectralTaS(PAPER, 0.1, stopping="gk16")
    end = states(policy, [2.0, 0.5, 0.6], seed=1)[-1]
    assert policy.verdict(end).decided and policy.remaining(end) == 0
    tied = Uniform(FREE, 0.1, stopping="gk16")
    state = tied.tell(tied.init(), np.tile([0, 1, 2], 20), np.tile([3.0, 1.0, 1.0], 20))
    short = int(state.counts[0] * 2)
    state = replace(state, verdicts=tied.init().verdicts, next_reading=10**6)
    state = tied.tell(state, np.full(short, 0), np.zeros(short))
    assert state.data.means[0] == pytest.approx(state.data.means[1])
    assert tied.remaining(state) == math.inf


def test_no_decision_comes_before_the_next_reading() -> None:
    policy = SpectralTaS(PAPER, 1e-6, stopping="gk16")
    state = states(policy, [0.9, 0.5, 0.6], seed=3, n=150)[-1]
    state = policy.tell(replace(state, next_reading=100_000), np.tile([0, 1, 2], 2000), np.tile([0.9, 0.5, 0.55], 2000))
    assert not policy.verdict(state).decided
    assert policy.remaining(state) == 100_000 - state.samples


def test_the_rule_without_the_graph_is_forecast_without_it() -> None:
    policy = Uniform(PAPER, 0.1, stopping="paper-printed")
    state = policy.tell(policy.init(), np.tile([0, 1, 2], 20), np.tile([0.9, 0.5, 0.6], 20))
    statistic, threshold = 0.5 * 20 * 20 / 40 * 0.3**2, math.log(2 * 60 * 2 / 0.1)
    assert policy.remaining(state) == pytest.approx((threshold - statistic) / (0.5 * 0.3**2 / 6), rel=1e-6)


@pytest.mark.parametrize(
    ("policy", "mu"),
    [
        (SpectralTaS(PAPER, 0.01, stopping="gk16"), [0.9, 0.5, 0.6]),
        (SpectralTaS(THREE_COMPONENTS, 0.001, stopping="gk16"), [0.0, 0.1, 0.2, 0.6, 0.5, 1.5]),
        (Uniform(PAPER, 0.01, stopping="gk16"), [0.9, 0.5, 0.6]),
        (TopTwo(FREE, 0.001, stopping="gk16"), [1.0, 0.0, 0.2]),
    ],
)
def test_forecasts_fall_and_at_half_time_are_right_within_a_factor_of_three_on_average(
    policy: Policy, mu: list[float]
) -> None:
    log_ratio, late_ratio = [], []
    for seed in range(8):
        seen = states(policy, mu, seed)
        tau = seen[-1].samples
        half, late = (seen[int(np.argmin([abs(each.samples - part * tau) for each in seen]))] for part in (0.5, 0.9))
        forecasts = [policy.remaining(state) for state in (half, late)]
        if math.isfinite(forecasts[0]):
            log_ratio.append(math.log(forecasts[0] / (tau - half.samples)))
            late_ratio.append(forecasts[1] / forecasts[0])
    assert len(log_ratio) >= 5
    assert abs(np.mean(log_ratio)) < math.log(3)
    assert np.median(late_ratio) < 0.7
