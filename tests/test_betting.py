"""The betting rule, tested where it can fail: on a tight null, and with mistakes that the test must notice.

In ordinary runs the wealth reaches 1/delta far less often than allowed, so error rates would miss most mistakes. Here
two arms are tied, the leader is forced wrong, bets have full size and the estimate is off by a common level: every
payoff then has expectation 1, and the wealth against an arm that is best reaches 1/delta almost as often as Ville's
inequality allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from spectralbai import Graph, Problem, SpectralRace, simulate
from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.outlook import Outlook
from spectralbai.stopping import bets
from spectralbai.stopping.bets import LEAST_PAYOFF, BetTable
from verification.coverage import least_rate

DELTA, ALARM = 0.2, 0.24
"""The risk of the null, and the crossing rate from which a rule is called wrong."""
RUNS, BLOCKS = 4000, 150
PAIR = Graph.from_edges(2, [])
SURE = 1e6
"""Results behind a forced estimate: so many that bets have full size."""


@dataclass(frozen=True)
class Null:
    """Two arms of one mean; arm 1 leads, so that the bets against arm 0 are wrong."""

    problem: Problem
    mean: float
    nu: tuple[float, float]
    """The estimate the bets come from."""
    plans: tuple[tuple[int, int], ...]
    """Counts of the blocks, in turn."""

    @property
    def gaussian(self) -> bool:
        return self.problem.outcome_range is None

    def seen(self, sure: float = SURE) -> Data:
        """Returns results whose means are `nu`."""
        counts, nu = np.full(2, sure), np.array(self.nu)
        return Data(counts, counts * nu, counts * (nu**2 if self.gaussian else nu))

    def table(self, counts: tuple[int, int], outcomes: Vector, data: Data) -> BetTable:
        block = Block(np.repeat([0, 1], counts), outcomes, data, 1)
        return BetTable(block, Outlook(Evidence(self.problem, data, 1, 0.0)))

    def pay(self, counts: tuple[int, int], outcomes: Vector) -> float:
        """Returns the log payoff of the bets against arm 0."""
        return float(self.table(counts, outcomes, self.seen()).against_arms(1, 0.0)[0])

    def payoffs(self, counts: tuple[int, int]) -> Callable[[Matrix, Matrix], Vector]:
        """Returns the log payoff as a function of the results of both arms, a row per run.

        It is affine in their sums, for outcomes 0 or 1 too: what each single result adds is computed by the rule
        itself.
        """
        n = sum(counts)
        base = self.pay(counts, np.zeros(n))
        at = [slice(0, counts[0]), slice(counts[0], n)]
        slope = [0.0, 0.0]
        for a in (0, 1):
            if counts[a]:
                outcomes = np.zeros(n)
                outcomes[at[a].start] = 1.0
                slope[a] = self.pay(counts, outcomes) - base
        return lambda first, second: base + slope[0] * first.sum(axis=1) + slope[1] * second.sum(axis=1)

    def draw(self, rng: np.random.Generator, runs: int, n: int) -> Matrix:
        if self.gaussian:
            return self.mean + rng.standard_normal((runs, n))
        return (rng.random((runs, n)) < self.mean).astype(np.float64)


def null(kind: str, side: int) -> Null:
    """Returns the tight null; the common level is off to one side or the other."""
    if kind == "gaussian":
        plans = ((4, 4), (2, 6), (6, 2), (0, 8), (8, 0))
        return Null(Problem(PAIR, math.inf), 0.0, (3.0 * side - 0.15, 3.0 * side + 0.15), plans)
    # A larger error of the level makes 1 + h(x - lam) lose: the null would not be tight.
    plans = ((8, 8), (4, 12), (12, 4), (0, 16), (16, 0))
    return Null(
        Problem.bounded(PAIR, math.inf, binary=True), 0.5, (0.5 + 0.1 * side - 0.05, 0.5 + 0.1 * side + 0.05), plans
    )


Pull = Callable[[np.random.Generator, int, int], Matrix]


def crossings(
    tight: Null, runs: int = RUNS, pull: Pull | None = None, best_of: int = 1, blocks: int = BLOCKS, seed: int = 0
) -> int:
    """Returns in how many runs the wealth against arm 0 reaches 1/delta.

    `pull(rng, arm, n)` draws the results, if they are not to be drawn as the rule assumes; of `best_of` plans the one
    that pays most is used.
    """
    rng = np.random.default_rng(seed)
    made = {counts: tight.payoffs(counts) for counts in tight.plans}
    wealth, peak = np.zeros(runs), np.zeros(runs)
    for k in range(blocks):
        options = [tight.plans[(k + j) % len(tight.plans)] for j in range(best_of)]
        most = max(max(counts) for counts in options)
        results = [tight.draw(rng, runs, most) if pull is None else pull(rng, a, most) for a in (0, 1)]
        paid = [made[counts](results[0][:, : counts[0]], results[1][:, : counts[1]]) for counts in options]
        wealth += np.max(paid, axis=0)
        peak = np.maximum(peak, wealth)
    return int((peak >= -math.log(DELTA)).sum())


EVERY_KIND = pytest.mark.parametrize("kind", ["gaussian", "binary"])


def is_wrong(failures: int, runs: int = RUNS) -> bool:
    """Whether a rule counts as wrong: its rate is above delta by much more than chance explains."""
    return failures > ALARM * runs and least_rate(failures, runs) > DELTA


@EVERY_KIND
@pytest.mark.parametrize("side", [-1, 1])
def test_the_wealth_against_a_best_arm_crosses_about_as_often_as_it_may(kind: str, side: int) -> None:
    crossed = crossings(null(kind, side))
    assert least_rate(crossed, RUNS) <= DELTA and crossed <= ALARM * RUNS
    assert crossed > 0.12 * RUNS, "the null should be tight: a loose one shows no mistake"


@EVERY_KIND
def test_what_the_null_adds_up_is_what_the_rule_pays(kind: str) -> None:
    tight, rng = null(kind, 1), np.random.default_rng(0)
    for counts in tight.plans:
        first, second = (tight.draw(rng, 3, n) for n in counts)
        expected = [tight.pay(counts, np.concatenate(each)) for each in zip(first, second, strict=True)]
        np.testing.assert_allclose(tight.payoffs(counts)(first, second), expected, atol=1e-9)
        if 0 in counts:
            assert expected == [0.0, 0.0, 0.0], "without a graph nothing is learnt from one arm alone"


@EVERY_KIND
def test_choosing_the_counts_after_the_results_is_noticed(kind: str) -> None:
    assert is_wrong(crossings(null(kind, 1), best_of=3))


@EVERY_KIND
def test_counts_that_follow_the_results_of_open_blocks_before_do_no_harm(kind: str) -> None:
    """As if a block were opened ahead: the results of the block before that arrived first are known, and when they
    arrive depends on their values."""
    tight, rng = null(kind, 1), np.random.default_rng(0)
    made = [(counts, tight.payoffs(counts)) for counts in tight.plans[:3]]
    wealth, peak, chosen = np.zeros(RUNS), np.zeros(RUNS), np.zeros(RUNS, dtype=int)
    for _ in range(BLOCKS):
        first, second = (tight.draw(rng, RUNS, max(tight.plans[1])) for _ in (0, 1))
        paid = np.array([pay(first[:, : counts[0]], second[:, : counts[1]]) for counts, pay in made])
        wealth += paid[chosen, np.arange(RUNS)]
        peak = np.maximum(peak, wealth)
        low, high = first[:, :2].min(axis=1), second[:, :2].max(axis=1)  # the slowest two results are not in yet
        chosen = np.where(low < high, 1, np.where(low > high, 2, 0))
    crossed = int((peak >= -math.log(DELTA)).sum())
    assert not is_wrong(crossed) and crossed > 0.12 * RUNS


@EVERY_KIND
def test_weight_where_a_block_has_no_pull_is_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tight = null(kind, -1)
    tight = replace(tight, plans=(*tight.plans[:2], tight.plans[3]))
    assert not is_wrong(crossings(tight))
    weighed = property(lambda table: table.outlook.decompose(np.maximum(table.block.counts, table.block.counts.max())))
    monkeypatch.setattr(BetTable, "_decomposition", weighed)
    assert is_wrong(crossings(tight))


@EVERY_KIND
def test_slots_filled_by_whichever_result_comes_first_are_noticed(kind: str) -> None:
    """A quarter of the slots is handed out twice, and good results of the leader, bad ones of the other come first."""
    tight = null(kind, 1)

    def pull(rng: np.random.Generator, arm: int, n: int, by_value: bool = True) -> Matrix:
        one, other = tight.draw(rng, RUNS, n), tight.draw(rng, RUNS, n)
        first = (np.minimum, np.maximum)[arm](one, other) if by_value else other
        return np.where(rng.random(one.shape) < 0.25, first, one)

    assert is_wrong(crossings(tight, pull=pull))
    assert not is_wrong(crossings(tight, pull=lambda rng, arm, n: pull(rng, arm, n, by_value=False)))


def test_flooring_payoffs_one_by_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bets too large for the range are scaled down as a whole row."""
    plans = ((1, 1),)
    far = Null(Problem.bounded(PAIR, math.inf, binary=True), 0.3, (0.05, 0.95), plans)
    assert not is_wrong(crossings(far))

    def unscaled(h, lam, counts, variances, low, high, size):  # type: ignore[no-untyped-def]  # as the kernel
        return size

    def floored(h, lam, arms, outcomes, times):  # type: ignore[no-untyped-def]  # as the kernel
        each = np.maximum(1 + h[:, arms] * (outcomes - lam[:, arms]), LEAST_PAYOFF)
        return (times * np.log(each)).sum(axis=1)

    monkeypatch.setattr(bets, "_fit", unscaled)
    monkeypatch.setattr(bets, "_bounded_payoffs", floored)
    assert is_wrong(crossings(far))


