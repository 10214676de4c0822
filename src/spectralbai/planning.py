"""Before the first trial: how many samples to expect, with and without the graph, and how that depends on the
choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from spectralbai import html
from spectralbai.allocation import samples_needed, solve_allocation
from spectralbai.checks import Vector, check_arm, check_delta, check_integer
from spectralbai.errors import InvalidInput
from spectralbai.estimation import estimate
from spectralbai.history import RoughnessEstimate, SigmaEstimate, roughness_from, sigma_from
from spectralbai.instance import Instance
from spectralbai.instances.signals import smooth
from spectralbai.policy import Policy, Race, SpectralRace
from spectralbai.problem import Problem
from spectralbai.simulate import Run, run

DELTAS = (0.1, 0.05, 0.01)
R_FACTORS = (0.1, 0.5, 1.0, 2.0, 10.0)
TOLERANCE_SHARES = (0.0, 0.05, 0.1, 0.2)
"""Tolerances tried, in parts of the spread of the means."""
SIGNALS = 8
"""Random signals drawn where the means are not guessed."""
BATCH = 16
PRECISION = 0.05
"""Simulation ends once the standard error of the mean is below this part of it, or after all runs asked for."""
LONGEST = 300_000
"""Runs whose mean is bound to be longer are not simulated."""

Source = Literal["guess", "observations", "random signals"]


@dataclass(frozen=True)
class Forecast:
    """Samples to expect: the theorem, and what simulated races took.

    NaN where nothing was simulated.
    """

    delta: float
    characteristic_time: float
    """For scores in a range, that of Gaussian outcomes whose sigma is half of the range."""
    lower_bound: float
    """Samples that no method of this risk can do without on average; NaN for scores in a range: none is known."""
    runs: int = 0
    mean: float = math.nan
    mean_low: float = math.nan
    mean_high: float = math.nan
    """95 % interval of the mean."""
    q05: float = math.nan
    median: float = math.nan
    q95: float = math.nan
    errors: int = 0
    undecided: int = 0
    """Runs whose data contradicted R, or that were cut short."""

    @property
    def expected(self) -> float:
        """The mean of the runs, or the lower bound where there are none; NaN where neither is known."""
        return self.mean if self.runs else self.lower_bound


@dataclass(frozen=True)
class Variation:
    """The characteristic time if one choice were another."""

    value: float
    characteristic_time: float
    """NaN where R is below the roughness of the means: the guarantee is void then."""
    samples: float
    """About how many samples: those expected, in proportion to the characteristic time; NaN where none are."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What to expect of an experiment."""

    instance: Instance
    delta: float
    source: Source
    signals: tuple[Vector, ...]
    """The means planned with: one guess, or several random signals."""
    with_graph: Forecast
    without_graph: Forecast
    by_delta: tuple[Forecast, ...]
    by_R: tuple[Variation, ...]
    by_tolerance: tuple[Variation, ...]
    sigma: SigmaEstimate | None
    """From the observations, if there were any."""
    roughness: RoughnessEstimate | None

    @property
    def saving(self) -> float:
        """The part of the samples that the graph saves."""
        simulated = self.with_graph.runs and self.without_graph.runs
        ours, theirs = (
            (each.mean if simulated else each.characteristic_time) for each in (self.with_graph, self.without_graph)
        )
        return 1 - ours / theirs if theirs > 0 else 0.0

    @property
    def advice(self) -> str:
        """Whether the graph is worth it, in a sentence."""
        if self.instance.problem.unstructured:
            why = "R = inf" if self.instance.problem.graph.n_edges else "it has no edges"
            if self.with_graph.runs:
                return f"The graph is not used ({why}): about {self.with_graph.mean:,.0f} samples."
            if math.isnan(self.with_graph.lower_bound):
                return f"The graph is not used ({why})."
            return f"The graph is not used ({why}): at least {self.with_graph.lower_bound:,.0f} samples."
        ours, theirs = self.with_graph, self.without_graph
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
        if self.saving <= -0.1:
            return f"The graph does not pay here ({numbers}): leave it out, with R = inf. A tolerance would help."
        return (
            f"The graph hardly helps ({numbers}): what makes this hard is a few arms close to the best. A tolerance "
            "would help more."
        )

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: the advice, and the trials to expect with and without the graph and at other
        risks."""
        rows = [("with the graph", self.with_graph), ("without it", self.without_graph)]
        rows += [
            (f"with the graph, delta = {each.delta:g}", each) for each in self.by_delta if each.delta != self.delta
        ]
        headings = (f"delta = {self.delta:g}", "T*", "at least", "expected trials", "95 % interval", "runs")
        return html.paragraph(self.advice) + html.table(headings, (_cells(*row) for row in rows))

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready; numbers that are not there are None."""
        document = {
            "delta": self.delta,
            "source": self.source,
            "instance": self.instance.as_dict(),
            "signals": [mu.tolist() for mu in self.signals],
            "with_graph": asdict(self.with_graph),
            "without_graph": asdict(self.without_graph),
            "saving": self.saving,
            "advice": self.advice,
            "by_delta": [asdict(each) for each in self.by_delta],
            "by_R": [asdict(each) for each in self.by_R],
            "by_tolerance": [asdict(each) for each in self.by_tolerance],
            "sigma": None if self.sigma is None else asdict(self.sigma),
            "roughness": None if self.roughness is None else asdict(self.roughness),
        }
        plain: dict[str, Any] = _without_nan(document)
        return plain


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
) -> Plan:
    """Returns what to expect of an experiment on this instance at risk `delta`.

    The means are those of past observations (`arms` and their `outcomes`), smoothed to R, if there are any; else the
    guess in the instance; else random smooth signals as rough as R allows. Up to `runs` races are simulated at each
    risk with the graph, and as many at `delta` without, fewer once their mean is known to 5 %; 0 skips that. `on_run`
    is called with (done, most) after each.
    """
    if not isinstance(instance, Instance):
        raise InvalidInput(f"`instance` must be a spectralbai.Instance, got {type(instance).__name__}")
    delta, runs, seed = check_delta(delta), check_integer("runs", runs, 0), check_integer("seed", seed, 0)
    problem = instance.problem
    sigma, roughness = None, None
    source: Source
    if arms is not None or outcomes is not None:
        source = "observations"
        mu, sigma, roughness = _from_observations(instance, arms, outcomes)
        signals: tuple[Vector, ...] = (mu,)
    elif instance.mu is not None:
        source, signals = "guess", (instance.mu,)
    else:
        source, signals = "random signals", _random_signals(problem, seed)
    for mu in signals:
        if problem.tolerance == 0 and _tied(mu):
            tied = [instance.labels[arm] for arm in np.flatnonzero(mu == mu.max())[:2]]
            raise InvalidInput(
                f'"{tied[0]}" and "{tied[1]}" are tied at {mu.max():g}: no number of trials tells them apart; give a '
                "tolerance"
            )
        problem.noise.check_means("mu", mu)

    without = replace(problem, R=math.inf)
    deltas = (delta, *(each for each in DELTAS if each != delta))
    times = [_time(each, signals) for each in (problem, without)]
    bounded_below = problem.noise.divergence is not None
    done = 0

    def count(n: int) -> None:
        nonlocal done
        done += n
        if on_run is not None:
            on_run(done, (len(deltas) + 1) * runs)

    def forecast(kind: type[Policy], each: float, time: tuple[float, float]) -> Forecast:
        characteristic, upper = time
        bound = samples_needed(upper, each)
        raced: list[Run] = []
        if runs and bound <= LONGEST:
            raced = _simulate(kind.on(instance, delta=each), signals, runs, seed, executor, count)
        return _forecast(each, characteristic, bound if bounded_below else math.nan, raced)

    ours = [forecast(SpectralRace, each, times[0]) for each in deltas]  # the pulls of a race depend on the risk
    if problem.unstructured:
        theirs = ours[0]
        count(runs)
    else:
        theirs = forecast(Race, delta, times[1])
    scale = ours[0].expected / times[0][0] if times[0][0] > 0 else math.nan
    spread = float(np.mean([mu.max() - mu.min() for mu in signals]))
    tolerances = sorted({problem.tolerance, *(share * spread for share in TOLERANCE_SHARES)})
    radii = [factor * problem.R for factor in R_FACTORS] if math.isfinite(problem.R) else []
    return Plan(
        instance,
        delta,
        source,
        signals,
        ours[0],
        theirs,
        tuple(sorted(ours, key=lambda each: -each.delta)),
        tuple(_variation(replace(problem, R=R), R, signals, scale) for R in radii),
        tuple(_variation(replace(problem, tolerance=each), each, signals, scale) for each in tolerances),
        sigma,
        roughness,
    )


