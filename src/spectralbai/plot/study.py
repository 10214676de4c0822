"""Figures of a study: estimates with their intervals, shares of the trials, evidence over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from spectralbai.arrays import Matrix, Vector
from spectralbai.plot.style import STYLES, legend_above, new_axes, note, percent_on_x, plain, shortened, words

RIVALS_NAMED = 6
"""Number of rivals that are named in a picture of the race."""
SIZE = (4.6, 3.2)
"""Size in inches. A phone shows pictures 340 pixels wide, where text of 9 points is just large enough."""
WIDTH, ROW, TALLEST = SIZE[0], 0.19, 8.5
"""Width of a picture with a row per arm, height of a row, and largest height of all rows, in inches. If there are too
many rows, they are closer together."""
APART = 0.15
"""Least distance in inches between two labels, one below the other."""


def plot_estimates(
    labels: Sequence[str],
    estimate: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    best: int,
    ax: Axes | None = None,
    *,
    named: Sequence[int] = (),
    control: int | None = None,
    base: Sequence[float] | None = None,
    others: Sequence[Sequence[float]] = (),
    rates: bool = False,
    star_is: str = "ahead",
) -> Axes:
    """Returns axes with the estimated means and their intervals, a row per arm in the given order; NaN means unknown.

    A star marks the arm `best`, a band the interval of the arm `control`. If there is no room for all labels, these
    two, `named`, and the first and last row get theirs first. `rates` writes means in percent. `base` is (estimate,
    low, high) of a control that has no row. `others` are more estimates for each row, for example if a row is a
    category.
    """
    ax = ax or _new_rows(len(labels))
    at = np.arange(len(labels))
    centre, ends = np.array(estimate, dtype=float), np.array([low, high], dtype=float)
    size = min(5.0, 250 / len(labels))
    if control is not None:
        base = (centre[control], *ends[:, control])
    if base is not None:
        ax.axvline(base[0], color="0.45", linewidth=1.0, linestyle="--", label="control", zorder=1)
        if np.isfinite(base[1:]).all():
            ax.axvspan(*base[1:], color="0.92", zorder=0)
    if any(others):
        dots = np.concatenate(others), np.repeat(at, [len(each) for each in others])
        ax.plot(*dots, linestyle="", marker="|", markersize=1.5 * size, color="0.7", label="other options", zorder=1.5)
    _means_with_intervals(ax, centre, ends, size)
    if np.isfinite(centre[best]):
        ax.plot(centre[best], best, linestyle="", marker="*", markersize=13, color=STYLES[1].colour, label=star_is)
    ax.set_xlabel("mean outcome")
    if rates:
        percent_on_x(ax)
    _arms_in_rows(ax, labels, (best, *(() if control is None else (control,)), *named))
    legend_above(ax, 3)
    return ax


def _means_with_intervals(ax: Axes, centre: Vector, ends: Matrix, size: float) -> None:
    """Draws a dot for each mean, and its interval; a dot without an interval is hollow."""
    at, bounded = np.arange(centre.size), np.isfinite(ends).all(axis=0)
    if bounded.any():
        colour, width = STYLES[0].colour, min(2.0, 0.5 * size)
        name = "interval: all hold together"
        ax.hlines(at[bounded], *ends[:, bounded], color=colour, linewidth=width, alpha=0.65, label=name)
    for here, face, label in ((bounded, "black", "estimate"), (~bounded, "white", "estimate without interval")):
        if here.any():
            dots = centre[here], at[here]
            ax.plot(*dots, "o", markersize=size, color="black", markerfacecolor=face, label=label)


def plot_shares(
    labels: Sequence[str],
    counts: Sequence[int],
    omega: Sequence[float],
    ax: Axes | None = None,
    *,
    named: Sequence[int] = (),
    of: int | None = None,
) -> Axes:
    """Returns axes with each arm's share of the results, and its share of future pulls `omega`, NaN if none are
    planned; a row per arm in the given order. `of` is the number of all results, if some arms have no row."""
    ax = ax or _new_rows(len(labels))
    at = np.arange(len(labels))
    total = max(sum(counts) if of is None else of, 1)
    colour, rim = STYLES[5].colour, 0.5 if len(labels) <= 50 else 0.0
    share = np.array(counts) / total
    ax.barh(at, share, height=0.7, color=colour, edgecolor="0.3", linewidth=rim, label="share of the results")
    if np.isfinite(omega).any():
        colour, size = STYLES[1].colour, min(4.5, 200 / len(labels))
        ax.plot(omega, at, linestyle="", marker="D", markersize=size, color=colour, label="next, as planned")
    ax.set_xlabel("share of the trials")
    percent_on_x(ax)
    ax.set_xlim(left=0)
    _arms_in_rows(ax, labels, named)
    legend_above(ax, 2)
    return ax


def plot_outcomes(
    labels: Sequence[str],
    outcomes: Matrix,
    ends: tuple[float, float] | None = None,
    ax: Axes | None = None,
    *,
    named: Sequence[int] = (),
    rates: bool = False,
    of: int | None = None,
) -> Axes:
    """Returns axes with the outcomes of arms on items as colours: a row per arm in the given order, a column per item;
    pairs that were not tried, nan, are white.

    `ends` are the least and the largest colour; those of the outcomes if it is None. `rates` says that outcomes are 0
    or 1. If there is no room for all labels, `named` get theirs first. `of` is the number of all items, if the columns
    are some of them at equal steps.
    """
    ax = ax or _new_rows(len(labels))
    low, high = (np.nanmin(outcomes), np.nanmax(outcomes)) if ends is None else ends
    cells = np.ma.masked_invalid(outcomes)
    # Columns begin at 1, the first item; "nearest" keeps what is white white.
    extent = (0.5, (of or outcomes.shape[1]) + 0.5, len(labels) - 0.5, -0.5)
    image = ax.imshow(cells, "cividis", aspect="auto", interpolation="nearest", vmin=low, vmax=high, extent=extent)
    bar = ax.figure.colorbar(image, ax=ax, location="top", label="outcome", aspect=40, shrink=0.6, anchor=(0.0, 0.0))
    if rates:
        bar.set_ticks([low, high])
    ax.set_xlabel("items, in the order in which they were begun")
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    _arms_in_rows(ax, labels, named)
    ax.grid(visible=False)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    return ax


def plot_evidence(
    samples: Sequence[int],
    statistic: Sequence[float],
    threshold: Sequence[float],
    stopped_at: int | None,
    decided: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Returns axes with the evidence against the challenger that is closest to winning, over time, and the threshold
    that it must exceed; NaN if there is none."""
    ax = ax or new_axes(size=SIZE)
    ax.plot(samples, statistic, color=STYLES[0].colour, linewidth=1.8, label="evidence against the closest rival")
    ax.plot(samples, threshold, color=STYLES[1].colour, linestyle="--", linewidth=1.8, label="needed to decide")
    if stopped_at is not None:
        label = f"{'decided' if decided else 'R contradicted'} after {stopped_at:,} results"
        ax.axvline(stopped_at, color="black", linewidth=1.0, linestyle=":", label=label)
    ax.set_ylim(bottom=0)
    return _over_results(ax, "evidence")


