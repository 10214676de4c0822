"""The pictures of a study; of many arms they show the categories or, if there are none, the first arms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from spectralbai import plot
from spectralbai.arrays import Matrix
from spectralbai.instance import Instance
from spectralbai.journal.definition import Definition
from spectralbai.report.by_category import CategoryStatus, categories_in, lacking_of, most_lacking
from spectralbai.report.status import MANY_ARMS, ArmStatus, Status
from spectralbai.tables import Table
from spectralbai.verdict import Verdict

MOST_ROWS = 60
"""Most rows or lines of a picture."""
STARS = {"decided": "decided for", "running": "ahead", "ended": "ahead at the end", "inconsistent": "best estimate"}
"""What the star of a picture marks, by the state of the study."""

Picture = tuple[bytes, str]
"""A PNG and its caption."""
Rows = Sequence[ArmStatus | CategoryStatus]
"""What the rows of a picture show: arms, or the best arm of each category."""


def pictures(
    status: Status, definition: Definition, verdicts: Sequence[Verdict], outcomes: Table | None
) -> Iterator[Picture]:
    """Yields the pictures of a study that has results; `outcomes` has those of its options on some items, if any."""
    many = len(status.arms) > MANY_ARMS
    everything: Rows = status.ranked
    if many:
        everything = status.listed if status.categories is None else status.categories
    rows = everything[:MOST_ROWS] if many else everything
    names = _names(rows)
    what = "options" if status.categories is None else "categories"
    some = f", for {len(rows)} of {len(everything):,} {what}" if len(rows) < len(everything) else ""
    likely = () if many else (*(status.candidates or ()), status.control)
    named = [row for row, name in enumerate(names) if name in likely]
    if all(row.estimate is not None for row in rows):
        yield _estimates(status, rows, named, some)
        if not many and definition.instance.problem.graph.n_edges:  # the dots of many would be too small to distinguish
            yield _graph(status, definition.instance, [names[row] for row in named])
    results, omega = [row.results for row in rows], _floats(row.omega for row in rows)
    ax = plot.plot_shares(names, results, omega, named=named, of=status.results if many else None)
    yield plot.as_png(ax), f"How the trials were shared{some}."
    if outcomes is not None:
        yield _outcomes(status, definition, outcomes, named)
    if verdicts:
        lines = f", the {len(rows)} {what} that lack most" if some else ", a line per category" if many else ""
        yield _race(status, definition, verdicts, lines)


def _estimates(status: Status, rows: Rows, named: Sequence[int], some: str) -> Picture:
    """Returns the estimates; the arms in the rows `named` get a label first."""
    names, many = _names(rows), len(status.arms) > MANY_ARMS
    of_categories = isinstance(rows[0], CategoryStatus)
    control = next((arm for arm in status.arms if arm.label == status.control), None)
    ax = plot.plot_estimates(
        names,
        _floats(row.estimate for row in rows),
        _floats(row.low for row in rows),
        _floats(row.high for row in rows),
        best=0 if many or status.best is None else names.index(status.best),
        named=named,
        control=None if many or control is None else names.index(control.label),
        base=None if control is None else _floats(control.known),
        others=_others(status, names) if of_categories else (),
        rates=status.rates,
        star_is=STARS[status.state],
    )
    which = f"Estimated mean outcomes{' of the best option of each category' if of_categories else ''}{some}"
    dots = " The light strokes are the other options." if of_categories else ""
    base = "" if control is None else f' The dashed line is the control "{control.label}".'
    return plot.as_png(ax), f"{which}. {status.about_intervals}{dots}{base}"


def _graph(status: Status, instance: Instance, named: Sequence[str]) -> Picture:
    """Returns the graph, coloured by the estimates; the arms `named` get a label first."""
    labels = instance.labels
    ax = plot.plot_graph(
        Instance(instance.problem, _floats(arm.estimate for arm in status.arms), labels),
        [arm.results for arm in status.arms],
        best=labels.index(status.ranked[0].label if status.best is None else status.best),
        named=[labels.index(label) for label in named],
        area_is="share of the results",
        colour_is="estimated mean",
        star_is=STARS[status.state],
    )
    return plot.as_png(ax), "The graph, coloured by the estimates."


def _outcomes(status: Status, definition: Definition, table: Table, named: Sequence[int]) -> Picture:
    """Returns the outcomes of options on items; of many options the first are shown."""
    arms = status.top[:MOST_ROWS]
    place = {label: row for row, label in enumerate(table.options)}
    rows = table.outcomes[[place[arm.label] for arm in arms]]
    ends = definition.instance.problem.noise.outcome_range
    some = f" of {len(arms)} of {len(status.arms):,} options" if len(arms) < len(status.arms) else ""
    begun = max(table.n_items, 0 if status.items is None else status.items.done)
    on = f"{table.n_items:,} of {begun:,} items, at equal steps" if table.n_items < begun else "the items begun"
    ax = plot.plot_outcomes([arm.label for arm in arms], rows, ends, named=named, rates=status.rates, of=begun)
    return plot.as_png(ax), f"The outcomes{some} on {on}. White pairs were not tried."


def _race(status: Status, definition: Definition, verdicts: Sequence[Verdict], lines: str) -> Picture:
    """Returns the race: the accounts at each verdict. `lines` says which of many lines are shown; "" means all."""
    names, tolerant = definition.instance.labels, definition.instance.problem.tolerance > 0
    lacking = lacking_of(verdicts, [arm.withdrawn for arm in status.arms], leaders=tolerant)
    best = None if status.best is None else names.index(status.best)
    # With a tolerance, the study decides when the leader has beaten all others, and they need not be eliminated.
    end = "beaten" if tolerant else "out"
    account, when = "account against the option", f"an option is {end} when the account against it"
    if lines:
        if best is not None:
            lacking[:, best] = np.nan  # there is no account against the arm recommended
            best = None
        categories = categories_in(definition)
        if categories is not None:
            lacking, names = most_lacking(lacking, categories.of_arm), categories.categories
            account = "least account in the category"
            when = f"all of its options are {end} when the least account against them"
        shown = _hardest(lacking)
        lacking, names = lacking[:, shown], tuple(names[each] for each in shown)
    samples = [verdict.samples for verdict in verdicts]
    ax = plot.plot_race(samples, lacking, names, status.delta, best, end_is=end, account_is=account)
    doubt = " But the data contradict R, and nothing is claimed." if status.consistent is False else ""
    return plot.as_png(ax), f"The race{lines}: {when} reaches the line.{doubt}"


def _hardest(lacking: Matrix) -> list[int]:
    """Returns the columns of the accounts that lack most, then of those that were full last."""
    last = np.nan_to_num(lacking[-1])
    under_way = (np.nan_to_num(lacking) > 0).sum(axis=0)
    order = np.lexsort([-under_way, -last]).tolist()
    return [each for each in order if np.isfinite(lacking[:, each]).any()][:MOST_ROWS]


def _names(rows: Rows) -> list[str]:
    return [row.label if isinstance(row, ArmStatus) else row.name for row in rows]


def _others(status: Status, names: Sequence[str]) -> list[list[float]]:
    """Returns, for each of these categories, the estimates of its arms except the best one."""
    estimates: dict[str | None, list[float]] = {name: [] for name in names}
    best = {each.best for each in status.categories or ()}
    for arm in status.arms:
        if arm.category in estimates and arm.estimate is not None and arm.label not in best:
            estimates[arm.category].append(arm.estimate)
    return list(estimates.values())


def _floats(values: Iterable[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]
