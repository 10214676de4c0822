"""The allocation for thousands of arms in categories: even inside each, optimal between them (theory, section 17).

Every arm of a category gets the same weight per variance; only the best arm has one of its own. Best responses then
have closed forms but for two scalar roots, for all challengers at once, and the problem between categories is small:
it is solved by cutting planes. The bounds hold for all allocations. They meet only where the arms of a category are
alike: inside one, an uneven allocation could be better.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from spectralbai.allocation.certificate import MARGIN, Outcome
from spectralbai.allocation.closed_form import balance_leads
from spectralbai.checks import Indices, Mask, Matrix, Vector
from spectralbai.oracle import Oracle
from spectralbai.problem import Problem
from spectralbai.spectral import Catalogue

STEPS = 70
"""Bisections of a root."""
INSIDE = 1e-10
"""Part of the room left unused, so that alternatives satisfy their constraints in floating point."""
LEAST = 1e-7
"""Least share of a category: no alternative must be free."""
EVENING = 60
"""Steps that even out the mixture of alternatives inside the categories."""


class Answers(NamedTuple):
    """The closest alternative of each challenger, as the numbers that make it up."""

    cost: Vector
    dual: Vector
    """A lower bound of the cost, from the multipliers found."""
    best: Vector
    """mu_best - lam_best."""
    home_level: Vector
    home_shrink: Vector
    """Another arm a of the best arm's category has lam_a = level + shrink (mu_a - level)."""
    level: Vector
    shrink: Vector
    """An arm a of the challenger's category has lam_a = level + shrink (mu_a - mean); the challenger is `lift` more."""
    lift: Vector
    home_lift: Vector
    """What `lift` is for a challenger in the best arm's category."""
    mates: Vector
    """The sum of (mu_a - lam_a)^2 / 2 over the best arm's category, but for the best arm."""
    away: Vector
    """The same over the challenger's category, if that is another one."""


