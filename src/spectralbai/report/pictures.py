"""The pictures of a study; of many arms they show the categories or, if there are none, the first arms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from spectralbai.instance import Instance
from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import Check
from spectralbai.report.by_category import CategoryStatus, categories_in, lacking_of, most_lacking
from spectralbai.report.status import MANY_ARMS, ArmStatus, Status

MOST_ROWS = 60
"""Most rows or lines of a picture."""
STARS = {"decided": "decided for", "running": "ahead", "ended": "ahead at the end", "inconsistent": "best estimate"}
"""What the star of a picture marks, by the state of the study."""


Picture = tuple[bytes, str]
"""A PNG and its caption."""


def pictures(status: Status, definition: Definition, checks: Sequence[Check]) -> Iterator[Picture]:
    """Yields the pictures of a study; none before the first result."""
    if not status.results:
        return
    if len(status.arms) > MANY_ARMS:
        yield from _pictures_of_many(status, definition, checks)
        return
    from spectralbai import plot

    names, results, omega, estimates, _, _ = _columns(status)
    likely = {*(status.candidates or ()), status.control}
    named = [row for row, name in enumerate(names) if name in likely]
    if np.isfinite(estimates).all():
        yield from _estimates(status, definition.instance, named)
    ax = plot.plot_shares(names, results, omega, named=named)
    yield plot.as_png(ax), "How the trials were shared."
    raced = [check for check in checks if check.lacking is not None]
    if raced:
        yield _race_of_few(status, definition.instance, raced)
    elif checks:
        samples = [check.samples for check in checks]
        statistic, threshold = (
            _floats(getattr(check, name) for check in checks) for name in ("statistic", "threshold")
        )
        ax = plot.plot_evidence(samples, statistic, threshold, status.stopped_at, status.state == "decided")
        yield plot.as_png(ax), "Evidence over time."


def _estimates(status: Status, instance: Instance, named: Sequence[int]) -> Iterator[Picture]:
    """Yields the estimates, the best first, and the graph with them; `named` are rows whose arms get a label first."""
    from spectralbai import plot

    names, _, _, estimate, low, high = _columns(status)
    leader = names[0] if status.best is None else status.best
    control = None if status.control is None else names.index(status.control)
    look: dict[str, Any] = {"control": control, "rates": status.rates, "star_is": STARS[status.state]}
    ax = plot.plot_estimates(names, estimate, low, high, names.index(leader), named=named, **look)
    base = "" if status.control is None else f' The dashed line is the control "{status.control}".'
    yield plot.as_png(ax), f"Estimated mean outcomes. {status.about_intervals}{base}"
    labels = instance.labels
    ax = plot.plot_graph(
        Instance(instance.problem, _floats(arm.estimate for arm in status.arms), labels),
        [arm.results for arm in status.arms],
        best=labels.index(leader),
        named=[labels.index(names[row]) for row in named],
        area_is="share of the results",
        colour_is="estimated mean",
        star_is=STARS[status.state],
    )
    yield plot.as_png(ax), "The graph, coloured by the estimates."


def _race_of_few(status: Status, instance: Instance, raced: Sequence[Check]) -> Picture:
    from spectralbai import plot

    labels, tolerant = instance.labels, instance.problem.tolerance > 0
    lacking = lacking_of(raced, [arm.withdrawn for arm in status.arms], leaders=tolerant)
    best = None if status.best is None else labels.index(status.best)
    samples, end = [check.samples for check in raced], _end(tolerant)
    ax = plot.plot_race(samples, lacking, labels, status.delta, best, end_is=end)
    caption = f"The race: an option is {end} when the account against it reaches the line."
    return plot.as_png(ax), caption + _doubt(status)


def _end(tolerant: bool) -> str:
    """Returns the word for an arm whose account is full: with a tolerance, the study decides when the leader has beaten
    all others, and they need not be eliminated."""
    return "beaten" if tolerant else "out"


def _doubt(status: Status) -> str:
    return " But the data contradict R, and nothing is claimed." if status.consistent is False else ""


def _pictures_of_many(status: Status, definition: Definition, checks: Sequence[Check]) -> Iterator[Picture]:
    """Yields the pictures of a study with results.

    There is no picture of the graph, because its dots would be too small to distinguish.
    """
    from spectralbai import plot

    names, results, omega, estimate, low, high = _columns(status)
    every, some = _words(status, len(names))
    categories = categories_in(definition)
    control = next((arm for arm in status.arms if arm.label == status.control), None)
    if np.isfinite(estimate).all():
        look: dict[str, Any] = {"rates": status.rates, "star_is": STARS[status.state]}
        look["others"] = _others(status, names) if categories is not None else ()
        look["base"] = None if control is None else _floats(control.known)
        ax = plot.plot_estimates(names, estimate, low, high, 0, **look)
        which = "Estimated mean outcomes" + ("" if categories is None else " of the best option of each category")
        dots = "" if categories is None else " The light strokes are the other options."
        base = "" if control is None else f' The dashed line is the control "{control.label}".'
        yield plot.as_png(ax), f"{which}{some}. {status.about_intervals}{dots}{base}"
    ax = plot.plot_shares(names, results, omega, of=status.results)
    yield plot.as_png(ax), f"How the trials were shared{some}."
    raced = [check for check in checks if check.lacking is not None]
    if raced:
        yield _race_of_many(status, definition, raced, every)


def _race_of_many(status: Status, definition: Definition, raced: Sequence[Check], every: str) -> Picture:
    from spectralbai import plot

    labels, tolerance = definition.instance.labels, definition.instance.problem.tolerance
    categories = categories_in(definition)
    lacking = lacking_of(raced, [arm.withdrawn for arm in status.arms], tolerance > 0)
    if status.best is not None:
        lacking[:, labels.index(status.best)] = np.nan  # there is no account against the arm recommended
    names = labels
    if categories is not None:
        lacking, names = most_lacking(lacking, categories.of_arm), categories.categories
    # First the ones whose accounts lack most, then those that were beaten last.
    last = np.nan_to_num(lacking[-1])
    under_way = (np.nan_to_num(lacking) > 0).sum(axis=0)
    shown = [each for each in np.lexsort([-under_way, -last]).tolist() if np.isfinite(lacking[:, each]).any()]
    shown = shown[:MOST_ROWS]
    end = _end(tolerance > 0)
    ax = plot.plot_race(
        [check.samples for check in raced],
        lacking[:, shown],
        [names[each] for each in shown],
        status.delta,
        None,
        end_is=end,
        account_is="account against the option" if categories is None else "least account in the category",
    )
    caption = f"The race, {every}: an option is {end} when the account against it reaches the line."
    if categories is not None:
        caption = (
            f"The race, {every}: all of its options are {end} when the least account against them reaches the line."
        )
    return plot.as_png(ax), caption + _doubt(status)


Columns = tuple[list[str], list[int], list[float], list[float], list[float], list[float]]


def _columns(status: Status) -> Columns:
    """Returns names, results, shares of future pulls, estimates and the ends of their intervals, with NaN for unknown
    numbers, of the rows of a picture.

    The rows are the arms, the best estimate first; if there are many, the recommended arm and others or, if there are
    categories, the best arm of each.
    """
    rows: Sequence[ArmStatus | CategoryStatus] = status.ranked
    if len(status.arms) > MANY_ARMS:
        rows = (status.listed if status.categories is None else status.categories)[:MOST_ROWS]
    names = [each.label if isinstance(each, ArmStatus) else each.name for each in rows]
    numbers = ("omega", "estimate", "low", "high")
    omega, estimate, low, high = (_floats(getattr(each, number) for each in rows) for number in numbers)
    return names, [each.results for each in rows], omega, estimate, low, high


def _others(status: Status, names: Sequence[str]) -> list[list[float]]:
    """Returns, for each of these categories, the estimates of its arms except the best one."""
    of_row = {name: row for row, name in enumerate(names)}
    best = {each.best for each in status.categories or ()}
    estimates: list[list[float]] = [[] for _ in names]
    for arm in status.arms:
        if arm.category in of_row and arm.estimate is not None and arm.label not in best:
            estimates[of_row[arm.category]].append(arm.estimate)
    return estimates


def _words(status: Status, rows: int) -> tuple[str, str]:
    """Returns words for the lines of a picture, and words to add if rows do not show all arms or categories."""
    if status.categories is None:
        return f"the {rows} options that lack most", f", for {rows} of {len(status.arms):,} options"
    if rows == len(status.categories):
        return "a line per category", ""
    return f"the {rows} categories that lack most", f", for {rows} of {len(status.categories):,} categories"


def _floats(values: Iterable[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]
