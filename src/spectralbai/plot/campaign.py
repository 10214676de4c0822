"""Figures of a campaign: samples by policy and against R, delta and the number of arms, and proportions of pulls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from spectralbai.campaign import Cell, RunRow
from spectralbai.plot.style import (
    STYLES,
    curve_with_bars,
    legend_above,
    new_axes,
    note,
    plain,
    points,
    samples_on_y,
    words,
)

X_LABELS = {
    "R": r"$R$: bound on the roughness of the means (smaller: the graph says more)",
    "delta": r"risk $\delta$ of a wrong answer",
    "n_arms": "number of arms $K$",
}


def plot_tau_by_policy(rows: Sequence[RunRow], lower_bound: float | None = None, ax: Axes | None = None) -> Axes:
    """Returns axes with a box per policy: quartiles, whiskers at 5 and 95 %, and a dot for every run. All rows must be
    of one instance and one delta."""
    ax = ax or new_axes(size=(7.2, 4.6))
    policies = list(dict.fromkeys(row.policy for row in rows))
    rng = np.random.default_rng(0)
    for position, policy in enumerate(policies):
        colour = STYLES[position % len(STYLES)].colour
        tau = np.array([row.tau for row in rows if row.policy == policy])
        box = {"facecolor": "white", "edgecolor": colour, "linewidth": 1.6}
        thin, bold = ({"color": colour, "linewidth": width} for width in (1.4, 2.4))
        look: dict[str, Any] = {"boxprops": box, "medianprops": bold, "whiskerprops": thin, "capprops": thin}
        ax.boxplot(tau, positions=[position], widths=0.6, whis=(5, 95), showfliers=False, patch_artist=True, **look)
        apart = position + rng.uniform(-0.18, 0.18, tau.size)
        ax.plot(apart, tau, linestyle="", marker="o", markersize=2.5, color="0.25", alpha=0.6)
    samples_on_y(ax, [row.tau for row in rows])
    if lower_bound:
        label = "lower bound on the mean of any policy that knows the graph"
        ax.axhline(lower_bound, color="black", linewidth=2.2, label=label)
        legend_above(ax)
    rules = {row.policy: row.rule for row in rows}
    names = [words(policy) + _rule(rules[policy], rules.values(), "\n") for policy in policies]
    slanted: dict[str, Any] = {
        "fontsize": points(8),
        "rotation": 30,
        "horizontalalignment": "right",
        "rotation_mode": "anchor",
    }
    ax.set_xticks(range(len(policies)), names, **(slanted if len(policies) > 4 else {}))
    ax.set_xlabel("policy")
    return ax


def plot_tau_against(cells: Sequence[Cell], x: Literal["R", "delta", "n_arms"], ax: Axes | None = None) -> Axes:
    """Returns axes with the mean of tau of each policy, its 95 % interval, and the lower bound; R = inf comes last."""
    ax = ax or new_axes()
    values = sorted({getattr(cell, x) for cell in cells}, reverse=x == "delta")
    # Values are evenly spaced, because R may be inf and delta spans decades.
    places = {value: float(place) for place, value in enumerate(values)}
    bound = {getattr(cell, x): cell.lower_bound or np.nan for cell in cells}  # 0 means that no bound is known
    if not np.isnan(list(bound.values())).all():
        bounds = [bound[value] for value in values]
        ax.plot(list(places.values()), bounds, color="black", linewidth=2.2, label="lower bound, graph known")
    policies = list(dict.fromkeys(cell.policy for cell in cells))
    for index, policy in enumerate(policies):
        style = STYLES[index % len(STYLES)]
        own = sorted((cell for cell in cells if cell.policy == policy), key=lambda cell: places[getattr(cell, x)])
        shift = (index - (len(policies) - 1) / 2) * 0.3 / max(len(policies), 3)  # bars must not hide one another
        at = [places[getattr(cell, x)] + shift for cell in own]
        half = [cell.mean_tau_high - cell.mean_tau if cell.runs > 1 else 0.0 for cell in own]
        label = words(policy) + _rule(own[0].rule, [cell.rule for cell in cells], ", ")
        label += "" if own[0].proved else " (risk not proved)"
        curve_with_bars(ax, at, [cell.mean_tau for cell in own], half, style, label)
        for place, cell in zip(at, own, strict=True):
            if cell.truncated:  # runs reached the limit on samples, so the mean is too small
                note(ax, "cut short", (place, cell.mean_tau), (0, 6), ha="center", fontsize=points(7))
    samples_on_y(ax, [cell.mean_tau for cell in cells])
    ax.set_xticks(list(places.values()), ["∞" if value == np.inf else f"{value:.3g}" for value in values])
    ax.set_xlabel(X_LABELS[x])
    legend_above(ax, columns=1 if len(policies) < 4 else 2)
    return ax


def _rule(rule: str, all_rules: Iterable[str], before: str) -> str:
    """Returns the name of a policy's stopping rule after `before`; "" if all policies have the same rule."""
    return before + rule if len(set(all_rules)) > 1 else ""


def plot_proportions(
    rows: Sequence[RunRow], omega: Sequence[float], labels: Sequence[str], most: int = 30, ax: Axes | None = None
) -> Axes:
    """Returns axes with the mean share of the pulls that each policy gave each arm, and bars of the optimal omega*.

    If there are more than `most` arms, only those with the largest shares are shown. All rows must be of one instance
    and one delta. `omega` is empty if R is below S(mu), where there is no optimal allocation.
    """
    ax = ax or new_axes(size=(7.2, 4.6))
    policies = dict.fromkeys(row.policy for row in rows)
    given = {
        policy: np.mean([np.array(row.counts) / sum(row.counts) for row in rows if row.policy == policy], axis=0)
        for policy in policies
    }
    largest = np.array(omega) if len(omega) else np.mean(list(given.values()), axis=0)
    shown = np.sort(np.argsort(-largest, kind="stable")[:most])
    places = np.arange(shown.size)
    if len(omega):
        ax.bar(places, largest[shown], width=0.8, color="0.85", label=r"optimal allocation $\omega^*(\mu)$")
    for index, (policy, shares) in enumerate(given.items()):
        marks = STYLES[index % len(STYLES)].marks | {"markersize": 5, "markeredgewidth": 1.2}
        ax.plot(places, shares[shown], linestyle="", label=words(policy), **marks)
    rotation, size = (90, 8) if shown.size > 12 or max(len(labels[arm]) for arm in shown) > 4 else (0, 9)
    ax.set_xticks(places, [words(labels[arm]) for arm in shown], rotation=rotation, fontsize=points(size))
    which = "" if shown.size == largest.size else f" (the {shown.size} of {largest.size} with the largest share)"
    ax.set_xlabel(f"arm{which}")
    ax.set_ylabel("share of the pulls")
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:.0%}"))
    ax.set_ylim(bottom=0)
    plain(ax)
    legend_above(ax, columns=2)
    return ax