class Game:
    """Means on a catalogue, for weights u that are even inside categories, but for the best arm."""

    def __init__(self, catalogue: Catalogue, mu: Vector, best: int, tolerance: float) -> None:
        self.catalogue, self.mu, self.best, self.tolerance = catalogue, mu - mu[best], best, tolerance
        of_arm = catalogue.of_arm
        self.home = int(of_arm[best])
        self.mean = catalogue.total(self.mu) / catalogue.sizes
        self.apart = self.mu - self.mean[of_arm]
        self.square = catalogue.total(self.apart**2)
        self.room = catalogue.room * (1 - INSIDE)
        self.mates = np.flatnonzero((of_arm == self.home) & (np.arange(mu.size) != best))
        mates = self.mu[self.mates]
        self.mates_mean = float(mates.mean()) if mates.size else 0.0
        self.mates_square = float(((mates - self.mates_mean) ** 2).sum())

    def respond(self, rivals: Indices, u_best: float, u: Vector) -> Answers:
        """Returns the closest alternatives of some challengers, to weights `u` of the arms of each category.

        With k the price of the best arm's room and s the multiplier of lam_best + tolerance <= lam_i, lam_i - lam_best
        grows with s. As long as there is room, k = 0 and s is the root; then k is, and tells s (17.10).
        """
        k, low = np.zeros(rivals.size), np.zeros(rivals.size)
        if self.mates.size:
            high = self._push(rivals, k, u_best, u)
            tight = self._ahead(rivals, high, k, u_best, u) < 0
            k = np.where(tight, self._price(rivals, u_best, u), 0.0)
            low = np.where(tight, self._push(rivals, k, u_best, u), low)
            high = np.where(tight, low, high)
        else:
            high = np.maximum(self.tolerance - self.mu[rivals], 1e-300) * np.minimum(u_best, u[self._of(rivals)])
            while (short := self._ahead(rivals, high, k, u_best, u) < 0).any():
                high = np.where(short, 4 * high, high)
        for _ in range(STEPS):
            middle = (low + high) / 2
            ahead = self._ahead(rivals, middle, k, u_best, u) >= 0
            low, high = np.where(ahead, low, middle), np.where(ahead, middle, high)
        return self._at(rivals, high, k, u_best, u)

    def _price(self, rivals: Indices, u_best: float, u: Vector) -> Vector:
        """Returns the price k at which the challengers just win, each with the push that uses all room."""
        unit = u_best + u[self.home]
        low, high = np.full(rivals.size, -40.0), np.full(rivals.size, 40.0)  # log of k over the weights
        for _ in range(STEPS):
            middle = (low + high) / 2
            k = unit * np.exp(middle)
            ahead = self._ahead(rivals, self._push(rivals, k, u_best, u), k, u_best, u) >= 0
            low, high = np.where(ahead, low, middle), np.where(ahead, middle, high)
        price: Vector = unit * np.exp(high)
        return price

    def _push(self, rivals: Indices, k: Vector, u_best: float, u: Vector) -> Vector:
        """Returns the s that uses all room of the best arm's category at the price k: the root of a quadratic."""
        weight, n = u[self.home], self.mates.size
        inside = self._of(rivals) == self.home
        d_best, d, lift = u_best / (u_best + k), weight / (weight + k), inside / (weight + k)
        x0 = d * n * self.mates_mean / (d_best + d * n)
        x1 = (lift - 1 / (u_best + k)) / (d_best + d * n)
        t0, t1, apart = -d_best * x0, -d_best * x1 - 1 / (u_best + k), self.mates_mean - x0
        a = t1**2 + d**2 * n * x1**2 - 2 * d * lift * x1 + lift**2
        b = 2 * t0 * t1 - 2 * d**2 * n * apart * x1 + 2 * d * lift * (self.mu[rivals] - x0)
        c = t0**2 + d**2 * (self.mates_square + n * apart**2) - self.room[self.home]
        push: Vector = (-b + np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))) / (2 * a)
        return np.maximum(push, 0.0)

    def _ahead(self, rivals: Indices, s: Vector, k: Vector, u_best: float, u: Vector) -> Vector:
        """Returns lam_i - lam_best - tolerance, a little less so that it holds in floating point."""
        x, shrink = self._home(rivals, s, k, u_best, u)
        best = x - u_best / (u_best + k) * x - s / (u_best + k)
        mu = self.mu[rivals]
        level, d, g = self._away(rivals, s, u)
        other = level + d * self.apart[rivals] + g * (1 - 1 / self._sizes(rivals))
        if self.mates.size:
            mate = x + shrink * (mu - x) + s / (u[self.home] + k)
            other = np.where(self._of(rivals) == self.home, mate, other)
        ahead: Vector = other - best - self.tolerance - INSIDE * np.abs(mu)
        return ahead

    def _of(self, rivals: Indices) -> Indices:
        return self.catalogue.of_arm[rivals]

    def _sizes(self, rivals: Indices) -> Vector:
        return self.catalogue.sizes[self._of(rivals)]

    def _away(self, rivals: Indices, s: Vector, u: Vector) -> tuple[Vector, Vector, Vector]:
        """Returns (level, shrink, lift) of the challengers' categories: closed forms, as all weights are equal
        (17.9)."""
        c, m = self._of(rivals), self._sizes(rivals)
        push = s / u[c]
        spread = self.square[c] + 2 * push * self.apart[rivals] + push**2 * (1 - 1 / m)
        with np.errstate(divide="ignore", invalid="ignore"):
            d = np.where(spread > self.room[c], np.sqrt(self.room[c] / spread), 1.0)
        return self.mean[c] + push / m, d, push * d

    def _home(self, rivals: Indices, s: Vector, k: Vector, u_best: float, u: Vector) -> tuple[Vector, Vector]:
        """Returns (level, shrink) of the best arm's category."""
        n, weight = self.mates.size, u[self.home]
        if not n:
            return np.zeros(s.size), np.ones(s.size)
        d_best, d = u_best / (u_best + k), weight / (weight + k)
        rise = np.where(self._of(rivals) == self.home, s, 0.0) / (weight + k)
        level: Vector = (d * n * self.mates_mean - s / (u_best + k) + rise) / (d_best + d * n)
        return level, d

    def _at(self, rivals: Indices, s: Vector, k: Vector, u_best: float, u: Vector) -> Answers:
        c, m = self._of(rivals), self._sizes(rivals)
        inside = c == self.home
        x, shrink = self._home(rivals, s, k, u_best, u)
        best = u_best / (u_best + k) * x - x + s / (u_best + k)
        n, weight = self.mates.size, u[self.home]
        lift_home = np.where(inside, s / (weight + k), 0.0) if n else np.zeros(s.size)
        fall = (1 - shrink) * (self.mu[rivals] - x)  # of the challenger, were it not raised
        mates = 0.5 * (1 - shrink) ** 2 * (self.mates_square + n * (self.mates_mean - x) ** 2)
        mates += np.where(inside, 0.5 * lift_home**2 - lift_home * fall, 0.0)
        level, d, g = self._away(rivals, s, u)
        apart, square = self.apart[rivals], self.square[c]
        away = 0.5 * (m * (level - self.mean[c]) ** 2 + (1 - d) ** 2 * square - 2 * (1 - d) * g * apart)
        away = np.where(inside, 0.0, away + 0.5 * g**2 * (1 - 1 / m))
        cost = u_best * best**2 / 2 + (weight * mates if n else 0.0) + u[c] * away
        # The Lagrangian at these multipliers: a lower bound, however exact they are (17.11).
        along = weight * (1 - shrink) * (self.mates_square + n * (self.mates_mean - x) * self.mates_mean) if n else 0.0
        along = along - np.where(inside, weight * lift_home * self.mu[rivals], 0.0)
        first, second = u[c] * (1 - d), s - u[c] * g
        along = along + np.where(inside, 0.0, -s * self.mean[c] + u[c] * ((1 - d) * square - g * apart))
        rough = np.sqrt(np.maximum(first**2 * square + 2 * first * second * apart + second**2 * (1 - 1 / m), 0.0))
        spread = (best + x) ** 2 + shrink**2 * (self.mates_square + n * (self.mates_mean - x) ** 2)
        spread = spread + 2 * shrink * (self.mu[rivals] - x) * lift_home + lift_home**2
        held = np.where(inside, 0.0, np.sqrt(self.catalogue.room[c]) * rough)
        held = held + np.sqrt(self.catalogue.room[self.home] * np.maximum(spread, 0.0)) * k
        dual = along - cost - held + s * self.tolerance
        dual -= MARGIN * 100 * (np.abs(along) + cost + held + s * self.tolerance)
        return Answers(cost, dual, best, x, shrink, level, d, g, lift_home, mates, away)


