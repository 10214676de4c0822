"""The constrained maximum-likelihood estimate of the means."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.arrays import Vector, check_vector, check_weights_of_arms
from spectralbai.errors import InvalidInput
from spectralbai.problem import Problem
from spectralbai.spectral import Catalogue, Components, Decomposition, decompose
from spectralbai.spectral.large_components import LARGE
from spectralbai.spectral.sparse_projection import project_sparsely


def estimate(problem: Problem, counts: ArrayLike, means: ArrayLike) -> Vector:
    """Returns the smooth means closest to the empirical ones (theory 3.10),

        mu_tilde = argmin over lam' L lam <= R of sum_a counts_a (means_a - lam_a)^2 / sigma_a^2,

    or over S_c(lam) <= R_c for every component c (theory 16.2).

    `counts` (n_arms,) may be 0 for arms whose component has an observation. Their entries of `means` (n_arms,) are
    ignored, and they get the values with the least roughness. Means that are smooth enough are returned unchanged.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01)
        >>> sb.estimate(problem, counts=[10, 10, 30], means=[0.9, 0.4, 0.8]).round(3).tolist()
        [0.9, 0.625, 0.725]
    """
    counts = check_weights_of_arms("counts", counts, problem.n_arms)
    component = problem.components
    unseen = np.bincount(component, counts)[component] == 0
    if unseen.any():
        arm = int(np.argmax(unseen))
        raise InvalidInput(
            f"`counts` must have an observation in each component of the graph, got none in the one with arm {arm}; "
            "pull it once"
        )
    with suppress(TypeError, ValueError):  # ragged, which check_vector reports
        given = np.asarray(means)
        if given.shape == counts.shape and given.dtype.kind in "iuf":
            means = np.where(counts > 0, given, 0.0)  # so that nan is allowed for arms without observations
    mu_hat = check_vector("means", means, problem.n_arms)
    if Catalogue.of(problem) is None and not problem.unstructured:
        to = Components.from_problem(problem)
        large = to.sizes.max() > LARGE and not ((counts > 0).all() and problem.smooth(mu_hat))
        closest = project_sparsely(to, counts / problem.sigma**2, mu_hat, to.radii) if large else None
        if closest is not None:
            closest.setflags(write=False)
            return closest
    return closest_smooth(problem, counts, mu_hat, lambda: decompose(problem, counts))


def closest_smooth(
    problem: Problem, counts: Vector, means: Vector, decomposition: Callable[[], Decomposition]
) -> Vector:
    """Returns the result of `estimate` for checked values; the decomposition is computed only if it is needed."""
    if (counts > 0).all() and problem.smooth(means):
        return means
    catalogue = Catalogue.of(problem)
    if catalogue is not None:
        mu_tilde = catalogue.project(counts / problem.sigma**2, means, catalogue.room)
    else:
        mu_tilde = decomposition().project(means, Components.from_problem(problem).radii)
    mu_tilde.setflags(write=False)
    return mu_tilde
