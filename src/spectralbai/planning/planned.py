"""How many samples to expect, with and without the graph, and how that depends on the choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.allocation import samples_needed, solve_allocation
from spectralbai.allocation.bound import bounded_by_entropy
from spectralbai.allocation.catalogue import entropy_bound
from spectralbai.arrays import Vector
from spectralbai.checks import check_delta, check_integer
from spectralbai.documents import plain
from spectralbai.errors import InvalidInput
from spectralbai.instance import Instance
from spectralbai.planning.forecast import BATCH, LONGEST, Forecast, rule_of_thumb, simulate
from spectralbai.planning.means import Means, Source, tied
from spectralbai.planning.pilot import MANY_ARMS, Pilot, Range
from spectralbai.policy import Race, SpectralRace
from spectralbai.problem import Problem
from spectralbai.simulate import Run
from spectralbai.text.html import paragraph, table

DELTAS = (0.1, 0.05, 0.01)
R_FACTORS = (0.1, 0.5, 1.0, 2.0, 10.0)
TOLERANCE_SHARES = (0.0, 0.05, 0.1, 0.2, 0.4)
"""Tolerances tried, as parts of the spread of the means."""
MARGINS = (0.6, 1.5)
"""How inexact the rule of thumb may be, as factors."""
CALIBRATED = (0.8, 1.25)
"""How inexact it may be after scaling to simulated races at the estimated means."""
KEYS = (
    *("delta", "source", "instance", "signals", "with_graph", "without_graph", "saving", "advice"),
    *("by_delta", "by_R", "by_tolerance", "pilot", "range"),
)
"""What a document holds of a plan."""


@dataclass(frozen=True)
class Variation:
    """What to expect if one choice were different."""

    value: float
    """The different value; if each component has an R, the factor by which all are multiplied."""
    forecast: Forecast | None
    """None if R is below the roughness of the means, because then nothing is guaranteed."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What to expect of an experiment."""

    instance: Instance
    delta: float
    source: Source
    signals: tuple[Vector, ...]
    """The means that the plan assumes: one vector, or several random signals."""
    with_graph: Forecast
    without_graph: Forecast
    by_delta: tuple[Forecast, ...]
    by_R: tuple[Variation, ...]
    by_tolerance: tuple[Variation, ...]
    pilot: Pilot | None
    """The observations, if there were any."""
    range: Range | None
    """A range for the expected number of samples, if there were observations."""

    @property
    def saving(self) -> float:
        """The part of the samples that the graph saves."""
        simulated = self.with_graph.runs and self.without_graph.runs
        ours, theirs = (
            (each.mean if simulated else each.characteristic_time) for each in (self.with_graph, self.without_graph)
        )
        return 1 - ours / theirs if 0 < theirs < math.inf else 0.0

    @property
    def rules_of_thumb(self) -> tuple[float, float]:
        """About how many samples a race takes, with the graph and without; right within a half in nine cases of ten."""
        problem = self.instance.problem
        with_graph, without = (
            rule_of_thumb(problem, self.delta, each.characteristic_time)
            for each in (self.with_graph, self.without_graph)
        )
        return with_graph, without

    @property
    def advice(self) -> str:
        """Whether the graph is worth it, and what to do if not."""
        ours, theirs = self.with_graph, self.without_graph
        if math.isinf(ours.characteristic_time):
            first, second = (self.instance.labels[arm] for arm in np.argsort(-self.signals[0], kind="stable")[:2])
            return (
                f'"{first}" and "{second}" are tied in the observations: no number of trials tells equal options '
                "apart. Give a tolerance, or observe more."
            )
        if self.instance.problem.unstructured:
            why = "R = inf" if self.instance.problem.graph.n_edges else "it has no edges"
            return f"The graph is not used ({why})" + (f": {_samples(ours)}." if ours.expected > 0 else ".")
        if ours.runs and theirs.runs:
            numbers = f"about {ours.mean:,.0f} samples instead of {theirs.mean:,.0f}"
        elif math.isnan(ours.lower_bound):
            numbers = f"T* of {ours.characteristic_time:,.1f} instead of {theirs.characteristic_time:,.1f}"
        else:
            numbers = f"at least {ours.lower_bound:,.0f} samples instead of {theirs.lower_bound:,.0f}"
        if self.saving >= 0.5:
            return f"The graph is worth it: {numbers}, {self.saving:.0%} fewer."
        if self.saving >= 0.1:
            return f"The graph helps: {numbers}, {self.saving:.0%} fewer."
        verdict = "does not pay here" if self.saving <= -0.1 else "hardly helps"
        return (
            f"The graph {verdict} ({numbers}): this is hard because a few options are close to the best. Leave the "
            f"graph out with R = inf; then the answer does not depend on R.{self._what_helps}"
        )

    @property
    def _what_helps(self) -> str:
        """A sentence about the smallest tolerance that halves the number of samples; "" if there is none."""
        ours = self.with_graph
        for each in self.by_tolerance:
            other = each.forecast
            if other is None or each.value <= self.instance.problem.tolerance:
                continue
            simulated = ours.runs and other.runs
            if (other.mean / ours.mean if simulated else other.characteristic_time / ours.characteristic_time) <= 0.5:
                numbers = f": {_samples(other)}" if other.expected > 0 else ""
                return f" A tolerance of {each.value:.2g} would help{numbers}."
        return ""

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: the advice, and the expected trials, also without graph or at other risks."""
        rows = [("with the graph", self.with_graph), ("without it", self.without_graph)]
        rows += [
            (f"with the graph, delta = {each.delta:g}", each) for each in self.by_delta if each.delta != self.delta
        ]
        headings = (f"delta = {self.delta:g}", "T*", "at least", "expected trials", "95 % interval", "runs")
        return paragraph(self.advice) + table(headings, (_cells(*row) for row in rows))

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready; missing numbers are None."""
        parts = {"instance": self.instance.as_dict(), "pilot": None if self.pilot is None else self.pilot.as_dict()}
        document: dict[str, Any] = plain({key: parts.get(key, getattr(self, key)) for key in KEYS})
        return document


