"""Tables of the arms in a status, as text: the same in a terminal, on a page and in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from spectralbai.text.decimals import Decimals, percent

if TYPE_CHECKING:
    from spectralbai.report.by_category import CategoryStatus
    from spectralbai.report.comparison import Comparison
    from spectralbai.report.status import ArmStatus, Status

T = TypeVar("T")
Columns = list[tuple[str, Callable[[T], str]]]
"""The heading of each column, and what it says of each thing in the table."""


class TextTable(NamedTuple):
    """A table of text: words in its first column, numbers in the others."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, columns: Columns[T], things: Iterable[T]) -> TextTable:
        """Returns the table with a row for each thing."""
        headings, cells = zip(*columns, strict=True)
        return cls(headings, tuple(tuple(cell(each) for cell in cells) for each in things))


def categories_of(status: Status) -> TextTable:
    """Returns the categories: that of the recommended arm first, with a star, those without candidates last."""
    mean = means_of(status)
    columns: Columns[CategoryStatus] = [
        ("category", lambda each: each.name + (" *" if status.best is not None and each.best == status.best else "")),
        ("options", lambda each: f"{each.arms:,}"),
        ("may be best", lambda each: f"{each.candidates:,}"),
        ("results", lambda each: f"{each.results:,}"),
        ("share", lambda each: percent(each.share)),
        ("next", lambda each: "-" if each.omega is None else percent(each.omega)),
        ("its best", lambda each: each.best or "-"),
        ("estimate", lambda each: mean(each.estimate)),
        ("interval", lambda each: mean.interval(each.low, each.high)),
        ("least account", status.account_of),
    ]
    hidden = () if status.candidates else ("may be best", "least account")
    return TextTable.of([column for column in columns if column[0] not in hidden], status.categories or ())


def arms_of(status: Status, arms: Sequence[ArmStatus] | None = None) -> TextTable:
    """Returns the table of these arms, or of all, the best estimate first; a star marks the recommended arm."""
    mean = means_of(status)
    rate = mean if status.rates else percent

    def raw_rate(arm: ArmStatus) -> str:
        hits = arm.hits or 0
        return f"{hits:,} of {arm.results:,}" + (f" ({rate(hits / arm.results)})" if arm.results else "")

    columns: Columns[ArmStatus] = [("option", lambda arm: arm.label + (" *" if arm.label == status.best else ""))]
    if status.categories is not None:
        columns.append(("category", lambda arm: arm.category or ""))
    if any(arm.hits is not None for arm in status.arms):
        columns.append(("raw rate", raw_rate))
    else:
        columns += [("results", lambda arm: f"{arm.results:,}"), ("raw mean", lambda arm: mean(arm.mean))]
    columns += [
        ("estimate", lambda arm: mean(arm.estimate)),
        ("interval", lambda arm: mean.interval(arm.low, arm.high)),
    ]
    gaps = [arm.behind for arm in status.arms if arm.behind is not None]
    if gaps:
        gap = Decimals.of(gaps, "points" if status.rates else "")
        columns += [
            ("behind the best", lambda arm: "" if arm.behind is None else gap(arm.behind[0])),
            ("its interval", lambda arm: "" if arm.behind is None else gap.interval(*arm.behind[1:])),
        ]
    columns += [
        ("share", lambda arm: percent(arm.share)),
        ("next", lambda arm: "-" if arm.omega is None else percent(arm.omega)),
        ("pending", lambda arm: f"{arm.pending:,}" if arm.pending else ""),
    ]
    if status.candidates:
        columns.append(("account", status.account))
    return TextTable.of(columns, status.ranked if arms is None else arms)


def comparisons_of(status: Status, arms: Sequence[ArmStatus] | None = None) -> TextTable:
    """Returns the table that compares these arms, or all, with the control, whose row is blank."""
    mean = means_of(status)
    against = [arm.against for arm in status.arms if arm.against is not None]
    gaps = [(each.difference, each.difference_low, each.difference_high) for each in against]
    gap = Decimals.of(gaps, "points" if status.rates else "", signed=True)
    lift = Decimals.of([(each.lift, each.lift_low, each.lift_high) for each in against], "%", signed=True)

    def compared(say: Callable[[Comparison], str], of_control: str = "") -> Callable[[ArmStatus], str]:
        return lambda arm: of_control if arm.against is None else say(arm.against)

    columns: Columns[ArmStatus] = [
        ("option", lambda arm: arm.label + (" *" if arm.label == status.best else "")),
        ("estimate", lambda arm: mean(arm.estimate)),
        ("difference, % points" if status.rates else "difference", compared(lambda each: gap(each.difference))),
        ("its interval", compared(lambda each: gap.interval(each.difference_low, each.difference_high))),
        ("lift", compared(lambda each: lift(each.lift))),
        ("its interval", compared(lambda each: lift.interval(each.lift_low, each.lift_high))),
        ("for sure", compared(lambda each: each.verdict(status.goal), "control")),
    ]
    return TextTable.of(columns, status.ranked if arms is None else arms)


def means_of(status: Status) -> Decimals:
    """Returns how estimates, their intervals and raw means are written."""
    return Decimals.of(
        [(arm.mean if arm.estimate is None else arm.estimate, arm.low, arm.high) for arm in status.arms],
        "%" if status.rates else "",
    )
