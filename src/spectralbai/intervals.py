"""Confidence intervals that hold for all arms and all times at once: without a graph, and with one."""

from __future__ import annotations

import math

import numpy as np

from spectralbai.checks import Matrix, Vector
from spectralbai.problem import Problem


def plain_widths(counts: Vector, sigma: Vector, delta: float) -> Vector:
    """Returns half the widths of intervals around the empirical means; infinite without results (theory 8.1)."""
    widths = np.full(counts.size, np.inf)
    seen = counts > 0
    n = counts[seen]
    widths[seen] = sigma[seen] * np.sqrt((n + 1) * (2 * math.log(counts.size / delta) + np.log1p(n))) / n
    return widths


STIFFEST = 1e10
"""Limit on the trace of L/R over that of the precisions of one result: nearly rigid, and still far from singular."""


def graph_precision(problem: Problem, counts: Vector) -> Matrix:
    """Returns V = diag(counts / sigma^2) + L / R (theory 8.2); a tiny R is raised to what arithmetic can tell from
    0."""
    precision: Matrix = np.diag(counts / problem.sigma**2)
    if not problem.unstructured:
        least = 2 * problem.graph.weights.sum() / (STIFFEST * (1 / problem.sigma**2).sum())
        precision += problem.graph.laplacian.toarray() / max(problem.R, least)
    return precision


def graph_intervals(problem: Problem, counts: Vector, means: Vector, delta: float) -> tuple[Vector, Vector]:
    """Returns estimates regularised by the graph and half the widths of intervals around them (theory 8.2, 8.3).

    The first arm of every component is its anchor: until each has a result the widths are infinite.
    """
    n_arms = problem.n_arms
    anchors = np.unique(problem.components, return_index=True)[1]
    if (counts[anchors] == 0).any():
        return means, np.full(n_arms, np.inf)
    precision = graph_precision(problem, counts)
    covariance = np.linalg.inv(precision)
    estimates = covariance @ (counts / problem.sigma**2 * means)
    first = np.zeros(n_arms)
    first[anchors] = 1.0
    growth = float(np.linalg.slogdet(precision)[1] - np.linalg.slogdet(graph_precision(problem, first))[1])
    x = math.log(2 / delta)
    start = math.sqrt(anchors.size + 2 * math.sqrt(anchors.size * x) + 2 * x)
    bias = 0.0 if problem.unstructured else 1.0
    return estimates, np.sqrt(np.diag(covariance)) * (math.sqrt(2 * x + growth) + start + bias)