def rows_of(tight: Null, counts: tuple[int, int], outcomes: Vector) -> tuple[Vector, Vector]:
    """Returns (h, lam) of the bets against arm 0."""
    seen = []

    class Watched(BetTable):
        def _settle(
            self, lam: Matrix, gap: Matrix, size: Vector, slack: Vector, arms: Indices | slice = slice(None)
        ) -> Vector:
            n, variances = self.block.counts, self.outlook.variances
            h = np.where(n > 0, gap / variances, 0.0)
            if not tight.gaussian:
                size = bets._fit(h, lam, n, variances, 0.0, 1.0, size)
            seen.append((h[0] * size[0], lam[0]))
            return super()._settle(lam, gap, size, slack, arms)

    table = tight.table(counts, outcomes, tight.seen())
    Watched(table.block, table.outlook).against_arms(1, 0.0)
    return seen[0]


@EVERY_KIND
def test_stopping_inside_a_block_is_noticed(kind: str) -> None:
    """Arm 0 comes first, and its part of the payoff alone has no guarantee. Rates leave less room for a wrong level,
    so that blocks are longer and bets smaller there."""
    tight, runs = null(kind, 1), 2000
    if kind == "binary":
        tight = replace(tight, nu=(0.575, 0.625), plans=((100, 100), (60, 140)))
    rng, wealth = np.random.default_rng(0), np.zeros(runs)
    inside, closed = np.zeros(runs), np.zeros(runs)
    parts = {counts: rows_of(tight, counts, np.zeros(sum(counts))) for counts in tight.plans}
    made = {counts: tight.payoffs(counts) for counts in tight.plans}
    for k in range(BLOCKS):
        counts = tight.plans[k % len(tight.plans)]
        h, lam = parts[counts]
        results = [tight.draw(rng, runs, n) for n in counts]
        each = [h[a] * (results[a] - lam[a]) for a in (0, 1)]
        logs = [e - h[a] ** 2 / 2 if tight.gaussian else np.log1p(e) for a, e in enumerate(each)]
        so_far = wealth[:, None] + np.cumsum(np.hstack(logs), axis=1)
        wealth = wealth + made[counts](*results)
        np.testing.assert_allclose(so_far[:, -1], wealth, atol=1e-8)
        inside, closed = np.maximum(inside, so_far.max(axis=1)), np.maximum(closed, wealth)
    assert not is_wrong(int((closed >= -math.log(DELTA)).sum()), runs)
    assert is_wrong(int((inside >= -math.log(DELTA)).sum()), runs)