def _cells(name: str, each: Forecast) -> tuple[str, ...]:
    """Returns a row of the table that a notebook shows."""
    bound, mean, low, high = (
        "-" if math.isnan(value) else f"{value:,.0f}"
        for value in (each.lower_bound, each.mean, each.mean_low, each.mean_high)
    )
    interval = f"{low} to {high}" if each.runs > 1 else ""
    return name, f"{each.characteristic_time:,.1f}", bound, mean, interval, f"{each.runs:,}"


def plan(
    instance: Instance,
    delta: float = 0.05,
    *,
    arms: ArrayLike | None = None,
    outcomes: ArrayLike | None = None,
    runs: int = 100,
    seed: int = 0,
    executor: Executor | None = None,
    on_run: Callable[[int, int], object] | None = None,
    control: int | None = None,
) -> Plan:
    """Returns what to expect of an experiment on this instance at risk `delta`.

    The means are those of past observations (`arms` and their `outcomes`), smoothed to R, if there are any; else those
    of the instance; else random smooth signals as rough as R allows. With observations there is also a range, for all
    means that the observations make plausible.

    Up to `runs` races are simulated at each risk with the graph, and up to as many at `delta` without it; simulation
    ends early once the mean is known to 5 %. Up to 16 are simulated at every other R and tolerance. With `runs` = 0
    nothing is simulated. `on_run` is called with (done, most) after each race. If there is a `control`, an arm, the
    simulated races compare every arm with it, which takes trials, too.

    Examples:
        >>> import spectralbai as sb
        >>> plan = sb.plan(sb.instances.cliques(2, 10), delta=0.05, runs=0)
        >>> plan.advice
        'The graph is worth it: at least 154 samples instead of 632, 76% fewer.'
    """
    delta, runs, seed = check_delta(delta), check_integer("runs", runs, 0), check_integer("seed", seed, 0)
    means = Means.of(instance, arms, outcomes, seed)
    problem = instance.problem
    if means.pilot is None:
        means.check_told_apart(problem, instance.labels)
    deltas = (delta, *(each for each in DELTAS if each != delta))
    other_R, other_tolerance = _other_choices(problem, means.spread)
    fewer = min(runs, BATCH)
    most = (len(deltas) + 1) * runs + (len(other_R) + len(other_tolerance)) * fewer
    races = _Races(means, seed, executor, on_run, most, control)
    # The pulls of a race depend on the risk.
    ours = [races.forecast(SpectralRace, problem, each, runs) for each in deltas]
    if problem.unstructured:
        theirs = ours[0]
        races.count(runs)
    else:
        theirs = races.forecast(Race, problem.without_graph(), delta, runs)
    return Plan(
        instance,
        delta,
        means.source,
        means.signals,
        with_graph=ours[0],
        without_graph=theirs,
        by_delta=tuple(sorted(ours, key=lambda each: -each.delta)),
        by_R=tuple(races.varied(*each, problem, ours[0], fewer) for each in other_R),
        by_tolerance=tuple(races.varied(*each, problem, ours[0], fewer) for each in other_tolerance),
        pilot=means.pilot,
        range=None if means.pilot is None else _range(means.pilot, problem, ours[0]),
    )