def catalogue(
    oracle: Oracle, tol: float, max_iterations: int, start: Vector | None = None, enough: float = 0.0
) -> Outcome:
    """Returns an allocation that is even inside categories, with certified bounds of 1/T*."""
    found = oracle.catalogue
    assert found is not None, "solve_allocation takes this solver for catalogues only"
    mu, best, noise = oracle.mu, oracle.best, oracle.sigma**2
    game = Game(found, mu, best, oracle.tolerance)
    of_arm, home = found.of_arm, game.home
    everyone = np.flatnonzero(np.arange(mu.size) != best)
    stuck = (of_arm[everyone] == home) & (oracle.tolerance**2 >= 2 * found.room[home] * (1 - 1e-9))
    everyone = everyone[~stuck | (oracle.tolerance == 0)]
    total = found.total(noise)
    total[home] -= noise[best]
    usable = total > 0  # the best arm's category may hold no other
    n = found.n_categories
    columns = np.append(np.flatnonzero(usable), n)  # categories, then the best arm

    def weights(shares: Vector) -> tuple[float, Vector]:
        """Returns the weights (of the best arm, of the arms of each category) of shares of the categories."""
        return float(shares[n] / noise[best]), np.divide(shares[:n], total, out=np.ones(n), where=usable)

    # The highest arm of each category is the hardest to beat there; any other that turns out harder joins.
    order = everyone[np.lexsort((-mu[everyone], of_arm[everyone]))]
    rows = order[np.unique(of_arm[order], return_index=True)[1]]
    shares = _first_shares(game, rows, noise, np.append(usable, True))
    cuts: list[Vector] = []
    owners: list[Indices] = []
    lower, kept, ceiling, multipliers, iteration = -np.inf, shares, np.inf, np.ones(0), 0
    alone = bool((found.sizes == 1).all())  # the first shares are the best
    if alone:
        iteration, found_there = 1, game.respond(rows, *weights(shares))
        owners, multipliers = [of_arm[rows]], noise[rows] / found_there.away
    while not alone and iteration < max_iterations:
        iteration += 1
        answers = game.respond(rows, *weights(shares))
        value = float(answers.dual.min())
        if value > lower:
            lower, kept = value, shares
        if ceiling <= lower * (1 + tol / 2):
            everyones = game.respond(everyone, *weights(kept))
            hardest = everyone[int(np.argmin(everyones.dual))]
            if everyones.dual.min() >= lower * (1 - tol / 10) or hardest in rows:
                break
            rows, lower, ceiling = np.append(rows, hardest), -np.inf, np.inf
            continue
        slope = np.zeros((rows.size, n + 1))
        slope[:, n] = answers.best**2 / 2 / noise[best]
        if usable[home]:
            slope[:, home] = answers.mates / total[home]
        here = np.arange(rows.size)
        slope[here, of_arm[rows]] += answers.away / np.where(usable, total, 1.0)[of_arm[rows]]
        cuts.append(slope[:, columns])
        owners.append(of_arm[rows])
        ceiling, planned, multipliers = _highest(np.vstack(cuts))
        proposed = np.zeros(n + 1)
        proposed[columns] = planned
        shares = np.maximum(0.5 * proposed + 0.5 * kept, LEAST / n * (np.append(usable, True)))
        shares /= shares.sum()
    u_best, u = weights(kept)
    answers = game.respond(everyone, u_best, u)
    omega = u[of_arm] * noise
    omega[best] = kept[n]
    per_category = np.bincount(np.concatenate(owners), multipliers, n).astype(np.float64)
    upper = _upper(game, everyone, answers, per_category, noise)
    even = Outcome(omega / omega.sum(), float(answers.dual.min() / omega.sum()), upper, iteration)
    if alone:
        return even
    # What beats all rivals without a graph does so with one: where few arms are close, that is better than to be even.
    lead = (mu[best] - mu[everyone] + oracle.tolerance) ** 2
    share, others, value = balance_leads(lead, noise[everyone], float(noise[best]))
    if value * (1 - 1e-9) <= even.lower:
        return even
    omega = np.zeros(mu.size)
    omega[best], omega[everyone] = share, others
    return Outcome(omega, value * (1 - 1e-9), max(upper, value), iteration)


