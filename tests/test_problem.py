"""Tests of spectralbai.problem: what is kept, and every refusal."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pytest

from spectralbai.errors import InvalidInput
from spectralbai.graph import Graph
from spectralbai.noise import Binary, Bounded, Noise, SubGaussian
from spectralbai.problem import Problem

GRAPH = Graph.from_edges(3, [(1, 2, 2.0)])


def test_one_sigma_stands_for_all_arms_and_the_defaults_are_one_and_zero() -> None:
    problem = Problem(GRAPH, R=0.01)
    assert problem.sigma.tolist() == [1.0, 1.0, 1.0]
    assert problem.tolerance == 0.0
    assert problem.outcome_range is None
    assert Problem(GRAPH, 0.01, sigma=2).sigma.tolist() == [2.0, 2.0, 2.0]
    assert Problem(GRAPH, 0.01, sigma=[1, 2, 3]).sigma.tolist() == [1.0, 2.0, 3.0]


def test_sigma_is_a_read_only_copy() -> None:
    given = np.array([1.0, 2.0, 3.0])
    problem = Problem(GRAPH, 0.01, sigma=given)
    given[0] = 9.0
    assert problem.sigma.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        problem.sigma[0] = 9.0


def test_a_problem_is_frozen_and_can_be_replaced_with_a_checked_copy() -> None:
    problem = Problem(GRAPH, 0.01, sigma=[1, 2, 3], tolerance=0.1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.R = 1.0  # type: ignore[misc]  # the refusal under test
    other = dataclasses.replace(problem, R=math.inf)
    assert (other.R, other.tolerance, other.sigma.tolist()) == (math.inf, 0.1, [1.0, 2.0, 3.0])
    other = dataclasses.replace(problem, sigma=1)  # type: ignore[call-arg]  # an argument that is no field
    assert other.sigma.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(InvalidInput, match="`R` must be non-negative"):
        dataclasses.replace(problem, R=-1.0)


def test_bounded_outcomes_have_sigma_half_their_range() -> None:
    problem = Problem.bounded(GRAPH, 0.01, low=-1, high=4, tolerance=0.2)
    assert problem.sigma.tolist() == [2.5, 2.5, 2.5]
    assert problem.outcome_range == (-1.0, 4.0)
    assert problem.tolerance == 0.2
    assert Problem.bounded(GRAPH, 0.01).sigma.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(("binary", "kind"), [(False, Bounded), (True, Binary)])
def test_a_copy_of_a_bounded_problem_has_its_noise(binary: bool, kind: type[Noise]) -> None:
    problem = Problem.bounded(GRAPH, 0.01, low=-1, high=4, binary=binary)
    assert type(problem.noise) is kind
    other = dataclasses.replace(problem, R=0.5, tolerance=0.1)
    assert other.noise is problem.noise
    assert (other.R, other.tolerance, other.outcome_range) == (0.5, 0.1, (-1.0, 4.0))
    assert other.sigma.tolist() == [2.5, 2.5, 2.5]
    with pytest.raises(InvalidInput, match="`sigma` is given by the range of the outcomes"):
        dataclasses.replace(problem, sigma=1.0)  # type: ignore[call-arg]  # an argument that is no field


def test_a_problem_is_unstructured_without_edges_or_with_infinite_R() -> None:
    assert not Problem(GRAPH, 5.0).unstructured
    assert Problem(GRAPH, math.inf).unstructured
    assert Problem(Graph.from_edges(3, []), 5.0).unstructured


def test_smoothness_counts_each_edge_once() -> None:
    assert Problem(GRAPH, 1.0).smoothness([9.0, 1.0, 4.0]) == 2.0 * 9.0


def test_means_as_rough_as_R_are_smooth_enough_and_rougher_ones_are_refused() -> None:
    problem = Problem(GRAPH, R=2.0)
    assert problem.check_smooth([0.0, 0.0, 1.0]).tolist() == [0.0, 0.0, 1.0]
    assert problem.check_smooth([0.0, 0.0, 1.0 + 1e-13]).size == 3
    with pytest.raises(InvalidInput, match=re.escape("got S(mu) = 8 and R = 2; raise R or smooth mu")):
        problem.check_smooth([0.0, 0.0, 2.0])
    assert Problem(GRAPH, math.inf).check_smooth([0.0, 0.0, 2.0]).size == 3


def test_a_tie_for_the_best_is_refused_unless_there_is_a_tolerance() -> None:
    tied = np.array([0.5, 0.9, 0.9])
    with pytest.raises(
        InvalidInput, match=re.escape("got arms 1 and 2 tied at 0.9; set a tolerance > 0 if either is a good answer")
    ):
        Problem(GRAPH, 1.0).best_arm(tied)
    assert Problem(GRAPH, 1.0, tolerance=0.1).best_arm(tied) == 1
    assert Problem(GRAPH, 1.0).best_arm(np.array([0.5, 0.8, 0.9])) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"graph": [[0, 1]]}, "`graph` must be a spectralbai.Graph, got list; use Graph.from_edges"),
        ({"graph": None}, "`graph` must be a spectralbai.Graph, got NoneType"),
        ({"R": -0.1}, "`R` must be non-negative (math.inf ignores the graph), got -0.1"),
        ({"R": math.nan}, "`R` must be non-negative (math.inf ignores the graph), got nan"),
        ({"R": -math.inf}, "got -inf"),
        ({"R": True}, "got True; give a number"),
        ({"R": "inf"}, "got 'inf'; give a number"),
        ({"R": None}, "got None; give a number"),
        ({"R": [1.0]}, "`R` must be one number, or one for each of the 2 components of the graph, got 1 numbers"),
        ({"R": [1.0, -1.0]}, "`R[1]` must be non-negative (math.inf ignores the graph), got -1.0"),
        ({"tolerance": -0.1}, "`tolerance` must be a finite non-negative number, got -0.1"),
        ({"tolerance": math.nan}, "`tolerance` must be a finite non-negative number, got nan"),
        ({"tolerance": math.inf}, "`tolerance` must be a finite non-negative number, got inf"),
        ({"tolerance": False}, "got False; give a number"),
        ({"sigma": 0.0}, "`sigma` must be a finite positive number, or one per arm, got 0.0"),
        ({"sigma": -1}, "`sigma` must be a finite positive number, or one per arm, got -1"),
        ({"sigma": math.nan}, "got nan"),
        ({"sigma": math.inf}, "got inf"),
        ({"sigma": True}, "got True; give a number"),
        ({"sigma": "1"}, "got '1'; give a number"),
        ({"sigma": None}, "got None; give a number"),
        ({"sigma": [1.0, 0.0, 1.0]}, "`sigma` must be positive, got 0.0 at arm 1"),
        ({"sigma": [1.0, 1.0, -2.0]}, "`sigma` must be positive, got -2.0 at arm 2"),
        ({"sigma": [1.0, math.nan, 1.0]}, "`sigma` must be finite, got nan at arm 1"),
        ({"sigma": [1.0, math.inf, 1.0]}, "`sigma` must be finite, got inf at arm 1"),
        ({"sigma": [1.0, 1.0]}, "`sigma` must have shape (n_arms,) = (3,), got (2,); give one entry per arm"),
        ({"sigma": [[1.0], [1.0, 2.0]]}, "`sigma` must hold one number per arm, got [[1.0], [1.0, 2.0]]"),
        ({"noise": 1.0}, "`noise` must be a spectralbai.noise.Noise, got float; or give `sigma`"),
        ({"noise": SubGaussian.of(1.0, 2)}, "`sigma` must have shape (n_arms,) = (3,), got (2,)"),
        ({"sigma": [True, True, True]}, "`sigma` must hold one number per arm, got [True, True, True]"),
    ],
)
def test_a_bad_hypothesis_is_refused(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"graph": GRAPH, "R": 0.01} | changes
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Problem(**arguments)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (1.0, 0.0, "`low` must be below `high` by a finite amount, got 1.0 and 0.0"),
        (0.0, 0.0, "`low` must be below `high`"),
        (-1e308, 1e308, "`low` must be below `high`"),
        (math.nan, 1.0, "`low` must be a finite number, got nan"),
        (-math.inf, 1.0, "`low` must be a finite number, got -inf"),
        (0.0, math.inf, "`high` must be a finite number, got inf"),
        (
            0.0,
            1e76,
            "`low` and `high` must be 2e-75 or more apart and between -1e75 and 1e75, got 0 and 1e+76; measure",
        ),
        (-1e76, 0.0, "`low` and `high` must be"),
        (0.0, 1e-75, "`low` and `high` must be"),
        (False, 1.0, "`low` must be a finite number, got False; give a number"),
        (0.0, "1", "`high` must be a finite number, got '1'; give a number"),
    ],
)
def test_a_bad_range_of_outcomes_is_refused(low: Any, high: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Problem.bounded(GRAPH, 0.01, low, high)


def test_binary_is_yes_or_no() -> None:
    with pytest.raises(InvalidInput, match="`binary` must be True or False, got 1"):
        Problem.bounded(GRAPH, 0.01, binary=1)  # type: ignore[arg-type]  # the refusal under test


@pytest.mark.parametrize("sigma", [1e-80, 1e80, [1.0, 1e-300, 1.0]])
def test_noise_whose_square_or_its_inverse_is_no_number_is_refused(sigma: float | list[float]) -> None:
    with pytest.raises(InvalidInput, match="`sigma` must be between 1e-75 and 1e75, got .* measure in other units"):
        Problem(Graph.from_edges(3, []), 1.0, sigma)


def test_an_R_for_each_component_bounds_each_of_them() -> None:
    graph = Graph.from_edges(6, [(0, 2), (2, 5), (1, 4)])
    problem = Problem(graph, [1.0, math.inf, 5.0])
    assert problem.by_component and not problem.unstructured and not problem.rigid
    assert problem.radii.tolist() == [1.0, math.inf, 0.0]  # what is said of one arm says nothing
    assert problem.components.tolist() == [0, 1, 0, 2, 3, 0]  # without a bound, arms are on their own
    assert problem.roughness(np.array([0.0, 7.0, 1.0, 9.0, 5.0, 1.5])).tolist() == [1.25, 4.0, 0.0]
    assert problem.smooth(np.array([0.0, 7.0, 0.5, 9.0, 5.0, 0.5]))
    with pytest.raises(InvalidInput, match=r"S\(mu\) = 1.25 and R = 1 in component 0, which has arm 0; raise R"):
        problem.check_smooth([0.0, 7.0, 1.0, 9.0, 5.0, 1.5])
    assert Problem(graph, [0.0, 1.0, 1.0]).rigid
    assert Problem(graph, [math.inf, math.inf, 1.0]).unstructured


def test_an_R_for_the_only_component_is_the_R_of_all() -> None:
    assert Problem(Graph.from_edges(3, [(0, 1), (1, 2)]), [0.5]).R == 0.5


def test_R_may_be_an_array_of_no_dimension() -> None:
    assert Problem(Graph.from_edges(3, [(1, 2)]), R=np.array(0.1)).R == 0.1
