"""What a budget can find, as a picture."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, PercentFormatter

from spectralbai.campaign.summary import exact_limits
from spectralbai.planning import Budget
from spectralbai.planning.budget import PROBABILITIES
from spectralbai.plot.style import STYLES, legend_above, new_axes, plain


def plot_budget(found: Budget, ax: Axes | None = None) -> Axes:
    """Returns axes with the probability of a decision within the budget, by tolerance.

    The band shows exact 95 % intervals of the shares of simulated runs. A tolerance of 0 cannot be shown on the
    logarithmic axis, and is in the caption.
    """
    curve = [each for each in found.curve if each.tolerance > 0]
    ax = ax or new_axes(_caption(found))
    tolerances, shares = [each.tolerance for each in curve], [each.share for each in curve]
    low, high = zip(*(exact_limits(each.decided, each.runs) for each in curve), strict=True)
    ax.fill_between(tolerances, low, high, color=STYLES[0].colour, alpha=0.15, linewidth=0, label="95 % interval")
    label = "share of simulated runs that decide"
    ax.plot(tolerances, shares, color=STYLES[0].colour, marker=STYLES[0].marker, label=label)
    for probability, style in zip(PROBABILITIES, STYLES[1:], strict=False):
        tolerance = found.smallest_tolerance(probability)
        label = f"{probability:.0%}: " + ("no tolerance tried" if tolerance is None else f"tolerance {tolerance:.3g}")
        ax.axhline(probability, color=style.colour, linestyle=style.line, linewidth=1.2, label=label)
    ax.set_xscale("log")
    ax.set_xticks(tolerances[-1] / 2.0 ** np.arange(np.ceil(np.log2(tolerances[-1] / tolerances[0])) + 1))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.2g}"))
    ax.minorticks_off()
    ax.set_xlabel("tolerance: an option this close to the best is as good")
    ax.set_ylabel(f"probability of a decision within {found.trials:,} trials")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_ylim(-0.02, 1.02)
    plain(ax)
    legend_above(ax, columns=2)
    return ax


def _caption(found: Budget) -> str:
    given = found.given
    left = f"; otherwise {np.mean(found.candidates):.1f} options are left on average" if found.candidates else ""
    return (
        f"Races of {found.instance.problem.n_arms} options at a risk of {found.delta:g}, {given.runs} simulated runs "
        f"of each tolerance.\nWith the tolerance given, {given.tolerance:g}, {given.share:.0%} decide in time{left}."
    )
