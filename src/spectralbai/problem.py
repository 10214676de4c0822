"""What is assumed in a best-arm problem: graph, smoothness, noise, tolerance and items, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.arrays import Indices, Mask, Vector, check_vector
from spectralbai.checks import check_number
from spectralbai.errors import InvalidInput
from spectralbai.graph import Graph, number_by_first
from spectralbai.items import Items
from spectralbai.noise import Binary, Bounded, Noise, SubGaussian
from spectralbai.text.wording import R_in_words, difference_in_words

UNIT = np.float64(1.0)
"""The default sigma; it is compared by identity, so that an explicit sigma = 1 can be distinguished from it."""
ROUNDING = 1e-12
"""Relative slack within which S(mu) = R counts as S(mu) <= R."""


@dataclass(frozen=True, eq=False, init=False)
class Problem:
    """What is known before any trial: mu' L mu <= R, what outcomes are like, and which answers are right.

    Examples:
        >>> import numpy as np
        >>> import spectralbai as sb
        >>> graph = sb.Graph.from_edges(3, [(1, 2)])
        >>> problem = sb.Problem(graph, R=0.01, sigma=0.5, tolerance=0.1)
        >>> problem.smooth(np.array([0.9, 0.5, 0.6])), problem.smooth(np.array([0.9, 0.5, 0.7]))
        (True, False)
        >>> sb.Problem.bounded(graph, R=0.01, low=0, high=10).sigma.tolist()
        [5.0, 5.0, 5.0]
    """

    graph: Graph
    R: float | Vector
    """Bound on the smoothness mu' L mu, from 0 to `math.inf` (ignore the graph); or one bound for each component, in
    the order of their first arms (theory, section 16)."""
    tolerance: float
    """Any arm whose mean is within `tolerance` of the best is a right answer."""
    noise: Noise
    """The kind of outcomes; sub-Gaussian unless set by `Problem.bounded`."""
    items: Items | None
    """What options are tried on (theory, section 18); None if every trial stands for itself."""

    def __init__(
        self,
        graph: Graph,
        R: ArrayLike,
        sigma: ArrayLike = UNIT,
        tolerance: float = 0.0,
        noise: Noise | None = None,
        items: Items | None = None,
    ) -> None:
        """`R` is one number, or one per component of the graph. `sigma` is the standard deviation (or sub-Gaussian
        constant) of one outcome, one number or one per arm. `noise` can be given instead of `sigma`, for other kinds of
        outcomes; `dataclasses.replace` passes it too. With `items`, `sigma` is what is left of an outcome after the
        effect of its item, which is the same for all arms and may be anything; it must be independent between arms."""
        if not isinstance(graph, Graph):
            raise InvalidInput(f"`graph` must be a spectralbai.Graph, got {type(graph).__name__}; use Graph.from_edges")
        R = _check_R(R, graph)
        tolerance = check_number("tolerance", tolerance, "a finite non-negative number", low=0.0, strict=False)
        if noise is None:
            noise = SubGaussian.of(sigma, graph.n_arms)
        elif not isinstance(noise, Noise):
            raise InvalidInput(
                f"`noise` must be a spectralbai.noise.Noise, got {type(noise).__name__}; or give `sigma`"
            )
        elif sigma is not UNIT:  # both are given by dataclasses.replace(problem, sigma=...)
            if noise.outcome_range is not None:
                raise InvalidInput(
                    "`sigma` is given by the range of the outcomes; use Problem(graph, R, sigma) instead"
                )
            noise = SubGaussian.of(sigma, graph.n_arms)
        noise.sigmas(graph.n_arms)  # raises InvalidInput if the noise is for another number of arms
        if items is not None and not isinstance(items, Items):
            raise InvalidInput(f"`items` must be Items.fresh() or Items.listed(n), got {items!r}")
        if items is not None and items.n is not None and noise.outcome_range is None:
            raise InvalidInput(
                f"`items` must be Items.fresh() where outcomes have no range, got {items.described()}; use "
                "Problem.bounded for a list"
            )
        for name, value in (("graph", graph), ("R", R), ("tolerance", tolerance), ("noise", noise), ("items", items)):
            object.__setattr__(self, name, value)
        _check_units(self)

    @classmethod
    def bounded(
        cls,
        graph: Graph,
        R: ArrayLike,
        low: float = 0.0,
        high: float = 1.0,
        tolerance: float = 0.0,
        binary: bool = False,
        items: Items | None = None,
    ) -> Problem:
        """Returns the problem of outcomes in [low, high]: sigma is (high - low)/2 by Hoeffding's lemma, and the means
        lie in the range. `binary` says that outcomes are always `low` or `high`, as with clicks. `items` says what
        options are tried on."""
        if not isinstance(binary, bool):
            raise InvalidInput(f"`binary` must be True or False, got {binary!r}")
        return cls(graph, R, tolerance=tolerance, noise=(Binary if binary else Bounded)(low, high), items=items)

    @cached_property
    def sigma(self) -> Vector:
        """Standard deviation (or sub-Gaussian constant) of one outcome of each arm, (n_arms,)."""
        return self.noise.sigmas(self.n_arms)

    @property
    def outcome_range(self) -> tuple[float, float] | None:
        """Interval that contains every outcome, and so every mean; None if no such interval is known."""
        return self.noise.outcome_range

    @property
    def n_arms(self) -> int:
        return self.graph.n_arms

    @property
    def by_component(self) -> bool:
        """Whether there is one R for each component, instead of one for all."""
        return isinstance(self.R, np.ndarray)

    @cached_property
    def unstructured(self) -> bool:
        """Whether the graph bounds nothing: it has no edges, or R is infinite."""
        return self.graph.n_edges == 0 or bool(np.isinf(self.radii[self._bounding]).all())

    @property
    def rigid(self) -> bool:
        """Whether R = 0 for some component of several arms, whose means are then all equal."""
        return bool((self.radii[self._bounding] == 0).any())

    @cached_property
    def _bounding(self) -> Mask:
        """Which entries of `radii` bound something; those of components of one arm do not."""
        return self.graph.sizes > 1 if self.by_component else np.ones(1, dtype=bool)

    @cached_property
    def components(self) -> Indices:
        """The component of each arm, (n_arms,); arms of a component with infinite R are separate components."""
        if self.unstructured:
            return np.arange(self.n_arms)
        labels = self.graph.components
        if np.isfinite(self.radii).all():
            return labels
        alone = np.isinf(self.radii)[labels]
        names = np.where(alone, labels.max() + 1 + np.arange(self.n_arms), labels)
        return number_by_first(names)

    @property
    def radii(self) -> Vector:
        """R as a vector: with one entry, or with one per component of the graph."""
        return np.atleast_1d(self.R)

    @property
    def roughest(self) -> Vector:
        """The largest roughness that outcomes allow, as `radii`: the sum of the weights times the square of their
        range; infinite without a range, and where there are no edges, which bound nothing."""
        low, high = self.outcome_range or (-math.inf, math.inf)
        with np.errstate(over="ignore"):
            totals = self.graph.total_weights if self.by_component else self.graph.total_weights.sum(keepdims=True)
            most: Vector = np.multiply(totals, (high - low) ** 2, out=np.full(totals.size, np.inf), where=totals > 0)
        return most

    def implies(self, earlier: Problem) -> bool:
        """Whether means that satisfy this problem also satisfy `earlier` on its arms, the first ones of this problem:
        the same edges among them, and no larger R."""
        if earlier.unstructured:
            return True
        if self.unstructured or not self.graph.extends(earlier.graph):
            return False
        several = earlier.graph.sizes > 1
        if self.by_component and not earlier.by_component and several.sum() > 1:
            return False  # one R for all components together is a stronger bound than the same R for each
        first = np.unique(earlier.graph.components, return_index=True)[1][several]
        now, then = (
            each.radii[each.graph.components[first]] if each.by_component else each.radii for each in (self, earlier)
        )
        return bool((now <= then).all())

    def check_extends(self, before: Problem) -> None:
        """Raises InvalidInput unless this is `before` with new arms at the end, and the same noise and tolerance."""
        if self.n_arms <= before.n_arms:
            raise InvalidInput(
                f"`problem` must have more than the present {before.n_arms} arms, got {self.n_arms}; put new ones last"
            )
        if self.tolerance != before.tolerance:
            raise InvalidInput(
                f"`tolerance` must stay {before.tolerance:g} when arms join, got {self.tolerance:g}; to change it, "
                "start again without the old results"
            )
        if self.items != before.items:
            raise InvalidInput(f"`items` must stay {before.items} when arms join, got {self.items}")
        if type(self.noise) is not type(before.noise) or self.outcome_range != before.outcome_range:
            raise InvalidInput(
                f"the noise must stay as it is when arms join, {before.noise.described()}, got {self.noise.described()}"
            )
        changed = self.sigma[: before.n_arms] != before.sigma
        if changed.any():
            arm = int(np.argmax(changed))
            raise InvalidInput(
                f"sigma must stay as it is when arms join, {before.sigma[arm]:g} at arm {arm}, got {self.sigma[arm]:g}"
            )

    def described_R(self) -> str:
        """Returns R in words, such as "R = 0.1"."""
        return f"R = {R_in_words(self.radii[self._bounding] if self.by_component else self.R)}"

    def described_tolerance(self) -> str:
        """Returns the tolerance in words, in the unit of the outcomes; empty if it is 0."""
        if not self.tolerance:
            return ""
        return f"differences below {difference_in_words(self.tolerance, self.outcome_range)} do not matter"

    def without_graph(self) -> Problem:
        """Returns the same problem with R = inf, so that the graph is ignored."""
        return replace(self, R=math.inf)

    def smoothness(self, mu: ArrayLike) -> float:
        """Returns S(mu) = mu' L mu."""
        return self.graph.smoothness(mu)

    def roughness(self, mu: Vector) -> Vector:
        """Returns S(mu), or S of each component if each has an R, for means already checked."""
        if self.by_component:
            return self.graph.roughness_by_component(mu)
        return np.array([self.graph.roughness(mu)])

    def check_smooth(self, mu: ArrayLike) -> Vector:
        """Returns `mu` as a vector of means; raises InvalidInput unless S(mu) <= R."""
        mu = check_vector("mu", mu, self.n_arms)
        if not self.smooth(mu):
            rough = self.roughness(mu)
            c = int(np.argmax(rough > self.radii * (1 + ROUNDING)))
            digits = 6 if rough[c] > self.radii[c] * (1 + 1e-5) else 17  # so that the two numbers look different
            where = f" in component {c}, which has arm {int(np.argmax(self.graph.components == c))}"
            raise InvalidInput(
                f"`mu` must satisfy S(mu) <= R, got S(mu) = {rough[c]:.{digits}g} and R = {self.radii[c]:.{digits}g}"
                f"{where if self.by_component else ''}; raise R or smooth mu"
            )
        return mu

    def room_for(self, mu: Vector) -> float | Vector:
        """Returns R, raised to S(mu) if mu is rougher than R only because of rounding errors."""
        rough, radii = self.roughness(mu), self.radii
        raised = np.where((rough > radii) & (rough <= radii * (1 + ROUNDING)), rough, radii)
        return raised if self.by_component else float(raised[0])

    def smooth(self, mu: Vector) -> bool:
        """Whether S(mu) <= R, up to rounding errors."""
        return bool((self.roughness(mu) <= self.radii * (1 + ROUNDING)).all())

    def best_arm(self, mu: Vector) -> int:
        """Returns the best arm; with tolerance 0 it must be unique."""
        best = int(np.argmax(mu))
        ties = np.flatnonzero(mu == mu[best])
        if self.tolerance == 0 and ties.size > 1:
            raise InvalidInput(
                f"`mu` must have a unique best arm when tolerance is 0, got arms {ties[0]} and {ties[1]} tied at "
                f"{mu[best]}; set a tolerance > 0 if either is a good answer"
            )
        return best


