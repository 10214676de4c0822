"""The figure of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes

from spectralbai.plot.style import STYLES, curve_with_bars, legend_above, new_axes, samples_on_y
from spectralbai.reproduction import CurveRow, paired_saving

NAMES = {
    ("spectral-race", "betting"): "ours: race, stopped by betting",
    ("spectral-tas", "paper"): (
        "paper's sampling, solved to the end at the smooth estimate;\nconstrained statistic, paper's threshold"
    ),
    ("spectral-tas-printed", "paper-printed"): "paper's Algorithm 1 as printed, 300 steps of mirror ascent a pull",
}
DODGE = 0.14
"""Distance of neighbouring curves at one R, as a part of the distance between neighbouring values of R."""


def plot_reproduction(rows: Sequence[CurveRow], delta: float, ax: Axes | None = None) -> Axes:
    """Returns the figure of the paper: the mean of tau, plus or minus a standard deviation, per curve and R, and the
    lower bound.

    Without `ax`, a new figure with a caption is made, which is not registered with pyplot.
    """
    curves = list(dict.fromkeys((row.policy, row.rule) for row in rows))
    radii = sorted({row.R for row in rows})
    spacing = min((high - low for low, high in pairwise(radii)), default=radii[0])
    ax = ax or new_axes(_caption(rows, delta))
    bound = {row.R: row.lower_bound for row in rows}
    label = r"lower bound on $E[\tau]$: $T_R^*(\mu)\,\mathrm{kl}(\delta, 1-\delta)$"
    ax.plot(radii, [bound[R] for R in radii], color="black", linewidth=2.2, label=label)
    for index, curve in enumerate(curves):
        style = STYLES[index % len(STYLES)]
        own = sorted((row for row in rows if (row.policy, row.rule) == curve), key=lambda row: row.R)
        shift = (index - (len(curves) - 1) / 2) * DODGE * spacing  # so that the bars do not hide one another
        at, mean, std = [row.R + shift for row in own], [row.mean_tau for row in own], [row.std_tau for row in own]
        label = f"{NAMES.get(curve, ' '.join(curve))} ({'risk proved' if own[0].proved else 'risk not proved'})"
        _, caps, spread = curve_with_bars(ax, at, mean, std, style, label)
        for part in (*caps, *spread):
            part.set_alpha(0.4)  # so that the means stand out
    ax.set_xlabel(r"$R$: bound on the roughness $S(\mu)$ of the means (smaller: the graph says more)")
    ax.set_xticks(radii)
    samples_on_y(ax)
    legend_above(ax)
    return ax


def _caption(rows: Sequence[CurveRow], delta: float) -> str:
    runs = sorted({row.runs for row in rows})
    count = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    many = "run" if runs[-1] == 1 else "runs"
    saving, error = paired_saving(rows)
    compared = (
        f"\nRun by run the race takes {saving:.0f} samples fewer at the smallest $R$ than at the largest, "
        f"standard error {error:.0f}."
        if math.isfinite(error)
        else ""
    )
    return (
        "Finding the best of three arms of means 0.9, 0.5 and 0.6 from samples with Gaussian noise of standard\n"
        f"deviation 1, at a risk of error $\\delta$ = {delta:g} (our choice: the paper names none). It is known that\n"
        "the last two means are alike: their squared difference, which is 0.01, is at most $R$. Markers and bars:\n"
        f"mean and standard deviation of the samples of {count} {many} per $R$, all on the same outcomes.\n"
        "Black line: no method whose risk holds for all means that $R$ allows needs fewer samples on average."
        f"{compared}"
    )
