"""The betting rule, tested where it can fail: on a tight null, with mistakes that it must show.

Natural runs cross far less often than delta, so that error rates would miss most mistakes. Here two arms are tied, the
leader is forced wrong, bets have full size and the estimate is off by a common level: every payoff then has expectation
1, and the wealth against an arm that is best reaches 1/delta almost as often as Ville's inequality allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import beta

from spectralbai import Graph, Problem, SpectralRace, simulate
from spectralbai.checks import Indices, Matrix, Vector
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.outlook import Outlook, separable
from spectralbai.policy import State
from spectralbai.spectral import Components, Decomposition, Responses, decompose
from spectralbai.stopping import Betting, bets
from spectralbai.stopping.accounts import COMMON, FED, INVESTED, Account, Accounts, Leaders, feed
from spectralbai.stopping.bets import LEAST_PAYOFF, BetTable
from spectralbai.stopping.betting import EliminationReading, LeaderReading

DELTA, ALARM = 0.2, 0.24
"""The risk of the null, and the crossing rate from which a rule is called wrong."""
RUNS, BLOCKS = 4000, 150
PAIR = Graph.from_edges(2, [])
SURE = 1e6
"""Results behind a forced estimate: so many that bets have full size."""


def least_rate(failures: int, runs: int) -> float:
    """Returns the exact lower limit, at 99.9 %, of a failure rate."""
    return float(beta.ppf(1e-3, failures, runs - failures + 1)) if failures else 0.0


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

        It is affine in their sums, for outcomes 0 or 1 too: what single results add is asked of the rule itself.
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

    `pull(rng, arm, n)` stands in for honest results; of `best_of` plans the one that pays best is taken.
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
    """Whether a rule is called wrong: far above delta, and beyond doubt."""
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
    """As where a block is opened ahead: of the block before, results that came first, by their values, are known."""
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
    """With arm 0 first, whose part of the payoff is worth nothing without the other. Rates leave less room for a wrong
    level, so that blocks are longer and bets smaller there."""
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


# The projection inequality.


class Recorded(BetTable):
    """A table that keeps what it settles."""

    def _settle(
        self, lam: Matrix, gap: Matrix, size: Vector, slack: Vector, arms: Indices | slice = slice(None)
    ) -> Vector:
        self.__dict__["rows"] = (lam, gap, size, slack)
        return super()._settle(lam, gap, size, slack, arms)


GRAPHS = {
    "path": Graph.from_edges(5, [(a, a + 1, 1.0) for a in range(4)]),
    "three components": Graph.from_edges(6, [(0, 3, 1.0), (3, 5, 0.5), (1, 4, 2.0)]),
    "edgeless": Graph.from_edges(4, []),
}


def random_table(graph: Graph, tolerance: float, rng: np.random.Generator, several: bool = False) -> Recorded:
    """Returns a block with arms without a pull, on random results, by a random leader; if `several`, with an R for each
    component."""
    n_arms = graph.n_arms
    R = float(rng.uniform(0.1, 3.0))
    radii = rng.uniform(0.1, 3.0, graph.n_components) if several else R
    problem = Problem(graph, radii, rng.uniform(0.3, 2.0, n_arms), tolerance)
    data = Data.none(n_arms).plus(np.arange(n_arms), rng.normal(0, 2, n_arms))
    more = rng.integers(n_arms, size=20)
    data = data.plus(more, rng.normal(0, 1, 20) + 0.5 * more)
    arms = rng.choice(rng.permutation(n_arms)[: rng.integers(1, n_arms + 1)], 9)
    leader = int(rng.integers(n_arms))
    block = Block(arms, rng.normal(0, 2, arms.size), data, leader)
    return Recorded(block, Outlook(Evidence(problem, data, leader, 0.0)))


def members(table: Recorded, rng: np.random.Generator) -> Matrix:
    """Returns points of A_{b,i}, a row per arm i, mostly with S = R."""
    problem, leader = table.problem, table.block.best
    weights = rng.uniform(0.1, 1.0, problem.n_arms)
    found = decompose(problem, weights).respond(
        rng.normal(0, 5, problem.n_arms), leader, Components.from_problem(problem).radii, problem.tolerance
    )
    return found.means - found.gap


@pytest.mark.parametrize(
    ("graph", "several"), [*((name, False) for name in GRAPHS), ("three components", True), ("edgeless", True)]
)
@pytest.mark.parametrize("tolerance", [0.0, 0.2])
def test_no_means_under_which_the_leader_is_wrong_gain_by_a_bet(graph: str, several: bool, tolerance: float) -> None:
    """sum_a n_a h_a (mu_a - lam_a) <= what is charged; leaving out a single bet would break it."""
    rng, broken, rows = np.random.default_rng(1), 0, 0
    for _ in range(40):
        table = random_table(GRAPHS[graph], tolerance, rng, several)
        problem, leader = table.problem, table.block.best
        table.against_arms(leader, tolerance)
        lam, gap, size, slack = table.rows  # type: ignore[attr-defined]  # set when it settles
        z = table.block.counts * gap / table.outlook.variances * size[:, None]
        can_win = separable(problem)[leader]
        for _ in range(5):
            mu = members(table, rng)
            for i in np.flatnonzero((size > 0) & can_win):
                assert (problem.roughness(mu[i]) <= problem.radii * (1 + 1e-8)).all()
                assert mu[i, i] >= mu[i, leader] + tolerance - 1e-8
                gain = z[i] * (mu[i] - lam[i])
                assert gain.sum() <= max(size[i] * slack[i], 0.0) + 1e-9 * np.abs(gain).sum() + 1e-12
                rows += 1
                broken += (gain.sum() - gain).max() > 1e-6
        assert (size * slack)[np.isfinite(lam).all(axis=1)].max() < 1e-9, "and hardly anything is charged"
    assert rows > 200 and broken > rows / 8


@pytest.mark.parametrize("several", [False, True])
def test_what_a_wrong_root_leaves_is_charged(several: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the search had stopped at other prices: lam minimises the Lagrangian there (theory 12.6, 16.10)."""
    rng, honest, charged = np.random.default_rng(4), Decomposition.respond, 0

    def spoiled(self: Decomposition, means: Vector, best: int, radii: Vector, tolerance: float) -> Responses:
        found = honest(self, means, best, radii, tolerance)
        if self is not table._decomposition:
            return found
        other = replace(found, gamma=1.5 * found.gamma, rests=1.5 * found.rests)
        level, y = self.coordinates(means)
        den = self.theta + 2 * other.at_coordinates(other.prices) * self.rough
        coef = (y - other.nu[:, None] * (self.basis[best] - self.basis)) / den
        return replace(other, coef=coef, gap=means - (level + self.combine(coef.T).T))

    monkeypatch.setattr(Decomposition, "respond", spoiled)
    for _ in range(60):
        table = random_table(GRAPHS["three components"], 0.0, rng, several)
        problem, leader = table.problem, table.block.best
        arms = np.concatenate([table.block.arms, np.arange(problem.n_arms)])  # weight everywhere
        table = Recorded(replace(table.block, arms=arms, outcomes=rng.normal(0, 2, arms.size)), table.outlook)
        table.against_arms(leader, 0.0)
        lam, gap, size, slack = table.rows  # type: ignore[attr-defined]  # set when it settles
        z = table.block.counts * gap / table.outlook.variances * size[:, None]
        component = problem.graph.components
        for i in np.flatnonzero(size > 0):
            # The same shape, as rough as R allows; the leader and the challenger meet.
            anchor = np.unique(component, return_index=True)[1]
            anchor[component[i]], anchor[component[leader]] = i, leader
            room = np.sqrt(problem.radii / np.maximum(problem.roughness(lam[i]), 1e-12))
            mu = (room[component] if several else room) * (lam[i] - lam[i, anchor[component]])
            if not problem.smooth(mu) or mu[i] < mu[leader] - 1e-12:
                continue
            gain = z[i] * (mu - lam[i])
            assert gain.sum() <= max(size[i] * slack[i], 0.0) + 1e-9 * np.abs(gain).sum() + 1e-12
            charged += gain.sum() > 1e-3
    assert charged >= 3, "it would be a gain"