def plot_race(
    samples: Sequence[int],
    lacking: Matrix,
    labels: Sequence[str],
    delta: float,
    best: int | None,
    ax: Axes | None = None,
    *,
    end_is: str = "out",
    account_is: str = "account against the option",
) -> Axes:
    """Returns axes with the wealth of the account against each arm except `best`, over time; eliminated arms are paler.

    `lacking` has a row per time and a column per arm: what the account lacks to 1/delta, in nats, and 0 after it
    reached it. It is NaN if there is no account against the arm. `end_is` is the word for an arm at 1/delta, and
    `account_is` the label of the axis.
    """
    ax = ax or new_axes(size=SIZE)
    lacking = np.maximum(lacking, 0.0)
    wealth = np.exp(-np.log(delta) - lacking)
    # An arm may come back when another arm leads or is withdrawn; what counts is the time since which it stays out.
    ends = np.where(lacking == 0, 0, np.arange(1, len(samples) + 1)[:, None]).max(axis=0)
    rivals = [arm for arm in range(len(labels)) if arm != best]
    racing = sorted((arm for arm in rivals if lacking[-1, arm] != 0), key=lambda arm: -np.nan_to_num(lacking[-1, arm]))
    last_out = sorted((arm for arm in rivals if lacking[-1, arm] == 0), key=lambda arm: -ends[arm])
    named = (racing + last_out)[:RIVALS_NAMED]
    for arm in rivals:
        out = arm in last_out
        end = ends[arm] + 1
        style = STYLES[named.index(arm) % len(STYLES)] if arm in named else None
        ax.plot(
            samples[:end],
            wealth[:end, arm],
            color="0.6" if style is None else style.colour,
            linewidth=0.8 if style is None else 1.6,
            alpha=0.35 if out and style is None else 0.6 if out else 1.0,
            label=None if style is None else words(shortened(labels[arm], 18)) + (f" ({end_is})" if out else ""),
        )
        if out:
            ax.plot(samples[end - 1], 1 / delta, marker="x", markersize=5, color="0.4", linestyle="")
    ax.axhline(1 / delta, color="black", linestyle="--", linewidth=1.2)
    note(ax, end_is, (0.0, 1 / delta), (4, 3), xycoords=("axes fraction", "data"), fontsize=8)
    ax.set_yscale("log")
    ax.set_ylim(top=3 / delta)
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    return _over_results(ax, account_is)


def _over_results(ax: Axes, label: str) -> Axes:
    """Returns the axes with the number of results on the x-axis, this label on the y-axis, and a legend."""
    ax.set_xlabel("results")
    ax.set_ylabel(label)
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    plain(ax)
    legend_above(ax, 3)
    return ax


def _new_rows(n_arms: int) -> Axes:
    return new_axes(size=(WIDTH, 1.3 + min(ROW * max(n_arms, 4), TALLEST)))


def _arms_in_rows(ax: Axes, labels: Sequence[str], named: Sequence[int]) -> None:
    """Gives every arm a row, the first on top, and writes as many labels as there is room for."""
    last = len(labels) - 1
    apart = int(np.ceil(APART * len(labels) / min(ROW * len(labels), TALLEST)))
    written: list[int] = []
    for row in (*named, 0, last, *range(len(labels))):
        if all(abs(row - other) >= apart for other in written):
            written.append(row)
    ax.set_yticks(written, [words(shortened(labels[row], 22)) for row in written])
    ax.tick_params(axis="y", labelsize=9, length=0 if apart == 1 else 3)
    ax.set_ylim(last + 0.7, -0.7)
    plain(ax, "x")
