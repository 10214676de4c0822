"""The lower bound on the expected number of samples."""

from __future__ import annotations

import math
from typing import Any

import pytest

from spectralbai import Graph, InvalidInput, Problem, lower_bound, solve_allocation
from spectralbai.allocation.bound import binary_entropy

PROBLEM = Problem(Graph.from_edges(3, [(1, 2)]), 0.01)
MU = [0.9, 0.5, 0.6]


@pytest.mark.parametrize("delta", [0.3, 0.1, 0.01, 1e-6, 1e-300])
def test_the_bound_is_the_entropy_over_the_certified_upper_bound(delta: float) -> None:
    entropy = delta * math.log(delta / (1 - delta)) + (1 - delta) * math.log((1 - delta) / delta)
    assert lower_bound(PROBLEM, MU, delta) == pytest.approx(entropy / solve_allocation(PROBLEM, MU).upper, rel=1e-12)


def test_the_bound_of_the_papers_example_is_known() -> None:
    assert lower_bound(PROBLEM, MU, 0.01) == pytest.approx(88.8889 * 0.98 * math.log(99), rel=1e-5)


def test_the_bound_never_exceeds_the_certified_time() -> None:
    found = solve_allocation(PROBLEM, MU)
    assert lower_bound(PROBLEM, MU, 0.05) <= binary_entropy(0.05) / found.upper * (1 + 1e-15)


def test_scores_in_a_range_are_refused_and_their_two_ends_are_not() -> None:
    with pytest.raises(InvalidInput, match=r"no lower bound is known for outcomes in \[0, 1\]"):
        lower_bound(Problem.bounded(PROBLEM.graph, 0.01), MU, 0.05)
    assert lower_bound(Problem.bounded(PROBLEM.graph, 0.01, binary=True), MU, 0.05) > 0


@pytest.mark.parametrize("delta", [0.5, 0.6, 0.99])
def test_risks_of_one_half_and_more_ask_nothing(delta: float) -> None:
    assert lower_bound(PROBLEM, MU, delta) == 0


@pytest.mark.parametrize("delta", [0, -0.1, 1, 1.5, math.nan, math.inf, "0.1", None, True])
def test_risks_outside_zero_to_one_are_refused(delta: Any) -> None:
    with pytest.raises(InvalidInput, match="delta"):
        lower_bound(PROBLEM, MU, delta)