def _other_choices(problem: Problem, spread: float) -> tuple[list[tuple[float, Problem]], list[tuple[float, Problem]]]:
    """Returns the values of R (or factors, if there are several R) and of the tolerance whose effect a plan shows, with
    the problems that have them; none for many arms, because it would take too long."""
    if problem.n_arms > MANY_ARMS:
        return [], []
    factors = R_FACTORS if np.isfinite(problem.radii).any() else ()
    # Beyond the roughest means that outcomes allow, no options are alike.
    allowed = (each for each in factors if each == 1 or (each * problem.radii <= problem.roughest).all())
    radii = [(factor, factor * problem.R) for factor in allowed]
    other_R = [(factor if isinstance(R, np.ndarray) else R, replace(problem, R=R)) for factor, R in radii]
    tolerances = sorted({problem.tolerance, *(share * spread for share in TOLERANCE_SHARES)})
    return other_R, [(each, replace(problem, tolerance=each)) for each in tolerances]


@dataclass(eq=False)
class _Races:
    """The simulated races of one plan, which are counted for `on_run`."""

    means: Means
    seed: int
    executor: Executor | None
    on_run: Callable[[int, int], object] | None
    most: int
    control: int | None
    done: int = 0
    times: dict[Problem, tuple[float, float]] = field(default_factory=dict)
    """What `_time` returns for each problem; problems are compared by identity."""

    def count(self, n: int) -> None:
        """Counts n races as done, simulated or not."""
        self.done += n
        if self.on_run is not None:
            self.on_run(self.done, self.most)

    def forecast(self, kind: type[SpectralRace], problem: Problem, delta: float, runs: int) -> Forecast:
        """Returns the forecast for a problem, from up to `runs` races."""
        means = self.means
        if problem.tolerance == 0 and any(map(tied, means.signals)):  # no number of trials is enough
            self.count(runs)
            return Forecast(delta, math.inf, math.inf)
        if problem not in self.times:
            self.times[problem] = _time(means.in_theory(problem), means.signals)
            if bounded_by_entropy(problem):
                least = [1 / entropy_bound(problem, mu) for mu in means.signals]
                self.times[problem] = self.times[problem][0], 1 / float(np.mean(least))
        time, upper = self.times[problem]
        bound = samples_needed(upper, delta)
        raced: list[Run] = []
        if bound <= LONGEST:
            raced = simulate(
                kind(problem, delta, control=self.control), means, runs, self.seed, self.executor, self.count
            )
        else:
            self.count(runs)
        divergence = problem.noise.divergence
        known = divergence is not None and means.in_theory(problem).noise.divergence == divergence
        return Forecast.of(delta, time, bound if known or bounded_by_entropy(problem) else math.nan, raced)

    def varied(self, value: float, other: Problem, problem: Problem, ours: Forecast, runs: int) -> Variation:
        """Returns what to expect of another problem with this `value`; `ours` is the forecast for `problem`."""
        if np.array_equal(other.radii, problem.radii) and other.tolerance == problem.tolerance:
            self.count(runs)
            return Variation(value, ours)
        if any((other.roughness(mu) > other.radii * (1 + 1e-9)).any() for mu in self.means.signals):
            self.count(runs)
            return Variation(value, None)
        try:
            return Variation(value, self.forecast(SpectralRace, other, ours.delta, runs))
        except InvalidInput:  # with this tolerance every arm is a right answer
            self.count(runs)
            return Variation(value, Forecast(ours.delta, 0.0, 0.0))


def _range(pilot: Pilot, problem: Problem, ours: Forecast) -> Range:
    """Returns the range of the expected number of samples: the rule of thumb, scaled to the races, if any."""
    scale, margins = 1.0, MARGINS
    if ours.runs:
        scale = ours.mean / rule_of_thumb(problem, ours.delta, pilot.time)
        margins = CALIBRATED
    return pilot.range(lambda time: scale * rule_of_thumb(problem, ours.delta, time), margins)


def _time(problem: Problem, signals: Sequence[Vector]) -> tuple[float, float]:
    """Returns (characteristic time, upper bound of its inverse), averaged over the signals."""
    solved = [solve_allocation(problem, mu, tol=1e-3) for mu in signals]
    lower = float(np.mean([1 / each.upper for each in solved]))
    return float(np.mean([each.characteristic_time for each in solved])), 1 / lower if lower > 0 else math.inf


def _samples(forecast: Forecast) -> str:
    return f"{'about' if forecast.runs else 'at least'} {forecast.expected:,.0f} samples"