def _check_units(problem: Problem) -> None:
    """Raises InvalidInput if every answer is right, or no options are alike, whatever the outcomes are."""
    if problem.outcome_range is None:
        return
    (low, high), tolerance = problem.outcome_range, problem.tolerance
    outcomes = f"outcomes between {low:g} and {high:g}"
    if tolerance >= high - low:
        percent = (low, high) == (0.0, 1.0) and tolerance < 100
        remedy = f"for {tolerance:g} % give {tolerance / 100:g}" if percent else "lower it"
        raise InvalidInput(
            f"`tolerance` must be below {high - low:g}, or with {outcomes} every option is right, got {tolerance:g}; "
            f"{remedy}"
        )
    over = np.isfinite(problem.radii) & (problem.radii > problem.roughest * (1 + ROUNDING))
    if over.any():
        c = int(np.argmax(over))
        raise InvalidInput(
            f"`R` must be at most {problem.roughest[c]:g}, or with {outcomes} no options are alike, got "
            f"{problem.radii[c]:g}; lower it, or use math.inf to ignore the graph"
        )


def _check_R(R: ArrayLike, graph: Graph) -> float | Vector:
    rule = "non-negative (math.inf ignores the graph)"
    if isinstance(R, np.ndarray) and R.ndim == 0:
        R = R.item()
    if isinstance(R, str) or not hasattr(R, "__len__"):
        return check_number("R", R, rule, low=0.0, strict=False, allow_inf=True)
    n, given = graph.n_components, list(R)  # type: ignore[arg-type]
    if len(given) != n:
        raise InvalidInput(
            f"`R` must be one number, or one for each of the {n} components of the graph, got {len(given)} numbers; "
            "the components are numbered by their first arms"
        )
    radii = np.array(
        [check_number(f"R[{c}]", each, rule, low=0.0, strict=False, allow_inf=True) for c, each in enumerate(given)]
    )
    if n == 1:  # the same as one R for all
        return float(radii[0])
    radii[graph.sizes == 1] = 0.0  # R bounds nothing in components of one arm
    radii.setflags(write=False)
    return radii
