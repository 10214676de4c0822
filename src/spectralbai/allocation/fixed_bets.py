"""A few steps towards the best allocation for problems with many arms: the directions of bets are held fixed in turn.

1/f_i is the least, over directions z of bets against challenger i, of a linear function of 1/omega. At the direction of
the best response to some allocation, this linear function is an upper bound of 1/f_i for every other allocation, and
exact at this one (theory 13.7). Minimising the largest of the bounds is easy, never makes the allocation worse, and
needs one call of the responder a step and no second derivatives.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from spectralbai.arrays import Indices, Matrix, Vector

BALANCED = 0.02
"""Relative gap up to which the largest of the linear functions is minimised."""
ROUNDS = 300
"""Limit on the rounds for this; ten to fifty do."""
LEAST = 1e-7
"""Smaller shares are raised to this, so that steps stay fast."""


class Answers(Protocol):
    """Best responses to an allocation: a row per challenger, a column of `gradient` per share."""

    @property
    def challengers(self) -> Indices: ...
    @property
    def cost(self) -> Vector: ...
    @property
    def gradient(self) -> Matrix: ...


class Responding(Protocol):
    """Computes the best responses to any allocation, of all arms or of those that may have shares."""

    def respond(self, omega: Vector) -> Answers: ...


def improve(responder: Responding, needs: Vector, omega: Vector, steps: int) -> tuple[Vector, float]:
    """Returns an allocation, better than `omega` (positive), and a lower bound of its value, the minimum of
    f_i(omega) / needs_i over challengers with positive needs.

    Every such challenger must have a mean below that of the best arm plus the tolerance. The value is 0 if none can
    win.
    """
    value = 0.0
    for _ in range(steps):
        responses = responder.respond(omega)
        rows = responses.challengers
        rows = rows[needs[rows] > 0]
        if not rows.size:
            break
        slopes = (needs[rows] / responses.cost[rows] ** 2)[:, None] * omega**2 * responses.gradient[rows]
        omega, largest = balance_rows(slopes)
        omega = np.maximum(omega, LEAST)
        omega /= omega.sum()
        value = 1 / (largest * (1 + LEAST * omega.size))
    return omega, value


def balance_rows(slopes: Matrix) -> tuple[Vector, float]:
    """Returns the omega in the simplex that minimises the maximum over i of sum_a slopes_ia / omega_a, and that
    maximum, to a relative gap of `BALANCED`.

    For weights p of the rows the best omega is in proportion to the square roots of p' slopes, with the value of their
    sum squared, a lower bound. Rows above it gain weight, in proportion, and rows below it lose some (theory 13.8).
    """
    p = np.full(len(slopes), 1 / len(slopes))
    for _ in range(ROUNDS):
        root = np.sqrt(p @ slopes)
        value = root.sum() ** 2
        omega = root / root.sum()
        rows = slopes @ np.divide(1, omega, out=np.zeros_like(omega), where=omega > 0)
        if rows.max() <= (1 + BALANCED) * value:
            break
        p *= rows / value
        p /= p.sum()
    return omega, float(rows.max())
