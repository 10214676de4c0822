"""How many trials on items to expect, from a pilot table, and what pairing and the graph save."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.arrays import Matrix, check_table
from spectralbai.checks import check_delta, check_integer
from spectralbai.documents import plain
from spectralbai.errors import InvalidInput
from spectralbai.instance import Instance
from spectralbai.items import Items
from spectralbai.planning.forecast import LONGEST, Forecast, until_known
from spectralbai.policy import SpectralRace
from spectralbai.simulate import Run, replay, seed_of
from spectralbai.text.html import table as html_table


@dataclass(frozen=True)
class Way:
    """One way to try options, and the trials to expect."""

    items: Items | None
    """None if every trial is on an item of its own: nothing is paired."""
    graph: bool
    """Whether the graph is used."""
    forecast: Forecast
    """From replays of the table; there is no theory behind it, so that its bounds are nan."""

    def described(self) -> str:
        """Returns the way in a few words."""
        how = "every trial on its own item" if self.items is None else f"paired, {self.items.described()}"
        return f"{how}, with the graph" if self.graph else how


@dataclass(frozen=True, eq=False)
class TablePlan:
    """What to expect of trials on items, if they are like those of a pilot table."""

    instance: Instance
    delta: float
    n_items: int
    """Number of items of the table."""
    ways: tuple[Way, ...]
    """Without the graph: fresh items, a list, and unpaired; then the same with the graph, if its R holds."""
    rough: bool
    """Whether the means of the table are rougher than R allows: the graph is then left out."""

    def way(self, items: Items | None, graph: bool = False) -> Forecast:
        """Returns the forecast for these items (None: unpaired), with the graph or without."""
        for way in self.ways:
            if way.items == items and way.graph == graph:
                return way.forecast
        raise InvalidInput(f"`items` must be those of a way of this plan, got {items!r} with graph = {graph}")

    @property
    def listed(self) -> Items:
        """The list that the plan is for."""
        return next(way.items for way in self.ways if way.items is not None and way.items.n is not None)

    def saved_by_pairing(self, items: Items, graph: bool = False) -> float:
        """Returns the part of the trials that are saved by trying options on the same items; negative if it costs."""
        return _saved(self.way(items, graph), self.way(None, graph))

    def saved_by_graph(self, items: Items | None) -> float:
        """Returns the part of the trials that the graph saves; negative if it costs."""
        return _saved(self.way(items, True), self.way(items, False))

    @property
    def advice(self) -> str:
        """What to expect, and what pairing and the graph save, in sentences."""
        return " ".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        listed, unpaired = self.listed, self.way(None)
        whole = self.instance.problem.n_arms * (listed.n or 0)
        yield f"Unpaired, {_trials(unpaired)}."
        for items in (Items.fresh(), listed):
            forecast = self.way(items)
            of = "" if items.n is None else f", {forecast.mean / whole:.0%} of the whole table of {whole:,}"
            pairing = "pairing" if items.n is None else "pairing on a list"
            yield f"On {items.described()} {_trials(forecast)}{of}: {pairing} {_worth(self.saved_by_pairing(items))}."
        if self.rough:
            yield "The means of the table are rougher than R allows, so the graph is left out; choose a larger R."
        elif any(way.graph for way in self.ways):
            worth = (
                f"{_worth(self.saved_by_graph(items))} {name}"
                for name, items in (("unpaired", None), ("on fresh items", Items.fresh()), ("on the list", listed))
            )
            yield f"The graph {', '.join(worth)}."

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        rows = (
            (way.described(), f"{way.forecast.mean:,.0f}", f"{way.forecast.q05:,.0f} to {way.forecast.q95:,.0f}")
            for way in self.ways
        )
        return html_table((f"delta = {self.delta:g}", "expected trials", "5 - 95 % of runs"), rows)

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready; missing numbers are None."""
        ways = [
            {
                "items": None if way.items is None else way.items.as_json(),
                "graph": way.graph,
                "forecast": plain(way.forecast),
            }
            for way in self.ways
        ]
        return {
            "instance": self.instance.as_dict(),
            "delta": self.delta,
            "n_items": self.n_items,
            "rough": self.rough,
            "ways": ways,
            "advice": self.advice,
        }


