"""What every kind of noise does.

A new one joins by a line in `NOISES`. Noise from elsewhere joins by a class of its own:

    @pytest.mark.parametrize("noise", [MyNoise()])
    class TestMyNoise(NoiseContract): ...
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from spectralbai import Graph, Instance, InvalidInput, Problem, SpectralRace, simulate
from spectralbai.arrays import Vector
from spectralbai.noise import Binary, Bounded, Noise, Pools, SubGaussian

NOISES: dict[str, Noise] = {
    "sub-Gaussian": SubGaussian(np.array([1.0, 2.0, 3.0])),
    "bounded": Bounded(-1.0, 3.0),
    "binary": Binary(-1.0, 3.0),
}
N_ARMS = 3
"""The noise is that of three arms."""
EACH = 4000
"""Draws of each arm."""
PULLS = np.repeat(np.arange(N_ARMS), EACH)


def means_of(noise: Noise) -> Vector:
    """Returns means that outcomes of this noise can have: inside the range, if there is one."""
    if noise.outcome_range is None:
        return np.array([0.5, 0.0, -0.5])
    low, high = noise.outcome_range
    return low + (high - low) * np.array([0.7, 0.5, 0.2])


def drawn(noise: Noise, seed: int = 0) -> Vector:
    """Returns draws of each arm, (n_arms, EACH)."""
    return noise.draws(means_of(noise))(np.random.default_rng(seed), PULLS).reshape(N_ARMS, EACH)


def statistics(outcomes: Vector, origin: float) -> tuple[Vector, Vector, Vector, float]:
    """Returns counts, sums and sums of squares of outcomes less an origin, a row for each arm; and the origin."""
    shifted = outcomes - origin
    counts = np.full(len(outcomes), float(outcomes.shape[1]))
    return counts, shifted.sum(axis=1), (shifted**2).sum(axis=1), origin


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(InvalidInput) as error:
        call(*arguments)
    return str(error.value)


class NoiseContract:
    """What every kind of noise does; `noise` is that of three arms."""

    # Outcomes and means.

    def test_draws_are_outcomes_one_by_one_and_in_a_list(self, noise: Noise) -> None:
        outcomes = drawn(noise)[:, :5].ravel()
        assert noise.check_outcomes("x", outcomes).tolist() == outcomes.tolist()
        assert [noise.check_outcome("x", each) for each in outcomes.tolist()] == outcomes.tolist()
        assert noise.check_outcomes("x", []).tolist() == []

    def test_the_ends_of_the_range_are_outcomes_and_what_is_beyond_them_is_refused_with_value_and_place(
        self, noise: Noise
    ) -> None:
        low, high = noise.outcome_range or (-1e75, 1e75)
        assert noise.check_outcomes("x", [low, high]).tolist() == [low, high]
        for bad in (low - (high - low), high + (high - low)):
            assert refusal(noise.check_outcome, "x", bad).startswith("`x` must ")
            found = refusal(noise.check_outcomes, "x", [low, bad])
            assert f"got {bad:g} at position 1; " in found

    def test_what_is_no_number_is_no_outcome(self, noise: Noise) -> None:
        good = float(drawn(noise)[0, 0])
        for bad in (math.nan, math.inf, -math.inf):
            assert f"`x` must be a finite number, got {bad}" in refusal(noise.check_outcome, "x", bad)
            found = refusal(noise.check_outcomes, "x", [good, bad])
            assert found == f"`x` must be finite, got {bad} at position 1; leave missing results out"
        for word in ("3", None, True, [3.0]):
            assert "`x` must be a finite number" in refusal(noise.check_outcome, "x", word)
        for words in (["3"], [None], [[3.0]], [[3.0], [3.0, 3.0]]):
            found = refusal(noise.check_outcomes, "x", words)
            assert found == f"`x` must be numbers, got {words}; leave missing results out"

    def test_means_that_outcomes_cannot_have_are_refused(self, noise: Noise) -> None:
        mu = means_of(noise)
        assert noise.check_means("mu", mu).tolist() == mu.tolist()
        _, high = noise.outcome_range or (-1e75, 1e75)
        mu[1] = 2 * high + 1
        assert "at arm 1; " in refusal(noise.check_means, "mu", mu)
        assert "at arm 1; " in refusal(noise.draws, mu)

    # Draws and sigma.

    def test_draws_have_the_means_asked_for_and_repeat_with_their_seed(self, noise: Noise) -> None:
        outcomes, slack = drawn(noise), 5 * noise.sigmas(N_ARMS) / math.sqrt(EACH)
        assert (np.abs(outcomes.mean(axis=1) - means_of(noise)) <= slack).all()
        assert outcomes.tolist() == drawn(noise).tolist() != drawn(noise, seed=1).tolist()

    def test_sigma_bounds_the_tails_of_the_outcomes(self, noise: Noise) -> None:
        """E exp(x (outcome - mean)) <= exp(x^2 sigma^2 / 2), up to the random error of the draws."""
        sigma = noise.sigmas(N_ARMS)
        assert sigma.shape == (N_ARMS,) and (sigma > 0).all() and np.isfinite(sigma).all()
        with pytest.raises(ValueError, match="read-only"):
            sigma[0] = 9.0
        away = (drawn(noise) - means_of(noise)[:, None]) / sigma[:, None]
        for x in (-1.0, 0.3, 1.0):
            assert (np.exp(x * away).mean(axis=1) <= math.exp(x**2 / 2) * 1.1).all()

    # Estimated variances, and proved intervals.

    def test_estimated_variances_are_positive_and_never_above_sigma_squared(self, noise: Noise) -> None:
        most = noise.sigmas(N_ARMS) ** 2 * (1 + 1e-9)
        outcomes = drawn(noise)
        one = outcomes[:, :1]
        for seen in (outcomes[:, :0], one, np.repeat(one, 50, axis=1), outcomes):
            for leader in range(N_ARMS):
                found = noise.variances(*statistics(seen, float(one[0, 0])), leader=leader)
                assert found.shape == (N_ARMS,) and (found > 0).all() and (found <= most).all()

    def test_the_origin_of_the_sums_changes_no_variance_and_moves_intervals(self, noise: Noise) -> None:
        outcomes = drawn(noise)[:, :200]
        pools = Pools(np.array([0, 1, 2, 1, 2]), np.array([0, 1, 2, 3]), np.full(4, 0.25))
        for origin in (-1.0, 2.5):
            one, other = statistics(outcomes, 0.0), statistics(outcomes, origin)
            found = noise.variances(*other, leader=1)
            np.testing.assert_allclose(found, noise.variances(*one, leader=1), rtol=1e-9)
            for here, there in zip(
                noise.pooled_ends(pools, *one, delta=0.1), noise.pooled_ends(pools, *other, delta=0.1), strict=True
            ):
                np.testing.assert_allclose(there + origin, here, rtol=1e-9, atol=1e-9)

    def test_intervals_hold_the_average_means_of_their_pools(self, noise: Noise) -> None:
        outcomes, mu, sigma = drawn(noise), means_of(noise), noise.sigmas(N_ARMS)
        pools = Pools(np.array([0, 1, 2, 1, 2]), np.array([0, 1, 2, 3]), np.full(4, 0.25))
        averages = np.append(mu, (mu[1:] / sigma[1:] ** 2).sum() / (1 / sigma[1:] ** 2).sum())
        widths = []
        for n in (1, 3, 30, 300, EACH):
            low, high = noise.pooled_ends(pools, *statistics(outcomes[:, :n], 0.0), delta=0.01)
            assert (low <= averages).all() and (averages <= high).all()
            widths.append(high - low)
        assert (widths[-1] < widths[0]).all(), "more results should say more"

    def test_intervals_are_infinite_without_results_and_wider_at_a_smaller_risk(self, noise: Noise) -> None:
        pools = Pools(np.arange(3), np.arange(3), np.full(3, 1 / 3))
        counts, sums, squares, origin = statistics(drawn(noise)[:, :100], 0.0)
        counts[2] = sums[2] = squares[2] = 0.0
        ends = [noise.pooled_ends(pools, counts, sums, squares, origin, delta) for delta in (0.1, 1e-6)]
        for low, high in ends:
            assert (low[2], high[2]) == (-math.inf, math.inf)
        (low, high), (lower, higher) = ends
        assert (lower[:2] < low[:2]).all() and (high[:2] < higher[:2]).all()

    # Signs and files.

    def test_negation_mirrors_outcomes_and_twice_changes_nothing(self, noise: Noise) -> None:
        negated = noise.negated()
        outcomes = drawn(noise)[:, :5].ravel()
        assert type(negated) is type(noise)
        assert negated.check_outcomes("x", -outcomes).tolist() == (-outcomes).tolist()
        assert negated.sigmas(N_ARMS).tolist() == noise.sigmas(N_ARMS).tolist()
        assert negated.negated().as_dict() == noise.as_dict()
        if noise.outcome_range is not None:
            low, high = noise.outcome_range
            assert negated.outcome_range == (-high, -low)

    def test_noise_goes_through_an_instance_file(self, noise: Noise) -> None:
        written = json.dumps(Instance(Problem(Graph.from_edges(N_ARMS, []), 1.0, noise=noise)).as_dict())
        read = Instance.from_dict(json.loads(written)).problem
        assert type(read.noise) is type(noise)
        assert read.noise.as_dict() == noise.as_dict()
        assert read.sigma.tolist() == noise.sigmas(N_ARMS).tolist()

    def test_it_is_described_in_a_line(self, noise: Noise) -> None:
        assert noise.described().strip() == noise.described() != "" and "\n" not in noise.described()

    # In use.

    def test_a_race_with_it_finds_the_best_arm(self, noise: Noise) -> None:
        mu = means_of(noise)
        mu[0] += 2 * float(noise.sigmas(N_ARMS).max()) if noise.outcome_range is None else 0.0
        run = simulate.run(SpectralRace(Problem(Graph.from_edges(N_ARMS, []), 1.0, noise=noise), 0.05), mu, seed=1)
        assert (run.status, run.arm) == ("decided", 0)
