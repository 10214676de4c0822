"""Similarity graphs: weights, Laplacian, smoothness, components, and the ways to build one."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from spectralbai.arrays import Indices, Vector, check_vector
from spectralbai.checks import check_integer, check_memory, check_number
from spectralbai.errors import InvalidInput

if TYPE_CHECKING:
    import networkx as nx

FAINTEST = 1e-12
"""Least weight of an edge made from features, whose weights are at most 1. A fainter edge says nothing, and if a group
of arms had no other connection, floating-point arithmetic could not tell it from a group without any."""


def check_edges(
    n_arms: int, edges: Iterable[Any], place: Callable[[int], str], arm_is: Callable[[int], str] = str
) -> dict[tuple[int, int], float]:
    """Returns the weight of each edge `(a, b, weight)` or `(a, b)` by its pair of arms, the smaller one first.

    For the messages, `place` says where edge number i was found, and `arm_is` how an arm is called.
    """
    weight_of: dict[tuple[int, int], float] = {}
    place_of: dict[tuple[int, int], int] = {}
    for position, edge in enumerate(edges):
        here = place(position)
        if isinstance(edge, np.ndarray):
            edge = edge.tolist()
        if not isinstance(edge, Sequence) or isinstance(edge, str) or len(edge) not in (2, 3):
            raise InvalidInput(f"{here} must be (a, b) or (a, b, weight), got {reprlib.repr(edge)}")
        ends = []
        for end in edge[:2]:
            whole = isinstance(end, int | np.integer) or (
                isinstance(end, float | np.floating) and float(end).is_integer()
            )
            if isinstance(end, bool) or not whole or not 0 <= end < n_arms:
                raise InvalidInput(
                    f"{here} must join arms between 0 and {n_arms - 1}, got arm {reprlib.repr(end)}; "
                    "arms are numbered from 0"
                )
            ends.append(int(end))
        a, b = min(ends), max(ends)
        if a == b:
            raise InvalidInput(
                f"{here} must join two different arms, got {arm_is(a)} and {arm_is(b)}; remove the self-loop"
            )
        if (a, b) in place_of:
            raise InvalidInput(
                f"{here} must be new, got {arm_is(a)} and {arm_is(b)} again, as in {place(place_of[a, b])}; give each "
                "edge once, in one direction"
            )
        place_of[a, b] = position
        rule = "a finite non-negative number"
        weight_of[a, b] = check_number(
            f"weight of {here}", edge[2] if len(edge) == 3 else 1.0, rule, low=0.0, strict=False
        )
    return weight_of


BYTES_PER_ARM = 1000
"""Bytes that an instance and a study of it take for each arm, about."""

Reader = Callable[[Mapping[str, Any], int], "Graph"]
"""Takes the object in a file and the number of arms, and returns the graph."""
READERS: dict[str, Reader] = {}
"""The function that reads each kind of geometry, as given to `register_geometry`."""


def register_geometry(kind: str, read: Reader) -> None:
    """Adds a kind of graph that instance files can hold.

    Its `as_dict` returns {"geometry": {"kind": kind, ...}}, and `read` takes that inner object and the number of arms.
    """
    if READERS.setdefault(kind, read) is not read:
        raise InvalidInput(f"`kind` must be new, got {kind!r}, which is registered already; choose another word")


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected weighted graph whose vertices are the arms; build it with a `from_*` method.

    Edges of weight zero are dropped, because they have no effect.

    Examples:
        >>> import spectralbai as sb
        >>> graph = sb.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3, 0.5)])
        >>> graph.n_edges, graph.n_components
        (3, 1)
        >>> graph.smoothness([0, 1, 1, 3])
        3.0
        >>> sb.Graph.from_features([[0.0], [1.0], [5.0], [6.0]], neighbors=1).components.tolist()
        [0, 0, 1, 1]
        >>> sb.Graph.from_categories(["pans", "pans", "mugs"]).n_edges
        1
    """

    n_arms: int
    """Number of vertices, at least 2."""
    pairs: Indices
    """Edges, each once: shape (n_edges, 2), first end below the second, sorted."""
    weights: Vector
    """Weights of the edges, positive: shape (n_edges,)."""

    def __post_init__(self) -> None:
        self.pairs.setflags(write=False)
        self.weights.setflags(write=False)

    @classmethod
    def from_edges(cls, n_arms: int, edges: Iterable[Sequence[float]]) -> Graph:
        """Returns the graph with the given edges `(a, b, weight)`, or `(a, b)` for weight 1."""
        n_arms = _check_n_arms(n_arms)
        if not isinstance(edges, Iterable):
            raise InvalidInput(f"`edges` must be a list of (a, b, weight), got {edges!r}")
        weight_of = check_edges(n_arms, edges, "edge {}".format)
        joined = sorted(pair for pair, weight in weight_of.items() if weight > 0)
        pairs = np.array(joined, dtype=np.intp).reshape(-1, 2)
        return cls(n_arms, pairs, np.array([weight_of[pair] for pair in joined], dtype=np.float64))

    @classmethod
    def from_weights(cls, weights: ArrayLike | sparse.sparray | sparse.spmatrix) -> Graph:
        """Returns the graph of a symmetric matrix of weights, dense or scipy sparse, with a zero diagonal."""
        try:
            given: Any = weights if sparse.issparse(weights) else np.asarray(weights)
        except (TypeError, ValueError):  # ragged
            given = np.array(None)
        if given.dtype.kind not in "biuf":
            raise InvalidInput(f"`weights` must be a matrix of numbers, got {reprlib.repr(weights)}")
        if given.ndim != 2 or given.shape[0] != given.shape[1]:
            raise InvalidInput(
                f"`weights` must have shape (n_arms, n_arms), got {given.shape}; give one row and one column per arm"
            )
        matrix = sparse.coo_array(given, dtype=np.float64)
        matrix.sum_duplicates()
        rows, columns = matrix.coords
        values = matrix.data
        for bad, what in ((~np.isfinite(values), "finite"), (values < 0, "non-negative")):
            if bad.any():
                at = int(np.argmax(bad))
                raise InvalidInput(f"`weights` must be {what}, got {values[at]} at ({rows[at]}, {columns[at]})")
        loops = (rows == columns) & (values != 0)
        if loops.any():
            at = int(np.argmax(loops))
            raise InvalidInput(
                f"`weights` must have a zero diagonal, got {values[at]} at arm {rows[at]}; remove the self-loop"
            )
        difference = abs(matrix.tocsr() - matrix.tocsr().T).tocoo()
        if difference.nnz and difference.data.max() > 1e-12 * values.max():
            at = int(np.argmax(difference.data))
            a, b = (int(axis[at]) for axis in difference.coords)
            dense = matrix.tocsr()
            raise InvalidInput(
                f"`weights` must be symmetric, got {dense[a, b]} at ({a}, {b}) but {dense[b, a]} at ({b}, {a}); use "
                "(W + W.T)/2"
            )
        upper = (rows < columns) & (values > 0)
        return cls.from_edges(
            matrix.shape[0],
            list(zip(rows[upper].tolist(), columns[upper].tolist(), values[upper].tolist(), strict=True)),
        )

    @classmethod
    def from_features(cls, features: ArrayLike, neighbors: int | None = None) -> Graph:
        """Returns the graph joining each arm to its nearest neighbours in feature space.

        Two arms are joined if one is among the `neighbors` nearest of the other (by default `usual_neighbors`). The
        weight is exp(-d^2 / (2 h^2)), where d is their Euclidean distance and h the median distance of joined arms;
        pairs whose weight would be below `FAINTEST` are not joined. Features in different units should be standardised
        first.
        """
        from scipy.spatial import cKDTree

        try:
            points = np.array(features, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput("`features` must be a table of numbers, one row per arm") from None
        if points.ndim != 2 or points.shape[1] == 0:
            raise InvalidInput(f"`features` must have shape (n_arms, n_features), got {points.shape}; one row per arm")
        if not np.isfinite(points).all():
            row, column = np.argwhere(~np.isfinite(points))[0]
            raise InvalidInput(f"`features` must be finite, got {points[row, column]} at row {row}, column {column}")
        n_arms = _check_n_arms(points.shape[0])
        neighbors = usual_neighbors(n_arms) if neighbors is None else check_integer("neighbors", neighbors, 1)
        if neighbors >= n_arms:
            raise InvalidInput(f"`neighbors` must be below the number of arms {n_arms}, got {neighbors}; lower it")
        # Exact, and squared distances can no longer overflow.
        points = np.ldexp(points, -int(np.frexp(np.abs(points).max())[1]))
        distances, nearest = cKDTree(points).query(points, k=neighbors + 1)
        joined: dict[tuple[int, int], float] = {}
        for a in range(n_arms):
            # If points are equal, an arm may not be the first of its nearest points, or not be among them at all.
            others = [(b, d) for b, d in zip(nearest[a].tolist(), distances[a].tolist(), strict=True) if b != a]
            joined |= {(min(a, b), max(a, b)): d for b, d in others[:neighbors]}
        lengths = np.array(list(joined.values()))
        width = float(np.median(lengths)) or float(lengths.max()) or 1.0
        kernel = np.exp(-0.5 * (lengths / width) ** 2)
        edges = [(a, b, w) for (a, b), w in zip(joined, kernel.tolist(), strict=True) if w >= FAINTEST]
        return cls.from_edges(n_arms, edges)

    @classmethod
    def from_networkx(cls, graph: nx.Graph[Any], weight: str = "weight") -> Graph:
        """Returns the graph of an undirected networkx graph, arms in the order of its nodes; missing weights are 1."""
        if not hasattr(graph, "is_directed"):
            raise InvalidInput(
                f"`graph` must be a networkx Graph, got {type(graph).__name__}; use Graph.from_edges or "
                "Graph.from_weights"
            )
        if graph.is_directed() or graph.is_multigraph():
            raise InvalidInput(
                f"`graph` must be a plain undirected networkx Graph, got {type(graph).__name__}; use "
                "networkx.Graph(graph)"
            )
        arm_of = {node: arm for arm, node in enumerate(graph.nodes)}
        return cls.from_edges(
            len(arm_of), [(arm_of[a], arm_of[b], data.get(weight, 1.0)) for a, b, data in graph.edges(data=True)]
        )

    @classmethod
    def from_categories(cls, labels: Sequence[str], weight: float = 1.0) -> Categories:
        """Returns the graph that joins all arms of a category by edges of one weight; `labels` holds the category of
        each arm. The graph takes no more memory than the labels."""
        return Categories(labels, weight)

    @cached_property
    def laplacian(self) -> sparse.csr_array:
        """The Laplacian diag(W 1) - W, sparse."""
        laplacian = laplacian_of(self.n_arms, self.pairs, self.weights)
        laplacian.data.setflags(write=False)
        return laplacian

    @cached_property
    def components(self) -> Indices:
        """The number of the connected component of each arm, (n_arms,): from 0, in the order of their first arms."""
        labels = number_by_first(connected_components(self.laplacian, directed=False)[1])
        labels.setflags(write=False)
        return labels

    @property
    def n_components(self) -> int:
        return int(self.components.max()) + 1

    @cached_property
    def sizes(self) -> Indices:
        """The number of arms of each component."""
        return np.bincount(self.components)

    @property
    def n_edges(self) -> int:
        return len(self.weights)

    @cached_property
    def total_weights(self) -> Vector:
        """The sum of the weights of the edges of each component, (n_components,)."""
        return np.bincount(self.components[self.pairs[:, 0]], self.weights, self.n_components).astype(np.float64)

    def extends(self, earlier: Graph) -> bool:
        """Whether the edges among its first arms are the same as in `earlier`."""
        if isinstance(earlier, Categories):
            return False
        among = (self.pairs < earlier.n_arms).all(axis=1)
        same = np.array_equal(self.pairs[among], earlier.pairs)
        return same and np.array_equal(self.weights[among], earlier.weights)

    def smoothness(self, mu: ArrayLike) -> float:
        """Returns S(mu) = mu' L mu = sum over edges of w_ab (mu_a - mu_b)^2."""
        return self.roughness(check_vector("mu", mu, self.n_arms))

    def roughness(self, mu: Vector) -> float:
        """Returns the result of `smoothness` for means already checked."""
        return float(self.weights @ (mu[self.pairs[:, 0]] - mu[self.pairs[:, 1]]) ** 2)

    def roughness_by_component(self, mu: Vector) -> Vector:
        """Returns S of each component for means already checked: (n_components,)."""
        across = self.weights * (mu[self.pairs[:, 0]] - mu[self.pairs[:, 1]]) ** 2
        return np.bincount(self.components[self.pairs[:, 0]], across, self.n_components).astype(np.float64)

    def described(self) -> str:
        """Returns the size of the graph in words, such as "3 edges"."""
        return f"{self.n_edges:,} edge{'s' * (self.n_edges != 1)}"

    def as_dict(self) -> dict[str, Any]:
        """Returns the part of an instance file that describes the graph."""
        return {"edges": [[a, b, w] for (a, b), w in zip(self.pairs.tolist(), self.weights.tolist(), strict=True)]}


@dataclass(frozen=True, eq=False, init=False)
class Categories(Graph):
    """Arms in categories: all arms of a category are joined to each other by edges of one weight.

    The edges are not stored. `pairs` and `weights` are computed when they are first used, if they fit in memory.
    """

    categories: tuple[str, ...]
    """Names of the categories, in the order of their first arms."""
    of_arm: Indices
    """Number of the category of each arm, (n_arms,)."""
    weight: float
    """Weight of every edge."""

    def __init__(self, labels: Sequence[str], weight: float = 1.0) -> None:
        one = isinstance(labels, str) or (isinstance(labels, np.ndarray) and labels.ndim == 0)
        if one or not isinstance(labels, Sequence | np.ndarray):
            raise InvalidInput(f"`labels` must be a list of categories, one per arm, got {reprlib.repr(labels)}")
        n_arms = _check_n_arms(len(labels))
        weight = check_number("weight", weight, "a finite positive number", low=0.0, strict=True)
        number_of: dict[str, int] = {}
        of_arm = np.array([number_of.setdefault(str(label), len(number_of)) for label in labels], dtype=np.intp)
        of_arm.setflags(write=False)
        vars(self).update(n_arms=n_arms, categories=tuple(number_of), of_arm=of_arm, weight=weight)

    @cached_property
    def components(self) -> Indices:
        return self.of_arm

    @property
    def n_edges(self) -> int:
        return int((self.sizes * (self.sizes - 1)).sum()) // 2

    @cached_property
    def total_weights(self) -> Vector:
        return (self.weight * self.sizes * (self.sizes - 1) / 2).astype(np.float64)

    @cached_property  # type: ignore[misc]
    def pairs(self) -> Indices:
        check_memory(
            f"the {self.n_edges:,} edges of these categories", 64 * self.n_edges, "give an R for each category"
        )
        mates = [np.flatnonzero(self.of_arm == c) for c in range(self.n_components)]
        pairs = np.concatenate([arms[np.stack(np.triu_indices(arms.size, 1), axis=1)] for arms in mates])
        pairs = pairs[np.lexsort(pairs.T[::-1])]
        pairs.setflags(write=False)
        return pairs

    @cached_property  # type: ignore[misc]
    def weights(self) -> Vector:
        weights = np.full(len(self.pairs), self.weight)
        weights.setflags(write=False)
        return weights

    def extends(self, earlier: Graph) -> bool:
        same = isinstance(earlier, Categories) and self.weight == earlier.weight
        return same and np.array_equal(self.of_arm[: earlier.n_arms], earlier.components)

    def roughness(self, mu: Vector) -> float:
        return float(self.roughness_by_component(mu).sum())

    def roughness_by_component(self, mu: Vector) -> Vector:
        # The sum over all pairs of a category of (mu_a - mu_b)^2 is its size times the sum of (mu_a - mean)^2.
        centre = np.bincount(self.of_arm, mu) / self.sizes
        spread = np.bincount(self.of_arm, (mu - centre[self.of_arm]) ** 2)
        some = np.empty(self.n_components)
        some[self.of_arm] = mu
        spread[np.bincount(self.of_arm, mu != some[self.of_arm]) == 0] = 0.0  # the mean of equal numbers has errors
        return (self.weight * self.sizes * spread).astype(np.float64)

    def described(self) -> str:
        return f"{self.n_components:,} categor{'y' if self.n_components == 1 else 'ies'}"

    def as_dict(self) -> dict[str, Any]:
        return {"categories": [self.categories[c] for c in self.of_arm.tolist()], "category_weight": self.weight}


def laplacian_of(n: int, pairs: Indices, w: Vector) -> sparse.csr_array:
    """Returns the Laplacian of n vertices with edges of weights `w` between these pairs, sparse."""
    a, b = pairs.T
    rows, columns = np.concatenate([a, b, a, b]), np.concatenate([b, a, a, b])
    return sparse.csr_array((np.concatenate([-w, -w, w, w]), (rows, columns)), shape=(n, n))


def number_by_first(labels: Indices) -> Indices:
    """Returns the labels as numbers from 0, in the order in which they first occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.intp)
    rank[np.argsort(first)] = np.arange(first.size)
    numbers: Indices = rank[inverse]
    return numbers


def usual_neighbors(n_arms: int) -> int:
    """Returns a good number of neighbours for this many arms: log2(n_arms) rounded down, and at most 5.

    For example 2 for 4 to 7 arms and 3 for 8 to 15. This keeps most graphs connected. With more neighbours among few
    arms, nearly all pairs would be joined, and R would have to bound all differences, not just those of similar arms.
    """
    return min(5, n_arms.bit_length() - 1)


def _check_n_arms(n_arms: Any) -> int:
    if check_integer("n_arms", n_arms, 0) < 2:
        raise InvalidInput(f"`n_arms` must be at least 2, got {n_arms}; with fewer arms there is nothing to find")
    check_memory(f"a problem of {int(n_arms):,} arms", BYTES_PER_ARM * int(n_arms), "leave arms out")
    return int(n_arms)
