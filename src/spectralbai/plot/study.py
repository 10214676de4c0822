"""Figures of a study: estimates with their intervals, shares of the trials, evidence over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from spectralbai.checks import Matrix
from spectralbai.plot.style import STYLES, legend_above, new_axes, plain, shortened, words

LABELLED = 60
"""Labels are written up to this many arms."""
RIVALS_NAMED = 6
"""Rivals that are named in a picture of the race."""
SIZE = (7.6, 3.9)


def plot_estimates(
    labels: Sequence[str],
    estimate: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    best: int,
    ax: Axes | None = None,
) -> Axes:
    """Returns the estimated means with their intervals, the arm recommended marked; NaN where nothing is known."""
    ax = ax or new_axes(size=SIZE)
    at = np.arange(len(labels))
    centre, ends = np.array(estimate, dtype=float), np.array([low, high], dtype=float)
    bounded = np.isfinite(ends).all(axis=0)
    if bounded.any():
        ax.vlines(at, *ends, color=STYLES[0].colour, linewidth=2.0, alpha=0.65, label="interval: all hold together")
    for here, face, label in (
        (bounded, "black", r"estimate $\tilde\mu$"),
        (~bounded, "white", "estimate without interval"),
    ):
        if not here.any():
            continue
        ax.plot(
            at[here],
            centre[here],
            linestyle="",
            marker="o",
            markersize=5,
            color="black",
            markerfacecolor=face,
            label=label,
        )
    if np.isfinite(centre[best]):
        ax.plot(
            best,
            centre[best],
            linestyle="",
            marker="*",
            markersize=15,
            color=STYLES[1].colour,
            label=words(shortened(labels[best])),
        )
    ax.set_ylabel("mean outcome")
    _arms_on_x(ax, labels)
    legend_above(ax, 3)
    return ax


def plot_shares(labels: Sequence[str], counts: Sequence[int], omega: Sequence[float], ax: Axes | None = None) -> Axes:
    """Returns the share of the results of each arm, beside that in the pulls to come; NaN where none are."""
    ax = ax or new_axes(size=SIZE)
    at = np.arange(len(labels))
    total = max(sum(counts), 1)
    ax.bar(
        at,
        np.array(counts) / total,
        width=0.7,
        color=STYLES[5].colour,
        edgecolor="0.3",
        linewidth=0.5,
        label="share of the results",
    )
    if np.isfinite(omega).any():
        ax.plot(
            at,
            omega,
            linestyle="",
            marker="D",
            markersize=min(5, 400 / len(labels)),
            color=STYLES[1].colour,
            label="next, as planned",
        )
    ax.set_ylabel("share of the trials")
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:.0%}"))
    _arms_on_x(ax, labels)
    legend_above(ax, 2)
    return ax


def plot_evidence(
    samples: Sequence[int],
    statistic: Sequence[float],
    threshold: Sequence[float],
    stopped_at: int | None,
    decided: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Returns the evidence against the challenger least beaten, over time, and what it has to exceed; NaN where
    there is none."""
    ax = ax or new_axes(size=SIZE)
    ax.plot(samples, statistic, color=STYLES[0].colour, linewidth=1.8, label="evidence against the closest rival")
    ax.plot(samples, threshold, color=STYLES[1].colour, linestyle="--", linewidth=1.8, label="needed to decide")
    if stopped_at is not None:
        what = "decided" if decided else "R contradicted"
        ax.axvline(
            stopped_at, color="black", linewidth=1.0, linestyle=":", label=f"{what} after {stopped_at:,} results"
        )
    ax.set_xlabel("results")
    ax.set_ylabel("evidence")
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    plain(ax)
    legend_above(ax, 3)
    return ax


def plot_race(
    samples: Sequence[int],
    lacking: Matrix,
    labels: Sequence[str],
    delta: float,
    best: int | None,
    ax: Axes | None = None,
) -> Axes:
    """Returns the wealth of the account against each arm but `best`, if any, over time; those that are out fade.

    `lacking` has a row per time and a column per arm: what the account lacks of 1/delta, in nats, 0 once it had it.
    """
    ax = ax or new_axes(size=SIZE)
    goal = -np.log(delta)
    wealth = np.exp(goal - np.maximum(lacking, 0.0))
    rivals = [arm for arm in range(len(labels)) if arm != best]
    racing = sorted((arm for arm in rivals if lacking[-1, arm] > 0), key=lambda arm: -lacking[-1, arm])
    last_out = sorted(
        (arm for arm in rivals if lacking[-1, arm] <= 0), key=lambda arm: -int(np.argmax(lacking[:, arm] <= 0))
    )
    named = (racing + last_out)[:RIVALS_NAMED]
    for arm in rivals:
        out = np.flatnonzero(lacking[:, arm] <= 0)
        end = int(out[0]) + 1 if out.size else len(samples)
        style = STYLES[named.index(arm) % len(STYLES)] if arm in named else None
        ax.plot(
            samples[:end],
            wealth[:end, arm],
            color="0.6" if style is None else style.colour,
            linewidth=0.8 if style is None else 1.6,
            alpha=0.35 if out.size and style is None else 0.6 if out.size else 1.0,
            label=None if style is None else words(shortened(labels[arm])) + (" (out)" if out.size else ""),
        )
        if out.size:
            ax.plot(samples[end - 1], 1 / delta, marker="x", markersize=5, color="0.4", linestyle="")
    ax.axhline(1 / delta, color="black", linestyle="--", linewidth=1.2)
    ax.annotate(
        "out",
        (0.0, 1 / delta),
        xycoords=("axes fraction", "data"),
        xytext=(4, 3),
        textcoords="offset points",
        fontsize=8,
    )
    ax.set_yscale("log")
    ax.set_ylim(top=3 / delta)
    ax.set_xlabel("results")
    ax.set_ylabel("account against the arm")
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    plain(ax)
    legend_above(ax, 3)
    return ax


def _arms_on_x(ax: Axes, labels: Sequence[str]) -> None:
    if len(labels) <= LABELLED:
        long = max(map(len, labels)) > 4 or len(labels) > 12
        ax.set_xticks(
            range(len(labels)),
            [words(shortened(label)) for label in labels],
            rotation=60 if long else 0,
            ha="right" if long else "center",
        )
        ax.tick_params(axis="x", labelsize=8)
    else:
        ax.set_xlabel("arm")
    ax.margins(x=0.02)
    plain(ax)