def shift_bound(problem: Problem, mu: Vector, answers: Indices) -> float:
    """Returns an upper bound of 1/T* for these right answers; 0 if there are none.

    An answer falls where all of another category rises alike, which is as smooth as before: this one alternative costs
    at most lead^2 / (2 (sigma_answer + sigma_category)^2), the least sigma there.
    """
    found = Catalogue.of(problem)
    assert found is not None
    if not answers.size:
        return 0.0
    top, least = np.full(found.n_categories, -np.inf), np.full(found.n_categories, np.inf)
    np.maximum.at(top, found.of_arm, mu)
    np.minimum.at(least, found.of_arm, problem.sigma)
    first, second = np.argsort(-top)[:2] if top.size > 1 else (0, 0)
    if first == second:
        return math.inf
    other = np.where(found.of_arm[answers] == first, second, first)
    lead = mu[answers] - top[other] + problem.tolerance
    return float((lead**2 / (2 * (problem.sigma[answers] + least[other]) ** 2)).max() * (1 + MARGIN))


def _first_shares(game: Game, rows: Indices, noise: Vector, usable: Mask) -> Vector:
    """Returns shares of the categories, then of the best arm: those of arms without a graph, as far below the best arm
    as the highest arm of each category can be."""
    found, c = game.catalogue, game.catalogue.of_arm[rows]
    gap = game.tolerance - np.where(c == game.home, game.mu[rows], game.mean[c] + np.sqrt(found.room[c]))
    gap = np.maximum(gap, 0.05 * (game.tolerance - game.mu[rows]))
    best, others, _ = balance_leads(gap**2, noise[rows], float(noise[game.best]))
    shares: Vector = np.full(usable.size, LEAST / usable.size) * usable
    shares[c] += others
    shares[-1] += best
    shares /= shares.sum()
    return shares


