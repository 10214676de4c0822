"""Tracking: the counts of pulls follow a target allocation that changes over time."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.checks import check_matrices
from spectralbai.compiled import njit
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.sampling.contract import Rng, SamplingRule, View
from spectralbai.spectral.components import BYTES_PER_PAIR
from spectralbai.ties import ROUNDING


@dataclass(frozen=True, eq=False)
class Tracked(Memory):
    """The cumulated target, and the allocation by which it grows."""

    kind: ClassVar[str] = "tracked"

    targets: Vector
    """Cumulated target allocation at time `base`."""
    base: int
    """Number of results seen when the allocation was last computed."""
    omega: Vector
    """The allocation computed at that time."""
    rate: Vector
    """How much the targets grow with each pull: omega, raised to the exploration floor."""


@dataclass(frozen=True)
class Tracker(SamplingRule[Tracked]):
    """A rule whose counts follow an allocation: C-tracking (theory, section 7)."""

    def check(self, problem: Problem) -> None:
        check_matrices(problem.n_arms, BYTES_PER_PAIR)

    def start(self, problem: Problem) -> Tracked:
        even = np.full(problem.n_arms, 1 / problem.n_arms)
        return Tracked(np.zeros(problem.n_arms), 0, even, even)

    @abstractmethod
    def allocation(self, view: View) -> Vector:
        """Returns the allocation to track from now on."""

    def plan(self, memory: Tracked, view: View) -> Tracked:
        samples = view.evidence.samples
        omega = self.allocation(view)
        rate = project_on_floor(omega, floor(view.problem.n_arms, samples))
        targets = memory.targets + (samples - memory.base) * memory.rate
        return Tracked(targets, samples, omega, rate)

    def pulls(self, memory: Tracked, view: View, issued: Vector, n: int, rng: Rng = None) -> Indices:
        targets = memory.targets + (issued.sum() - memory.base) * memory.rate
        return next_pulls(targets, memory.rate, issued, n)

    def shares(self, memory: Tracked, view: View) -> Vector:
        return memory.rate


def floor(n_arms: int, samples: int) -> float:
    """Returns the exploration floor epsilon_t = (K^2 + t)^(-1/2) / 2 of [GK16, Lemma 7]."""
    return float(0.5 / np.sqrt(n_arms**2 + samples))


@njit
def project_on_floor(omega: Vector, epsilon: float) -> Vector:
    """Returns the point of {omega >= epsilon, sum = 1} closest in sup-norm: max(omega - c, epsilon) (theory 7.2)."""
    ordered = np.sort(omega)[::-1]
    # If the m largest entries stay above the floor, c = (their sum + (K - m) epsilon - 1) / m. The right m is the
    # largest one for which they do.
    c = 0.0
    largest = 0.0
    for m in range(1, omega.size + 1):
        largest += ordered[m - 1]
        shift = (largest + (omega.size - m) * epsilon - 1.0) / m
        if ordered[m - 1] - shift >= epsilon:
            c = shift
    projected: Vector = np.maximum(omega - c, epsilon)
    projected /= projected.sum()
    return projected


@njit
def next_pulls(targets: Vector, rate: Vector, issued: Vector, n: int) -> Indices:
    """Returns the next n arms of C-tracking: each is the arm that is furthest behind its target.

    `targets` are the cumulated targets after the pulls already issued; they grow by `rate` with each pull (theory 7.1).
    Of arms that are equally far behind, up to rounding errors, the first one is pulled.
    """
    pulls = np.empty(n, dtype=np.intp)
    counts = issued.copy()
    for k in range(n):
        arm = 0
        lag = -np.inf
        for a in range(rate.size):
            behind = targets[a] + (k + 1) * rate[a] - counts[a]
            if behind > lag + ROUNDING:
                arm, lag = a, behind
        pulls[k] = arm
        counts[arm] += 1.0
    return pulls
