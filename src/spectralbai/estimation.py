"""The constrained maximum-likelihood estimate of the means."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.checks import Vector, check_vector, check_weights_of_arms
from spectralbai.errors import InvalidInput
from spectralbai.problem import Problem
from spectralbai.secular import project
from spectralbai.spectrum import Blocks, decompose


def estimate(problem: Problem, counts: ArrayLike, means: ArrayLike) -> Vector:
    """Returns the smooth means closest to the empirical ones (theory 3.10),

        mu_tilde = argmin over lam' L lam <= R of sum_a counts_a (means_a - lam_a)^2 / sigma_a^2.

    `counts` (n_arms,) may hold zeros where the arm's component has an observation; `means` (n_arms,) are not read
    there, and unobserved arms take the least rough values. Observed means that are smooth enough come back as they are.
    """
    counts = check_weights_of_arms("counts", counts, problem.n_arms)
    blocks = Blocks.from_problem(problem)
    ordered = counts[blocks.order]
    empty = np.flatnonzero(np.add.reduceat(ordered, blocks.offsets[:-1]) == 0)
    if empty.size:
        arm = blocks.order[blocks.offsets[empty[0]]]
        raise InvalidInput(
            f"`counts` must have an observation in each component of the graph, got none in that of arm {arm}; pull "
            "it once"
        )
    with suppress(TypeError, ValueError):  # ragged, which check_vector reports
        given = np.asarray(means)
        if given.shape == counts.shape and given.dtype.kind in "iuf":
            means = np.where(counts > 0, given, 0.0)  # nan will do where nothing was seen
    mu_hat = check_vector("means", means, problem.n_arms)
    if not (counts == 0).any():
        room = problem.room_for(mu_hat)
        if problem.smoothness(mu_hat) <= room:
            return mu_hat
    else:
        room = problem.R
    u = ordered / problem.sigma[blocks.order] ** 2
    basis, theta, rough = decompose(u, blocks.offsets, blocks.ends, blocks.weights, blocks.edge_offsets)
    mu_tilde = project(room, mu_hat[blocks.order], u, basis, theta, rough, blocks.offsets)[blocks.position]
    mu_tilde.setflags(write=False)
    return mu_tilde
