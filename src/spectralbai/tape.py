"""Tapes: the outcomes of a simulation, fixed by its seed before anybody pulls an arm.

The k-th outcome of an arm depends on the seed, the arm and k only. So policies, rules and values of R that are
simulated with the same seed meet the same luck, and their differences are less noisy than they are. If means drift,
outcomes depend on the time, too.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.drift import Drift
from spectralbai.errors import InvalidInput
from spectralbai.noise import Draw, Drawing, Noise
from spectralbai.problem import Problem

FIRST = 16
"""Number of outcomes that are drawn for an arm at first; each time they run out, as many are added as there are."""


class Tape:
    """The outcomes of every arm."""

    drifts: ClassVar[bool] = False
    """Whether outcomes depend on when they are read."""

    def __init__(self, draw: Draw, n_arms: int, seed: int) -> None:
        """`draw` is the distribution, as `Noise.draws` returns it."""
        self.seed = seed
        self._draw = draw
        self._generators: dict[int, np.random.Generator] = {}
        self._outcomes: dict[int, Vector] = {}
        self._position = np.zeros(n_arms, dtype=np.intp)  # number of outcomes of each arm that were read

    @classmethod
    def of(
        cls, problem: Problem, mu: Vector, seed: int, noise: Drawing | None = None, drift: Drift | None = None
    ) -> Tape:
        """Returns outcomes with means `mu` (n_arms,), which may drift; `noise` says how they are drawn, as in
        `simulate.run`."""
        items = problem.items
        if items is not None and items.n is not None:
            raise InvalidInput(
                f"`items` must be Items.fresh() to draw outcomes from means, got {items.described()}; use "
                "simulate.replay with a table of their outcomes"
            )
        if drift is None:
            return cls(problem.noise.draws(mu, noise), problem.n_arms, seed)
        if items is not None:
            raise InvalidInput("`drift` cannot be simulated on items; leave out one of them")
        return DriftingTape(problem.noise, mu, noise, seed, drift)

    def first(self, arm: int, n: int) -> Vector:
        """Returns the first n outcomes of an arm, whatever was read before."""
        outcomes = self._outcomes.get(arm, np.empty(0))
        while outcomes.size < n:
            more = self._draw(self._generator(arm), np.full(max(FIRST, outcomes.size), arm))
            outcomes = self._outcomes[arm] = np.concatenate([outcomes, more])
        return outcomes[:n]

    def _generator(self, arm: int) -> np.random.Generator:
        """Returns the generator of an arm's outcomes."""
        if arm not in self._generators:
            self._generators[arm] = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(arm,)))
        return self._generators[arm]

    def read(self, arms: Indices, blocks: Indices | None = None, items: Indices | None = None) -> Vector:
        """Returns the next outcome of each of these arms, which may repeat; `blocks` are the numbers of their blocks,
        if pulls come in blocks, and `items` their items, if there are any."""
        outcomes = np.empty(arms.size)
        places = np.argsort(arms, kind="stable")
        pulled, starts = np.unique(arms[places], return_index=True)
        for arm, these in zip(pulled.tolist(), np.split(places, starts[1:]), strict=True):
            begin = self._position[arm]
            outcomes[these] = self.first(arm, begin + these.size)[begin:]
            self._position[arm] += these.size
        return outcomes


class DriftingTape(Tape):
    """Outcomes of means that drift: the k-th outcome of an arm depends on the seed, the arm, k, and the time at which
    it is read. Scores from Beta distributions depend on earlier times of the arm, too."""

    drifts = True

    def __init__(self, noise: Noise, mu: Vector, kind: Drawing | None, seed: int, drift: Drift) -> None:
        """`mu` (n_arms,) are the means without drift, and `kind` says how outcomes are drawn."""
        super().__init__(noise.draws(mu, kind), mu.size, seed)
        drift.check(mu)
        for end in drift.ends(mu.size):
            noise.draws(mu + end, kind)  # raises an error now if outcomes cannot be drawn
        self._noise, self._mu, self._kind, self._drift = noise, mu, kind, drift
        self._trials = 0

    def read(self, arms: Indices, blocks: Indices | None = None, items: Indices | None = None) -> Vector:
        blocks = np.full(arms.size, -1) if blocks is None else blocks
        trials = self._trials + np.arange(arms.size)
        self._trials += arms.size
        outcomes, shifts = np.empty(arms.size), self._drift.shift(arms, trials, blocks, self.seed)
        for k, arm in enumerate(arms.tolist()):
            now = self._mu.copy()
            now[arm] += shifts[k]
            outcomes[k] = self._noise.draws(now, self._kind)(self._generator(arm), arms[k : k + 1])[0]
        return outcomes


class TableTape(Tape):
    """Outcomes from a table. Trials that stand for themselves get a random entry of their arm's row."""

    def __init__(self, outcomes: Matrix, fresh: bool, seed: int) -> None:
        """`outcomes` has shape (n_arms, n_items). Items are columns; if `fresh`, columns drawn with replacement."""
        n_arms, n_items = outcomes.shape
        super().__init__(lambda rng, arms: outcomes[arms, rng.integers(n_items, size=arms.size)], n_arms, seed)
        self._table = outcomes
        self._columns = np.empty(0, dtype=np.intp) if fresh else np.arange(n_items)
        self._draws = np.random.default_rng((seed, 2))

    def read(self, arms: Indices, blocks: Indices | None = None, items: Indices | None = None) -> Vector:
        """Returns the outcome of each of these arms on its item, or the next one if there are no items."""
        if items is None:
            return super().read(arms)
        missing = int(items.max(initial=-1)) + 1 - self._columns.size
        if missing > 0:
            self._columns = np.append(self._columns, self._draws.integers(self._table.shape[1], size=missing))
        outcomes: Vector = self._table[arms, self._columns[items]]
        return outcomes
