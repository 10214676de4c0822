"""The sampling of SpectralTaS to the letter of [KG20, Algorithm 1]: mirror ascent at the empirical means, every step.

Nothing is corrected: the empirical means may be rougher than R, the allocation is whatever a fixed number of steps
gives, and one arm is pulled at a time. `OptimalTracking` is the version to use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.checks import check_integer
from spectralbai.compiled import njit
from spectralbai.errors import InvalidInput
from spectralbai.problem import Problem
from spectralbai.sampling.contract import Rng, View
from spectralbai.sampling.tracking import Tracked, Tracker, next_pulls, project_on_floor
from spectralbai.spectral.secular import step_to

CLOSE = 1e-9
"""Relative distance of S(lam) from R at which a search for the price of smoothness ends."""
SEARCH_STEPS = 100
"""Limit on the steps of that search; Newton needs about three."""


class Constants(NamedTuple):
    """What the compiled kernels need to know of a problem."""

    precision: Vector
    """1 / sigma_a^2."""
    laplacian: Matrix
    R: float


@dataclass(frozen=True)
class PrintedTracking(Tracker):
    """Tracks omega*(mu_hat), the allocation that `iterations` steps of mirror ascent find for the empirical means."""

    reads_every_result: ClassVar[bool] = True

    iterations: int = 300
    """Number of steps of mirror ascent, at every pull."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "iterations", check_integer("iterations", self.iterations, 1))

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if problem.tolerance > 0 or problem.by_component:
            setting = "an R for each component" if problem.by_component else f"a tolerance of {problem.tolerance:g}"
            raise InvalidInput(f"the algorithm as printed knows one R and no tolerance, got {setting}; use SpectralTaS")

    def plan(self, memory: Tracked, view: View) -> Tracked:
        if not view.evidence.data.counts.all():
            return memory
        return super().plan(memory, view)

    def allocation(self, view: View) -> Vector:
        return mirror_ascent(view.evidence.data.means, constants(view.problem), self.iterations)

    def pulls(self, memory: Tracked, view: View, issued: Vector, n: int, rng: Rng = None) -> Indices:
        first = np.flatnonzero(issued == 0)[:n]
        issued = issued + np.bincount(first, minlength=issued.size)
        return np.concatenate([first, super().pulls(memory, view, issued, n - first.size)])


def constants(problem: Problem) -> Constants:
    """Returns what the compiled kernels need to know of a problem."""
    R = math.inf if problem.unstructured else float(problem.radii[0])
    return Constants(1 / problem.sigma**2, problem.graph.laplacian.toarray(), R)


class Room(NamedTuple):
    """Places for the numbers of one search, so that it allocates nothing."""

    factor: Matrix
    pressure: Vector
    slope: Vector


@njit
def smooth_means(
    n: int, mu: Vector, weights: Vector, laplacian: Matrix, R: float, gamma: float, lam: Vector, room: Room
) -> float:
    """Puts the means with S <= R that are closest to `mu` into `lam`; returns the price of smoothness.

    There are `n` arms, the first entries of each array; `gamma` is a guess of the price. 1/sqrt(S) is a concave
    function of the price, so Newton's method for it finds the root from anywhere (theory 3.5).
    """
    factor, pressure, slope = room
    rough = 0.0
    for a in range(n):
        lam[a] = mu[a]
        for b in range(a):
            rough -= laplacian[a, b] * (mu[a] - mu[b]) ** 2
    if rough <= R:
        return 0.0
    for _ in range(SEARCH_STEPS):
        # The factors C D C' of diag(weights) + 2 gamma L: D on the diagonal, C below.
        for a in range(n):
            for b in range(a + 1):
                entry = 2.0 * gamma * laplacian[a, b]
                if a == b:
                    entry += weights[a]
                for k in range(b):
                    entry -= factor[a, k] * factor[b, k] * factor[k, k]
                factor[a, b] = entry if a == b else entry / factor[b, b]
            lam[a] = weights[a] * mu[a]
        _solve(n, factor, lam)
        rough = 0.0
        for a in range(n):
            for b in range(a):
                rough -= laplacian[a, b] * (lam[a] - lam[b]) ** 2
        if abs(rough - R) <= CLOSE * R:
            break
        for a in range(n):
            pressure[a] = 0.0
            for b in range(n):
                pressure[a] += 2.0 * laplacian[a, b] * lam[b]
            slope[a] = pressure[a]
        _solve(n, factor, slope)
        change = 0.0
        for a in range(n):
            change += pressure[a] * slope[a]
        step = step_to(rough, -change, R)
        gamma = max(gamma + step, 0.0)
        if abs(step) <= 1e-14 * gamma:
            break
    return gamma


@njit
def _solve(n: int, factor: Matrix, x: Vector) -> None:
    """Solves C D C' y = x, and puts y into `x`. With C C', divisions and roots would take an eighth more time: the
    systems are that small."""
    for a in range(n):
        for k in range(a):
            x[a] -= factor[a, k] * x[k]
    for a in range(n - 1, -1, -1):
        x[a] /= factor[a, a]
        for k in range(a + 1, n):
            x[a] -= factor[k, a] * x[k]


