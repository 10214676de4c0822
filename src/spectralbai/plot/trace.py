"""A figure of one simulated run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from spectralbai.plot.study import plot_evidence, plot_race
from spectralbai.trace import Trace


def plot_trace(trace: Trace, labels: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Returns axes with the wealth of the account against each arm over time or, for rules without accounts, the
    statistic and the threshold that it must exceed.

    Examples:
        >>> import spectralbai as sb
        >>> from spectralbai import plot
        >>> policy = sb.SpectralRace(sb.Problem(sb.Graph.from_edges(2, []), R=1.0), delta=0.05)
        >>> ax = plot.plot_trace(sb.simulate.trace(policy, mu=[3.0, 0.0], seed=1), ["new page", "old page"])
        >>> plot.as_picture(ax, "pdf")[:5]
        b'%PDF-'
    """
    steps = range(1, trace.arms.size + 1)
    verdict = trace.verdict
    if trace.wealth is None:
        thresholds = np.where(np.isinf(trace.threshold), np.nan, trace.threshold).tolist()
        return plot_evidence(steps, trace.statistic.tolist(), thresholds, verdict.stopped_at, verdict.decided, ax)
    names = labels or [f"arm {arm}" for arm in range(trace.counts.shape[1])]
    lacking = -np.log(trace.wealth * trace.delta)
    return plot_race(steps, lacking, names, trace.delta, verdict.arm, ax, account_is="account against the arm")
