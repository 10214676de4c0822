"""Figures: results in, Axes out. The only package that needs matplotlib: pip install 'spectralbai[plot]'."""

from spectralbai.plot.campaign import plot_proportions, plot_tau_against, plot_tau_by_policy
from spectralbai.plot.network import plot_graph
from spectralbai.plot.reproduction import plot_reproduction
from spectralbai.plot.study import plot_estimates, plot_evidence, plot_shares
from spectralbai.plot.style import as_png

__all__ = [
    "as_png",
    "plot_estimates",
    "plot_evidence",
    "plot_graph",
    "plot_proportions",
    "plot_reproduction",
    "plot_shares",
    "plot_tau_against",
    "plot_tau_by_policy",
]