@njit
def mirror_ascent(mu: Vector, constants: Constants, iterations: int) -> Vector:
    """Returns the average of the iterates of mirror ascent with a fixed step, from equal shares (theory 5.4).

    The step is sqrt(2 log K / iterations) / L, with L the largest k(mu_i, mu_j) [KG20, Theorem 9].
    """
    precision, laplacian, R = constants
    n = mu.size
    best = int(np.argmax(mu))
    lipschitz = 0.5 * (mu.max() - mu.min()) ** 2 * precision.max()
    average = np.full(n, 1.0 / n)
    if lipschitz == 0.0:
        return average
    # In the best response of challenger i the means of `best` and i are equal, unless smooth means closer than these
    # let i win already. So the two are merged into one vertex.
    merged = [np.zeros((n - 1, n - 1)) for _ in range(n)]
    place = np.zeros((n, n), dtype=np.intp)
    for i in range(n):
        k = 0
        for a in range(n):
            if a != i:
                place[i, a] = k
                k += 1
        place[i, i] = place[i, best]
        if i != best:
            for a in range(n):
                for b in range(n):
                    merged[i][place[i, a], place[i, b]] += laplacian[a, b]
    eta = np.sqrt(2.0 * np.log(n) / iterations) / lipschitz
    scores, omega, gamma = np.zeros(n), np.empty(n), np.zeros(n)
    lam, closest, u = np.empty(n), np.empty(n), np.empty(n)
    small_mu, small_u, small_lam = np.empty(n - 1), np.empty(n - 1), np.empty(n - 1)
    room = Room(np.empty((n, n)), np.empty(n), np.empty(n))
    average[:] = 0.0
    for _ in range(iterations):
        total = 0.0
        largest = scores.max()
        for a in range(n):
            omega[a] = np.exp(scores[a] - largest)
            total += omega[a]
        for a in range(n):
            omega[a] /= total
            average[a] += omega[a]
            u[a] = omega[a] * precision[a]
        least = np.inf
        for i in range(n):
            if i == best:
                continue
            # Without smoothness the alternative costs less: if that is too much, so is the rest.
            if 0.5 * u[best] * u[i] / (u[best] + u[i]) * (mu[best] - mu[i]) ** 2 >= least:
                continue
            for a in range(n):
                if a != i:
                    small_u[place[i, a]] = u[a]
                    small_mu[place[i, a]] = mu[a]
            both = place[i, i]
            small_u[both] += u[i]
            small_mu[both] += u[i] / small_u[both] * (mu[i] - mu[best])
            gamma[i] = smooth_means(n - 1, small_mu, small_u, merged[i], R, gamma[i], small_lam, room)
            for a in range(n):
                lam[a] = small_lam[place[i, a]]
            pull = u[i] * (lam[i] - mu[i])
            for a in range(n):
                pull += 2.0 * gamma[i] * laplacian[i, a] * lam[a]
            if pull < 0.0:
                gamma[best] = smooth_means(n, mu, u, laplacian, R, gamma[best], lam, room)
            cost = 0.0
            for a in range(n):
                cost += 0.5 * u[a] * (mu[a] - lam[a]) ** 2
            if cost < least:
                least = cost
                for a in range(n):
                    closest[a] = lam[a]
        for a in range(n):
            scores[a] += eta * 0.5 * precision[a] * (mu[a] - closest[a]) ** 2
    average /= average.sum()
    return average


class Course(NamedTuple):
    """How far a run is, changed in place: results so far, and the tracking as in `Tracked`."""

    counts: Vector
    sums: Vector
    targets: Vector
    omega: Vector
    rate: Vector


@njit
def play(course: Course, tape: Matrix, constants: Constants, iterations: int, delta: float, pulls: Indices) -> int:
    """Plays Algorithm 1 from a time at which every arm has a result, until it stops or `pulls` is full of the arms
    pulled; returns their number.

    `tape` has a row of outcomes per arm, enough for all these pulls. `course.rate` is what the targets grow by first.
    """
    counts, sums, targets, omega, rate = course
    n = counts.size
    for k in range(pulls.size):
        samples = counts.sum()
        means = sums / counts
        if _stops(means, counts * constants.precision, np.log(2.0 * samples * (n - 1) / delta)):
            return k
        targets += rate
        omega[:] = mirror_ascent(means, constants, iterations)
        rate[:] = project_on_floor(omega, 0.5 / np.sqrt(n**2 + samples))
        arm = next_pulls(targets, rate, counts, 1)[0]
        pulls[k] = arm
        sums[arm] += tape[arm, int(counts[arm])]
        counts[arm] += 1.0
    return pulls.size


@njit
def _stops(means: Vector, weights: Vector, threshold: float) -> bool:
    """Returns whether Z_ab > threshold for the arm a with the largest mean and every other arm b."""
    best = np.argmax(means)
    for b in range(means.size):
        if b != best:
            weight = weights[best] * weights[b] / (weights[best] + weights[b])
            if not 0.5 * weight * (means[best] - means[b]) ** 2 > threshold:
                return False
    return True