def _from_observations(
    instance: Instance, arms: ArrayLike | None, outcomes: ArrayLike | None
) -> tuple[Vector, SigmaEstimate | None, RoughnessEstimate | None]:
    problem = instance.problem
    pulled = np.array(
        [check_arm("arms", arm, problem.n_arms) for arm in np.atleast_1d(np.asarray(arms)).tolist()], dtype=np.intp
    )
    if outcomes is None or not pulled.size:
        raise InvalidInput("`arms` and `outcomes` must be two lists of one length, at least 1")
    values = problem.noise.check_outcomes("outcomes", outcomes)
    if values.size != pulled.size:
        raise InvalidInput(
            f"`arms` and `outcomes` must be two lists of one length, got {pulled.size} and {values.size}"
        )
    counts = np.bincount(pulled, minlength=problem.n_arms).astype(float)
    means = np.bincount(pulled, values, problem.n_arms) / np.maximum(counts, 1)
    missing = np.flatnonzero(counts == 0)
    if missing.size:
        raise InvalidInput(
            f'every arm needs an observation, got none of "{instance.labels[missing[0]]}"; observe it, or guess "mu"'
        )
    if problem.R == 0:
        raise InvalidInput("`R` must be positive to plan from observations, got 0")
    mu = np.clip(estimate(problem, counts, means), *(problem.outcome_range or (-math.inf, math.inf)))
    sigma = sigma_from(pulled, values) if (counts >= 2).any() else None
    return mu, sigma, roughness_from(problem.graph, problem.sigma, counts, means, instance.labels)