def _highest(cuts: Matrix) -> tuple[float, Vector, Vector]:
    """Returns (value, shares, multipliers) of max over shares of the least cut."""
    scale = float(np.median(cuts.max(axis=1)))
    rows = np.hstack([-cuts / scale, np.ones((len(cuts), 1))])
    goal = np.append(np.zeros(cuts.shape[1]), -1.0)
    simplex = np.append(np.ones(cuts.shape[1]), 0.0)[None, :]
    found = linprog(goal, rows, np.zeros(len(cuts)), simplex, [1.0], method="highs")
    return -found.fun * scale, found.x[:-1], np.maximum(-found.ineqlin.marginals, 0.0)


def _upper(game: Game, rivals: Indices, answers: Answers, per_category: Vector, noise: Vector) -> float:
    """Returns max over arms of a mixture of the alternatives' costs, an upper bound of 1/T* (theory 4.3).

    The mixture is that of the cutting planes between categories; inside each it is evened out so that no arm stands
    out.
    """
    found, mu = game.catalogue, game.mu
    of_arm, c = found.of_arm, found.of_arm[rivals]
    inside = c == game.home
    per_category = per_category * (np.bincount(c, minlength=per_category.size) > 0)
    parts = np.ones(rivals.size)
    least = np.inf
    for _ in range(EVENING):
        q = parts * (per_category / np.maximum(np.bincount(c, parts, per_category.size), 1e-300))[c]
        q /= q.sum()
        values = np.zeros(mu.size)
        values[game.best] = (q * answers.best**2).sum() / 2
        fall = (1 - answers.home_shrink) ** 2
        moments = [(q * fall * answers.home_level**power).sum() for power in (0, 1, 2)]
        mates = game.mates
        values[mates] = 0.5 * (moments[0] * mu[mates] ** 2 - 2 * moments[1] * mu[mates] + moments[2])
        # In the challenger's own category: mu_a - lam_a = start + (1 - shrink) (mu_a - mean), less `lift` for itself.
        start = game.mean[c] - answers.level + answers.lift / found.sizes[c]
        rest = 1 - answers.shrink
        out = np.where(inside, 0.0, q)
        sums = [np.bincount(c, out * each, per_category.size) for each in (start**2, start * rest, rest**2)]
        apart = game.apart
        away = 0.5 * (sums[0][of_arm] + 2 * sums[1][of_arm] * apart + sums[2][of_arm] * apart**2)
        values += np.where(of_arm == game.home, 0.0, away)
        as_other = np.where(
            inside, (1 - answers.home_shrink) * (mu[rivals] - answers.home_level), start + rest * apart[rivals]
        )
        raised = np.where(inside, answers.home_lift, answers.lift)
        values[rivals] += 0.5 * q * ((as_other - raised) ** 2 - as_other**2)
        values /= noise
        least = min(least, float(values.max()))
        with np.errstate(divide="ignore"):
            parts = parts * np.clip(np.sqrt(values.max() / values[rivals]), 1.0, 10.0)
        parts /= parts.max()
    return least * (1 + MARGIN * 100)
