"""The optimal allocation without a graph, in closed form up to one scalar root.

The recursion printed in [KG20, Theorem 2] holds for the inverse ratios omega_best/omega_a, not for the ratios as
stated there; this is the corrected form, with one sigma per arm and a tolerance (theory 5.1-5.3).
"""

from __future__ import annotations

import numpy as np

from spectralbai.allocation.certificate import Certified, certified_lower, certified_upper, feasible_gradients
from spectralbai.arrays import Vector
from spectralbai.responder import Responder


def closed_form(responder: Responder) -> Certified:
    """Returns the optimal allocation of a problem whose graph bounds nothing, with certified bounds."""
    omega, _ = balance(responder, np.ones(responder.mu.size))
    responses = responder.respond(omega)
    rows = responses.challengers
    mixture = 1 / responses.gradient[rows, rows]
    return Certified(
        omega, certified_lower(responses), certified_upper(feasible_gradients(responses), mixture / mixture.sum()), 1
    )


def balance(responder: Responder, needs: Vector) -> tuple[Vector, float]:
    """Returns the allocation that maximises min over i of f_i(omega) / needs_i, and that value.

    The minimum is over challengers with `needs` (n_arms,) > 0, whose means are below the best one plus the tolerance.
    """
    others = (np.arange(responder.mu.size) != responder.best) & (needs > 0)
    noise_best = float(responder.sigma[responder.best] ** 2)
    lead = (responder.mu[responder.best] - responder.mu[others] + responder.tolerance) ** 2 / needs[others]
    omega = np.zeros(responder.mu.size)
    omega[responder.best], omega[others], value = balance_leads(lead, responder.sigma[others] ** 2, noise_best)
    return omega, value


def balance_leads(lead: Vector, noise: Vector, noise_best: float) -> tuple[float, Vector, float]:
    """Returns the shares of the leader and of its rivals that maximise the least of 1/2 lead_a / (noise_best/omega_best
    + noise_a/omega_a), and that value; `lead` holds squares."""
    from scipy.optimize import brentq  # imported here: it takes a tenth of a second, and few commands need it

    # The unknown is c = 2 f / omega_best, in units of its largest value, at which x_a of the closest arm is infinite.
    largest = float(lead.min()) / noise_best

    def excess(fraction: float) -> float:
        c = fraction * largest
        x = noise * c / (lead - noise_best * c)  # omega_a / omega_best, (5.1)
        return float((x**2 * noise_best / noise).sum()) - 1  # (5.2)

    # One arm alone makes the sum 1 at x_a = sigma_a/sigma_best, so the root is not beyond that c. This keeps the
    # bracket away from the pole.
    x_closest = np.sqrt(noise / noise_best)
    upper_fraction = float((lead * x_closest / (noise + noise_best * x_closest)).min() / largest)
    c = largest * brentq(excess, 0.0, min(upper_fraction * (1 + 1e-12), 1 - 1e-15), xtol=1e-300, rtol=1e-15)
    x = noise * c / (lead - noise_best * c)
    best = float(1 / (1 + x.sum()))
    return best, x * best, best * c / 2  # (5.3)