@pytest.mark.parametrize(
    ("graph", "several"), [("path", False), ("three components", False), ("three components", True)]
)
def test_no_smooth_means_gain_by_the_bets_against_R(graph: str, several: bool) -> None:
    rng, sized = np.random.default_rng(2), 0
    for _ in range(150):
        table = random_table(GRAPHS[graph], 0.0, rng, several)
        if table.outlook.misfit <= table.outlook.freedom / 2:
            assert table.against_R() == 0.0, "no reason to doubt R, and no bet"
            continue
        table.against_R()
        (lam,), (gap,), (size,), (slack,) = table.rows  # type: ignore[attr-defined]  # set when it settles
        z = table.block.counts * gap / table.outlook.variances
        sized += size > 0 and np.abs(z).max() > 1e-6
        for mu in members(table, rng):
            gain = z * (mu - lam)
            assert gain.sum() <= max(slack, 0.0) + 1e-9 * np.abs(gain).sum() + 1e-12
        assert slack < 1e-9 * max(np.abs(z).max(), 1)
    assert sized > 8


def test_bets_with_the_benefit_of_the_doubt_stay_valid() -> None:
    """They are made at an R larger than that of the problem, which holds all the more."""
    problem = Problem(GRAPHS["path"], 0.05)
    data = Data.none(5).plus(np.repeat(np.arange(5), 20), np.repeat([0.0, 2.0, -1.0, 2.0, 0.0], 20))
    table = Recorded(Block(np.arange(5), np.zeros(5), data, 1), Outlook(Evidence(problem, data, 1, 0.0)))
    assert table.outlook.radii[0] > 1
    table.against_arms(1, 0.0)
    lam, gap, size, slack = table.rows  # type: ignore[attr-defined]  # set when it settles
    mu = members(table, np.random.default_rng(0))
    for i in (0, 2, 3, 4):
        assert (size[i] * gap[i] * (mu[i] - lam[i])).sum() <= max(slack[i], 0.0) + 1e-9


