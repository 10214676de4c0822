"""What the solver is measured against: the cone program in CVXPY, and the paper's algorithm written literally."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np

import spectralbai as sb


def cone_program(problem: sb.Problem, mu: np.ndarray) -> float:
    """Returns T_R*(mu) from the cone program equivalent to (2.2), by CVXPY and Clarabel.

    Minimise s over p in the simplex and rows v_i = p_i lam^i, with t_ia >= (p_i mu_a - v_ia)^2 / (2 p_i sigma_a^2) and
    sum_i t_ia <= s; all cones are passed at once, which is what CVXPY compiles fast, in units that make s of order one.
    """
    n_arms, best = problem.n_arms, int(np.argmax(mu))
    others = np.array([i for i in range(n_arms) if i != best])
    n = len(others)
    unit = float((mu[best] - mu[others]).min() ** 2 / (8 * problem.sigma.min() ** 2))
    values, vectors = np.linalg.eigh(problem.graph.laplacian.toarray())
    root = (vectors * np.sqrt(np.maximum(values, 0))).T[values > 1e-10 * values.max()]
    p, v, t, s = cp.Variable((n, 1), nonneg=True), cp.Variable((n, n_arms)), cp.Variable((n, n_arms)), cp.Variable()
    wide = p @ np.ones((1, n_arms))
    x = cp.multiply(p @ mu[None, :] - v, 1 / (problem.sigma * math.sqrt(2 * unit))[None, :])
    cones = cp.vstack([2 * cp.vec(x, order="C"), cp.vec(wide - t, order="C")])
    constraints = [
        cp.sum(p) == 1,
        cp.sum(t, axis=0) <= s,
        cp.SOC(cp.vec(wide + t, order="C"), cones, axis=0),
        cp.SOC(math.sqrt(problem.R) * p[:, 0], root @ v.T, axis=0),
        v[np.arange(n), others] >= v[:, best],
    ]
    program = cp.Problem(cp.Minimize(s), constraints)
    program.solve(solver=cp.CLARABEL)
    return float(1 / (program.value * unit))


def paper_oracle(problem: sb.Problem, mu: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Returns the best response as [KG20] computes it: per challenger a bisection on gamma, a dense solve per step."""
    best, n_arms = int(np.argmax(mu)), problem.n_arms
    laplacian = problem.graph.laplacian.toarray()
    responses = []
    for i in range(n_arms):
        if i == best:
            continue
        keep = [a for a in range(n_arms) if a != best]
        at = keep.index(i)
        merge = np.zeros((n_arms, n_arms - 1))
        merge[keep, np.arange(n_arms - 1)], merge[best, at] = 1.0, 1.0
        small = merge.T @ laplacian @ merge
        weight = merge.T @ omega
        mean = (merge.T @ (omega * mu)) / weight

        def response(
            gamma: float, weight: np.ndarray = weight, small: np.ndarray = small, mean: np.ndarray = mean
        ) -> np.ndarray:
            return np.linalg.solve(np.diag(weight) + 2 * gamma * small, weight * mean)

        lam = mean
        if lam @ small @ lam > problem.R:
            low, high = 0.0, 1.0
            while (lam := response(high)) @ small @ lam > problem.R:
                high *= 2
            while high - low > 1e-12 * high:
                middle = (low + high) / 2
                lam = response(middle)
                low, high = (middle, high) if lam @ small @ lam > problem.R else (low, middle)
            lam = response(high)
        responses.append(merge @ lam)
    costs = [float(omega @ (mu - lam) ** 2) / 2 for lam in responses]
    cheapest: np.ndarray = responses[int(np.argmin(costs))]
    return cheapest


def paper_algorithm(problem: sb.Problem, mu: np.ndarray, iterations: int) -> np.ndarray:
    """Returns the average of mirror ascent's iterates, each calling `paper_oracle`."""
    n_arms = problem.n_arms
    lipschitz = (mu.max() - mu.min()) ** 2 / 2
    eta = math.sqrt(2 * math.log(n_arms) / iterations) / lipschitz
    scores, total = np.zeros(n_arms), np.zeros(n_arms)
    for _ in range(iterations):
        omega = np.exp(scores - scores.max())
        omega /= omega.sum()
        total += omega
        scores += eta * (mu - paper_oracle(problem, mu, omega)) ** 2 / 2
    return total / iterations
