"""The lower bound: the number of samples that every correct strategy needs on average."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from spectralbai.allocation.catalogue import entropy_bound
from spectralbai.allocation.solve import BY_CATEGORY_ABOVE, solve_allocation
from spectralbai.checks import check_delta
from spectralbai.errors import InvalidInput
from spectralbai.problem import Problem
from spectralbai.spectral import Catalogue


def binary_entropy(delta: float) -> float:
    """Returns kl(delta, 1 - delta), the relative entropy of two coins."""
    return (1 - 2 * delta) * (math.log1p(-delta) - math.log(delta))


def lower_bound(problem: Problem, mu: ArrayLike, delta: float) -> float:
    """Returns the number of samples that every strategy of risk `delta` needs at least on average:

        E[tau] >= T_R*(mu) kl(delta, 1 - delta)    (theory 2.4)

    for Gaussian noise or outcomes of two values, and tolerance 0; with a tolerance it holds as delta -> 0. For risks of
    one half and more the bound is 0. There is no such bound for scores in a range, which are refused: scores may vary
    so little that a few samples tell any two means apart.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01)
        >>> round(sb.lower_bound(problem, [0.9, 0.5, 0.6], delta=0.01))
        400
    """
    if problem.noise.divergence is None:
        raise InvalidInput(
            f"no lower bound is known for {problem.noise.described()}: they may vary as little as they like; use "
            "binary=True if only the two ends of the range occur"
        )
    delta = check_delta(delta)
    if problem.items is not None:
        raise InvalidInput(
            f"no lower bound is known for trials on {problem.items.described()}, whose outcomes go together; "
            "leave out `items`"
        )
    if bounded_by_entropy(problem):
        mu = problem.check_smooth(mu)
        problem.noise.check_means("mu", mu)
        return samples_needed(entropy_bound(problem, mu), delta)
    return samples_needed(solve_allocation(problem, mu).upper, delta)


def bounded_by_entropy(problem: Problem) -> bool:
    """Returns whether the bound comes from `entropy_bound`: for many arms in categories with binary outcomes, because
    their allocation would take too long."""
    many = problem.noise.divergence == "binary" and problem.n_arms > BY_CATEGORY_ABOVE and problem.tolerance == 0
    return many and not problem.rigid and Catalogue.of(problem) is not None


def samples_needed(upper: float, delta: float) -> float:
    """Returns the bound of `lower_bound` from an upper bound of 1/T*."""
    return max(0.0, binary_entropy(min(delta, 0.5))) / upper
