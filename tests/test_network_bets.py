"""Bets on large graphs, tested where they can fail: on tight nulls, and with mistakes that the tests must notice.

The true means are the closest to the estimate under which the rival is no worse than the leader, so that what a bet is
charged with is all that it can win on average. Bets have full size. The wealth then reaches 1/delta almost as often as
Ville's inequality allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.network_outlook import NetworkOutlook
from spectralbai.spectral import Components, Decomposition, network_metric
from spectralbai.spectral.metric import Comparisons
from spectralbai.spectral.network import Columns, Network
from spectralbai.spectral.network_metric import NetworkMetric
from spectralbai.stopping.network_bets import NetworkTable
from verification.coverage import least_rate

DELTA, ALARM, TIGHT = 0.2, 0.24, 0.06
"""The risk of the null, the crossing rate from which a rule is called wrong, and the least rate of a tight null."""
RUNS, BLOCKS = 2000, 120
SURE = 1e6
"""Results of each arm behind the estimate: so many that bets have full size."""

CHAIN = [(a, a + 1) for a in range(5)]
GRAPHS = {
    "path": Graph.from_edges(6, CHAIN),
    "grid": Graph.from_edges(9, [(a, a + 1) for a in range(9) if a % 3 != 2] + [(a, a + 3) for a in range(6)]),
    "star": Graph.from_edges(6, [(0, a) for a in range(1, 6)]),
    "two components": Graph.from_edges(7, [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6)]),
}
MEANS: dict[str, list[float]] = {
    "path": [0, 1, 2, 3, 4, 5],
    "grid": [0, 1, 2, 1, 2, 3, 2, 3, 4],
    "star": [0, 3, -1, -1, -1, -1],
    "two components": [0, 1, 2, 3, 1, 1, 1],
}
RIVALS = {"path": 2, "grid": 4, "star": 0, "two components": 5}
EVERY_GRAPH = pytest.mark.parametrize("name", GRAPHS)
EVERY_NOISE = pytest.mark.parametrize("binary", [False, True], ids=["gaussian", "binary"])


@dataclass(frozen=True)
class Null:
    """A leader, and a rival that is as good as it."""

    name: str
    binary: bool
    table: type[NetworkTable] = NetworkTable

    @property
    def graph(self) -> Graph:
        return GRAPHS[self.name]

    @cached_property
    def problem(self) -> Problem:
        """R allows the estimate, and hardly more."""
        R = 1.2 * self.graph.roughness(self.nu)
        return Problem.bounded(self.graph, R, binary=True) if self.binary else Problem(self.graph, R)

    @cached_property
    def nu(self) -> Vector:
        """The estimate: as smooth as R allows, and off by a common level."""
        return (0.02 if self.binary else 0.3) * np.array(MEANS[self.name]) + (0.45 if self.binary else 3.0)

    @property
    def leader(self) -> int:
        return int(np.argmax(MEANS[self.name]))

    @property
    def rival(self) -> int:
        """An arm that cannot be as good as the leader without being rough."""
        return RIVALS[self.name]

    @cached_property
    def mu(self) -> Vector:
        """The means closest to the estimate under which the rival is not worse, from dense matrices."""
        to = Components.from_problem(self.problem)
        everywhere = Decomposition.of(to, np.ones(self.graph.n_arms), np.ones(self.graph.n_arms))
        mu: Vector = self.nu - everywhere.respond(self.nu, self.leader, to.radii, 0.0).gap[self.rival]
        return mu

    @cached_property
    def data(self) -> Data:
        counts = np.full(self.graph.n_arms, SURE)
        return Data(counts, counts * self.nu, counts * (self.nu if self.binary else self.nu**2))

    def pay(self, counts: Vector, outcomes: Vector) -> float:
        """Returns the log payoff of the bet against the rival."""
        block = Block(np.repeat(np.arange(counts.size), counts.astype(int)), outcomes, self.data, self.leader)
        outlook = NetworkOutlook(Evidence(self.problem, self.data, self.leader, 0.0), Network.on(self.problem))
        return float(self.table(block, outlook).against_arms(self.leader, 0.0)[self.rival])

    def payoffs(self, counts: Vector) -> tuple[float, Vector]:
        """Returns the log payoff if all results are 0, and what a result 1 of each arm adds to it: it is affine in the
        sums of the results."""
        first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(int)
        nothing = np.zeros(int(counts.sum()))
        base, slopes = self.pay(counts, nothing), np.zeros(counts.size)
        for arm in np.flatnonzero(counts).tolist():
            outcomes = nothing.copy()
            outcomes[first[arm]] = 1.0
            slopes[arm] = self.pay(counts, outcomes) - base
        return base, slopes

    def sums(self, rng: np.random.Generator, counts: Vector, runs: int) -> Matrix:
        if self.binary:
            return rng.binomial(counts.astype(int), self.mu, (runs, counts.size)).astype(np.float64)
        return counts * self.mu + np.sqrt(counts) * rng.standard_normal((runs, counts.size))

    @property
    def plans(self) -> tuple[Vector, ...]:
        """Counts of the blocks, in turn; some do not pull the rival."""
        n, size = self.graph.n_arms, 16 if self.binary else 2
        even, without = np.full(n, float(size)), np.full(n, float(size))
        without[self.rival] = 0.0
        return even, 2 * even, even, without


def crossings(null: Null) -> int:
    """Returns in how many runs the wealth against the rival reaches 1/delta."""
    rng = np.random.default_rng(0)
    made = [null.payoffs(counts) for counts in null.plans]
    wealth, peak = np.zeros(RUNS), np.zeros(RUNS)
    for k in range(BLOCKS):
        counts, (base, slopes) = null.plans[k % len(made)], made[k % len(made)]
        wealth += base + null.sums(rng, counts, RUNS) @ slopes
        peak = np.maximum(peak, wealth)
    return int((peak >= -math.log(DELTA)).sum())


def is_wrong(failures: int) -> bool:
    """Whether a rule counts as wrong: its rate is above delta by much more than chance explains."""
    return failures > ALARM * RUNS and least_rate(failures, RUNS) > DELTA


@EVERY_NOISE
@EVERY_GRAPH
def test_the_wealth_against_an_arm_as_good_as_the_leader_crosses_about_as_often_as_it_may(
    name: str, binary: bool
) -> None:
    crossed = crossings(Null(name, binary))
    assert not is_wrong(crossed) and least_rate(crossed, RUNS) <= DELTA
    assert crossed > TIGHT * RUNS, "the null should be tight: a loose one shows no mistake"


class Unscaled(NetworkTable):
    """Measures bets in other units, which changes nothing."""

    def _paid(self, found: Comparisons, nu: Vector, size: Vector) -> Vector:
        return super()._paid(scaled(found, 0.25), nu, size)


def scaled(found: Comparisons, factor: float) -> Comparisons:
    return Comparisons(factor * found.directions, factor * found.most, factor * found.lead, factor**2 * found.variance)


@EVERY_NOISE
def test_the_units_of_a_direction_do_not_matter(binary: bool) -> None:
    null = Null("path", binary)
    outcomes = np.random.default_rng(0).integers(0, 2, 6 * 16).astype(np.float64)
    counts = np.full(6, 16.0)
    assert replace(null, table=Unscaled).pay(counts, outcomes) == pytest.approx(null.pay(counts, outcomes))


class ChargedInOtherUnits(NetworkTable):
    """A mistake: the bets are scaled up, and the charge is not."""

    def _paid(self, found: Comparisons, nu: Vector, size: Vector) -> Vector:
        small = scaled(found, 0.25)
        return super()._paid(found._replace(most=small.most), nu, size)


class WithoutPulls(NetworkTable):
    """A mistake: arms that the block does not pull have weight in its bets."""

    @property
    def _metric(self) -> NetworkMetric:
        return NetworkMetric(self.outlook.network, np.arange(self.block.counts.size), np.maximum(self.block.counts, 1))

    def _paid(self, found: Comparisons, nu: Vector, size: Vector) -> Vector:
        u, x = self._metric.u, self._sums / np.maximum(self.block.counts, 1)
        bet = size * found.lead / found.variance
        paid: Vector = bet * (found.directions @ (x - 2.0) - found.most) - bet**2 * (found.directions**2 / u).sum(1) / 2
        return paid


@pytest.mark.parametrize(("name", "table"), [("star", ChargedInOtherUnits), ("grid", WithoutPulls)])
def test_mistakes_in_what_bets_pay_are_noticed(name: str, table: type[NetworkTable]) -> None:
    assert is_wrong(crossings(Null(name, False, table)))


Most = Callable[[Network, Matrix, Vector, Indices, Columns, float], Vector]
EXACT: Most = Network.most


def no_charge(network: Network, z: Matrix, pull: Vector, arms: Indices, columns: Columns, R: float) -> Vector:
    return np.zeros(len(z))


def small_resistances(network: Network, z: Matrix, pull: Vector, arms: Indices, columns: Columns, R: float) -> Vector:
    kept = network.resistances
    network.__dict__["resistances"] = 0.2 * kept
    most = EXACT(network, z, pull, arms, columns, R)
    network.__dict__["resistances"] = kept
    return most


def factor_of_another_graph(
    network: Network, z: Matrix, pull: Vector, arms: Indices, columns: Columns, R: float
) -> Vector:
    n_arms = network.of_arm.size
    other = Network.on(Problem(Graph.from_edges(n_arms, [(a, b, 30.0) for a, b in network.pairs.tolist()]), R))
    return EXACT(other, z, pull, arms, other.columns(columns.arms), R)


@pytest.mark.parametrize(
    ("name", "mistake"), [("star", no_charge), ("path", small_resistances), ("star", factor_of_another_graph)]
)
def test_mistakes_in_the_charge_are_noticed(name: str, mistake: Most, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "most", mistake)
    assert is_wrong(crossings(Null(name, False)))


def test_a_multiplier_chosen_freely_across_components_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_metric, "PRICES", np.array([100.0]))  # directions that are far from the best ones
    assert not is_wrong(crossings(Null("two components", False)))
    choose = NetworkMetric._choose

    def freely(metric: NetworkMetric, G: Matrix, eta: Vector, far: Vector, *rest: Any) -> Any:
        choice = choose(metric, G, eta, far, *rest)
        return choice._replace(pull=np.maximum((G * choice.zeta).sum(axis=1) / far, 0.0))

    monkeypatch.setattr(NetworkMetric, "_choose", freely)
    assert is_wrong(crossings(Null("two components", False)))


@pytest.mark.parametrize("charged", [False, True])
def test_inexact_solutions_are_noticed_unless_their_errors_are_charged_for(
    charged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def badly_solved(network: Network, arms: Indices) -> Columns:
        load = np.zeros((network.of_arm.size, arms.size))
        load[arms, np.arange(arms.size)] = 1.0
        load[network.grounds] = 0.0
        values = 0.5 * network.grounded.solve(load)
        return Columns(arms, values, network.errors(arms, values) if charged else np.zeros(arms.size))

    monkeypatch.setattr(Network, "columns", badly_solved)
    assert is_wrong(crossings(Null("grid", False))) != charged
