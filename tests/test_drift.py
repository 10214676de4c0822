"""Means that drift: the generators, and what the betting rule guarantees then (theory 18.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from spectralbai import Graph, InvalidInput, Problem, SpectralTaS, simulate
from spectralbai.arrays import Indices, Vector
from spectralbai.drift import DRIFTS, Drift, Jump, Rise, Sine, Swing, Walk, drift_from_dict
from spectralbai.evidence.memory import Memory
from spectralbai.policy import Policy, State, Uniform
from spectralbai.policy.blocks import InBlocks
from spectralbai.sampling import Rng, SamplingRule, View
from spectralbai.stopping.accounts import Accounts
from spectralbai.tape import DriftingTape, Tape
from verification.coverage import least_rate

PAIR = Problem(Graph.from_edges(2, []), math.inf)
THREE = Problem(Graph.from_edges(3, []), math.inf)
RATES = Problem.bounded(Graph.from_edges(2, []), math.inf, binary=True)
MU = np.array([0.3, 0.0])
EXAMPLES: list[Drift] = [
    Jump(3.0, at=7),
    Sine(2.0, period=20.0),
    Swing(1.5),
    Swing(-1.5, every=3),
    Walk(1.0, limit=2.5),
    Walk(1.0, limit=2.5, every=4),
    Rise((0.2, 0.1), over=30),
]


def shifts(drift: Drift, n: int = 60, seed: int = 1) -> Vector:
    """Returns what is added to the mean of arm 0 in n trials, in blocks of five."""
    trials = np.arange(n)
    return drift.shift(np.zeros(n, dtype=np.intp), trials, trials // 5, seed)


@pytest.mark.parametrize("drift", EXAMPLES, ids=str)
def test_shifts_start_where_they_should_and_stay_between_their_ends(drift: Drift) -> None:
    shift, (low, high) = shifts(drift, 1000), drift.ends(2)
    assert shift[0] == 0.0
    assert (low[0] <= shift).all() and (shift <= high[0]).all() and np.unique(shift).size > 1
    assert drift_from_dict("drift", drift.as_dict()) == drift
    assert np.array_equal(shifts(drift, 10), shift[:10]), "what comes later does not matter"


def test_shifts_are_what_their_names_say() -> None:
    assert shifts(Jump(3.0, at=7)).tolist() == [0.0] * 7 + [3.0] * 53
    assert shifts(Sine(2.0, period=20.0))[[5, 15, 25]] == pytest.approx([2.0, -2.0, 2.0])
    assert shifts(Swing(1.5)).tolist() == ([0.0] * 5 + [1.5] * 5) * 6
    assert shifts(Swing(1.0, every=2)).tolist() == [0.0, 0.0, 1.0, 1.0] * 15
    steps = np.diff(shifts(Walk(1.0, limit=1e6), 50_000)[::5])
    assert abs(steps.mean()) < 0.05 and abs(steps.std() - 1) < 0.05
    assert (shifts(Walk(1.0, 1e6)) != shifts(Walk(1.0, 1e6), seed=2)).any()
    rise = Rise((0.2, -0.4), over=30).shift(np.array([0, 1, 1]), np.array([15, 15, 60]), np.zeros(3, dtype=np.intp), 0)
    assert rise == pytest.approx([0.1, -0.2, -0.4])


@pytest.mark.parametrize("problem", [PAIR, RATES], ids=["gaussian", "rates"])
def test_a_tape_without_a_shift_is_that_without_drift(problem: Problem) -> None:
    mu, arms = np.array([0.5, 0.3]), np.random.default_rng(0).integers(2, size=200)
    plain = Tape.of(problem, mu, 4).read(arms)
    late = Tape.of(problem, mu, 4, drift=Jump(0.2, at=150))
    parts = [late.read(part) for part in np.split(arms, [1, 90, 120])]
    outcomes = np.concatenate(parts)
    assert np.array_equal(outcomes[:150], plain[:150])
    higher = outcomes[150:] - plain[150:]
    if problem is PAIR:
        assert higher == pytest.approx(0.2)
    else:
        assert (higher >= 0).all() and 0.05 < higher.mean() < 0.45


def test_runs_with_drift_repeat_and_differ_by_seed() -> None:
    policy = SpectralTaS(THREE, 0.1)
    drift = Walk(0.5, limit=3.0)
    first, again, other = (simulate.run(policy, [2.0, 0.0, 0.2], seed, drift=drift) for seed in (3, 3, 4))
    assert first.tau == again.tau and first.counts.tolist() == again.counts.tolist()
    assert (other.tau, other.counts.tolist()) != (first.tau, first.counts.tolist())


def test_the_algorithm_as_printed_meets_drift_too() -> None:
    policy = SpectralTaS.as_printed(PAIR, 0.1, iterations=20)
    calm, late = (simulate.run(policy, [0.5, 0.0], 3, 200, drift=Rise((0.0, h), over=5)) for h in (0.0, 0.4))
    assert calm.tau == simulate.run(policy, [0.5, 0.0], 3, 200).tau < late.tau


@pytest.mark.parametrize(
    ("drift", "words"),
    [
        (lambda: Jump(math.nan, at=1), "`height` must be a finite number"),
        (lambda: Sine(1.0, period=0.0), "`period` must be a positive number of trials"),
        (lambda: Swing(1.0, every=0), "`every` must be a whole number of at least 1"),
        (lambda: Walk(1.0, limit=0.0), "`limit` must be a positive number"),
        (lambda: Rise((0.1,), over=5), "`heights` must have 2 numbers, one per arm, got 1"),
        (lambda: Rise((0.0, 0.4), over=5), "`heights` must keep arm 0 the best"),
        (lambda: Swing(1.0), "the pulls of this policy do not come in blocks; set `every`"),
        (lambda: drift_from_dict("drift", {"kind": "jump", "height": 1.0}), 'drift lacks the key "at"'),
        (lambda: drift_from_dict("drift", {"kind": "jumps"}), 'did you mean "jump"'),
    ],
)
def test_a_drift_that_makes_no_sense_is_refused(drift: object, words: str) -> None:
    with pytest.raises(InvalidInput, match=words.replace("(", r"\(")):
        simulate.run(Uniform(PAIR, 0.1, "gk16"), MU, 0, drift=drift())  # type: ignore[operator]  # a function


def test_means_that_leave_the_range_are_refused_before_the_run() -> None:
    with pytest.raises(InvalidInput, match=r"must lie in \[0, 1\]"):
        DriftingTape(RATES.noise, np.array([0.5, 0.3]), None, 0, Jump(0.6, at=1000))
    assert set(DRIFTS) == {each.as_dict()["kind"] for each in EXAMPLES}


# The theorem.

DELTA, NEVER = 0.2, 1e-30
"""The risk of which errors are counted; a risk at which nothing is decided, so that a run goes on."""


@dataclass(frozen=True)
class Given(SamplingRule[Memory]):
    """Pulls given arms, row after row, after the first trial of every arm."""

    rows: tuple[tuple[int, ...], ...]

    def start(self, problem: Problem) -> Memory:
        return Memory()

    def block_size(self, memory: Memory, view: View, issued: int) -> int:
        return len(self.rows[0]) - issued % len(self.rows[0])

    def pulls(self, memory: Memory, view: View, issued: Vector, n: int, rng: Rng = None) -> Indices:
        trials, rows = int(issued.sum()) + np.arange(n), np.array(self.rows)
        return rows.ravel()[trials % rows.size]


ALIKE, SWAYING = Given(((0, 1),)), Given(((0, 0, 0, 1), (0, 1, 1, 1)))
"""Blocks of two; blocks of four, in every second of which the worse arm gets more pulls."""


@dataclass(frozen=True, eq=False)
class InOrder(InBlocks):
    """Hands out the slots of a block by the numbers of their arms, not in a random order."""

    def open(self, state: State) -> State:
        state = super().open(state)
        return replace(state, blocks=tuple(replace(block, arms=np.sort(block.arms)) for block in state.blocks))


def errors(policy: Policy, lead: float, drift: Drift, runs: int, samples: int) -> int:
    """Returns in how many runs the wealth against the best arm, 0, reaches 1/delta, whatever is decided before."""
    count = 0
    for seed in range(runs):
        tape, state = Tape.of(policy.problem, np.array([lead, 0.0]), seed, drift=drift), policy.init(seed)
        while state.samples < samples:
            arms, blocks = policy.ask_slots(state, 1000)
            if not arms.size:
                break
            state = policy.tell(state, arms, tape.read(arms, blocks))
            accounts = state.stopping["betting"]
            assert isinstance(accounts, Accounts)
            if accounts.arms.peak[0] >= -math.log(DELTA):
                count += 1
                break
    return count


@pytest.mark.parametrize("drift", [Swing(3.0), Walk(1.0, limit=20.0)], ids=["swing", "walk"])
def test_levels_that_move_by_more_than_the_lead_do_not_raise_the_risk(drift: Drift) -> None:
    wrong = errors(SpectralTaS(PAIR, NEVER), 0.02, drift, runs=100, samples=90)
    assert 0 < wrong and least_rate(wrong, 100) <= DELTA


def test_rules_on_pooled_means_err_where_betting_does_not() -> None:
    """The worse arm has more pulls in the blocks in which both means are higher."""
    right, wrong = {}, {}
    for rule in ("betting", "gk16"):
        policy = Policy(PAIR, DELTA, rule, sampling=SWAYING)
        runs = [simulate.run(policy, [0.8, 0.0], seed, 300, drift=Swing(3.0, every=4)) for seed in range(60)]
        right[rule], wrong[rule] = (
            sum(run.status == "decided" and run.correct is x for run in runs) for x in (True, False)
        )
    assert wrong["betting"] <= 1 and right["betting"] > 40, right
    assert least_rate(wrong["gk16"], 60) > 0.3, wrong


def test_slots_in_a_random_order_protect_against_changes_inside_blocks() -> None:
    drift, wrong = Swing(2.0, every=1), []
    for schedule in (InOrder, InBlocks):
        policy = Policy(PAIR, NEVER, sampling=ALIKE)
        policy.__dict__["schedule"] = schedule(policy.reader)
        wrong.append(errors(policy, 0.2, drift, runs=40, samples=150))
    assert wrong[0] >= 38 and wrong[1] <= 16, wrong
