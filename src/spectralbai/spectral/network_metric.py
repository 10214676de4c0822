"""The best bets on the results of some arms of a large graph, against every arm of the graph.

Means of arms that were not tried follow from those that were: with weights u on m arms, best responses at all prices of
smoothness come from one decomposition of an m x m matrix and from m columns of Y (see `Network`). The directions found
may be inexact; what their payoffs are charged with is an upper bound whatever they are (theory, section 19).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.spectral.metric import Comparisons
from spectralbai.spectral.network import Columns, Network

PRICES = 10.0 ** np.arange(-6, 3.1, 0.4)
"""Prices of smoothness that are tried, relative to the balance of the results and the graph."""
ROWS = 2048
"""Number of arms that are compared at a time, to limit the memory used."""


@dataclass(frozen=True, eq=False)
class NetworkMetric:
    """Results of arms of a network: how much each weighs, and what smooth means of all arms make of it."""

    network: Network
    arms: Indices
    """The arms tried, in ascending order."""
    u: Vector
    """Their numbers of results over the variance of one, positive."""

    @cached_property
    def columns(self) -> Columns:
        return self.network.columns(self.arms)

    @cached_property
    def _home(self) -> Indices:
        """The component of each arm tried."""
        return self.network.of_arm[self.arms]

    @cached_property
    def heavy(self) -> Vector:
        """The sum of u over each component."""
        return np.bincount(self._home, self.u, self.network.grounds.size).astype(np.float64)

    @cached_property
    def share(self) -> Vector:
        """The weight of each arm tried in the average of its component."""
        return self.u / self.heavy[self._home]

    @cached_property
    def _modes(self) -> _Modes:
        return _Modes.of(self)

    @cached_property
    def from_average(self) -> Vector:
        """The resistance between each arm and the average of its component, (n_arms,)."""
        along = self.columns.values @ self.share  # only arms of the same component count
        inside = np.bincount(self._home, self.share * along[self.arms], self.heavy.size)
        apart: Vector = self.network.resistances - 2 * along + inside[self.network.of_arm]
        return np.maximum(apart, 0.0)

    def averages(self, nu: Vector) -> Vector:
        """Returns the average of the entries of `nu` (n_arms,) for the arms tried in each component."""
        return np.bincount(self._home, self.share * nu[self.arms], self.heavy.size).astype(np.float64)

    def compare(
        self, nu: Vector, leader: int, R: float, tolerance: float, rows: Indices, certified: bool = True
    ) -> Comparisons:
        """Returns the best bets of a leader against the arms `rows`, for estimates `nu` (n_arms,) of all means.

        Unless it is to be `certified`, `most` is only about the largest z.mu, which is good enough for plans.
        """
        n, m = rows.size, self.arms.size
        answer = Comparisons(np.zeros((n, m)), np.zeros(n), np.zeros(n), np.ones(n))
        of_arm = self.network.of_arm
        if not self.heavy[of_arm[leader]] > 0:
            return answer
        nu = nu - nu[leader]  # a common level costs accuracy
        with_leader = self._with(leader)
        for first in range(0, n, ROWS):
            part = slice(first, first + ROWS)
            here = np.flatnonzero((self.heavy[of_arm[rows[part]]] > 0) & (rows[part] != leader)) + first
            if here.size:
                found = self._compare(nu, leader, R, tolerance, rows[here], with_leader, certified)
                for values, others in zip(answer, found, strict=True):
                    values[here] = others
        return answer

    def _with(self, leader: int) -> Columns:
        """Returns the columns of the arms tried and of the leader."""
        if leader in self.arms:
            return self.columns
        own, others = self.network.columns(np.array([leader])), self.columns
        return Columns(
            np.append(others.arms, leader),
            np.hstack([others.values, own.values]),
            np.append(others.errors, own.errors),
        )

    def _compare(
        self,
        nu: Vector,
        leader: int,
        R: float,
        tolerance: float,
        rows: Indices,
        columns: Columns,
        certified: bool,
    ) -> Comparisons:
        modes, of_arm = self._modes, self.network.of_arm
        place = int(np.flatnonzero(columns.arms == leader)[0])
        home, theirs = of_arm[leader], of_arm[rows]
        away = theirs != home
        apart = modes.at[leader] - modes.at[rows]  # G
        far = np.where(
            away,
            self.from_average[leader] + self.from_average[rows],
            self.network.resistances[leader] + self.network.resistances[rows] - 2 * columns.values[rows, place],
        )
        averages = self.averages(nu)
        ahead = np.where(away, averages[home] - averages[theirs], 0.0)
        with np.errstate(divide="ignore"):
            noise = np.where(away, 1 / self.heavy[home] + 1 / self.heavy[theirs], 0.0)
        choice = self._choose(apart, modes.turned(nu, averages), far, ahead, noise, R, tolerance)
        zeta, push = choice.zeta, choice.push
        z = zeta @ modes.back
        z += push[:, None] * np.where(away[:, None] & (self._home == home), self.share, 0.0)
        z -= push[:, None] * np.where(away[:, None] & (self._home == theirs[:, None]), self.share, 0.0)
        # Exactly what `most` needs: sums of `push` over two components, and of 0 over all others.
        member = (self._home[:, None] == np.arange(self.heavy.size)).astype(np.float64)
        sums = z @ member
        sums[away, home] -= push[away]
        sums[away, theirs[away]] += push[away]
        z -= sums[:, self._home] * self.share
        if certified:
            against = np.zeros((rows.size, columns.arms.size))
            against[:, : self.arms.size] = z
            against[:, place] -= choice.pull
            most = self.network.most(against, choice.pull, rows, columns, R) - choice.pull * tolerance
        else:
            most = z @ nu[self.arms] - choice.gain
        lead = z @ nu[self.arms] - most
        variance = (z**2 / self.u).sum(axis=1)
        good = (lead > 0) & (variance > 0) & (push > 0) & (away | (tolerance**2 < R * far))
        return Comparisons(
            np.where(good[:, None], z, 0.0),
            np.where(good, most, 0.0),
            np.where(good, lead, 0.0),
            np.where(good, variance, 1.0),
        )

    def _choose(
        self, G: Matrix, eta: Vector, far: Vector, ahead: Vector, noise: Vector, R: float, tolerance: float
    ) -> _Choice:
        """Returns the most valuable of the best responses at a few prices, for each row of G.

        At price 1 / (2t) the direction is zeta = (eta + v t G) / (1 + t kappa) in the coordinates of the modes, v the
        multiplier of lam_i >= lam_b + tolerance (19.5).
        """
        kappa, squares = self._modes.kappa, G**2
        best = np.full(far.size, -1.0)
        price, push, gains = np.zeros(far.size, dtype=np.intp), np.zeros(far.size), np.zeros(far.size)
        prices = self._modes.scale / PRICES
        for k, t in enumerate(prices.tolist()):
            shrink = 1 / (1 + t * kappa)
            free = shrink * eta
            linear = G @ np.stack([free, shrink * free, kappa * shrink * free], axis=1)
            square = squares @ np.stack([shrink, shrink**2, kappa * shrink**2], axis=1)
            spread = noise + np.maximum(t * far - t**2 * square[:, 0], 1e-12 * t * far)
            with np.errstate(divide="ignore", invalid="ignore"):
                v = np.maximum((ahead + t * linear[:, 0] + tolerance) / spread, 0.0)
                v[~np.isfinite(v)] = 0.0
                moved = v * t
                variance = free @ free + 2 * moved * linear[:, 1] + moved**2 * square[:, 1] + v**2 * noise
                along = kappa @ free**2 + 2 * moved * linear[:, 2] + moved**2 * square[:, 2]
                across = linear[:, 0] + moved * square[:, 0]
                tense = np.maximum(along - 2 * v * across + v**2 * far, 0.0)
                gain = free @ eta + moved * linear[:, 0] + v * ahead - np.sqrt(R * tense) + v * tolerance
                value = np.where((gain > 0) & (v > 0) & (variance > 0), gain**2 / variance, 0.0)
            better = value > best
            best[better], price[better], push[better] = value[better], k, v[better]
            gains[better] = gain[better]
        t = prices[price]
        zeta = (eta + (push * t)[:, None] * G) / (1 + t[:, None] * kappa)
        # Inside a component the multiplier of the bound is free: the one that makes it least (19.2).
        with np.errstate(divide="ignore", invalid="ignore"):
            across = (G * zeta).sum(axis=1)
            least = np.maximum(zeta**2 @ kappa - across**2 / far, 0.0)
            pull = across / far + tolerance * np.sqrt(least / (far * np.maximum(R * far - tolerance**2, 0.0)))
        pull = np.where(noise > 0, push, np.where(np.isfinite(pull), np.maximum(pull, 0.0), 0.0))
        return _Choice(zeta, push, pull, gains)

    def against_smoothness(self, nu: Vector, R: float) -> tuple[Vector, float]:
        """Returns a direction over the arms tried, and an upper bound of z.mu of smooth means, for estimates `nu`."""
        modes = self._modes
        eta = modes.turned(nu, self.averages(nu))
        zeta = eta / (1 + (modes.scale / PRICES)[:, None] * modes.kappa)
        length = np.sqrt((zeta**2).sum(axis=1))
        gain = np.maximum(zeta @ eta - np.sqrt(R * (zeta**2 @ modes.kappa)), 0.0)
        best = int(np.divide(gain, length, out=np.zeros_like(gain), where=length > 0).argmax())
        z = (zeta[[best]] @ modes.back)[0]
        z -= np.bincount(self._home, z, self.heavy.size)[self._home] * self.share
        most = self.network.most(z[None], np.zeros(1), self.arms[:1], self.columns, R)
        return z, float(most[0])


class _Choice(NamedTuple):
    """Directions in the coordinates of the modes, and two multipliers of lam_i >= lam_b + tolerance."""

    zeta: Matrix
    push: Vector
    """In the direction."""
    pull: Vector
    """In its bound; the same if the two arms are in different components."""
    gain: Vector
    """z.nu minus about the largest z.mu."""


class _Modes(NamedTuple):
    """Coordinates in which the metric is the unit matrix and L^+ on the arms tried is diagonal."""

    kappa: Vector
    at: Matrix
    """F: the value of each mode at each arm, (n_arms, modes)."""
    back: Matrix
    """Q' W, from coordinates to directions over the arms tried."""
    arms: Indices
    home: Indices
    scale: float
    """The t at which metric and graph are in balance."""

    @classmethod
    def of(cls, metric: NetworkMetric) -> _Modes:
        arms, home, values = metric.arms, metric.network.of_arm[metric.arms], metric.columns.values
        root = np.sqrt(metric.u)
        inside = values[arms]
        gram = root[:, None] * (inside + inside.T) * (0.5 * root)
        tried = np.unique(home)
        flat = np.where(home[:, None] == tried, root[:, None], 0.0)  # the levels of the components
        flat /= np.sqrt((flat**2).sum(axis=0))
        beside = gram @ flat
        gram -= beside @ flat.T + flat @ beside.T - flat @ (flat.T @ beside) @ flat.T
        kappa, modes = eigh(gram)
        kappa, modes = np.maximum(kappa[tried.size :], 0.0), modes[:, tried.size :]
        back = np.ascontiguousarray(modes.T * root)
        # Seen from the average of the arms tried in each component.
        centre = np.zeros((metric.network.grounds.size, arms.size))
        centre[home] = np.where(home[:, None] == home, metric.share @ np.where(home[:, None] == home, inside, 0.0), 0.0)
        at = values @ back.T - (centre @ back.T)[metric.network.of_arm]
        scale = 1 / kappa.mean() if kappa.size and kappa.any() else 1.0
        return cls(kappa, at, back, arms, home, scale)

    def turned(self, nu: Vector, averages: Vector) -> Vector:
        """Returns the coordinates of estimates, measured from the average of each component."""
        turned: Vector = self.back @ (nu[self.arms] - averages[self.home])
        return turned
