"""Confidence intervals from the event of the mixture: coverage by simulation, and what they may and may not depend
on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.arrays import Vector
from spectralbai.evidence.blocks import Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.stopping import LikelihoodReading, Mixture
from spectralbai.stopping.mixture import Split
from spectralbai.stopping.region import graph_penalties
from verification.coverage import chance, strayed

DELTA = 0.2
RUNS = 60


@dataclass(frozen=True)
class Kind:
    problem: Problem
    mu: tuple[float, ...]


# The means are as rough as R allows, or nearly.
KINDS = {
    "one path": Kind(
        Problem(Graph.from_edges(4, [(a, a + 1, 1.0) for a in range(3)]), R=0.5, sigma=[1, 0.5, 2, 1]),
        (1.0, 0.5, 0.0, 0.0),
    ),
    "two components": Kind(Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01), (0.9, 0.5, 0.6)),
    "three components": Kind(
        Problem(Graph.from_edges(5, [(0, 1, 1.0), (2, 3, 1.0)]), R=0.4), (1.0, 0.4, 0.3, 0.4, 0.0)
    ),
    "no graph": Kind(Problem(Graph.from_edges(3, [(0, 1, 1.0)]), R=math.inf, sigma=[1, 2, 0.5]), (0.5, 0.0, 0.2)),
    "two arms": Kind(Problem(Graph.from_edges(2, [(0, 1, 1.0)]), R=0.25), (0.5, 0.0)),
}


def run(kind: Kind, seed: int) -> list[Data]:
    """Returns the split and the checks of one run; the arm that looks best gets most of the pulls."""
    rng = np.random.default_rng(seed)
    mu, sigma = np.array(kind.mu), kind.problem.sigma
    counts, sums, seen = np.zeros(mu.size), np.zeros(mu.size), []
    total = 12.0
    while total < 3000:
        means = sums / np.maximum(counts, 1.0)
        share = np.where(means == means.max(), 3.0, 1.0)
        new = np.ceil((total - counts.sum()) * share / share.sum())
        counts = counts + new
        sums = sums + new * mu + sigma * np.sqrt(new) * rng.standard_normal(mu.size)
        seen.append(Data.of_sums(counts, sums))
        total *= 1.6
    return seen


def read(kind: Kind, split: Data, data: Data, mean_range: tuple[float, float] | None = None) -> LikelihoodReading:
    evidence = Evidence(kind.problem, data, int(np.argmax(data.means)), 0.0)
    return Mixture(mean_range=mean_range).read(Split(split), evidence)


def ends_of(reading: LikelihoodReading, delta: float = DELTA) -> tuple[Vector, Vector]:
    ends = reading.intervals(delta)
    assert ends is not None
    return ends


def misses(kind: Kind, mean_range: tuple[float, float] | None = None) -> tuple[int, int]:
    """Counts runs in which some interval misses its mean at some check, as it is and at 0.4 times its width."""
    missed = missed_by_narrow = 0
    for seed in range(RUNS):
        split, *rest = run(kind, seed)
        far = 0.0
        for data in rest:
            ends = read(kind, split, data, mean_range).intervals(DELTA)
            if ends is not None:
                far = max(far, strayed(np.array(kind.mu), *ends))
        missed += far > 1
        missed_by_narrow += far > 0.4
    return missed, missed_by_narrow


@pytest.mark.parametrize("name", KINDS)
def test_all_means_are_in_their_intervals_at_all_checks_with_probability_1_minus_delta(name: str) -> None:
    """At 0.4 times the width they are not, so these runs can show a mistake."""
    missed, missed_by_narrow = misses(KINDS[name])
    assert chance(missed, RUNS, DELTA) > 0.01
    assert chance(missed_by_narrow, RUNS, DELTA) < 0.01


@pytest.mark.parametrize("mean_range", [(0.0, 1.0), (5.0, 6.0)])
def test_a_range_of_the_means_right_or_wrong_keeps_the_intervals_valid(mean_range: tuple[float, float]) -> None:
    assert chance(misses(KINDS["two components"], mean_range)[0], RUNS, DELTA) > 0.01


@pytest.mark.parametrize("name", KINDS)
def test_intervals_hold_the_means_of_later_results_and_shrink_with_the_risk(name: str) -> None:
    split, *rest = run(KINDS[name], 1)
    reading = read(KINDS[name], split, rest[3])
    low, high = ends_of(reading)
    assert np.isfinite(low).all() and (low < high).all()
    surer = ends_of(reading, 1e-6)
    assert (surer[0] < low).all() and (surer[1] > high).all()


@pytest.mark.parametrize("name", ["one path", "two components", "three components", "two arms"])
def test_a_smaller_R_gives_smaller_intervals_and_an_infinite_one_those_without_a_graph(name: str) -> None:
    split, *rest = run(KINDS[name], 2)
    region = read(KINDS[name], split, rest[2]).region
    assert region is not None
    region = replace(region, lone_penalty=None)  # which knows no R
    nested = [replace(region, R=R).intervals(DELTA) for R in (region.R, 10 * region.R, 1e12, 1e300)]
    for inner, outer in pairwise(nested):
        assert inner is not None and outer is not None
        assert (inner[0] >= outer[0] - 1e-9).all() and (inner[1] <= outer[1] + 1e-9).all()
    assert nested[0] is not None and nested[-1] is not None
    assert (nested[0][1] - nested[0][0] < 0.99 * (nested[-1][1] - nested[-1][0])).any()
    radius = (region.penalty - math.log(DELTA))[region.decomposition.components.of_arm]
    half = np.sqrt(2 * radius / region.decomposition.u)
    np.testing.assert_allclose(nested[-1][1] - nested[-1][0], 2 * half, rtol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_intervals_follow_the_names_the_origin_and_the_units_of_the_arms(name: str) -> None:
    kind = KINDS[name]
    problem, (split, *rest) = kind.problem, run(kind, 3)
    data = rest[2]
    low, high = ends_of(read(kind, split, data))
    rename = np.random.default_rng(0).permutation(problem.n_arms)  # arm a becomes arm rename[a]
    back = np.argsort(rename)
    pairs = zip(rename[problem.graph.pairs].tolist(), problem.graph.weights.tolist(), strict=True)
    graph = Graph.from_edges(problem.n_arms, [(a, b, w) for (a, b), w in pairs])
    renamed = Kind(Problem(graph, problem.R, problem.sigma[back]), ())

    def read_after(kind: Kind, change: Callable[[Data], Data]) -> LikelihoodReading:
        return read(kind, change(split), change(data))

    there = ends_of(read_after(renamed, lambda each: Data.of_sums(each.counts[back], each.sums[back])))
    np.testing.assert_allclose(there[0][rename], low, rtol=1e-5)  # the grid of prices may fall elsewhere
    np.testing.assert_allclose(there[1][rename], high, rtol=1e-5)
    shifted = ends_of(read_after(kind, lambda each: Data.of_sums(each.counts, each.sums + 1e3 * each.counts)))
    np.testing.assert_allclose(shifted[0] - 1e3, low, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(shifted[1] - 1e3, high, rtol=1e-6, atol=1e-8)
    scaled = Kind(Problem(problem.graph, problem.R * 1e12, problem.sigma * 1e6), ())
    large = ends_of(read_after(scaled, lambda each: Data.of_sums(each.counts, 1e6 * each.sums)))
    np.testing.assert_allclose(large[0], 1e6 * low, rtol=1e-6)
    np.testing.assert_allclose(large[1], 1e6 * high, rtol=1e-6)


@pytest.mark.parametrize("R", [1e-12, 1e-30, 1e-300])
def test_a_tiny_R_gives_the_arms_of_a_component_one_interval(R: float) -> None:
    kind = Kind(Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R), ())
    split = Data.of_sums(np.full(3, 4.0), np.array([4.0, 1.0, 1.0]))
    data = Data.of_sums(np.array([50.0, 80.0, 40.0]), np.array([50.0, 21.0, 11.0]))
    reading = read(kind, split, data)
    low, high = ends_of(reading)
    assert low[1] == pytest.approx(low[2], abs=1e-5) and high[1] == pytest.approx(high[2], abs=1e-5)
    # As wide as that of an arm with all results of the component; they fit a common mean almost exactly.
    radius = reading.total_penalty - math.log(0.9 * DELTA)
    assert high[1] - low[1] == pytest.approx(2 * math.sqrt(2 * radius / 112), rel=1e-3)


def test_an_arm_without_later_results_is_known_through_its_neighbours_and_a_component_without_any_is_not() -> None:
    problem = Problem(Graph.from_edges(5, [(0, 1, 1.0), (1, 2, 1.0), (3, 4, 1.0)]), R=0.1)
    split = Data.of_sums(np.full(5, 2.0), np.array([2.0, 2.0, 2.0, 0.0, 0.0]))
    later = np.array([40.0, 0.0, 40.0, 0.0, 0.0])
    reading = read(Kind(problem, ()), split, Data.of_sums(split.counts + later, split.sums + later))
    low, high = ends_of(reading)
    assert np.isfinite([low[:3], high[:3]]).all()
    assert high[1] - low[1] > high[0] - low[0]
    np.testing.assert_array_equal([low[3:], high[3:]], [[-math.inf] * 2, [math.inf] * 2])
    # Nothing after the split at all.
    assert read(Kind(problem, ()), split, split).intervals(DELTA) is None


def test_the_pair_of_arms_bounds_an_arm_where_the_graph_says_little() -> None:
    """As in (6.14); an arm that had no result before the split leaves only the graph to the others."""
    n_arms = 30
    problem = Problem(Graph.from_edges(n_arms, [(a, a + 1, 1.0) for a in range(n_arms - 1)]), R=1e6)
    before, later = np.full(n_arms, 3.0), np.full(n_arms, 100.0)
    split, data = Data.of_sums(before, 0 * before), Data.of_sums(before + later, 0 * before)
    low, high = ends_of(read(Kind(problem, ()), split, data))
    log_integral = -0.5 * math.log1p(100 / 3)
    half = math.sqrt(2 / 100 * (math.log((n_arms - 1) / (0.1 * DELTA)) - 2 * log_integral))
    np.testing.assert_allclose([-low, high], half, rtol=1e-9)
    before = np.where(np.arange(n_arms) == 4, 0.0, before)
    wide = ends_of(read(Kind(problem, ()), Data.of_sums(before, 0 * before), Data.of_sums(before + later, 0 * before)))
    assert np.isfinite(wide).all() and (wide[1] > 1.2 * half).all()


def test_the_cost_allowed_to_a_component_is_the_largest_wherever_the_best_arm_is() -> None:
    """By hand, from (6.13): -log I is 1 and 2 on lone arms and 5 on a component of two; or hardly anything on the
    lone arms."""
    sizes = np.array([1, 1, 2])
    found = graph_penalties(np.array([-1.0, -2.0, -5.0]), sizes)
    np.testing.assert_allclose(found, [1 + math.log(3) + 5, 2 + math.log(3) + 5, 5 + math.log(2) + 2])
    found = graph_penalties(np.array([-0.1, -0.2, -5.0]), sizes)
    assert found[2] == pytest.approx(5 + math.log(3)), "the best arm may be in the component itself"
    np.testing.assert_allclose(graph_penalties(np.array([-1.0, -2.0]), np.array([1, 4])), 3.0)


def test_data_that_contradict_R_or_leave_no_means_claim_nothing() -> None:
    kind = Kind(Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01), ())
    split = Data.of_sums(np.full(3, 20.0), 20 * np.array([0.9, 0.4, 0.8]))
    counts = np.full(3, 5000.0)
    reading = read(kind, split, Data.of_sums(counts, counts * np.array([0.9, 0.4, 0.8])))
    assert not reading.consistent(DELTA)
    assert reading.intervals(DELTA) is None
    assert reading.region is not None
    assert replace(reading.region, R=0.01, lone_penalty=None).intervals(DELTA) is None, "no smooth means are left"
    assert replace(reading.region, R=0.2, lone_penalty=None).intervals(DELTA) is not None
    stiff = replace(reading.region, R=1e-6, penalty=reading.region.penalty + 200.0)
    assert replace(stiff, lone_penalty=None).intervals(DELTA) is not None
    assert replace(stiff, lone_penalty=np.zeros(3)).intervals(DELTA) is None, (
        "what is left does not agree with each arm by itself"
    )