def _random_signals(problem: Problem, seed: int) -> tuple[Vector, ...]:
    """Returns smooth signals with S = R exactly; components have levels of their own, in the range or within a
    sigma."""
    if math.isinf(problem.R) or problem.R == 0:
        raise InvalidInput(
            f'"mu" is missing and R = {problem.R:g} says nothing of the means; guess mu, give observations, or choose R'
        )
    graph = problem.graph
    if graph.n_edges == 0:
        raise InvalidInput(
            '"mu" is missing and the graph has no edges to draw smooth means on; guess mu, or give observations'
        )
    signals = []
    for k in range(SIGNALS):
        rng = np.random.default_rng((seed, k))
        mu = smooth(graph, 0.0, rng)
        mu = mu * math.sqrt(problem.R / graph.smoothness(mu)) * (1 - 1e-9)
        if graph.n_components > 1:
            level = rng.standard_normal(graph.n_components) * float(problem.sigma.mean())
            centres = np.bincount(graph.components, mu) / np.bincount(graph.components)
            mu = mu + (level - centres)[graph.components]
        if problem.outcome_range is not None:
            low, high = problem.outcome_range
            mu = mu - mu.mean() + (low + high) / 2
            excess = max(1.0, float(np.abs(mu - (low + high) / 2).max()) / ((high - low) / 2) * (1 + 1e-9))
            mu = (mu - (low + high) / 2) / excess + (low + high) / 2
        signals.append(mu)
    return tuple(signals)


def _time(problem: Problem, signals: Sequence[Vector]) -> tuple[float, float]:
    """Returns (characteristic time, upper bound of its inverse), means over the signals."""
    solved = [solve_allocation(problem, mu, tol=1e-3) for mu in signals]
    lower = float(np.mean([1 / each.upper for each in solved]))
    return float(np.mean([each.characteristic_time for each in solved])), 1 / lower if lower > 0 else math.inf


def _tied(mu: Vector) -> bool:
    return bool((mu == mu.max()).sum() > 1)


def _variation(problem: Problem, value: float, signals: Sequence[Vector], scale: float) -> Variation:
    if any(problem.smoothness(mu) > problem.R * (1 + 1e-9) for mu in signals):
        return Variation(value, math.nan, math.nan)
    if problem.tolerance == 0 and any(map(_tied, signals)):  # no number of trials would do
        return Variation(value, math.inf, math.inf)
    try:
        characteristic = _time(problem, signals)[0]
    except InvalidInput:  # such a tolerance makes every arm a right answer
        return Variation(value, 0.0, 0.0)
    return Variation(value, characteristic, characteristic * scale)


def _simulate(
    policy: Policy,
    signals: Sequence[Vector],
    runs: int,
    seed: int,
    executor: Executor | None,
    count: Callable[[int], None],
) -> list[Run]:
    """Returns runs, the signals in turn, until the mean is known or all are done."""
    raced: list[Run] = []
    spread = executor.map if executor is not None else map
    while len(raced) < runs:
        numbers = range(len(raced), min(len(raced) + BATCH, runs))
        seeds = [int(np.random.SeedSequence((seed, number)).generate_state(1, np.uint64)[0]) for number in numbers]
        means = [signals[number % len(signals)] for number in numbers]
        for each in spread(partial(run, policy, max_samples=20 * LONGEST), means, seeds):
            raced.append(each)
            count(1)
        tau = np.array([each.tau for each in raced])
        if tau.std(ddof=1 if tau.size > 1 else 0) <= PRECISION * tau.mean() * math.sqrt(tau.size):
            count(runs - len(raced))
            break
    return raced


def _forecast(delta: float, characteristic: float, bound: float, runs: Sequence[Run]) -> Forecast:
    if not runs:
        return Forecast(delta, characteristic, bound)
    tau = np.array([each.tau for each in runs], dtype=float)
    half = (
        float(stdtrit(tau.size - 1, 0.975)) * float(tau.std(ddof=1)) / math.sqrt(tau.size) if tau.size > 1 else math.nan
    )
    mean = float(tau.mean())
    low_end = max(mean - half, 0.0) if tau.size > 1 else math.nan
    low, median, high = (float(q) for q in np.quantile(tau, (0.05, 0.5, 0.95)))
    decided = [each for each in runs if each.status == "decided"]
    errors = sum(not each.correct for each in decided)
    return Forecast(
        delta,
        characteristic,
        bound,
        tau.size,
        mean,
        low_end,
        mean + half,
        low,
        median,
        high,
        errors,
        len(runs) - len(decided),
    )


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
