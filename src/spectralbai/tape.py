"""Tapes: the outcomes of a simulation, fixed by its seed before anybody pulls an arm.

The k-th outcome of an arm depends on the seed, the arm and k only. So policies, rules and values of R that are
simulated with the same seed meet the same luck, and their differences are less noisy than they are.
"""

from __future__ import annotations

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.noise import Draw

FIRST = 16
"""Number of outcomes that are drawn for an arm at first; each time they run out, as many are added as there are."""


class Tape:
    """The outcomes of every arm."""

    def __init__(self, draw: Draw, n_arms: int, seed: int) -> None:
        """`draw` is the distribution, as `Noise.draws` returns it."""
        self._draw = draw
        self._seed = seed
        self._generators: dict[int, np.random.Generator] = {}
        self._outcomes: dict[int, Vector] = {}
        self._position = np.zeros(n_arms, dtype=np.intp)  # number of outcomes of each arm that were read

    def first(self, arm: int, n: int) -> Vector:
        """Returns the first n outcomes of an arm, whatever was read before."""
        if arm not in self._generators:
            self._generators[arm] = np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(arm,)))
            self._outcomes[arm] = np.empty(0)
        while self._outcomes[arm].size < n:
            size = max(FIRST, self._outcomes[arm].size)
            more = self._draw(self._generators[arm], np.full(size, arm))
            self._outcomes[arm] = np.concatenate([self._outcomes[arm], more])
        return self._outcomes[arm][:n]

    def read(self, arms: Indices) -> Vector:
        """Returns the next outcome of each of these arms, which may repeat."""
        outcomes = np.empty(arms.size)
        places = np.argsort(arms, kind="stable")
        pulled, starts = np.unique(arms[places], return_index=True)
        for arm, these in zip(pulled.tolist(), np.split(places, starts[1:]), strict=True):
            begin = self._position[arm]
            outcomes[these] = self.first(arm, begin + these.size)[begin:]
            self._position[arm] += these.size
        return outcomes
