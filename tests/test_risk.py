"""The guarantee of the mixture rule, tested where it can fail: at the true means, at every check.

The rule is valid because, with probability 1 - delta, later results never cost the true means more than the threshold.
That event fails far more often than the answer is wrong, so a mistake in the threshold shows up there.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.arrays import Vector
from spectralbai.evidence.blocks import Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.stopping import LikelihoodReading, Mixture, integrals
from spectralbai.stopping.mixture import Split
from verification.coverage import least_rate, pairs_uncovered, uncovered

DELTA = 0.1
RUNS = 200


@dataclass(frozen=True)
class Kind:
    problem: Problem
    mu: tuple[float, ...]
    allocation: tuple[float, ...]


KINDS = {
    "two components": Kind(Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01), (0.9, 0.5, 0.6), (0.5, 0.3, 0.2)),
    "lone arms": Kind(Problem(Graph.from_edges(2, []), R=1.0), (0.5, 0.0), (0.5, 0.5)),
    "one path, on the boundary": Kind(
        Problem(Graph.from_edges(3, [(0, 1, 1.0), (1, 2, 1.0)]), R=0.5, sigma=[1.0, 0.5, 2.0]),
        (1.0, 0.5, 0.0),
        (0.4, 0.3, 0.3),
    ),
    "three components": Kind(
        Problem(Graph.from_edges(5, [(0, 1, 1.0), (2, 3, 1.0)]), R=0.4),
        (1.0, 0.4, 0.3, 0.4, 0.0),
        (0.3, 0.2, 0.2, 0.2, 0.1),
    ),
}


def trajectories(kind: Kind, seed: int) -> list[Data]:
    """Returns one run at a fixed allocation: the split first, then checks at times that grow by a quarter."""
    rng = np.random.default_rng(seed)
    mu, share, sigma = np.array(kind.mu), np.array(kind.allocation), kind.problem.sigma
    counts, sums, seen = np.zeros(mu.size), np.zeros(mu.size), []
    total = 6.0
    while total < 3000:
        new = np.maximum(np.ceil(share * total), 1.0) - counts
        counts = counts + new
        sums = sums + new * mu + sigma * np.sqrt(new) * rng.standard_normal(mu.size)
        seen.append(Data.of_sums(counts, sums))
        total *= 1.25
    return seen


def level_of(kind: Kind, mean_range: tuple[float, float] | None = None) -> tuple[float, float]:
    return Mixture(mean_range=mean_range)._level(kind.problem, 0.0)


def failures_of_coverage(kind: Kind, runs: int, mean_range: tuple[float, float] | None = None) -> int:
    failures, mu, level = 0, np.array(kind.mu), level_of(kind, mean_range)
    for seed in range(runs):
        split, *rest = trajectories(kind, seed)
        failures += any(uncovered(kind.problem, mu, split, data, DELTA, level) for data in rest)
    return failures


def mutant_of_log_integrals(old: str, new: str) -> Any:
    """Returns the kernel of `log_integrals`, uncompiled, with one fragment of its file replaced everywhere."""
    source = inspect.getsource(integrals)
    assert old in source
    names: dict[str, Any] = {"__name__": "mutant"}
    exec(source.replace("@njit\n", "").replace(old, new), names)
    return names["_log_integrals"]


@pytest.mark.parametrize("name", KINDS)
def test_the_true_means_are_covered_at_all_checks_with_probability_1_minus_delta(name: str) -> None:
    failures = failures_of_coverage(KINDS[name], RUNS)
    assert least_rate(failures, RUNS) <= DELTA
    assert failures > 0, "an event that never fails tests nothing"


@pytest.mark.parametrize("mean_range", [(0.0, 1.0), (5.0, 6.0)])
def test_a_range_of_the_means_right_or_wrong_does_not_harm_the_guarantee(mean_range: tuple[float, float]) -> None:
    assert least_rate(failures_of_coverage(KINDS["two components"], RUNS, mean_range), RUNS) <= DELTA


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("one path, on the boundary", "- 0.5 * (logdet_after - logdet)", ""),
        ("lone arms", "-0.5 * np.log1p(u / p)", "0.0"),
    ],
)
def test_a_mistake_in_the_integral_is_noticed(name: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the determinants coverage is lost."""
    assert least_rate(failures_of_coverage(KINDS[name], 100), 100) <= DELTA
    monkeypatch.setattr(integrals, "_log_integrals", mutant_of_log_integrals(old, new))
    assert least_rate(failures_of_coverage(KINDS[name], 100), 100) > DELTA