def wealth_at_closings(tight: Null, seed: int, leak: bool, blocks: int) -> float:
    """Returns the largest wealth against arm 0 where estimates come from few results; with `leak` from sealed ones
    too."""
    rng, wealth, peak = np.random.default_rng(seed), 0.0, 0.0
    counts = tight.plans[0]
    for _ in range(blocks):
        data = Data.none(2)
        arms = np.repeat([0, 1], (6, 6))
        data = data.plus(arms, tight.draw(rng, 1, 12)[0])
        outcomes = tight.draw(rng, 1, sum(counts))[0]
        if leak:
            data = data.plus(np.repeat([0, 1], counts), outcomes)
        wealth += float(tight.table(counts, outcomes, data).against_arms(1, 0.0)[0])
        peak = max(peak, wealth)
        if wealth < -8 or peak >= -math.log(DELTA):
            break
    return peak


@EVERY_KIND
def test_bets_that_know_sealed_results_are_noticed(kind: str) -> None:
    tight, runs = null(kind, 1), 90
    honest, leaky = (
        sum(wealth_at_closings(tight, seed, leak, 30) >= -math.log(DELTA) for seed in range(runs))
        for leak in (False, True)
    )
    assert least_rate(honest, runs) <= DELTA and honest <= ALARM * runs
    assert is_wrong(leaky, runs)


