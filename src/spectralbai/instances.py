"""Generated instances: a graph of a named topology and means on it, the same for the same seed.

Every generator takes `slack`, sigma and tolerance. The instance has R = slack S(mu), so with slack below 1 the
hypothesis S(mu) <= R is false. A smooth signal ranges from 0 to 1, and `lead` is added to its best arm. The real
networks are those that come with networkx.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.arrays import Indices, Vector
from spectralbai.checks import check_integer, check_number
from spectralbai.errors import InvalidInput, SpectralBAIError
from spectralbai.graph import Categories, Graph
from spectralbai.instance import Instance
from spectralbai.problem import Problem

F = TypeVar("F", bound=Callable[..., Instance])
MODES = 3
"""Number of non-constant Laplacian eigenvectors that dominate a smooth signal."""
DENSE_UP_TO = 4000
"""For more arms no eigenvectors are computed."""


class Shared(TypedDict, total=False):
    """Keywords of every generator; `smooth_instance` and `clustered_instance` have their default values."""

    slack: float
    sigma: ArrayLike
    tolerance: float
    seed: int


class Signal(Shared, total=False):
    """Keywords of generators of a smooth signal."""

    lead: float


class Clusters(Shared, total=False):
    """Keywords of generators of clusters."""

    lone_best: bool
    levels: tuple[float, float]
    spread: float
    best: float


def smooth_signal(graph: Graph, rng: np.random.Generator) -> Vector:
    """Returns a random combination of low-frequency Laplacian eigenvectors, scaled to [0, 1].

    White noise is damped by exp(-theta / theta_m) along each eigenvector with eigenvalue theta, where theta_m is the
    `MODES`-th eigenvalue above zero. This is a function of the Laplacian and so well defined even if eigenvalues are
    repeated; a sum of the first eigenvectors would not be. With more than `DENSE_UP_TO` arms, exp(-x) is replaced by
    (1 + x / 8)^-8, which takes a few sparse systems of equations.
    """
    mu: Vector = rng.standard_normal(graph.n_arms)
    if graph.n_arms > DENSE_UP_TO and not isinstance(graph, Categories) and graph.n_edges:
        mu = _damped_sparsely(graph, mu)
    elif not isinstance(graph, Categories):  # inside a category all signals of one variance are equally smooth
        theta, vectors = np.linalg.eigh(graph.laplacian.toarray())
        cut = theta[min(graph.n_components + MODES, graph.n_arms) - 1]
        damping = np.exp(-theta / cut) if graph.n_edges else np.ones(graph.n_arms)
        mu = vectors @ (damping * (vectors.T @ mu))
    scaled: Vector = (mu - mu.min()) / (mu.max() - mu.min())
    return scaled


def _damped_sparsely(graph: Graph, mu: Vector) -> Vector:
    """Returns a signal damped along the eigenvectors of the Laplacian, without computing these."""
    from scipy import sparse
    from scipy.sparse.linalg import eigsh, splu

    laplacian = graph.laplacian.tocsc()
    below = -1e-4 * float(laplacian.diagonal().max())
    start = np.linspace(-1.0, 1.0, graph.n_arms)
    theta = eigsh(laplacian, graph.n_components + MODES, sigma=below, v0=start, return_eigenvectors=False)
    damped = sparse.eye_array(graph.n_arms, format="csc") + laplacian / (8 * theta.max())
    factors = splu(damped.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}, diag_pivot_thresh=0.0)
    for _ in range(8):
        mu = factors.solve(mu)
    return mu


def clustered_signal(cluster: Indices, levels: tuple[float, float], spread: float, rng: np.random.Generator) -> Vector:
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


def smooth_instance(
    given: Graph | Callable[[np.random.Generator], Graph],
    labels: list[str] | None = None,
    signal: Callable[[Graph, np.random.Generator], Vector] = smooth_signal,
    *,
    lead: float = 0.05,
    slack: float = 1.5,
    sigma: ArrayLike = 1.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Returns a smooth signal, or another one, on any graph, which may be random; `lead` is added to its best arm."""
    rng = _generator(seed)
    graph = given if isinstance(given, Graph) else given(rng)
    return _instance(graph, raise_best(signal(graph, rng), lead), slack, sigma, tolerance, labels)