def plan_items(
    instance: Instance,
    table: ArrayLike,
    delta: float = 0.05,
    *,
    length: int | None = None,
    runs: int = 40,
    seed: int = 0,
    executor: Executor | None = None,
    on_run: Callable[[int, int], object] | None = None,
) -> TablePlan:
    """Returns how many trials to expect at risk `delta`, if items are like those of a pilot `table` of outcomes, shape
    (n_arms, n_items): for fresh items, for a list of `length` items (that of the table unless given), and without
    pairing, each without the graph and with it.

    The default rule is replayed on the table, up to `runs` times for each way; it ends early once the mean is known to
    5 %. A shorter list is drawn from the items of the table, a longer one with replacement. This takes the table for
    the truth: the best option of a small pilot looks better than it is, so that more trials may be needed.
    `on_run` is called with (done, most) after each run.

    Examples:
        >>> import numpy as np
        >>> import spectralbai as sb
        >>> rng = np.random.default_rng(0)
        >>> hard = rng.random(60)  # for all options alike
        >>> table = 0.5 * hard + 0.1 * rng.random((3, 60)) + [[0.0], [0.02], [0.05]]
        >>> instance = sb.Instance(sb.Problem.bounded(sb.Graph.from_edges(3, []), R=np.inf))
        >>> plan = sb.plan_items(instance, table, length=200, runs=5)
        >>> plan.saved_by_pairing(sb.Items.fresh()) > 0.5
        True
    """
    if not isinstance(instance, Instance):
        raise InvalidInput(f"`instance` must be a spectralbai.Instance, got {type(instance).__name__}")
    delta, runs, seed = check_delta(delta), check_integer("runs", runs, 1), check_integer("seed", seed, 0)
    problem = instance.problem
    if problem.outcome_range is None:
        raise InvalidInput(
            f"a plan from a table needs outcomes in a range, got {problem.noise.described()}; use Problem.bounded"
        )
    outcomes = check_table(table, problem.n_arms)
    problem.noise.check_outcomes("table", outcomes.ravel())
    listed = Items.listed(outcomes.shape[1] if length is None else check_integer("length", length, 1))
    rough = not problem.unstructured and bool((problem.roughness(outcomes.mean(axis=1)) > problem.radii).any())
    graphs = (False,) if problem.unstructured or rough else (False, True)
    most, done, ways = 3 * len(graphs) * runs, 0, []

    def count(n: int) -> None:
        nonlocal done
        done += n
        if on_run is not None:
            on_run(done, most)

    for graph in graphs:
        for items in (Items.fresh(), listed, None):
            hypotheses = replace(problem if graph else problem.without_graph(), items=items)
            job = partial(_replayed, SpectralRace(hypotheses, delta), outcomes)
            made = until_known(partial(_batch, job, seed, executor), runs, count)
            ways.append(Way(items, graph, Forecast.of(delta, np.nan, np.nan, made)))
    return TablePlan(instance, delta, outcomes.shape[1], tuple(ways), rough)


def _batch(job: Callable[[int], Run], seed: int, executor: Executor | None, numbers: range) -> Iterator[Run]:
    """Returns an iterator over the runs with these numbers, the same for every executor."""
    spread = map if executor is None else executor.map
    return spread(job, [seed_of(seed, number) for number in numbers])


def _replayed(policy: SpectralRace, table: Matrix, seed: int) -> Run:
    """Returns one run on the table, or on a list of another length that is drawn from it."""
    items, n = policy.problem.items, table.shape[1]
    if items is not None and items.n not in (None, n):
        chosen = np.random.default_rng((seed, 3)).choice(n, items.n, replace=items.n > n)
        table = table[:, chosen]
    return replay(policy, table, seed, max_samples=LONGEST)


def _saved(ours: Forecast, theirs: Forecast) -> float:
    return 1 - ours.mean / theirs.mean


def _worth(saved: float) -> str:
    """Returns what something is worth that saves this part of the trials."""
    if abs(saved) < 0.05:
        return "hardly matters"
    return f"saves {saved:.0%}" if saved > 0 else f"costs {-saved:.0%} more"


def _trials(forecast: Forecast) -> str:
    return f"{'more than' if forecast.undecided else 'about'} {forecast.mean:,.0f} trials"
