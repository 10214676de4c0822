"""Traces: the run of `simulate.run`, step by step."""

from __future__ import annotations

import numpy as np
import pytest

import spectralbai as sb
from spectralbai import plot
from spectralbai.policy import LUCB, Policy, TopTwo
from spectralbai.tape import Tape

MEANS = np.array([2.4, 0.5, 0.6])
GRAPH = sb.Graph.from_edges(3, [(1, 2)])
PAPER = sb.Problem(GRAPH, 0.01)
POLICIES: dict[str, Policy] = {
    "race": sb.SpectralRace(PAPER, 0.05),
    "race with a tolerance": sb.SpectralRace(sb.Problem(GRAPH, 0.01, tolerance=0.2), 0.05),
    "tas, two risks": sb.SpectralTaS(PAPER, 0.05, watching=(("betting", 0.1),)),
    "paper": sb.SpectralTaS(PAPER, 0.05, "paper"),
    "printed": sb.SpectralTaS.as_printed(PAPER, 0.05, 30),
    "top two, which draws random numbers": TopTwo(PAPER, 0.05, "gk16"),
    "lucb": LUCB(PAPER, 0.05),
}


@pytest.mark.parametrize("name", POLICIES)
def test_it_is_the_run_of_the_same_seed(name: str) -> None:
    policy = POLICIES[name]
    trace, run = sb.simulate.trace(policy, MEANS, seed=3), sb.simulate.run(policy, MEANS, seed=3)
    assert (trace.rule, trace.delta) == (run.rule, run.delta)
    assert (trace.verdict.stopped_at, trace.verdict.arm, trace.verdict.candidates) == (run.tau, run.arm, run.candidates)
    assert np.array_equal(trace.counts[-1], run.counts)
    assert trace.statistic[run.tau - 1] > trace.threshold[run.tau - 1]
    assert np.array_equal(np.diff(trace.counts, axis=0, prepend=0).argmax(axis=1), trace.arms)
    tape = Tape(policy.problem.noise.draws(MEANS), 3, 3)
    assert np.array_equal(trace.outcomes, [tape.read(np.array([arm]))[0] for arm in trace.arms])


@pytest.mark.parametrize("name", ["paper", "race"])
def test_every_row_is_what_the_policy_knew_right_after_that_result(name: str) -> None:
    policy = POLICIES[name]
    trace, state = sb.simulate.trace(policy, MEANS, seed=4), policy.init()
    steps = zip(trace.arms, trace.outcomes, trace.statistic, trace.threshold, trace.estimates, strict=True)
    for arm, outcome, statistic, threshold, estimates in steps:
        state = policy.tell(state, arm, outcome)
        verdict = policy.verdict(state)
        assert (statistic, threshold) == (verdict.statistic, verdict.threshold)
        if policy.has_estimate(state):
            means = state.data.means + state.origin
            np.testing.assert_allclose(estimates, sb.estimate(PAPER, state.data.counts, means), atol=1e-9)
        else:
            assert np.isnan(estimates).all()


def test_accounts_start_at_one_and_arms_leave_when_theirs_is_full() -> None:
    trace = sb.simulate.trace(POLICIES["race"], MEANS, seed=5)
    assert trace.wealth is not None and trace.candidates is not None
    assert (trace.wealth[0] == 1).all() and trace.candidates[0].all()
    assert trace.wealth.max() <= 1 / 0.05
    assert np.array_equal(trace.candidates, trace.wealth < 1 / 0.05)
    assert trace.candidates[-1].tolist() == [True, False, False]
    assert 1 < trace.wealth[:-1].max() < 1 / 0.05  # it grows before it is full


def test_rules_without_accounts_have_neither_wealth_nor_candidates() -> None:
    trace = sb.simulate.trace(POLICIES["paper"], MEANS, seed=5)
    assert trace.wealth is None and trace.candidates is None
    assert "wealth 0" not in trace.columns() and "estimates 0" in trace.columns()


def test_columns_are_lists_of_one_length() -> None:
    trace = sb.simulate.trace(POLICIES["race"], MEANS, seed=5, max_samples=7)
    columns = trace.columns()
    matrices = [f"{name} {arm}" for name in ("counts", "estimates", "wealth", "candidates") for arm in range(3)]
    assert list(columns) == ["step", "arms", "outcomes", "statistic", "threshold", *matrices]
    assert {len(column) for column in columns.values()} == {7} and columns["step"] == list(range(1, 8))
    assert columns["counts 2"] == trace.counts[:, 2].tolist()


def test_bounded_outcomes_and_bad_arguments_are_those_of_run() -> None:
    policy = sb.SpectralRace(sb.Problem.bounded(GRAPH, 0.01), 0.1)
    uniform = sb.simulate.trace(policy, [0.9, 0.1, 0.1], seed=1, max_samples=50, noise="uniform")
    assert np.unique(uniform.outcomes).size == uniform.outcomes.size > 10
    with pytest.raises(sb.InvalidInput, match="`mu`"):
        sb.simulate.trace(policy, [0.9, 0.1], seed=1)
    with pytest.raises(sb.InvalidInput, match="`max_samples`"):
        sb.simulate.trace(policy, [0.9, 0.1, 0.1], seed=1, max_samples=0)


@pytest.mark.parametrize("name", ["race", "paper"])
def test_its_picture_has_a_curve_for_each_rival_or_the_statistic_and_its_threshold(name: str) -> None:
    trace = sb.simulate.trace(POLICIES[name], MEANS, seed=5)
    ax = plot.plot_trace(trace, ["a", "b", "c"] if name == "race" else None)
    legend = ax.get_legend()
    assert legend is not None
    said = [text.get_text() for text in legend.get_texts()]
    if name == "race":
        assert said == ["b (out)", "c (out)"] or said == ["c (out)", "b (out)"]
        highest = max(np.max(line.get_ydata()) for line in ax.lines)
        assert highest == pytest.approx(20)
    else:
        assert said[-1] == f"decided after {trace.verdict.stopped_at:,} results"
        assert np.array_equal(ax.lines[0].get_ydata(), trace.statistic)
    assert plot.as_picture(ax, "svg").startswith(b"<?xml")
