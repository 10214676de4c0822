"""Means of the generated instances: vectors over the arms, smooth on the graph or clustered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.checks import check_number
from spectralbai.errors import InvalidInput
from spectralbai.graph import Categories, Graph

MODES = 3
"""Number of non-constant Laplacian eigenvectors that dominate a smooth signal."""


def smooth(graph: Graph, rng: np.random.Generator) -> Vector:
    """Returns a random combination of low-frequency Laplacian eigenvectors, scaled to [0, 1].

    White noise is damped by exp(-theta / theta_m) along each eigenvector with eigenvalue theta, where theta_m is the
    `MODES`-th eigenvalue above zero. This is a function of the Laplacian and so well defined even if eigenvalues are
    repeated; a sum of the first eigenvectors would not be.
    """
    mu: Vector = rng.standard_normal(graph.n_arms)
    if not isinstance(graph, Categories):  # inside a category all signals of one variance are equally smooth
        theta, vectors = np.linalg.eigh(graph.laplacian.toarray())
        cut = theta[min(graph.n_components + MODES, graph.n_arms) - 1]
        damping = np.exp(-theta / cut) if graph.n_edges else np.ones(graph.n_arms)
        mu = vectors @ (damping * (vectors.T @ mu))
    scaled: Vector = (mu - mu.min()) / (mu.max() - mu.min())
    return scaled


def clustered(cluster: Indices, levels: tuple[float, float], spread: float, rng: np.random.Generator) -> Vector:
    """Returns a level per cluster, uniform in `levels`, plus `spread` times white noise per arm."""
    low, high = _check_levels(levels)
    spread = check_number("spread", spread, "a finite non-negative number", low=0.0, strict=False)
    level = rng.uniform(low, high, size=int(cluster.max()) + 1)
    mu: Vector = level[cluster] + spread * rng.standard_normal(cluster.size)
    return mu


def raise_best(mu: Vector, lead: float) -> Vector:
    """Returns `mu` with `lead` added to its largest entry."""
    lead = check_number("lead", lead, "a finite non-negative number", low=0.0, strict=False)
    raised = mu.copy()
    raised[np.argmax(mu)] += lead
    return raised


def _check_levels(levels: Any) -> tuple[float, float]:
    if not isinstance(levels, tuple | list) or len(levels) != 2:
        raise InvalidInput(f"`levels` must be (low, high), got {levels!r}")
    low, high = (check_number("levels", level, "two finite numbers", low=-math.inf, strict=True) for level in levels)
    if low > high:
        raise InvalidInput(f"`levels` must be (low, high) with low <= high, got {levels!r}; swap them")
    return low, high
