"""Mirror ascent as the paper states it: exponentiated supergradients and the average of the iterates.

It is kept as a reference for [KG20, Theorem 6]: its guarantee is proved there, but its bounds converge slowly.
"""

from __future__ import annotations

import math

import numpy as np

from spectralbai.allocation.certificate import Certified, certified_lower, certified_upper, feasible_gradients
from spectralbai.responder import Responder


def mirror_ascent(responder: Responder, tol: float, max_iterations: int) -> Certified:
    """Returns the average of the iterates once its bounds are a relative `tol` apart, or after `max_iterations`.

    Step t has size sqrt(2 log K / t) / L, and the value of the average of t iterates is within L sqrt(2 log K / t) of
    the optimum (theory 5.5). The mean of the supergradients gives an upper bound of 1/T* at any time.
    """
    n_arms = responder.mu.size
    eta = math.sqrt(2 * math.log(n_arms)) / lipschitz(responder)
    scores = np.zeros(n_arms)  # sum of the steps: omega is their softmax
    total = np.zeros(n_arms)
    ascent = np.zeros(n_arms)
    next_check = 1
    gamma = None
    for iteration in range(1, max_iterations + 1):
        omega = np.exp(scores - scores.max())
        omega /= omega.sum()
        responses = responder.respond(omega, gamma)
        gamma = responses.gamma
        total += omega
        closest = int(np.argmin(responses.cost))
        row = int(np.searchsorted(responses.challengers, closest))
        ascent += feasible_gradients(responses)[row]
        scores += eta / math.sqrt(iteration) * responses.gradient[closest]  # (5.4)
        if iteration == next_check or iteration == max_iterations:
            average = total / iteration
            lower = certified_lower(responder.respond(average / average.sum()))
            upper = certified_upper(ascent[None, :] / iteration, np.ones(1))
            if upper <= lower * (1 + tol):
                break
            next_check = math.ceil(1.1 * next_check)  # each check computes best responses: make it rare enough
    return Certified(average / average.sum(), lower, upper, iteration)


def lipschitz(responder: Responder) -> float:
    """Returns L >= max k(mu_a, lam_a) over best responses, the Lipschitz constant of f for the 1-norm."""
    spread = float(responder.mu.max() - responder.mu.min()) + responder.tolerance
    return float(0.5 * (spread / responder.sigma.min()) ** 2)