# The account against R, at S(mu) = R.


@dataclass(frozen=True)
class NullOfR(Null):
    """Two joined arms whose means differ by as much as R allows; the estimate says more."""

    means: tuple[float, float] = (0.0, 0.0)

    def pay(self, counts: tuple[int, int], outcomes: Vector) -> float:
        return self.table(counts, outcomes, self.seen()).against_R()

    def pull(self, rng: np.random.Generator, arm: int, n: int) -> Matrix:
        return replace(self, mean=self.means[arm]).draw(rng, RUNS, n)


def null_of_R(kind: str, part: float = 1.0) -> NullOfR:
    """Returns the null with R that part of what it should be."""
    joined = Graph.from_edges(2, [(0, 1, 1.0)])
    if kind == "gaussian":
        return NullOfR(Problem(joined, 0.25 * part), 0.0, (2.0, 2.8), ((4, 4), (2, 6), (0, 8)), (0.0, 0.5))
    problem = Problem.bounded(joined, 0.04 * part, binary=True)
    return NullOfR(problem, 0.0, (0.41, 0.71), ((8, 8), (4, 12), (0, 16)), (0.4, 0.6))


@EVERY_KIND
def test_the_account_against_R_crosses_about_as_often_as_it_may_where_the_means_are_as_rough_as_R(kind: str) -> None:
    tight = null_of_R(kind)
    crossed = crossings(tight, pull=tight.pull)
    assert least_rate(crossed, RUNS) <= DELTA and crossed <= ALARM * RUNS
    assert crossed > 0.12 * RUNS, "the null should be tight"
    rough = null_of_R(kind, part=0.8)
    assert is_wrong(crossings(rough, pull=rough.pull)), "means rougher than R should be noticed"


# A wrong R.


@pytest.mark.parametrize(("mu", "least_refuted", "most_wrong"), [((0.9, 0.4, 0.8), 4, 0), ((1.4, 0.4, 1.5), 6, 1)])
def test_a_wrong_R_is_refuted_rather_than_believed(mu: tuple[float, ...], least_refuted: int, most_wrong: int) -> None:
    """R = 0.01 where S(mu) = 0.16 or 1.21: most runs end in "the data contradict R", hardly any in a wrong answer."""
    problem = Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01)
    runs = [simulate.run(SpectralRace(problem, 0.01), mu, seed, max_samples=20_000) for seed in range(8)]
    assert sum(run.status == "inconsistent" for run in runs) >= least_refuted
    assert sum(run.status == "decided" and not run.correct for run in runs) <= most_wrong
