"""`spectralbai plan`: how many trials to expect, what the graph saves, and what R and sigma past observations
suggest."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spectralbai.cli.files import read_instance, read_table
from spectralbai.cli.tables import print_plain
from spectralbai.cli.work import cores, processes, progress

if TYPE_CHECKING:
    from rich.table import Table

    from spectralbai.planning import Forecast, Plan


def plan(
    file: Annotated[str, typer.Argument(help='Instance as JSON; "-" reads standard input.', metavar="FILE")],
    delta: Annotated[float, typer.Option(help="Risk of a wrong answer.")] = 0.05,
    observations: Annotated[
        Path | None, typer.Option(help="CSV of label and outcome, from a pilot or the past.", metavar="FILE")
    ] = None,
    R: Annotated[float | None, typer.Option("--R", help="Plan with this R instead of that of the file.")] = None,
    runs: Annotated[int, typer.Option(help="Most simulated runs, with and without the graph.", metavar="N")] = 100,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers, whatever --jobs.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Processes that simulate; one per core if not given.", metavar="N")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Skip the simulation: theory only, at once.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """How many trials will this take, is the graph worth it, and what should R be?

    The means planned with are those of --observations, smoothed to R; else the guess "mu" in the file; else random
    smooth signals as rough as R allows. Expected trials are those of simulated runs of the default rule.
    """
    from spectralbai.checks import check_delta, check_integer

    check_delta(delta)
    check_integer("--runs", runs, 1)
    jobs = cores() if jobs is None else check_integer("--jobs", jobs, 1)
    instance = read_instance(file)

    from spectralbai import planning
    from spectralbai.instance import Instance
    from spectralbai.records import observations_from

    if R is not None:
        instance = Instance(replace(instance.problem, R=R), instance.mu, instance.labels)
    arms, outcomes = None, None
    if observations is not None:
        with read_table(observations) as table:
            arms, outcomes = observations_from(table, instance.labels, instance.problem.noise)
    make = partial(planning.plan, instance, delta, arms=arms, outcomes=outcomes, seed=seed)

    def theory() -> Plan:
        with progress("solving"):
            return make(runs=0)

    def simulated() -> Plan:
        with processes(jobs) as executor, progress("simulated runs") as show:
            return make(runs=runs, executor=executor, on_run=show)

    if as_json:
        made = theory() if quick else simulated()
        typer.echo(json.dumps(made.as_dict(), indent=1, ensure_ascii=False, allow_nan=False))
        return
    made = theory()  # it takes seconds: no need to wait for the simulation
    print_plain(*_setting(made), "", _theory(made), "", made.advice, "", *_history(made), least_width=100)
    if not quick:
        made = simulated()
        print_plain("", "Simulated with the default rule:", _simulation(made), "", made.advice, least_width=100)
    print_plain("", *_choices(made), least_width=100)


def _setting(made: Plan) -> Iterator[str]:
    problem = made.instance.problem
    yield f"{problem.n_arms} arms, {problem.graph.n_edges} edges, {problem.noise.described()}"
    yield f"R = {problem.R:g}, tolerance {problem.tolerance:g}, delta = {made.delta:g}"
    if problem.noise.divergence is None:
        yield "T* is that of Gaussian outcomes whose sigma is half of the range; no lower bound is known for scores"
    if made.source == "random signals":
        rough = max(problem.smoothness(mu) for mu in made.signals)
        size = (
            "with S(mu) = R" if rough > 0.99 * problem.R else f"with S(mu) up to {rough:.3g}, all that the range allows"
        )
        yield f"means: {len(made.signals)} random smooth signals {size}; numbers are averages over them"
    else:
        mu = made.signals[0]
        best = made.instance.labels[int(mu.argmax())]
        where = "past observations, smoothed to R" if made.source == "observations" else "your guess"
        yield f"means: {where}; best arm {best}, S(mu) = {problem.smoothness(mu):.4g}"


def _rows(made: Plan) -> tuple[tuple[str, Forecast], ...]:
    return ("with the graph", made.with_graph), ("without it", made.without_graph)


def _theory(made: Plan) -> Table:
    table = _table("", "T*", "trials, at least")
    for name, each in _rows(made):
        table.add_row(name, f"{each.characteristic_time:,.1f}", _count(each.lower_bound))
    return table


def _simulation(made: Plan) -> Table:
    table = _table("", "expected trials", "95 % interval", "5 - 95 % of runs", "runs")
    for name, each in _rows(made):
        interval = f"{each.mean_low:,.0f} - {each.mean_high:,.0f}" if each.runs > 1 else ""
        known = (f"{each.mean:,.0f}", interval, f"{each.q05:,.0f} - {each.q95:,.0f}")
        table.add_row(name, *(known if each.runs else ("too long to simulate", "", "")), str(each.runs))
    return table


def _history(made: Plan) -> Iterator[str]:
    if made.sigma is not None and made.instance.problem.outcome_range is None:
        each = made.sigma
        interval = f"{each.confidence:.0%} interval {each.low:.3g} to {each.high:.3g}"
        advice = (
            f"round up: {_rounded_up(each.high)} or more"
            if each.sigma > 0
            else "outcomes never vary: it cannot be told"
        )
        yield f"sigma from {each.observations} observations: {each.sigma:.3g} ({interval}); {advice}"
    if made.roughness is not None and made.instance.problem.graph.n_edges:
        rough = made.roughness
        yield (
            f"S(mu) from the observations: {rough.estimate:.3g}, and below {rough.upper:.3g} with "
            f"{rough.confidence:.0%} confidence"
        )
        noisy = (
            f" (that of the raw means, {rough.plain:.3g}, is mostly noise)" if rough.estimate < rough.plain / 2 else ""
        )
        yield f"an R of {_rounded_up(rough.upper)} is on the safe side{noisy}"
    if made.sigma is not None or made.roughness is not None:
        yield ""


def _rounded_up(value: float) -> str:
    """Returns a number not below `value`, with two digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 1) if value > 0 else 1.0
    return f"{math.ceil(value / step) * step:.2g}"


