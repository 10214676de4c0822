"""Results that a policy is told, checked: the arms, the outcomes, and the blocks and items that they belong to."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.arrays import Indices, Vector
from spectralbai.checks import check_arm
from spectralbai.errors import InvalidInput
from spectralbai.problem import Problem


class Results(NamedTuple):
    """Results of pulls, in the order received."""

    arms: Indices
    outcomes: Vector
    blocks: Indices | None
    """The numbers of their blocks; None if they are not given."""
    items: Indices | None
    """Their items; None if the problem has none."""

    @classmethod
    def checked(
        cls, problem: Problem, arms: ArrayLike, rewards: ArrayLike, blocks: ArrayLike | None, items: ArrayLike | None
    ) -> Self:
        """Returns the results as arrays."""
        try:
            values, given = (np.atleast_1d(np.asarray(each)) for each in (arms, rewards))
        except (TypeError, ValueError):  # ragged
            raise InvalidInput("`arms` and `rewards` must be two lists of one length, got lists within lists") from None
        if values.ndim != 1 or values.shape != given.shape:
            raise InvalidInput(
                f"`arms` and `rewards` must be two lists of one length, got shapes {values.shape} and {given.shape}"
            )
        pulled, outcomes = check_arms(problem, values), problem.noise.check_outcomes("rewards", rewards)
        numbers = None
        if blocks is not None and pulled.size:
            numbers = np.atleast_1d(np.asarray(blocks))
            if numbers.dtype.kind not in "iu" or numbers.shape != pulled.shape:
                raise InvalidInput(
                    f"`blocks` must be one whole number per arm, got {blocks!r}; use the numbers that ask_slots returns"
                )
        if (items is None) != (problem.items is None):
            raise InvalidInput(
                "`items` must be given, the item of each result, since the problem has items"
                if items is None
                else "`items` must be left out, since the problem has no items"
            )
        tried = None if items is None else check_items(problem, items, pulled.size)
        return cls(pulled, outcomes, numbers, tried)


def check_arms(problem: Problem, arms: ArrayLike) -> Indices:
    """Returns arms of the problem as an array."""
    values = np.atleast_1d(np.asarray(arms))
    if values.dtype.kind not in "iu" or (values.size and not 0 <= values.min() <= values.max() < problem.n_arms):
        for arm in values.tolist():
            check_arm("arms", arm, problem.n_arms)
    return values.astype(np.intp)


def check_items(problem: Problem, items: ArrayLike, n: int) -> Indices:
    """Returns the items of n results as an array."""
    values = np.atleast_1d(np.asarray(items))
    known = None if problem.items is None else problem.items.available
    if values.size == 0 == n:
        return values.astype(np.intp)
    if values.dtype.kind not in "iu" or values.shape != (n,) or not 0 <= values.min() <= values.max() < 2**31:
        raise InvalidInput(f"`items` must be one whole number per arm, got {items!r}; use those of ask_items")
    if known is not None and values.max() >= known:
        raise InvalidInput(f"`items` must be below {known}, the number of items, got {values.max()}")
    return values.astype(np.intp)
