"""Mirror ascent as in [KG20, Theorem 9], with steps that do not depend on their number.

It is kept to compare with: it has a guarantee, but its bounds converge slowly. The steps to the letter of the paper are
in `sampling/printed.py`.
"""

from __future__ import annotations

import math

import numpy as np

from spectralbai.allocation.certificate import Certified, certified_lower, certified_upper, feasible_gradients
from spectralbai.responder import Responder


def mirror_ascent(responder: Responder, tol: float, max_iterations: int) -> Certified:
    """Returns an average of the iterates once its bounds are a relative `tol` apart, or after `max_iterations`.

    Step t has size sqrt(2 log K / t) / L. The average weighted by these sizes has the guarantee (theory 5.12), the
    plain one is mostly better: the better of the two is returned. The mean of the supergradients gives an upper bound
    of 1/T* at any time.
    """
    n_arms = responder.mu.size
    rate = math.sqrt(2 * math.log(n_arms)) / lipschitz(responder)
    scores = np.zeros(n_arms)  # sum of the steps: omega is their softmax
    plain, weighted, ascent = np.zeros((3, n_arms))
    next_check = 1
    gamma = None
    for iteration in range(1, max_iterations + 1):
        omega = np.exp(scores - scores.max())
        omega /= omega.sum()
        responses = responder.respond(omega, gamma)
        gamma = responses.gamma
        eta = rate / math.sqrt(iteration)
        plain += omega
        weighted += eta * omega
        closest = int(np.argmin(responses.cost))
        row = int(np.searchsorted(responses.challengers, closest))
        ascent += feasible_gradients(responses)[row]
        scores += eta * responses.gradient[closest]  # (5.11)
        if iteration == next_check or iteration == max_iterations:
            averages = [total / total.sum() for total in (plain, weighted)]
            lower, average = max(
                ((certified_lower(responder.respond(average)), average) for average in averages),
                key=lambda pair: pair[0],
            )
            upper = certified_upper(ascent[None, :] / iteration, np.ones(1))
            if upper <= lower * (1 + tol):
                break
            next_check = math.ceil(1.1 * next_check)  # each check computes best responses: make it rare enough
    return Certified(average, lower, upper, iteration)


def lipschitz(responder: Responder) -> float:
    """Returns L >= max k(mu_a, lam_a) over best responses, the Lipschitz constant of f for the 1-norm."""
    spread = float(responder.mu.max() - responder.mu.min()) + responder.tolerance
    return float(0.5 * (spread / responder.sigma.min()) ** 2)