# Bounded outcomes.


@pytest.mark.parametrize("binary", [False, True])
def test_no_result_at_either_end_of_the_range_pays_less_than_a_tenth(
    binary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, kernel = np.random.default_rng(3), bets._bounded_payoffs
    least: list[Vector] = []

    def watched(h, lam, *rest):  # type: ignore[no-untyped-def]  # as the kernel
        used = table.block.counts > 0
        low, high = -origin - 2.0, 1.0 - origin
        ends = np.minimum(1 + h * (low - lam), 1 + h * (high - lam))[:, used]
        least.append(ends.min(axis=1))
        return kernel(h, lam, *rest)

    monkeypatch.setattr(bets, "_bounded_payoffs", watched)
    for _ in range(60):
        graph = list(GRAPHS.values())[int(rng.integers(3))]
        n_arms, origin = graph.n_arms, float(rng.choice([-2.0, 1.0]))
        problem = Problem.bounded(graph, float(rng.uniform(0.1, 9.0)), low=-2.0, high=1.0, binary=binary)
        rates = rng.beta(0.5, 0.5, n_arms)
        arms = np.concatenate([np.arange(n_arms), rng.integers(n_arms, size=60)])
        data = Data.none(n_arms).plus(arms, 3.0 * (rng.random(arms.size) < rates[arms]) - 2.0 - origin)
        pulls = rng.integers(n_arms, size=6)
        block = Block(pulls, np.full(6, -2.0 - origin), data, int(np.argmax(rates)))
        table = BetTable(block, Outlook(Evidence(problem, data, block.best, origin)))
        pay = table.against_arms(block.best, 0.0)
        assert (pay >= 6 * math.log(LEAST_PAYOFF) - 1e-9).all()
    every = np.concatenate(least)
    assert every.min() >= LEAST_PAYOFF - 1e-12
    assert (every < LEAST_PAYOFF + 1e-9).sum() > 5, "some rows should be scaled down"


# Accounts.


def test_a_tenth_of_the_cash_is_invested_at_every_block() -> None:
    account = Account.opened(3)
    assert account.wealth.tolist() == [0, 0, 0]
    one = account.settled(np.log([2.0, 0.5, 7.0]), idle=2)
    np.testing.assert_allclose(np.exp(one.cash), [1 - INVESTED, 1 - INVESTED, 1.0])
    np.testing.assert_allclose(np.exp(one.bets), [2 * INVESTED, 0.5 * INVESTED, 0.0])
    np.testing.assert_allclose(np.exp(one.wealth), [1.1, 0.95, 1.0])
    two = one.settled(np.log([0.1, 4.0, 3.0]))
    np.testing.assert_allclose(np.exp(two.bets), [0.1 * (0.2 + 0.09), 4 * (0.05 + 0.09), 3 * 0.1])
    np.testing.assert_allclose(np.exp(two.cash), [0.81, 0.81, 0.9])
    np.testing.assert_allclose(np.exp(two.peak), [1.1, 1.37, 1.2])
    assert account.cash.tolist() == [0, 0, 0], "the account before is left alone"


def test_fair_bets_leave_the_wealth_where_it_was() -> None:
    account = Account.opened(2)
    for k in range(50):
        account = account.settled(np.zeros(2), idle=k % 2)
        np.testing.assert_allclose(account.wealth, 0.0, atol=1e-12)
    np.testing.assert_allclose(account.peak, 0.0, atol=1e-12)


def test_leaders_never_hold_more_than_what_was_put_in() -> None:
    """C_i + W0_i + the sum over all b of W_bi stays 1 where every bet pays 0, whoever is fed."""
    rng, leaders = np.random.default_rng(4), Leaders.opened(4)
    for _ in range(60):
        shares = feed(rng.dirichlet(np.full(4, 0.3)))
        leaders = leaders.joined(np.flatnonzero(shares))
        leaders = leaders.settled(shares, np.zeros(4), np.zeros((leaders.leaders.size, 4)))
        total = np.exp(leaders.cash) + np.exp(leaders.common) + np.exp(leaders.own).sum(axis=0)
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)
        for b in range(4):
            now, peak = leaders.wealth(b)
            assert (now <= 1e-12).all() and (peak <= 1e-12).all()
    assert sorted(leaders.leaders.tolist()) == [0, 1, 2, 3] == sorted(set(leaders.leaders.tolist()))


