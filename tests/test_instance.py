"""Tests of spectralbai.instance: what is kept, the JSON form, and every refusal with its path."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectralbai.errors import InvalidInput
from spectralbai.graph import READERS, Categories, Graph, register_geometry
from spectralbai.instance import Instance
from spectralbai.problem import Problem

GRAPH = Graph.from_edges(3, [(1, 2, 2.0)])
PROBLEM = Problem(GRAPH, R=0.01)


TWO: dict[str, Any] = {"edges": [[1, 2, 1.0]]}
SORTED: dict[str, Any] = TWO | {"edges": ..., "categories": ["a", "b", "a"]}


def document(**changes: Any) -> dict[str, Any]:
    """A valid document with some keys changed; `...` removes a key."""
    d = {
        "format": "spectralbai-instance/3",
        "n_arms": 3,
        "edges": [[1, 2, 1.0], [0, 1, 0.5]],
        "mu": [0.9, 0.5, 0.6],
        "R": 0.01,
        "sigma": 1.0,
        "tolerance": 0.0,
        "labels": ["a", "b", "c"],
    } | changes
    return {key: value for key, value in d.items() if value is not ...}


def test_arms_are_numbered_unless_labelled() -> None:
    assert Instance(PROBLEM).labels == ("0", "1", "2")
    assert Instance(PROBLEM, labels=["x", "y", "z"]).labels == ("x", "y", "z")


def test_mu_is_none_or_a_read_only_copy() -> None:
    assert Instance(PROBLEM).mu is None
    given = np.array([0.9, 0.5, 0.6])
    mu = Instance(PROBLEM, given).mu
    given[0] = 0.0
    assert mu is not None
    assert mu.tolist() == [0.9, 0.5, 0.6]
    with pytest.raises(ValueError, match="read-only"):
        mu[0] = 0.0


def test_an_instance_is_frozen_and_can_be_replaced_with_a_checked_copy() -> None:
    instance = Instance(PROBLEM, [0.9, 0.5, 0.6], ["x", "y", "z"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.mu = None  # type: ignore[misc]  # the refusal under test
    assert dataclasses.replace(instance, mu=None).labels == ("x", "y", "z")
    with pytest.raises(InvalidInput, match="`mu` must have shape"):
        dataclasses.replace(instance, mu=np.zeros(2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((GRAPH,), "`problem` must be a spectralbai.Problem, got Graph; use Problem(graph, R)"),
        ((PROBLEM, [0.9, 0.5]), "`mu` must have shape (n_arms,) = (3,), got (2,); give one entry per arm"),
        ((PROBLEM, [0.9, math.nan, 0.5]), "`mu` must be finite, got nan at arm 1"),
        ((PROBLEM, [True, False, False]), "`mu` must hold one number per arm, got [True, False, False]"),
        ((PROBLEM, None, "abc"), "`labels` must be a list of 3 strings, got 'abc'"),
        ((PROBLEM, None, ["a", "b"]), "`labels` must hold one label per arm, got 2 for 3 arms"),
        ((PROBLEM, None, ["a", "", "c"]), "`labels[1]` must be a string that is not blank, got ''"),
        ((PROBLEM, None, ["a", " ", "c"]), "`labels[1]` must be a string that is not blank, got ' '"),
        ((PROBLEM, None, ["a", 1, "c"]), "`labels[1]` must be a string that is not blank, got 1"),
        (
            (PROBLEM, None, ["a", "b", "a"]),
            "`labels[2]` must be new, got 'a', already the label of arm 0; give each arm its own",
        ),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Instance(*arguments)


# The JSON form

finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=0, exclude_min=True, allow_infinity=False)


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    n_arms = draw(st.integers(2, 6))
    every_pair = [(a, b) for a in range(n_arms) for b in range(a + 1, n_arms)]
    weight_of = draw(st.dictionaries(st.sampled_from(every_pair), positive))
    graph = Graph.from_edges(n_arms, [(a, b, w) for (a, b), w in weight_of.items()])
    R = draw(st.one_of(st.just(math.inf), st.floats(min_value=0)))
    tolerance = draw(st.floats(min_value=0, allow_infinity=False))
    if draw(st.booleans()):
        noise = st.floats(1e-75, 1e75)
        sigma = draw(st.one_of(noise, st.lists(noise, min_size=n_arms, max_size=n_arms)))
        problem = Problem(graph, R, sigma, tolerance)
    else:
        low = draw(st.floats(-1e9, 1e9))
        high = low + draw(st.floats(1e-3, 1e9))
        known = Problem.bounded(graph, math.inf, low, high)
        allowed = min(R, float(known.roughest[0])) if R < math.inf else R
        within = draw(st.floats(0, 0.999)) * (high - low)
        problem = Problem.bounded(graph, allowed, low, high, within, draw(st.booleans()))
    mu = draw(st.none() | st.lists(finite, min_size=n_arms, max_size=n_arms))
    labels = draw(
        st.none() | st.lists(st.text(min_size=1).filter(str.strip), min_size=n_arms, max_size=n_arms, unique=True)
    )
    return Instance(problem, mu, labels)


@settings(deadline=None)
@given(instances())
def test_an_instance_survives_json_exactly(instance: Instance) -> None:
    restored = Instance.from_dict(json.loads(json.dumps(instance.as_dict(), allow_nan=False)))
    old, new = instance.problem, restored.problem
    assert new.n_arms == old.n_arms
    assert np.array_equal(new.graph.pairs, old.graph.pairs)
    assert np.array_equal(new.graph.weights, old.graph.weights)
    assert (new.R, new.tolerance, new.outcome_range) == (old.R, old.tolerance, old.outcome_range)
    assert np.array_equal(new.sigma, old.sigma) and type(new.noise) is type(old.noise)
    assert restored.labels == instance.labels
    if instance.mu is None:
        assert restored.mu is None
    else:
        assert restored.mu is not None
        assert restored.mu.tobytes() == instance.mu.tobytes()
    assert restored.as_dict() == instance.as_dict()


def test_the_json_form_is_the_documented_one() -> None:
    labels = ["a", "b", "c"]
    assert Instance(PROBLEM, [0.9, 0.5, 0.6], labels).as_dict() == document(edges=[[1, 2, 2.0]])
    assert list(document()) == ["format", "n_arms", "edges", "mu", "R", "sigma", "tolerance", "labels"]
    vague = Instance(Problem(GRAPH, math.inf, sigma=[1, 2, 3], tolerance=0.1), labels=labels)
    assert vague.as_dict() == document(edges=[[1, 2, 2.0]], mu=..., R="inf", sigma=[1.0, 2.0, 3.0], tolerance=0.1)
    bounded = Instance(Problem.bounded(GRAPH, 0.01, 0, 5), labels=labels)
    assert bounded.as_dict() == document(edges=[[1, 2, 2.0]], mu=..., sigma=..., low=0.0, high=5.0)
    clicks = Instance(Problem.bounded(GRAPH, 0.01, 0, 1, binary=True), labels=labels)
    assert clicks.as_dict() == document(edges=[[1, 2, 2.0]], mu=..., sigma=..., low=0.0, high=1.0, binary=True)


def test_optional_keys_have_their_defaults() -> None:
    instance = Instance.from_dict(document(mu=..., sigma=..., tolerance=..., labels=..., R="inf"))
    assert instance.mu is None
    assert instance.labels == ("0", "1", "2")
    assert instance.problem.sigma.tolist() == [1.0, 1.0, 1.0]
    assert instance.problem.tolerance == 0.0
    assert instance.problem.R == math.inf
    assert instance.problem.outcome_range is None


def test_a_document_is_read_as_written() -> None:
    instance = Instance.from_dict(document(edges=[[2, 1, 3], [0, 1, 0]], sigma=[1, 2, 3], tolerance=0.2, R=0))
    assert instance.problem.graph.pairs.tolist() == [[1, 2]]
    assert instance.problem.graph.weights.tolist() == [3.0]
    assert instance.problem.sigma.tolist() == [1.0, 2.0, 3.0]
    assert (instance.problem.tolerance, instance.problem.R) == (0.2, 0.0)
    assert instance.mu is not None
    assert instance.mu.tolist() == [0.9, 0.5, 0.6]


def test_low_and_high_stand_in_place_of_sigma() -> None:
    problem = Instance.from_dict(document(sigma=..., low=-1, high=2)).problem
    assert problem.sigma.tolist() == [1.5, 1.5, 1.5]
    assert problem.outcome_range == (-1.0, 2.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": ...}, '$ lacks the key "format"; add "format": "spectralbai-instance/3"'),
        (
            {"format": "spectralbai-instance/2"},
            "$.format must be \"spectralbai-instance/3\", got 'spectralbai-instance/2'; make it again",
        ),
        ({"format": None}, '$.format must be "spectralbai-instance/3", got None'),
        ({"n_arms": ...}, '$ lacks the key "n_arms"; add it'),
        ({"edges": ...}, '$ must have either "edges" or "categories", got neither; "edges": [] has none'),
        (
            {"format": "spectralbai-instance/4"},
            "$.format must be \"spectralbai-instance/3\", got 'spectralbai-instance/4'",
        ),
        (TWO | {"categories": ["a", "a", "b"]}, '$ must have either "edges" or "categories", got both'),
        (TWO | {"category_weight": 1}, '$ has "category_weight" without "categories"; remove it'),
        (TWO | {"R": [1.0]}, "$.R must be one number or one for each of the 2 components, in the order of their"),
        (TWO | {"R": [1.0, -1.0]}, '$.R[1] must be a finite non-negative number or "inf", got -1.0'),
        (SORTED | {"categories": ["a", "a"]}, "$.categories must be a list of 3 names, one per arm, got 2 of them"),
        (SORTED | {"categories": "abc"}, "$.categories must be a list of 3 names, one per arm, got 'abc'"),
        (SORTED | {"categories": ["a", 1, "b"]}, "$.categories[1] must be a string that is not blank, got 1"),
        (SORTED | {"category_weight": 0}, "$.category_weight must be a finite positive number, got 0"),
        ({"R": ...}, '$ lacks the key "R"; add it'),
        ({"sgima": 1.0}, '$ has the unknown key "sgima"; did you mean "sigma"?'),
        (
            {"xyzzy": 1.0},
            '$ has the unknown key "xyzzy"; remove it; the keys are format, n_arms, R, edges, categories,',
        ),
        ({"n_arms": 1}, "$.n_arms must be a whole number of at least 2, got 1"),
        ({"n_arms": 3.0}, "$.n_arms must be a whole number of at least 2, got 3.0"),
        ({"n_arms": True}, "$.n_arms must be a whole number of at least 2, got True"),
        ({"n_arms": "3"}, "$.n_arms must be a whole number of at least 2, got '3'"),
        ({"n_arms": 4}, "$.mu must hold one number per arm, got 3 for 4 arms"),
        ({"edges": None}, "$.edges must be a list of [a, b, weight], got None; use [] for no edges"),
        ({"edges": {"0": [1, 2, 1]}}, "$.edges must be a list of [a, b, weight], got {'0': [1, 2, 1]}"),
        ({"edges": [[1, 2, 1.0], [0, 1]]}, "$.edges[1] must be [a, b, weight], got [0, 1]"),
        ({"edges": [[1, 2, 1.0], 7]}, "$.edges[1] must be [a, b, weight], got 7"),
        ({"edges": [[1, 2, 1.0], "012"]}, "$.edges[1] must be [a, b, weight], got '012'"),
        ({"edges": [[1, 3, 1.0]]}, "$.edges[0][1] must be an arm between 0 and 2, got 3"),
        ({"edges": [[-1, 2, 1.0]]}, "$.edges[0][0] must be an arm between 0 and 2, got -1"),
        ({"edges": [[0.0, 2, 1.0]]}, "$.edges[0][0] must be an arm between 0 and 2, got 0.0"),
        ({"edges": [[True, 2, 1.0]]}, "$.edges[0][0] must be an arm between 0 and 2, got True"),
        ({"edges": [["a", 2, 1.0]]}, "$.edges[0][0] must be an arm between 0 and 2, got 'a'"),
        (
            {"edges": [[0, 1, 1], [0, 2, 1], [1, 2, -1]]},
            "`weight of $.edges[2]` must be a finite non-negative number, got -1",
        ),
        ({"edges": [[1, 2, math.nan]]}, "`weight of $.edges[0]` must be a finite non-negative number, got nan"),
        ({"edges": [[1, 2, math.inf]]}, "`weight of $.edges[0]` must be a finite non-negative number, got inf"),
        ({"edges": [[1, 2, 10**400]]}, "`weight of $.edges[0]` must be a finite non-negative number, got inf"),
        (
            {"edges": [[1, 2, True]]},
            "`weight of $.edges[0]` must be a finite non-negative number, got True; give a number",
        ),
        (
            {"edges": [[1, 2, None]]},
            "`weight of $.edges[0]` must be a finite non-negative number, got None; give a number",
        ),
        (
            {"edges": [[1, 2, 1], [1, 1, 1]]},
            "$.edges[1] must join two different arms, got 1 and 1; remove the self-loop",
        ),
        (
            {"edges": [[0, 1, 1], [1, 2, 1], [1, 2, 3]]},
            "$.edges[2] must be new, got 1 and 2 again, as in $.edges[1]; give each edge once",
        ),
        (
            {"edges": [[0, 1, 1], [1, 2, 0], [2, 1, 3]]},
            "$.edges[2] must be new, got 1 and 2 again, as in $.edges[1]; give each edge once",
        ),
        ({"mu": None}, "$.mu must be a list of 3 numbers, got None"),
        ({"mu": 0.5}, "$.mu must be a list of 3 numbers, got 0.5"),
        ({"mu": [0.9, 0.5]}, "$.mu must hold one number per arm, got 2 for 3 arms"),
        ({"mu": [0.9, 0.5, math.nan]}, "$.mu[2] must be a finite number, got nan"),
        ({"mu": [0.9, math.inf, 0.5]}, "$.mu[1] must be a finite number, got inf"),
        ({"mu": [0.9, -(10**400), 0.5]}, "$.mu[1] must be a finite number, got -inf"),
        ({"mu": [False, 0.5, 0.5]}, "$.mu[0] must be a finite number, got False; give a number"),
        ({"mu": ["0.9", 0.5, 0.5]}, "$.mu[0] must be a finite number, got '0.9'; give a number"),
        ({"mu": [[0.9], 0.5, 0.5]}, "$.mu[0] must be a finite number, got [0.9]; give a number"),
        ({"R": -0.1}, '$.R must be a finite non-negative number or "inf", got -0.1'),
        ({"R": math.nan}, '$.R must be a finite non-negative number or "inf", got nan'),
        ({"R": math.inf}, '$.R must be a finite non-negative number or "inf", got inf'),
        ({"R": "infinite"}, "$.R must be a finite non-negative number or \"inf\", got 'infinite'; give a number"),
        ({"R": True}, '$.R must be a finite non-negative number or "inf", got True; give a number'),
        ({"R": None}, '$.R must be a finite non-negative number or "inf", got None; give a number'),
        ({"tolerance": -1}, "$.tolerance must be a finite non-negative number, got -1"),
        ({"tolerance": math.inf}, "$.tolerance must be a finite non-negative number, got inf"),
        ({"tolerance": False}, "$.tolerance must be a finite non-negative number, got False; give a number"),
        ({"sigma": 0}, "$.sigma must be a finite positive number or a list of them, got 0"),
        ({"sigma": math.nan}, "$.sigma must be a finite positive number or a list of them, got nan"),
        ({"sigma": True}, "$.sigma must be a finite positive number or a list of them, got True; give a number"),
        ({"sigma": None}, "$.sigma must be a finite positive number or a list of them, got None; give a number"),
        ({"sigma": [1.0, -2.0, 1.0]}, "$.sigma[1] must be a finite positive number, got -2.0"),
        ({"sigma": [1.0, 1.0, True]}, "$.sigma[2] must be a finite positive number, got True; give a number"),
        ({"sigma": [1.0, 1.0]}, "$.sigma must hold one number per arm, got 2 for 3 arms"),
        ({"low": 0, "high": 1}, '$ has both "sigma" and "low"; give sigma, or low and high'),
        ({"high": 1}, '$ has both "sigma" and "high"; give sigma, or low and high'),
        ({"sigma": ..., "low": 0}, '$ lacks the key "high"; low and high go together'),
        ({"sigma": ..., "high": 0}, '$ lacks the key "low"; low and high go together'),
        ({"binary": True}, '$ has both "sigma" and "binary"; give sigma, or low and high'),
        ({"binary": False}, '$ has both "sigma" and "binary"; give sigma, or low and high'),
        ({"sigma": ..., "binary": True}, '$ lacks the key "low"; binary goes with low and high'),
        ({"sigma": ..., "low": 0, "binary": True}, '$ lacks the key "high"; low and high go together'),
        ({"sigma": ..., "low": 0, "high": 1, "binary": 1}, "$.binary must be true or false, got 1"),
        ({"sigma": ..., "low": 1, "high": 0}, "$.low must be below $.high by a finite amount, got 1.0 and 0.0"),
        ({"sigma": ..., "low": -1e308, "high": 1e308}, "$.low must be below $.high by a finite amount"),
        ({"sigma": ..., "low": math.nan, "high": 0}, "$.low must be a finite number, got nan"),
        ({"sigma": ..., "low": 0, "high": True}, "$.high must be a finite number, got True; give a number"),
        ({"labels": None}, "$.labels must be a list of 3 strings, got None; leave it out for numbers"),
        ({"labels": "abc"}, "$.labels must be a list of 3 strings, got 'abc'"),
        ({"labels": ["a", "b"]}, "$.labels must hold one label per arm, got 2 for 3 arms"),
        ({"labels": ["a", 1, "c"]}, "$.labels[1] must be a string that is not blank, got 1"),
        ({"labels": ["a", "b", ""]}, "$.labels[2] must be a string that is not blank, got ''"),
        (
            {"labels": ["a", "b", "a"]},
            "$.labels[2] must be new, got 'a', already the label of arm 0; give each arm its own",
        ),
    ],
)
def test_a_bad_document_is_refused_with_its_path(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Instance.from_dict(document(**changes))
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("d", [None, [], "text", 3])
def test_a_document_that_is_no_object_is_refused(d: Any) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"$ must be an object, got {d!r}")):
        Instance.from_dict(d)


def test_a_bad_document_is_refused_briefly_however_long_its_value() -> None:
    with pytest.raises(InvalidInput) as refusal:
        Instance.from_dict(document(R=list(range(10_000))))
    assert len(str(refusal.value)) < 200


def test_categories_and_an_R_for_each_survive_the_round_trip() -> None:
    graph = Graph.from_categories(["shoes", "hats", "shoes", "gloves", "hats"], 2.0)
    instance = Instance(Problem(graph, [0.5, math.inf, 3.0]), [0.1, 0.2, 0.3, 0.4, 0.5])
    written = instance.as_dict()
    assert written["format"] == "spectralbai-instance/3" and "edges" not in written
    assert written["categories"] == ["shoes", "hats", "shoes", "gloves", "hats"]
    assert written["R"] == [0.5, "inf", 0.0]  # of a category of one arm it says nothing
    read = Instance.from_dict(json.loads(json.dumps(written)))
    assert read.as_dict() == written and isinstance(read.problem.graph, Categories)


def test_several_R_are_written_as_a_list() -> None:
    assert Instance.from_dict(document()).as_dict()["R"] == 0.01
    assert Instance.from_dict(document(**TWO | {"R": [0.25, 7.0]})).as_dict()["R"] == [0.0, 7.0]


def test_a_registered_kind_of_geometry_is_read_from_a_file_and_others_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def chain(d: Mapping[str, Any], n_arms: int) -> Graph:
        return Graph.from_edges(d.get("n", n_arms), [(a, a + 1) for a in range(d.get("n", n_arms) - 1)])

    monkeypatch.setitem(READERS, "chain", chain)
    register_geometry("chain", chain)  # once more is harmless
    given = TWO | {"edges": ..., "geometry": {"kind": "chain"}}
    assert Instance.from_dict(document(**given)).problem.graph.pairs.tolist() == [[0, 1], [1, 2]]
    for changes, message in (
        ({"geometry": {"kind": "chains"}}, '$.geometry must be of a known kind, got "chains"; did you mean "chain"?'),
        ({"geometry": {"kind": "chain", "n": 4}}, "$.geometry must have n_arms = 3 arms, got 4; correct one of them"),
        ({"edges": []}, '$ must have either "edges" or "categories", got "edges" and "geometry"'),
        ({"category_weight": 2.0}, '$ has "category_weight" without "categories"; remove it'),
    ):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            Instance.from_dict(document(**(given | changes)))
    with pytest.raises(InvalidInput, match="`kind` must be new, got 'chain'"):
        register_geometry("chain", lambda d, n_arms: GRAPH)
