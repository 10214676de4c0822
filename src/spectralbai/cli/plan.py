"""`spectralbai plan`: how many trials to expect, what the graph saves, what R and sigma past observations suggest, and
what a budget can find."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from spectralbai.checks import arm_of, check_amount
from spectralbai.cli.extensions import Import
from spectralbai.cli.files import InstanceFile, read_instance, read_table
from spectralbai.cli.outputs import PICTURE, Force, Output, Width, check_width, picture_format
from spectralbai.cli.tables import empty_table, print_json, print_plain
from spectralbai.cli.work import Jobs, Seed, check_jobs, processes, progress
from spectralbai.errors import InvalidInput
from spectralbai.text.wording import difference_in_words

if TYPE_CHECKING:
    from rich.table import Table

    from spectralbai.arrays import Matrix
    from spectralbai.instance import Instance
    from spectralbai.planning import Budget, Forecast, Plan, TablePlan, Variation


def plan(
    file: InstanceFile,
    delta: Annotated[float, Option(help="Risk of a wrong answer.")] = 0.05,
    observations: Annotated[
        Path | None, Option(help="CSV of label and outcome, from a pilot or the past.", metavar="FILE")
    ] = None,
    R: Annotated[float | None, Option("--R", help="Plan with this R instead of the one in the file.")] = None,
    sigma: Annotated[float | None, Option(help="Plan with this sigma instead of the one in the file.")] = None,
    tolerance: Annotated[
        str | None,
        Option(help="Plan with this tolerance instead of the one in the file, such as 0.5% of clicks.", metavar="X"),
    ] = None,
    budget: Annotated[
        int | None, Option(help="Instead of a plan: what this many trials can find.", metavar="N")
    ] = None,
    control: Annotated[
        str | None,
        Option(help="Count the trials of a control, the option that others are compared with.", metavar="LABEL"),
    ] = None,
    table: Annotated[
        Path | None,
        Option(help="Instead: CSV of outcomes of options on items, to plan trials on items like them.", metavar="FILE"),
    ] = None,
    length: Annotated[
        int | None, Option(help="With --table: number of items of the list, if not that of the file.", metavar="N")
    ] = None,
    plot: Annotated[
        Path | None,
        Option(help="With --budget: a picture of the chances, by tolerance; .png, .pdf or .svg.", metavar="FILE"),
    ] = None,
    width: Width = None,
    runs: Annotated[
        int | None,
        Option(
            help="Most simulated runs, by default 100; with --budget or --table 40, for each tolerance or way.",
            metavar="N",
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    quick: Annotated[bool, Option("--quick", help="Skip the simulation: theory only, at once.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")] = False,
    force: Force = False,
    modules: Import = None,
) -> None:
    """Says how many trials to expect, and whether the graph helps.

    It also says what other values of R, of the tolerance and of the risk would change; and with --budget, what this
    many trials can find.

    The plan assumes the means of --observations, smoothed to R; else the guess "mu" in the file; else random smooth
    signals as rough as R allows. Expected trials come from simulated runs of the default rule.
    """
    from spectralbai.checks import check_delta, check_integer

    check_delta(delta)
    check_integer("--seed", seed, 0)
    jobs = check_jobs(jobs)
    runs = (100 if budget is None and table is None else 40) if runs is None else check_integer("--runs", runs, 1)
    if table is not None and control is not None:
        raise InvalidInput("--control is for trials without items; options on items are compared with any of them")
    if table is not None and (observations is not None or budget is not None or quick):
        raise InvalidInput("--table has outcomes of its own; leave out --observations, --budget and --quick")
    if length is not None and table is None:
        raise InvalidInput("--length is that of a list of items; give --table too, a file")
    _check_budget(budget, quick, plot, width)
    picture = None if plot is None else Output("--plot", plot, PICTURE, force)
    instance = _changed(read_instance(file, has_noise=sigma is None), R, sigma, tolerance)

    from spectralbai import planning
    from spectralbai.inputs.table import observations_from

    arms, outcomes = None, None
    if observations is not None:
        with read_table(observations) as pilot:
            arms, outcomes = observations_from(pilot, instance.labels, instance.problem.noise)
    told: dict[str, Any] = {"arms": arms, "outcomes": outcomes, "seed": seed}
    if control is not None:
        told["control"] = arm_of(control, instance.labels)
    if table is not None:
        outcomes_on_items = _outcomes(table, instance)
        show = partial(planning.plan_items, instance, outcomes_on_items, delta, length=length, seed=seed)
        _show_table_plan(partial(show, runs=runs), jobs, as_json)
    elif budget is not None:
        compute = partial(planning.budget, instance, budget, delta, runs=runs, **told)
        _show_budget(compute, jobs, picture, width, as_json)
    else:
        _show_plan(partial(planning.plan, instance, delta, **told), 0 if quick else runs, jobs, as_json)


def _check_budget(budget: int | None, quick: bool, plot: Path | None, width: float | None) -> None:
    """Raises InvalidInput for a budget or a picture of it that does not go with the other options."""
    from spectralbai.checks import LARGEST_COUNT, check_integer

    if budget is not None:
        check_integer("--budget", budget, 1, LARGEST_COUNT)
        if quick:
            raise InvalidInput("--quick skips the simulation that --budget needs; leave out one of them")
    if plot is not None:
        if budget is None:
            raise InvalidInput("--plot shows what a budget can find; give --budget too, a number of trials")
        picture_format("--plot", plot)
        check_width(width)
    elif width is not None:
        raise InvalidInput("--width is that of a picture; give --plot too, a file")


def _show_budget(
    compute: Callable[..., Budget], jobs: int, picture: Output | None, width: float | None, as_json: bool
) -> None:
    if picture is not None:
        from spectralbai import plot as plots
    with processes(jobs) as executor, progress("simulated runs") as show:
        found = compute(executor=executor, on_run=show)
    if picture is not None:
        with plots.of_width(width):
            content = plots.as_picture(plots.plot_budget(found), picture_format("--plot", picture.path))
        picture.write(content)
    if as_json:
        print_json(found.as_dict())
    else:
        where = [] if picture is None else [f"The picture is in {picture.path}"]
        print_plain(*_budget(found), *where, least_width=100)


def _outcomes(file: Path, instance: Instance) -> Matrix:
    """Returns the outcomes of a table, a row for each option of the instance."""
    from spectralbai.tables import Table

    table = Table.from_csv(file)
    if sorted(table.options) != sorted(instance.labels):
        missing = [label for label in instance.labels if label not in table.options]
        other = [label for label in table.options if label not in instance.labels]
        what = f"lacks the option {missing[0]!r}" if missing else f"has the unknown option {other[0]!r}"
        raise InvalidInput(f"{file} {what}; it must have the options of the instance")
    if table.missing:
        raise InvalidInput(f"{file} must be complete: {table.described()}")
    return table.outcomes[[table.options.index(label) for label in instance.labels]]


def _show_table_plan(make: Callable[..., TablePlan], jobs: int, as_json: bool) -> None:
    with processes(jobs) as executor, progress("replays") as show:
        made = make(executor=executor, on_run=show)
    if as_json:
        print_json(made.as_dict())
        return
    rows = empty_table("", "expected trials", "5 - 95 % of runs", left=("",))
    for way in made.ways:
        spread = f"{way.forecast.q05:,.0f} to {way.forecast.q95:,.0f}"
        rows.add_row(way.described(), f"{way.forecast.mean:,.0f}", spread)
    print_plain(f"delta = {made.delta:g}", "", rows, "", made.advice)


def _show_plan(make: Callable[..., Plan], runs: int, jobs: int, as_json: bool) -> None:
    """Prints the plan: what theory says and, if there are any runs, what they say."""

    def theory() -> Plan:
        with progress("solving"):
            return make(runs=0)

    def simulated() -> Plan:
        with processes(jobs) as executor, progress("simulated runs") as show:
            return make(runs=runs, executor=executor, on_run=show)

    if as_json:
        made = simulated() if runs else theory()
        print_json(made.as_dict())
        return
    made = theory()  # this takes only seconds, so it is printed before the simulation starts
    print_plain(*_setting(made), *_scores(made), "", _theory(made), "", *_history(made), made.advice, least_width=100)
    if runs:
        made = simulated()
        print_plain(
            "", "Simulated with the default rule:", _simulation(made), "", *_range(made), made.advice, least_width=100
        )
    print_plain("", *_choices(made), least_width=100)


def _changed(instance: Instance, R: float | None, sigma: float | None, tolerance: str | None) -> Instance:
    """Returns the instance with the given R, sigma and tolerance in place of its own."""
    problem = instance.problem
    if sigma is not None and problem.outcome_range is not None:
        raise InvalidInput(
            f"--sigma cannot be used with {problem.noise.described()}, as in the file, since their spread is learnt; "
            "leave it out"
        )
    amount = check_amount("--tolerance", tolerance, problem.outcome_range)
    given: dict[str, Any] = {"R": R, "sigma": sigma, "tolerance": amount}
    changed = replace(problem, **{name: value for name, value in given.items() if value is not None})
    return replace(instance, problem=changed)


def _setting(made: Plan) -> Iterator[str]:
    problem = made.instance.problem
    yield f"{problem.n_arms} options, {problem.graph.described()}, {problem.noise.described()}"
    tolerance = difference_in_words(problem.tolerance, problem.outcome_range) if problem.tolerance else "0"
    yield f"{problem.described_R()}, tolerance {tolerance}, delta = {made.delta:g}"
    if made.source == "random signals":
        roughest = max(made.signals, key=problem.smoothness)
        reached = (problem.roughness(roughest) >= 0.99 * problem.radii).all()
        size = "= R" if reached else f"up to {problem.smoothness(roughest):.3g}, all that the range allows"
        yield f"means: {len(made.signals)} random smooth signals with S(mu) {size}; numbers are averages over them"
    else:
        mu = made.signals[0]
        best = made.instance.labels[int(mu.argmax())]
        where = "past observations, smoothed to R" if made.source == "observations" else "your guess"
        yield f"means: {where}; best option {best}, S(mu) = {problem.smoothness(mu):.4g}"


def _scores(made: Plan) -> Iterator[str]:
    """Yields sentences about the spread of scores in a range, and about many binary outcomes."""
    from spectralbai.planning.pilot import MANY_ARMS

    problem, pilot = made.instance.problem, made.pilot
    if problem.noise.divergence == "binary" and problem.n_arms > MANY_ARMS:
        known = not math.isnan(made.with_graph.lower_bound)
        yield "for so many options T* is that of Gaussian outcomes of about the same variances" + (
            "" if known else "; a lower bound is computed only without a tolerance and for options in categories"
        )
    if problem.noise.divergence is not None or problem.outcome_range is None:
        return
    low, high = problem.outcome_range
    if pilot is not None and pilot.spread is not None and pilot.sigma is not None:
        yield (
            f"the scores of an option vary by {pilot.spread:.3g} ({pilot.sigma.confidence:.0%} interval "
            f"{pilot.sigma.low:.3g} to {pilot.sigma.high:.3g}), {2 * pilot.spread / (high - low):.0%} of the most that "
            "the range allows; the rule learns that by itself,"
        )
        yield "and T* and simulated runs have that spread; no lower bound is known for scores"
        return
    if pilot is not None and pilot.at_ends:
        yield "all outcomes are ends of the range: if no others can occur, say so (--binary), which saves trials"
    elif pilot is not None:
        yield "the observations do not tell how much the scores of an option vary, or they vary as much as they can"
    yield (
        "simulated scores are ends of the range, the widest there are: scores that vary less take fewer trials"
        + ("; --observations would tell" if pilot is None else "")
    )
    yield "T* is that of Gaussian outcomes whose sigma is half of the range; no lower bound is known for scores"


def _range(made: Plan) -> Iterator[str]:
    """Yields sentences about the range of the expected number of trials, if there is a pilot."""
    found = made.range
    if found is None or made.pilot is None:
        return
    told = f"the {made.pilot.data.samples} observations leave plausible"
    if math.isinf(found.high):
        yield (
            f"Expected trials: more than {found.low:,.0f}. What {told} is too wide for an upper end: the best options "
            "may be tied, or nearly"
        )
        yield "A tolerance bounds it; so do more observations"
    else:
        yield (
            f"Expected trials: {found.low:,.0f} to {found.high:,.0f}, for {found.covered:.0%} of the means that {told}"
        )
    yield ""


def _budget(found: Budget) -> Iterator[str | Table]:
    from spectralbai.planning.budget import PROBABILITIES

    problem, given = found.instance.problem, found.given
    yield f"{problem.n_arms} options, {problem.graph.described()}, {problem.noise.described()}, {problem.described_R()}"
    means = {
        "guess": "your guess",
        "observations": "what the observations leave plausible",
        "random signals": "random smooth signals",
    }
    yield f"{found.trials:,} trials, delta = {found.delta:g}; means: {means[found.source]}"
    yield ""
    table = empty_table("tolerance", "decided in time", "runs")
    for each in found.curve:
        table.add_row(f"{each.tolerance:.3g}", f"{each.share:.0%}", str(each.runs))
    yield table
    yield ""
    for probability in PROBABILITIES:
        tolerance = found.smallest_tolerance(probability)
        if tolerance is None:
            yield (
                f"No tolerance up to the spread of the means, {found.curve[-1].tolerance:.3g}, is decided by "
                f"{found.trials:,} trials with {probability:.0%} probability; plan more"
            )
        else:
            within = f"an option within {tolerance:.3g} of the best"
            yield f"With {probability:.0%} probability {found.trials:,} trials find {within}"
    if found.candidates:
        left = sum(found.candidates) / len(found.candidates)
        yield (
            f"With the tolerance given, {given.tolerance:g}, {given.share:.0%} of the runs decide in time; otherwise "
            f"{left:.1f} of {problem.n_arms} options are left on average, {min(found.candidates)} to "
            f"{max(found.candidates)}"
        )
    else:
        yield f"With the tolerance given, {given.tolerance:g}, all runs decide in time"


def _rows(made: Plan) -> tuple[tuple[str, Forecast], ...]:
    return ("with the graph", made.with_graph), ("without it", made.without_graph)


def _theory(made: Plan) -> Table:
    table = empty_table("", "T*", "trials, at least", left=("",))
    for name, each in _rows(made):
        table.add_row(name, f"{each.characteristic_time:,.1f}", _count(each.lower_bound))
    return table


def _simulation(made: Plan) -> Table:
    table = empty_table("", "expected trials", "95 % interval", "5 - 95 % of runs", "runs", left=("",))
    for name, each in _rows(made):
        known = (*_mean(each), f"{each.q05:,.0f} - {each.q95:,.0f}")
        table.add_row(name, *(known if each.runs else ("too long to simulate", "", "")), str(each.runs))
    return table


def _history(made: Plan) -> Iterator[str]:
    from spectralbai.inputs.history import rounded_up

    pilot = made.pilot
    if pilot is None:
        return
    if pilot.sigma is not None and made.instance.problem.outcome_range is None:
        each = pilot.sigma
        interval = f"{each.confidence:.0%} interval {each.low:.3g} to {each.high:.3g}"
        advice = f"round up: {rounded_up(each.high):g} or more"
        if each.sigma == 0:
            advice = "outcomes never vary, so it cannot be estimated"
        yield f"sigma from {each.observations} observations: {each.sigma:.3g} ({interval}); {advice}"
    if pilot.roughness is not None and made.instance.problem.graph.n_edges:
        rough = pilot.roughness
        yield (
            f"S(mu) from the observations: {rough.estimate:.3g}, and below {rough.upper:.3g} with "
            f"{rough.confidence:.0%} confidence"
        )
        noisy = (
            f" (that of the raw means, {rough.plain:.3g}, is mostly noise)" if rough.estimate < rough.plain / 2 else ""
        )
        yield f"an R of {rounded_up(rough.upper):g} is on the safe side{noisy}"
    yield ""
    yield from _range(made)


def _choices(made: Plan) -> Iterator[str | Table]:
    table = empty_table("delta", "at least", *(("expected trials",) if made.with_graph.runs else ()))
    for each in made.by_delta:
        table.add_row(f"{each.delta:g}", _count(each.lower_bound), *((f"{each.mean:,.0f}",) if each.runs else ()))
    yield "Another risk:"
    yield table
    if made.by_R:
        yield ""
        yield "Another R (if too small, the answer can be wrong, or the data refute it; if too large, it costs trials):"
        yield _variations("times R" if made.instance.problem.by_component else "R", made.by_R)
    yield ""
    if made.by_tolerance:
        yield "Another tolerance:"
        yield _variations("tolerance", made.by_tolerance)
    else:
        yield "For so many options other values of R and of the tolerance are tried one at a time: --R, --tolerance"


def _variations(name: str, variations: Sequence[Variation]) -> Table:
    simulated = any(each.forecast is not None and each.forecast.runs for each in variations)
    table = empty_table(name, "T*", "at least", *(("expected trials", "95 % interval", "runs") if simulated else ()))
    for each in variations:
        found = each.forecast
        cells: tuple[str, ...]
        if found is None:
            cells = ("too small for these means",)
        elif math.isinf(found.characteristic_time):
            cells = ("no end: tied",)
        elif found.characteristic_time == 0:
            cells = ("none: all are good enough",)
        else:
            cells = (f"{found.characteristic_time:,.1f}", _count(found.lower_bound))
            if found.runs:
                cells += (*_mean(found), str(found.runs))
            elif simulated:
                cells += ("too long to simulate",)
        table.add_row(f"{each.value:.3g}", *cells)
    return table


def _mean(forecast: Forecast) -> tuple[str, str]:
    """Returns the mean of simulated runs, and its interval if there are several."""
    interval = f"{forecast.mean_low:,.0f} - {forecast.mean_high:,.0f}" if forecast.runs > 1 else ""
    return f"{forecast.mean:,.0f}", interval


def _count(samples: float) -> str:
    return "-" if math.isnan(samples) else f"{samples:,.0f}" if math.isfinite(samples) else "no end: tied"