def test_keeping_the_results_before_the_split_in_the_statistic_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prior has seen them: they must not be used twice."""
    edges = [(a, a + 1, 1.0) for a in range(11)]
    kind = Kind(Problem(Graph.from_edges(12, edges), R=100.0), tuple(np.linspace(0, 1, 12)), (1 / 12,) * 12)
    assert least_rate(failures_of_coverage(kind, 100), 100) <= DELTA
    monkeypatch.setattr(Data, "since", lambda data, split: data)
    assert least_rate(failures_of_coverage(kind, 100), 100) > DELTA


def failures_of_pairs(kind: Kind, runs: int) -> int:
    failures, mu, level = 0, np.array(kind.mu), level_of(kind)
    for seed in range(runs):
        split, *rest = trajectories(kind, seed)
        failures += any(pairs_uncovered(kind.problem, mu, split, data, DELTA, level) for data in rest)
    return failures


def without_determinant(
    before: Vector, means_before: Vector, u: Vector, means: Vector, level: tuple[float, float]
) -> Vector:
    return -0.5 * u * before / (u + before) * (means - means_before) ** 2


@pytest.mark.parametrize("name", KINDS)
def test_pairs_of_arms_are_covered_and_a_mistake_in_their_integral_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the whole risk, of which the rule spends a part on them."""
    assert least_rate(failures_of_pairs(KINDS[name], RUNS), RUNS) <= DELTA
    monkeypatch.setattr(integrals, "lone_integrals", without_determinant)
    assert least_rate(failures_of_pairs(KINDS[name], RUNS), RUNS) > DELTA


# The answers themselves.


def reading(kind: Kind, split: Data, data: Data) -> LikelihoodReading:
    return Mixture().read(Split(split), Evidence(kind.problem, data, int(np.argmax(data.means)), 0.0))


def answers(kind: Kind, runs: int) -> tuple[int, int, int]:
    """Returns how many runs end in a right answer, a wrong answer, and a refutation of R."""
    right = wrong = refuted = 0
    right_arm = int(np.argmax(kind.mu))
    for seed in range(runs):
        split, *rest = trajectories(kind, seed)
        for data in rest:
            seen = reading(kind, split, data)
            if not seen.consistent(DELTA):
                refuted += 1
                break
            if seen.decided(DELTA):
                right, wrong = right + (seen.arm == right_arm), wrong + (seen.arm != right_arm)
                break
    return right, wrong, refuted


@pytest.mark.parametrize("name", KINDS)
def test_answers_are_wrong_and_r_is_refuted_with_probability_at_most_delta(name: str) -> None:
    right, wrong, refuted = answers(KINDS[name], 100)
    assert right > 50, "a rule that never decides is never wrong"
    assert least_rate(wrong, 100) <= DELTA
    assert least_rate(refuted, 100) <= DELTA


ROUGH = Kind(KINDS["two components"].problem, (0.9, 0.4, 0.8), (0.3, 0.3, 0.4))


def everything_is_fine(self: LikelihoodReading, delta: float) -> bool:
    return True


def decides_in_spite_of_r(runs: int) -> int:
    """Returns how many runs on data that contradict R end in a decision after thousands of samples of every arm."""
    decided = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        mu, counts = np.array(ROUGH.mu), np.array([20.0, 20.0, 20.0])
        split = Data.of_sums(counts, counts * mu + np.sqrt(counts) * rng.standard_normal(3))
        more: Vector = np.full(3, 20000.0)
        data = Data.of_sums(counts + more, split.sums + more * mu + np.sqrt(more) * rng.standard_normal(3))
        decided += reading(ROUGH, split, data).decided(DELTA)
    return decided


def test_a_wrong_r_is_refuted_and_dropping_that_check_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decides_in_spite_of_r(20) == 0
    monkeypatch.setattr(LikelihoodReading, "consistent", everything_is_fine)
    monkeypatch.setattr(Mixture, "read", lambda self, memory, evidence: without_misfit(read(self, memory, evidence)))
    assert decides_in_spite_of_r(20) > 10


read = Mixture.read


def without_misfit(seen: LikelihoodReading) -> LikelihoodReading:
    return LikelihoodReading(seen.arm, seen.statistic, seen.penalty, np.zeros_like(seen.misfit), 0.0, math.inf)
