"""Tables of the arms in a status, as text: the same in a terminal, on a page and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from spectralbai.decimals import Decimals, percent

if TYPE_CHECKING:
    from spectralbai.report.by_category import CategoryStatus
    from spectralbai.report.status import ArmStatus, Status


class TextTable(NamedTuple):
    """A table of text: words in its first column, numbers in the others."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def categories_of(status: Status) -> TextTable:
    """Returns the categories: that of the recommended arm first, with a star, those without candidates last."""
    mean = means_of(status)

    def cells(category: CategoryStatus) -> Iterator[str]:
        yield category.name + (" *" if status.best is not None and category.best == status.best else "")
        yield f"{category.arms:,}"
        if raced:
            yield "-" if category.candidates is None else f"{category.candidates:,}"
        yield f"{category.results:,}"
        yield percent(category.share)
        yield "-" if category.omega is None else percent(category.omega)
        yield category.best or "-"
        yield mean(category.estimate)
        yield mean.interval(category.low, category.high)
        if raced:
            yield status.account_of(category)

    raced = bool(status.candidates)
    of_race, account = (("may be best",), ("least account",)) if raced else ((), ())
    headings = (
        "category",
        "options",
        *of_race,
        "results",
        "share",
        "next",
        "its best",
        "estimate",
        "interval",
        *account,
    )
    return TextTable(headings, tuple(tuple(cells(category)) for category in status.categories or ()))


def arms_of(status: Status, arms: Sequence[ArmStatus] | None = None) -> TextTable:
    """Returns the table of these arms, or of all, the best estimate first; a star marks the recommended arm."""
    mean = means_of(status)
    rate = mean if status.rates else percent
    counted = any(arm.hits is not None for arm in status.arms)
    raced = bool(status.candidates)

    def cells(arm: ArmStatus) -> Iterator[str]:
        yield arm.label + (" *" if arm.label == status.best else "")
        if arm.category is not None:
            yield arm.category
        if counted:
            hits = arm.hits or 0
            yield f"{hits:,} of {arm.results:,}" + (f" ({rate(hits / arm.results)})" if arm.results else "")
        else:
            yield f"{arm.results:,}"
            yield mean(arm.mean)
        yield mean(arm.estimate)
        yield mean.interval(arm.low, arm.high)
        yield percent(arm.share)
        yield "-" if arm.omega is None else percent(arm.omega)
        yield f"{arm.pending:,}" if arm.pending else ""
        if raced:
            yield status.account(arm)

    raw = ("raw rate",) if counted else ("results", "raw mean")
    raw = raw if status.categories is None else ("category", *raw)
    headings = ("option", *raw, "estimate", "interval", "share", "next", "pending", *(("account",) if raced else ()))
    return TextTable(headings, tuple(tuple(cells(arm)) for arm in (status.ranked if arms is None else arms)))


def comparisons_of(status: Status, arms: Sequence[ArmStatus] | None = None) -> TextTable:
    """Returns the table that compares these arms, or all, with the control, whose row is blank."""
    mean = means_of(status)
    against = [arm.against for arm in status.arms if arm.against is not None]
    difference = Decimals.of(
        [(each.difference, each.difference_low, each.difference_high) for each in against],
        "points" if status.rates else "",
        signed=True,
    )
    lift = Decimals.of([(each.lift, each.lift_low, each.lift_high) for each in against], "%", signed=True)

    def cells(arm: ArmStatus) -> Iterator[str]:
        yield arm.label + (" *" if arm.label == status.best else "")
        yield mean(arm.estimate)
        each = arm.against
        if each is None:
            yield from ("", "", "", "", "control")
            return
        yield difference(each.difference)
        yield difference.interval(each.difference_low, each.difference_high)
        yield lift(each.lift)
        yield lift.interval(each.lift_low, each.lift_high)
        yield each.verdict(status.goal)

    unit = "difference, % points" if status.rates else "difference"
    headings = ("option", "estimate", unit, "its interval", "lift", "its interval", "for sure")
    return TextTable(headings, tuple(tuple(cells(arm)) for arm in (status.ranked if arms is None else arms)))


def means_of(status: Status) -> Decimals:
    """Returns how estimates, their intervals and raw means are written."""
    return Decimals.of(
        [(arm.mean if arm.estimate is None else arm.estimate, arm.low, arm.high) for arm in status.arms],
        "%" if status.rates else "",
    )
