"""The entry point for allocations: it chooses the solver and, with a tolerance, the answer to prove."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.allocation.binary import binary
from spectralbai.allocation.catalogue import catalogue, shift_bound
from spectralbai.allocation.certificate import Certified
from spectralbai.allocation.closed_form import closed_form
from spectralbai.allocation.interior_point import interior_point
from spectralbai.allocation.mirror_ascent import mirror_ascent
from spectralbai.allocation.result import Allocation, AllocationStatus
from spectralbai.arrays import Indices, Mask, Vector, check_weights_of_arms
from spectralbai.checks import check_integer, check_number
from spectralbai.errors import InvalidInput
from spectralbai.graph import Categories, Graph
from spectralbai.noise import Divergence, SubGaussian
from spectralbai.problem import Problem
from spectralbai.responder import Responder
from spectralbai.spectral import Catalogue
from spectralbai.threads import one_thread

Method = Callable[[Responder, float, int, Vector | None, float], Certified]
"""Takes (responder, tol, max_iterations, start, enough) and returns an allocation with certified bounds.

It may stop once its upper bound is at most `enough`, because the caller already knows a better value.
"""


@dataclass(frozen=True)
class Solver:
    """A solver of the allocation. `SOLVERS` holds the built-in ones; `solve_allocation` also takes others."""

    name: str
    method: Method
    max_iterations: int
    """Limit on the computations of best responses, unless the caller sets another one."""
    without_graph: bool = False
    """Whether it solves only problems without edges or with R = inf."""
    divergence: Divergence = "gaussian"
    """How it measures alternatives; scores in a range are treated as Gaussian."""
    by_category: bool = False
    """Whether it solves only catalogues, and numbers arms as the problem does."""


SOLVERS: dict[str, Solver | None] = {
    "auto": None,
    "binary": Solver("binary", binary, 60, divergence="binary"),
    "catalogue": Solver("catalogue", catalogue, 60, by_category=True),
    "closed-form": Solver("closed-form", lambda responder, *_: closed_form(responder), 1, without_graph=True),
    "interior-point": Solver("interior-point", interior_point, 200),
    "mirror-ascent": Solver("mirror-ascent", lambda it, tol, limit, *_: mirror_ascent(it, tol, limit), 10_000),
}
"""The solvers by name; `_chosen` says which one "auto" takes."""
MOST_ANSWERS = 5
"""With a tolerance and many arms, how many right answers besides the best arm are tried, not only bounded."""
LEAST_LEAD = 1e-75
"""Least lead of the best arm, in units of the largest sigma: a square of its square must not be rounded to 0."""
EQUAL = 1e-13
"""Relative difference, of the size of rounding errors, up to which the tolerance counts as the largest difference that
smooth means can reach (theory 3.9)."""
BY_CATEGORY_ABOVE = 500
"""With more arms in categories than this, the solver works by category; with fewer, matrices take seconds at most."""


LARGEST_GAP = 1e100
"""Largest difference of means, in standard deviations, whose square and its multiples are numbers."""


def solve_allocation(
    problem: Problem,
    mu: ArrayLike,
    tol: float = 1e-6,
    solver: str | Solver = "auto",
    max_iterations: int | None = None,
    start: ArrayLike | None = None,
) -> Allocation:
    """Returns the allocation omega* that attains

        1/T_R*(mu) = max over omega in the simplex of min over lam of sum_a omega_a (mu_a - lam_a)^2 / (2 sigma_a^2),

    where lam ranges over smooth means under which another arm beats the best (theory 2.2), with certified bounds of
    this value. If outcomes have two values, the relative entropy kl(mu_a, lam_a) replaces the squares (theory 15.2).
    Scores in a range are treated as Gaussian with standard deviation sigma, half of the range.

    `mu` (n_arms,) must satisfy mu' L mu <= R, or the R of each component (theory, section 16), and have a unique best
    arm unless there is a tolerance. With a tolerance the answer that is easiest to prove is found too. `tol` is the
    relative gap asked for. `solver` is a name in `SOLVERS` or a `Solver`. "auto" takes `binary` for outcomes of two
    values, else `catalogue` for more than 500 arms in categories, the closed form for problems without edges or with
    R = inf, and otherwise the interior-point method. `start` is a guess of omega.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01)
        >>> allocation = sb.solve_allocation(problem, [0.9, 0.5, 0.6])
        >>> allocation.status, round(allocation.characteristic_time, 2)
        ('certified', 88.89)
    """
    if problem.items is not None:
        raise InvalidInput(
            f"no optimal allocation is known for trials on {problem.items.described()}, whose outcomes go "
            "together; leave out `items`, or use simulate.replay"
        )
    mu = problem.check_smooth(mu)
    if float(mu.max()) / 2 - float(mu.min()) / 2 > LARGEST_GAP * float(problem.sigma.min()):
        raise InvalidInput(
            f"`mu` must have differences below {LARGEST_GAP:g} times sigma, got {mu.min():g} and {mu.max():g}"
        )
    tol = check_number("tol", tol, "a positive relative gap, such as 1e-6", low=0.0, strict=True)
    if not isinstance(solver, Solver) and (not isinstance(solver, str) or solver not in SOLVERS):
        raise InvalidInput(f"`solver` must be a Solver or one of {', '.join(SOLVERS)}, got {solver!r}")
    if max_iterations is not None:
        max_iterations = check_integer("max_iterations", max_iterations, 1)
    guess: Vector | None = None
    if start is not None:
        guess = check_weights_of_arms("start", start, problem.n_arms)
        guess = guess / guess.sum()
    if problem.noise.divergence == "binary":
        problem.noise.check_means("mu", mu)
    if problem.rigid:
        return _solve_quotient(problem, mu, tol, solver, max_iterations)
    chosen = _chosen(problem, solver)
    if max_iterations is not None:
        chosen = replace(chosen, max_iterations=max_iterations)
    return _solve_answers(problem, mu, tol, chosen, guess)


def _solve_answers(problem: Problem, mu: Vector, tol: float, solver: Solver, start: Vector | None) -> Allocation:
    """Returns the allocation for the best arm or, with a tolerance, for the right answer that is easiest to prove."""
    best = problem.best_arm(mu)
    lead = float(mu[best] - np.delete(mu, best).max()) + problem.tolerance
    if lead < LEAST_LEAD * problem.sigma.max():
        raise InvalidInput(
            f"`mu` must have a best arm that leads by {LEAST_LEAD:g} sigma or more, tolerance included, got {lead:g} "
            f"at arm {best}; squares of less are too small for floating-point arithmetic"
        )
    answer, solution = best, _solve_for(problem, mu, best, tol, solver, start, enough=0.0)
    # With a tolerance other answers are right too, and one of them may be easier to prove.
    # An answer exactly at the limit of the tolerance never is.
    right = np.flatnonzero(mu - mu[best] > -problem.tolerance * (1 - 1e-9))
    right = right[right != best]
    upper, iterations = solution.upper, solution.iterations
    if problem.n_arms > BY_CATEGORY_ABOVE and solver.by_category:
        right = right[np.argsort(-mu[right], kind="stable")]
        upper = max(upper, shift_bound(problem, mu, right[MOST_ANSWERS:]))
        right = right[:MOST_ANSWERS]
    for other in right.tolist():
        rival = _solve_for(problem, mu, other, tol, solver, start, enough=solution.lower)
        upper, iterations = max(upper, rival.upper), iterations + rival.iterations
        if rival.lower > solution.lower:
            answer, solution = other, rival
    solution.omega.setflags(write=False)
    status: AllocationStatus = "certified" if upper <= solution.lower * (1 + tol) else "unfinished"
    return Allocation(solution.omega, answer, solution.lower, upper, iterations, status, solver.name)


def _chosen(problem: Problem, solver: str | Solver) -> Solver:
    """Returns the solver of that name, or for "auto" one that suits; raises InvalidInput if it cannot solve this."""
    chosen = SOLVERS[solver] if isinstance(solver, str) else solver
    if chosen is None:
        gaussian = "closed-form" if problem.unstructured else "interior-point"
        if problem.n_arms > BY_CATEGORY_ABOVE and Catalogue.of(problem) is not None:
            gaussian = "catalogue"
        chosen = SOLVERS["binary" if problem.noise.divergence == "binary" else gaussian]
        assert chosen is not None
    if chosen.without_graph and not problem.unstructured:
        raise InvalidInput(f"`solver` = {chosen.name!r} needs a graph without edges or R = math.inf; use solver='auto'")
    if chosen.by_category and Catalogue.of(problem) is None:
        raise InvalidInput(
            f"`solver` = {chosen.name!r} needs arms in categories, with an R for each; use solver='auto'"
        )
    if chosen.divergence != (problem.noise.divergence or "gaussian"):
        raise InvalidInput(
            f"`solver` = {chosen.name!r} is for {chosen.divergence} outcomes, got {problem.noise.described()}; use "
            "solver='auto'"
        )
    return chosen


def _solve_for(
    problem: Problem, mu: Vector, best: int, tol: float, solver: Solver, start: Vector | None, enough: float
) -> Certified:
    """Returns the allocation for one answer; stops early once its value is known to be below `enough`."""
    responder = Responder(problem, mu, best)
    limit = solver.max_iterations
    with one_thread():
        if problem.tolerance > 0 and not solver.by_category and not problem.unstructured:
            responder = _without_doubtful(responder)
        if responder.unbeatable:
            raise InvalidInput(
                f"`tolerance` = {problem.tolerance:g} with {problem.described_R()} lets no other arm beat arm {best} "
                "by more than the tolerance: every trial would be wasted; lower the tolerance or raise R"
            )
        if solver.by_category:
            solution = solver.method(responder, tol, limit, start, enough)
        else:
            guess = None if start is None else responder.components.ordered(start)
            solution = solver.method(responder.renumbered(), tol, limit, guess, enough)
            solution = solution._replace(omega=responder.components.restored(solution.omega))
    return solution._replace(lower=max(solution.lower, 0.0))


def _without_doubtful(responder: Responder) -> Responder:
    """Returns the responder, with a tolerance larger by rounding errors if some challenger is at its limit.

    Whether such a challenger can win would depend on rounding errors, which differ from one allocation to the next. It
    counts as one that cannot, as it does when the race decides.
    """
    less, more = (responder.tolerating(responder.tolerance * (1 + change)) for change in (-EQUAL, EQUAL))
    every = np.ones(responder.mu.size)
    doubtful = less.respond(every).challengers.size > more.respond(every).challengers.size
    return more if doubtful else responder


def _solve_quotient(
    problem: Problem, mu: Vector, tol: float, solver: str | Solver, max_iterations: int | None
) -> Allocation:
    """Returns the allocation if R = 0, which makes each component one arm: only its least noisy member is pulled."""
    graph, best = problem.graph, int(np.argmax(mu))
    tied = graph.sizes > 1
    if problem.by_component:
        tied &= problem.radii == 0
    components = graph.components
    if problem.tolerance == 0 and tied[components[best]]:
        raise InvalidInput(
            f"`R` = 0 makes the means equal within a component, so arm {best} cannot be the only best one of its "
            "component; raise R or set a tolerance > 0"
        )
    if graph.n_components == 1:
        raise InvalidInput("`R` = 0 on a connected graph makes all means equal, so every answer is right; raise R")
    pulled = np.concatenate(
        [
            [min(arms, key=lambda a: problem.sigma[a])] if tied[c] else arms
            for c in range(graph.n_components)
            for arms in [np.flatnonzero(components == c)]
        ]
    )
    noise = problem.noise
    if noise.divergence == "gaussian":
        noise = SubGaussian.of(problem.sigma[pulled], pulled.size)
    rest = _graph_of(graph, pulled, tied)
    R = np.where(tied, 0.0, problem.radii) if (rest.sizes > 1).any() else math.inf
    quotient = Problem(rest, R, tolerance=problem.tolerance, noise=noise)
    small = solve_allocation(quotient, mu[pulled], tol, solver, max_iterations)
    omega = np.zeros(problem.n_arms)
    omega[pulled] = small.omega
    omega.setflags(write=False)
    return replace(small, omega=omega, best=int(pulled[small.best]))


def _graph_of(graph: Graph, pulled: Indices, tied: Mask) -> Graph:
    """Returns the graph of the arms that are pulled, one of each component in `tied`."""
    if isinstance(graph, Categories):  # whose edges may be too many to list
        return Categories(graph.components[pulled].astype(str).tolist(), graph.weight)
    place = np.full(graph.n_arms, -1)
    place[pulled] = np.arange(pulled.size)
    loose = ~tied[graph.components[graph.pairs[:, 0]]]
    edges = zip(place[graph.pairs[loose]].tolist(), graph.weights[loose].tolist(), strict=True)
    return Graph.from_edges(pulled.size, [(a, b, w) for (a, b), w in edges])
