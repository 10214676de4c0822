"""Bets: they gain nothing on average under the means that they bet against, and no payoff is too small."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.outlook import Outlook, separable
from spectralbai.spectral import Components, Decomposition, Responses, decompose
from spectralbai.stopping import bets
from spectralbai.stopping.bets import LEAST_PAYOFF, BetTable
from tests.graphs import GRAPHS


class Recorded(BetTable):
    """A table that keeps what it settles."""

    def _settle(
        self, lam: Matrix, gap: Matrix, size: Vector, slack: Vector, arms: Indices | slice = slice(None)
    ) -> Vector:
        self.__dict__["rows"] = (lam, gap, size, slack)
        return super()._settle(lam, gap, size, slack, arms)


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
def test_a_bet_gains_nothing_on_average_where_the_leader_is_wrong(graph: str, several: bool, tolerance: float) -> None:
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
def test_the_error_of_an_inexact_root_is_charged(several: bool, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_bets_against_R_gain_nothing_on_average_under_smooth_means(graph: str, several: bool) -> None:
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
    """They are made with an R larger than that of the problem: if the smaller bound holds, so does the larger."""
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
