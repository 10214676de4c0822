"""Stopping rules: what they compute, against problems solved otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.responder import Responder
from spectralbai.stopping import RULES
from tests.states import sums_only


def evidence_of(problem: Problem, counts: list[int], means: list[float], best: int) -> Evidence:
    n = np.array(counts, dtype=float)
    return Evidence(problem, sums_only(n, n * np.array(means)), best, 0.0)


PAPER = Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01)


def test_the_rules_say_what_they_are() -> None:
    assert list(RULES) == ["betting", "paper", "paper-printed", "gk16", "intervals", "graph-intervals"]
    assert {name for name, rule in RULES.items() if rule.proved} == {
        "betting",
        "intervals",
        "graph-intervals",
    }
    for name, rule in RULES.items():
        assert rule.name == name
    assert "Ville" in RULES["betting"].reference
    assert {name for name, rule in RULES.items() if rule.bets} == {"betting"}
    assert "2t(K-1)" in RULES["paper"].reference and "[KG20]" in RULES["paper"].reference
    assert "eq. (5)" in RULES["paper-printed"].reference
    assert "[GK16]" in RULES["gk16"].reference


def test_thresholds_of_the_unproved_rules_are_the_stated_formulas() -> None:
    evidence = evidence_of(PAPER, [30, 20, 50], [0.9, 0.4, 0.8], 0)
    for name, threshold in (
        ("paper", math.log(2 * 100 * 2 / 0.05)),
        ("paper-printed", math.log(2 * 100 * 2 / 0.05)),
        ("gk16", math.log((1 + math.log(100)) / 0.05)),
    ):
        assert RULES[name].read(Memory(), evidence).least_beaten(0.05)[1] == pytest.approx(threshold, rel=1e-14)


def test_the_likelihood_ratio_leaves_out_what_every_smooth_explanation_costs() -> None:
    evidence = evidence_of(PAPER, [30, 20, 50], [0.9, 0.4, 0.8], 0)
    responses = Responder(PAPER, np.array([0.9, 0.4, 0.8]), 0).respond(np.array([30.0, 20.0, 50.0]))
    assert responses.misfit > 0.1
    statistic = RULES["gk16"].read(Memory(), evidence).least_beaten(0.05)[0]
    assert statistic == pytest.approx(responses.value - responses.misfit, rel=1e-12)
    assert RULES["paper"].read(Memory(), evidence).least_beaten(0.05)[0] == statistic


def test_the_printed_rule_ignores_the_graph_and_waits_for_every_arm() -> None:
    evidence = evidence_of(PAPER, [30, 20, 50], [0.9, 0.4, 0.8], 1)
    reading = RULES["paper-printed"].read(Memory(), evidence)
    assert reading.arm == 0
    costs = [0.5 * 30 * n / (30 + n) * gap**2 for n, gap in ((20, 0.5), (50, 0.1))]
    assert reading.least_beaten(0.1)[0] == pytest.approx(min(costs), rel=1e-9)
    unseen = RULES["paper-printed"].read(Memory(), evidence_of(PAPER, [30, 0, 50], [9.0, 0.0, 0.8], 0))
    assert unseen.least_beaten(0.1)[0] == 0
    assert not unseen.decided(0.1)
