"""Figures: each function takes results and returns Axes. Only this package needs matplotlib: pip install
'spectralbai[plot]'."""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ModuleNotFoundError:
    from spectralbai.errors import SpectralBAIError

    raise SpectralBAIError(
        "pictures need matplotlib, which is not installed; run: pip install 'spectralbai[plot]'"
    ) from None

from spectralbai.plot.campaign import plot_proportions, plot_tau_against, plot_tau_by_policy
from spectralbai.plot.files import as_picture, as_png
from spectralbai.plot.network import plot_graph
from spectralbai.plot.planning import plot_budget
from spectralbai.plot.reproduction import plot_reproduction
from spectralbai.plot.study import plot_estimates, plot_evidence, plot_outcomes, plot_race, plot_shares
from spectralbai.plot.style import of_width
from spectralbai.plot.trace import plot_trace

__all__ = [
    "as_picture",
    "as_png",
    "of_width",
    "plot_budget",
    "plot_estimates",
    "plot_evidence",
    "plot_graph",
    "plot_outcomes",
    "plot_proportions",
    "plot_race",
    "plot_reproduction",
    "plot_shares",
    "plot_tau_against",
    "plot_tau_by_policy",
    "plot_trace",
]