def test_what_a_leader_proved_holds_for_that_leader_only() -> None:
    leaders = Leaders.opened(3).joined(np.array([0, 1]))
    shares = np.array([0.4, 0.4, 0.0])
    rich = leaders.settled(shares, np.zeros(3), np.array([[0.0, 8.0, 8.0], [0.0, 0.0, 0.0]]))
    poor = rich.settled(np.array([0.0, 0.8, 0.0]), np.zeros(3), np.array([[0.0, -20.0, -20.0], [0.0, 0.0, 0.0]]))
    now, peak = poor.wealth(0)
    assert (now[1:] < 0.0).all() and (peak[1:] > math.log(50)).all(), "final, though the wealth is gone"
    assert poor.wealth(1)[1].max() < 1e-12 and poor.wealth(2)[1].max() < 1e-12

    accounts = Accounts(Account.opened(3), Account.opened(1), poor)
    everyone = np.ones((3, 3), dtype=bool)
    reading = LeaderReading(1, accounts, np.array([0.1, 0.8, 0.1]), everyone)
    assert reading.decided(0.05) and reading.recommended(0.05) == 0, "the arm that beat all, not the most promising"
    assert not reading.decided(1e-6) and reading.recommended(1e-6) == 1
    assert reading.lacking(0.05) is not None
    assert reading.least_beaten(0.05)[0] == peak[1:].min()
    # A leader who joins later finds the cash, not what others won.
    late = rich.joined(np.array([2]))
    np.testing.assert_array_equal(late.wealth(2)[1], np.logaddexp(rich.cash, rich.common))


def test_nobody_needs_to_beat_an_arm_that_cannot_be_better_by_the_tolerance() -> None:
    accounts = Accounts(Account.opened(3), Account.opened(1), Leaders.opened(3))
    possible = np.array([[True, False, True], [False, True, False], [True, True, True]])
    reading = LeaderReading(0, accounts, np.array([0.5, 0.3, 0.2]), possible)
    assert reading.decided(0.1) and reading.recommended(0.1) == 1
    assert reading.least_beaten(0.1) == (math.inf, 0.0)


def test_a_tolerance_that_smooth_means_just_reach_is_no_reason_to_go_on_for_ever() -> None:
    """Neighbours of neighbours differ by at most 1 here, up to rounding: nobody can bet against them any more."""
    problem = Problem(GRAPHS["path"], R=0.5, tolerance=1.0)
    assert not separable(problem)[0][2] and not separable(problem)[2][4]
    assert separable(problem)[0][3]
    run = simulate.run(SpectralRace(problem, 0.1), [0.0, 0.3, 0.6, 0.3, 0.0], 0, max_samples=100)
    assert (run.status, run.correct) == ("decided", True)


@pytest.mark.parametrize("graph", GRAPHS)
def test_arms_are_separable_where_the_oracle_finds_an_alternative(graph: str) -> None:
    for R, tolerance in ((0.01, 0.15), (0.5, 0.6), (0.5, 0.99), (2.0, 1.1), (math.inf, 1.0), (0.5, 0.0)):
        problem = Problem(GRAPHS[graph], R, tolerance=tolerance)
        n_arms = problem.n_arms
        for b in range(n_arms):
            cost = decompose(problem, np.ones(n_arms)).respond(np.zeros(n_arms), b, np.array([R]), tolerance).cost
            others = np.arange(n_arms) != b
            np.testing.assert_array_equal(separable(problem)[b][others], np.isfinite(cost)[others])