def clustered_instance(
    graph_of: Callable[[bool], Graph],
    size: int,
    *,
    lone_best: bool = True,
    levels: tuple[float, float] = (0.2, 0.6),
    spread: float = 0.01,
    best: float = 0.9,
    slack: float = 1.5,
    sigma: ArrayLike = 1.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Returns means around one level for each group of `size` arms. The last arm if it is `lone_best`, else a random
    one, gets the mean `best`, which must be the largest."""
    if not isinstance(lone_best, bool):
        raise InvalidInput(f"`lone_best` must be True or False, got {lone_best!r}")
    graph, rng = graph_of(lone_best), _generator(seed)
    best = check_number("best", best, "a finite number", low=-np.inf, strict=True)
    mu = clustered_signal(np.arange(graph.n_arms) // size, levels, spread, rng)
    arm = graph.n_arms - 1 if lone_best else int(rng.integers(graph.n_arms))
    highest = float(np.delete(mu, arm).max())
    if best <= highest:
        raise InvalidInput(
            f"`best` must be above the mean of every other arm, got {best} and another mean of {highest:.6g}; raise "
            "best"
        )
    mu[arm] = best
    return _instance(graph, mu, slack, sigma, tolerance)


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(check_integer("seed", seed, 0))


def _instance(
    graph: Graph, mu: Vector, slack: float, sigma: ArrayLike, tolerance: float, labels: list[str] | None = None
) -> Instance:
    slack = check_number("slack", slack, "a finite positive number", low=0.0, strict=True)
    rough = graph.roughness_by_component(mu) if isinstance(graph, Categories) else graph.smoothness(mu)
    problem = Problem(graph, slack * rough, sigma, tolerance)
    problem.best_arm(mu)
    return Instance(problem, mu, labels)


def with_keywords_of(shared: Callable[..., Instance]) -> Callable[[F], F]:
    """Returns a decorator of generators that pass their last keywords on to `shared`: help() and campaigns then see
    these keywords, and their default values, as the generator's own."""

    def spelled_out(generator: F) -> F:
        *own, _ = inspect.signature(generator).parameters.values()
        _, *keywords = inspect.signature(shared).parameters.values()
        passed_on = (keyword for keyword in keywords if keyword.kind is keyword.KEYWORD_ONLY)
        shown: Any = generator
        shown.__signature__ = inspect.Signature([*own, *passed_on], return_annotation="Instance")
        return generator

    return spelled_out


@with_keywords_of(smooth_instance)
def path(n_arms: int, **signal: Unpack[Signal]) -> Instance:
    """Returns a smooth signal on a path.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.path(6).problem.graph.n_edges
        5
    """
    n_arms = check_integer("n_arms", n_arms, 2)
    return smooth_instance(Graph.from_edges(n_arms, itertools.pairwise(range(n_arms))), **signal)


@with_keywords_of(smooth_instance)
def ring(n_arms: int, **signal: Unpack[Signal]) -> Instance:
    """Returns a smooth signal on a cycle of at least 3 arms.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.ring(6).problem.graph.n_edges
        6
    """
    n_arms = check_integer("n_arms", n_arms, 3)
    return smooth_instance(Graph.from_edges(n_arms, [(a, (a + 1) % n_arms) for a in range(n_arms)]), **signal)


@with_keywords_of(smooth_instance)
def grid(rows: int, columns: int, **signal: Unpack[Signal]) -> Instance:
    """Returns a smooth signal on a grid, whose arm number is row * columns + column.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.grid(3, 4).problem.graph.n_edges
        17
    """
    rows, columns = check_integer("rows", rows, 1), check_integer("columns", columns, 1)
    arms = np.arange(rows * columns).reshape(rows, columns)
    across = zip(arms[:, :-1].ravel().tolist(), arms[:, 1:].ravel().tolist(), strict=True)
    down = zip(arms[:-1].ravel().tolist(), arms[1:].ravel().tolist(), strict=True)
    return smooth_instance(Graph.from_edges(rows * columns, [*across, *down]), **signal)


@with_keywords_of(smooth_instance)
def star(n_arms: int, **signal: Unpack[Signal]) -> Instance:
    """Returns a signal that is as smooth as possible on a star with arm 0 at its centre.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.star(6).problem.graph.n_edges
        5
    """
    n_arms = check_integer("n_arms", n_arms, 2)
    return smooth_instance(Graph.from_edges(n_arms, [(0, a) for a in range(1, n_arms)]), **signal)


@with_keywords_of(smooth_instance)
def complete(n_arms: int, **signal: Unpack[Signal]) -> Instance:
    """Returns scaled white noise on the complete graph, where all signals of one variance are equally smooth.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.complete(5).problem.graph.n_edges
        10
    """
    n_arms = check_integer("n_arms", n_arms, 2)
    return smooth_instance(Graph.from_edges(n_arms, itertools.combinations(range(n_arms), 2)), **signal)


@with_keywords_of(clustered_instance)
def cliques(n_cliques: int, size: int, **clusters: Unpack[Clusters]) -> Instance:
    """Returns cliques of `size` arms, each with a level drawn from `levels`, plus `spread` times white noise per arm.

    The best arm has mean `best`. It is an additional last arm without edges or, if not `lone_best`, a random arm of the
    cliques.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.cliques(2, 5).problem.graph.n_edges
        20
    """
    n_cliques, size = check_integer("n_cliques", n_cliques, 1), check_integer("size", size, 1)
    firsts = range(0, n_cliques * size, size)
    edges = [pair for first in firsts for pair in itertools.combinations(range(first, first + size), 2)]
    return clustered_instance(lambda lone: Graph.from_edges(n_cliques * size + lone, edges), size, **clusters)


@with_keywords_of(clustered_instance)
def catalogue(n_categories: int, size: int, **clusters: Unpack[Clusters]) -> Instance:
    """Returns the means of `cliques` as categories; the R of each is slack times the roughness of the category.

    The best arm has mean `best`. It is an additional last arm in a separate category or, if not `lone_best`, a random
    arm.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.catalogue(20, 100).problem.graph.n_edges
        99000
    """
    n_categories, size = check_integer("n_categories", n_categories, 1), check_integer("size", size, 1)
    labels = [f"category {c}" for c in range(n_categories) for _ in range(size)]
    return clustered_instance(lambda lone: Graph.from_categories(labels + ["alone"] * lone), size, **clusters)


@with_keywords_of(smooth_instance)
def stochastic_block(
    n_blocks: int,
    size: int,
    *,
    p_inside: float = 0.5,
    p_across: float = 0.02,
    levels: tuple[float, float] = (0.2, 0.6),
    spread: float = 0.01,
    **signal: Unpack[Signal],
) -> Instance:
    """Returns blocks of `size` arms with levels drawn from `levels`, plus `spread` times white noise; `lead` is added
    to the best arm.

    Two arms are joined with probability `p_inside` if they are in the same block, and `p_across` otherwise.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.stochastic_block(2, 8, seed=1).problem.graph.n_edges
        33
    """
    n_arms = check_integer("n_blocks", n_blocks, 1) * check_integer("size", size, 1)
    rule = "a probability between 0 and 1"
    p_inside = check_number("p_inside", p_inside, rule, low=0.0, high=1.0, strict=False)
    p_across = check_number("p_across", p_across, rule, low=0.0, high=1.0, strict=False)

    def joined(rng: np.random.Generator) -> Graph:
        a, b = np.triu_indices(n_arms, k=1)
        drawn = rng.random(a.size) < np.where(a // size == b // size, p_inside, p_across)
        return Graph.from_edges(n_arms, list(zip(a[drawn].tolist(), b[drawn].tolist(), strict=True)))

    block = np.arange(n_arms) // size
    return smooth_instance(joined, None, lambda _, rng: clustered_signal(block, levels, spread, rng), **signal)


@with_keywords_of(smooth_instance)
def barabasi_albert(n_arms: int, attachments: int = 2, **signal: Unpack[Signal]) -> Instance:
    """Returns a smooth signal on a graph grown by preferential attachment.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.barabasi_albert(10).problem.graph.n_edges
        16
    """
    return smooth_instance(lambda rng: attached(n_arms, attachments, rng), **signal)


@with_keywords_of(smooth_instance)
def nearest_neighbors(n_arms: int, neighbors: int = 5, **signal: Unpack[Signal]) -> Instance:
    """Returns a smooth signal on the graph of the nearest neighbours among random points of the unit square.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.nearest_neighbors(10, 3).problem.graph.n_edges
        18
    """
    n_arms = check_integer("n_arms", n_arms, 2)
    return smooth_instance(lambda rng: Graph.from_features(rng.random((n_arms, 2)), neighbors), **signal)


@with_keywords_of(smooth_instance)
def karate_club(**signal: Unpack[Signal]) -> Instance:
    """Returns a smooth signal on Zachary's karate club: 34 members, weighted by how many contexts they met in.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.karate_club().problem.graph.n_edges
        78
    """
    return _network("karate_club_graph", **signal)


@with_keywords_of(smooth_instance)
def les_miserables(**signal: Unpack[Signal]) -> Instance:
    """Returns a smooth signal on the 77 characters of the novel, weighted by the scenes they share.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.les_miserables().problem.graph.n_edges
        254
    """
    return _network("les_miserables_graph", **signal)


@with_keywords_of(smooth_instance)
def florentine_families(**signal: Unpack[Signal]) -> Instance:
    """Returns a smooth signal on the marriages between 15 families of Florence.

    Examples:
        >>> import spectralbai as sb
        >>> sb.instances.florentine_families().problem.graph.n_edges
        20
    """
    return _network("florentine_families_graph", **signal)


def _network(name: str, **signal: Unpack[Signal]) -> Instance:
    try:
        import networkx
    except ModuleNotFoundError:
        raise SpectralBAIError(
            "this network needs networkx, which is not installed; run: pip install networkx"
        ) from None
    network: Any = getattr(networkx, name)()
    labels = [str(node) for node in network.nodes]
    return smooth_instance(Graph.from_networkx(network), labels, **signal)


def attached(n_arms: int, attachments: int, rng: np.random.Generator) -> Graph:
    """Returns a star of `attachments` + 1 arms to which further arms are added; each is joined to `attachments` others,
    drawn with probabilities proportional to their degrees."""
    n_arms, attachments = check_integer("n_arms", n_arms, 2), check_integer("attachments", attachments, 1)
    if attachments >= n_arms:
        raise InvalidInput(f"`attachments` must be below the number of arms {n_arms}, got {attachments}")
    edges = [(0, a) for a in range(1, attachments + 1)]
    for new in range(attachments + 1, n_arms):
        ends = list(itertools.chain.from_iterable(edges))  # each arm as often as its degree
        chosen: set[int] = set()
        while len(chosen) < attachments:
            chosen.add(ends[rng.integers(len(ends))])
        edges += [(arm, new) for arm in sorted(chosen)]
    return Graph.from_edges(n_arms, edges)


KINDS: dict[str, Callable[..., Instance]] = {
    kind.__name__: kind
    for kind in (
        *(path, ring, grid, star, complete, cliques, catalogue, stochastic_block, barabasi_albert, nearest_neighbors),
        *(karate_club, les_miserables, florentine_families),
    )
}
"""The generators by name."""