def _choices(made: Plan) -> Iterator[str | Table]:
    scale = "expected trials" if made.with_graph.runs else "at least"
    table = _table("delta", "at least", *(("expected trials",) if made.with_graph.runs else ()))
    for each in made.by_delta:
        table.add_row(f"{each.delta:g}", _count(each.lower_bound), *((f"{each.mean:,.0f}",) if each.runs else ()))
    yield "Another risk:"
    yield table
    if made.by_R:
        table = _table("R", "T*", scale)
        for each_R in made.by_R:
            times = (f"{each_R.characteristic_time:,.1f}", _about(each_R.samples))
            table.add_row(
                f"{each_R.value:.3g}",
                *(("too small for these means", "") if math.isnan(each_R.characteristic_time) else times),
            )
        yield ""
        yield (
            "Another R (too small a one can give a wrong answer or be refuted by the data; too large a one only costs "
            "trials):"
        )
        yield table
    table = _table("tolerance", "T*", scale)
    for each_tolerance in made.by_tolerance:
        time = each_tolerance.characteristic_time
        trials = (
            _about(each_tolerance.samples)
            if 0 < time < math.inf
            else "none: all are good enough"
            if time == 0
            else "no end: tied"
        )
        table.add_row(f"{each_tolerance.value:.3g}", f"{each_tolerance.characteristic_time:,.1f}", trials)
    yield ""
    yield "Another tolerance:"
    yield table


def _count(samples: float) -> str:
    return "-" if math.isnan(samples) else f"{samples:,.0f}"


def _about(samples: float) -> str:
    return "-" if math.isnan(samples) else f"about {samples:,.0f}"


def _table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    return table
