"""Estimates of the noise and of the roughness S(mu) from past observations, which help to choose sigma and R."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import chdtri

from spectralbai.arrays import Indices, Vector, check_vector
from spectralbai.checks import check_memory, check_number, check_share
from spectralbai.errors import InvalidInput
from spectralbai.graph import Graph
from spectralbai.problem import Problem

CONFIDENCE = 0.95


@dataclass(frozen=True)
class SigmaEstimate:
    """The standard deviation of one outcome, the same for all arms."""

    sigma: float
    low: float
    high: float
    """Ends of the interval, exact for Gaussian noise. Plan with `high`: too small a sigma guarantees no risk."""
    observations: int
    degrees_of_freedom: int
    confidence: float = CONFIDENCE


@dataclass(frozen=True)
class RoughnessEstimate:
    """An estimate of S(mu) from noisy means."""

    plain: float
    """S of the empirical means. It is too large on average, because noise is rough."""
    estimate: float
    """`plain` minus the expected contribution of the noise: right on average, and at least 0."""
    upper: float
    """Upper limit: S(mu) is below it with at least the stated confidence, for sub-Gaussian noise with the given sigma
    or a smaller one."""
    confidence: float = CONFIDENCE


def sigma_from(arms: Indices, outcomes: Vector) -> SigmaEstimate:
    """Returns the pooled standard deviation of outcomes around the mean of their arm, with its interval."""
    counts = np.bincount(arms)
    means = np.bincount(arms, outcomes) / np.maximum(counts, 1)
    freedom = int(arms.size - np.count_nonzero(counts))
    if freedom < 1:
        raise InvalidInput(
            f"an estimate of sigma needs an option with two observations, got at most {counts.max(initial=0)} of each; "
            "repeat some, or give sigma"
        )
    squares = float(((outcomes - means[arms]) ** 2).sum())
    tail = (1 - CONFIDENCE) / 2
    low, high = (math.sqrt(squares / float(chdtri(freedom, p))) for p in (tail, 1 - tail))
    return SigmaEstimate(math.sqrt(squares / freedom), low, high, int(arms.size), freedom)


def roughness_from(
    graph: Graph,
    sigma: ArrayLike,
    counts: ArrayLike,
    means: ArrayLike,
    labels: Sequence[str] | None = None,
    confidence: float = CONFIDENCE,
) -> RoughnessEstimate:
    """Returns S(mu) estimated from `counts` observations per arm with these empirical means.

    With D = diag(sigma^2/N) the empirical means y have S(y) = S(mu) + tr(L D) on average. The upper limit is

        sqrt(S(mu)) <= sqrt(S(y)) + sqrt(q)

    where the roughness of the noise alone exceeds q with probability at most 1 - confidence. It is valid for
    sub-Gaussian noise, and also if sigma is too large (theory 9.1-9.3).
    """
    n_arms = graph.n_arms
    counts, means = check_vector("counts", counts, n_arms), check_vector("means", means, n_arms)
    sigma = Problem(graph, math.inf, sigma).sigma  # checks it
    alpha = 1 - check_share("confidence", confidence, "between 0 and 1, such as 0.95")
    missing = np.flatnonzero(counts < 1)
    if missing.size:
        arm = int(missing[0])
        name = f'"{labels[arm]}"' if labels is not None else str(arm)
        raise InvalidInput(
            f"an estimate of the roughness needs every option observed, got none of {name}; observe or remove it"
        )
    plain = graph.smoothness(means - means.mean())
    if graph.n_edges == 0:
        return RoughnessEstimate(0.0, 0.0, 0.0, confidence)
    what = f"an estimate of the roughness of {n_arms:,} options"
    check_memory(what, 50 * n_arms**2, "give R, or an R for each category")
    deviation = sigma / np.sqrt(counts)
    unit = float(graph.weights.max()) * float(deviation.max()) ** 2
    scaled = deviation / deviation.max()
    laplacian = graph.laplacian.toarray() / graph.weights.max()
    theta = np.maximum(np.linalg.eigvalsh(scaled[:, None] * laplacian * scaled), 0.0)
    largest = float(theta[-1])

    def bound(s: float) -> float:
        t = s / (2 * largest)
        return (-math.log(alpha) - 0.5 * float(np.log1p(-2 * theta * t).sum())) / t  # (9.2)

    quantile = unit * float(minimize_scalar(bound, bounds=(1e-9, 1 - 1e-9), method="bounded").fun)
    upper = (math.sqrt(plain) + math.sqrt(quantile)) ** 2  # (9.3)
    return RoughnessEstimate(plain, max(plain - unit * float(theta.sum()), 0.0), upper, confidence)


def implied_R(graph: Graph, step: float) -> float:
    """Returns the largest S(mu) if neighbours' means differ by at most `step`: the sum of the weights times step^2."""
    step = check_number("step", step, "a finite positive number", low=0.0, strict=True)
    return float(graph.total_weights.sum()) * (step * step)


def implied_radii(graph: Graph, step: float) -> Vector:
    """Returns the result of `implied_R` for each component of the graph."""
    step = check_number("step", step, "a finite positive number", low=0.0, strict=True)
    return graph.total_weights * (step * step)


def step_inside(graph: Graph, arms: Indices, outcomes: Vector, sigma: float) -> tuple[float, float]:
    """Returns how much the means of two arms of one component differ (root mean square over all pairs): an estimate and
    an upper limit, from past observations of some of the arms.

    It is one number for all components, computed from the deviations of the arms' averages from that of their
    component. With n0 results per arm, the sum of their squares is (sigma^2 + n0 step^2 / 2) times a chi-square
    variable, if outcomes are about Gaussian and the means differ as if drawn at random (theory 9.4).
    """
    counts = np.bincount(arms, minlength=graph.n_arms).astype(np.float64)
    sums = np.bincount(arms, outcomes, graph.n_arms)
    seen = counts > 0
    c, n = graph.components[seen], counts[seen]
    per = np.bincount(c, n, graph.n_components)
    centre = np.bincount(c, sums[seen], graph.n_components) / np.maximum(per, 1)
    freedom = int(seen.sum() - (per > 0).sum())
    if freedom < 1:
        raise InvalidInput(
            "an R for each category needs a category of which two options were observed, got none; observe more"
        )
    squares = float((n * (sums[seen] / n - centre[c]) ** 2).sum())
    n0 = float((n.sum() - (np.bincount(c, n**2, graph.n_components) / np.maximum(per, 1)).sum()) / freedom)

    def step_of(variance: float) -> float:
        return math.sqrt(max(2 * (variance - sigma**2) / n0, 0.0))

    return step_of(squares / freedom), step_of(squares / float(chdtri(freedom, CONFIDENCE)))


def rounded_up(value: float) -> float:
    """Returns `value` rounded up to two digits."""
    if value <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / step * (1 - 1e-12)) * step:.2g}")