def test_leaders_are_fed_by_the_squares_of_their_chances_and_the_rest_goes_to_all() -> None:
    shares = feed(np.array([0.6, 0.3, FED - 0.001, 0.1 - FED + 0.001]))
    assert shares.sum() == pytest.approx(1 - COMMON)
    assert shares[2] == 0 and shares[0] == pytest.approx(4 * shares[1])
    many = feed(np.full(40, 1 / 40))
    np.testing.assert_allclose(many, (1 - COMMON) / 40)
    assert feed(np.append(np.full(45, 0.02), 0.1))[:45].max() == 0


def peaks(*wealth: float) -> Account:
    """Returns accounts whose largest wealth was this, and which have lost most of it since."""
    return Account(np.log(np.array(wealth)) - 1, np.full(len(wealth), -np.inf), np.log(np.array(wealth)))


def test_arms_not_eliminated_are_candidates_and_the_last_one_is_the_answer() -> None:
    fine = peaks(1.0)
    reading = EliminationReading(1, Accounts(peaks(3.0, 150.0, 20.0), fine, None), np.array([0.0, 9.0, 1.0]))
    assert reading.candidates(0.01).tolist() == [0, 2]
    assert not reading.decided(0.01)
    assert reading.recommended(0.01) == 2, "an eliminated arm is not recommended, however good it looks"
    assert reading.candidates(0.05 * (1 + 1e-12)).tolist() == [0] and reading.decided(0.05 * (1 + 1e-12))
    assert reading.least_beaten(0.05) == pytest.approx((math.log(20), math.log(20)))
    np.testing.assert_allclose(reading.lacking(0.01), [math.log(100 / 3) + 1, 0, math.log(100 / 20) + 1])
    nobody = EliminationReading(1, Accounts(peaks(30.0, 30.0, 30.0), fine, None), np.zeros(3))
    assert not nobody.consistent(0.1) and not nobody.decided(0.1) and nobody.recommended(0.1) == 1
    refuted = EliminationReading(0, Accounts(peaks(1.0, 30.0, 30.0), peaks(11.0), None), np.zeros(3))
    assert refuted.consistent(0.05) and not refuted.consistent(0.1) and not refuted.decided(0.1)


def test_nothing_is_bet_on_a_block_opened_before_there_was_an_estimate() -> None:
    problem = Problem(GRAPHS["edgeless"], 1.0)
    rule, block = Betting(), Block(np.arange(4), np.arange(4.0), Data.none(4), 0)
    memory = rule.start(problem)
    assert rule.observe(memory, block, Evidence(problem, block.results, 3, 0.0)) is memory


def test_the_reading_shows_nothing_of_R_before_it_is_bet_against() -> None:
    joined = Problem(GRAPHS["path"], 1.0)
    policy = SpectralRace(joined, 0.1)
    state: State = policy.init()
    assert not policy._rules["betting"].read(state.stopping["betting"], _seen(joined)).tests_R
    rng = np.random.default_rng(0)
    for _ in range(4):
        arms = policy.ask(state, 100)
        state = policy.tell(state, arms, rng.standard_normal(arms.size))
    assert policy._rules["betting"].read(state.stopping["betting"], _seen(joined)).tests_R


def _seen(problem: Problem) -> Evidence:
    return Evidence(problem, Data.none(problem.n_arms).plus(np.arange(problem.n_arms), np.zeros(problem.n_arms)), 0, 0)


# A wrong R.


@pytest.mark.parametrize(("mu", "least_refuted", "most_wrong"), [((0.9, 0.4, 0.8), 4, 0), ((1.4, 0.4, 1.5), 6, 1)])
def test_a_wrong_R_is_refuted_rather_than_believed(mu: tuple[float, ...], least_refuted: int, most_wrong: int) -> None:
    """R = 0.01 where S(mu) = 0.16 or 1.21: most runs end in "the data contradict R", hardly any in a wrong answer."""
    problem = Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01)
    runs = [simulate.run(SpectralRace(problem, 0.01), mu, seed, max_samples=20_000) for seed in range(8)]
    assert sum(run.status == "inconsistent" for run in runs) >= least_refuted
    assert sum(run.status == "decided" and not run.correct for run in runs) <= most_wrong
