"""Figures."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from spectralbai.plot import as_png, plot_estimates, plot_race, plot_reproduction
from spectralbai.reproduction import CURVES, RADII, CurveRow

ROWS = [
    CurveRow(*curve, R, 90 + R, 400 + R, 20, 1000.0 * (1 + index) + 100 * R, 50.0, 0, curve[1] == "betting")
    for index, curve in enumerate(CURVES)
    for R in RADII
]


def bars(ax: Axes) -> list[ErrorbarContainer]:
    return [container for container in ax.containers if isinstance(container, ErrorbarContainer)]


def test_both_axes_are_labelled_and_the_unit_is_samples() -> None:
    ax = plot_reproduction(ROWS, 0.01)
    assert "$R$" in ax.get_xlabel() and "(samples)" in ax.get_ylabel()
    assert ax.get_ylim()[0] == 0


def test_the_legend_names_the_bound_and_the_curves_and_says_which_are_proved() -> None:
    legend = plot_reproduction(ROWS, 0.01).get_legend()
    assert legend is not None
    bound, *curves = [text.get_text() for text in legend.get_texts()]
    assert "lower bound" in bound
    assert ["race" in curve for curve in curves] == [True, False, False]
    assert ["betting" in curve for curve in curves] == [True, False, False]
    assert ["as printed" in curve for curve in curves] == [False, False, True]
    assert ["not proved" in curve for curve in curves] == [False, True, True]


def test_there_is_the_bound_and_a_curve_with_bars_per_policy_and_rule() -> None:
    ax = plot_reproduction(ROWS, 0.01)
    theory = next(line for line in ax.lines if str(line.get_label()).startswith("lower bound"))
    assert np.asarray(theory.get_xdata()).tolist() == list(RADII)
    assert np.asarray(theory.get_ydata()).tolist() == [400 + R for R in RADII]
    assert len(bars(ax)) == len(CURVES)
    for index, container in enumerate(bars(ax)):
        own = ROWS[10 * index : 10 * index + 10]
        assert list(container[0].get_ydata()) == [row.mean_tau for row in own]
        low, high = zip(*((segment[0][1], segment[1][1]) for segment in container[2][0].get_segments()), strict=True)
        assert low == pytest.approx([row.mean_tau - 50 for row in own]) and high == pytest.approx(
            [row.mean_tau + 50 for row in own]
        )


def test_curves_differ_in_marker_line_and_colour_and_stand_side_by_side() -> None:
    curves = [container[0] for container in bars(plot_reproduction(ROWS, 0.01))]
    for look in ("get_marker", "get_linestyle", "get_color"):
        assert len({getattr(curve, look)() for curve in curves}) == len(CURVES)
    places = sorted(x for curve in curves for x in curve.get_xdata())
    assert min(b - a for a, b in pairwise(places)) > 0.001


def test_the_legend_lies_outside_the_data_and_everything_inside_the_figure() -> None:
    ax = plot_reproduction(ROWS, 0.01)
    figure = ax.figure
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    legend, caption = ax.get_legend(), next(text for text in figure.texts if text.get_text() == figure.get_supxlabel())
    assert legend is not None
    assert legend.get_window_extent().y0 >= ax.get_window_extent().y1
    assert caption.get_window_extent().y1 <= ax.xaxis.label.get_window_extent().y0
    for part in (legend, caption, ax.xaxis.label, ax.yaxis.label):
        box = part.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1


def test_the_caption_tells_risk_and_runs() -> None:
    caption = plot_reproduction(ROWS, 0.05).figure.get_supxlabel()
    assert "= 0.05" in caption and "20 runs" in caption
    fewer = [replace(ROWS[0], runs=18), *ROWS[1:]]
    assert "18 to 20 runs" in plot_reproduction(fewer, 0.05).figure.get_supxlabel()


def test_the_caption_compares_the_race_at_both_ends_run_by_run() -> None:
    rows = [replace(row, taus=(300, 500) if row.R == RADII[0] else (400, 800)) for row in ROWS]
    caption = plot_reproduction(rows, 0.05).figure.get_supxlabel()
    assert "the race takes 200 samples fewer at the smallest $R$ than at the largest, standard error 100." in caption
    assert "race" not in plot_reproduction(ROWS, 0.05).figure.get_supxlabel(), "nothing to compare"


def test_given_axes_are_drawn_on_and_their_figure_gets_no_caption() -> None:
    given = Figure().add_subplot()
    assert plot_reproduction(ROWS, 0.01, given) is given
    assert given.figure.get_supxlabel() == "" and len(bars(given)) == len(CURVES)


def test_missing_means_and_deviations_leave_gaps() -> None:
    rows = [
        replace(row, runs=1, std_tau=math.nan, mean_tau=math.nan if row.R == 0.05 else row.mean_tau) for row in ROWS
    ]
    assert as_png(plot_reproduction(rows, 0.01)).startswith(b"\x89PNG\r\n\x1a\n")


def test_an_arm_that_led_for_a_while_is_not_out_and_one_that_came_back_neither() -> None:
    lacking = np.array([[0.0, 2.0, 2.0, 1.0], [1.5, 0.0, 0.0, 1.0], [2.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.5, 0.0]])
    lacking[[0, 1, 2, 3], [0, 1, 1, 1]] = np.nan  # there is no account against the option that leads
    ax = plot_race([1, 2, 3, 4], lacking, ["led", "leads", "came back", "gone"], 0.05, 1)
    labels = ax.get_legend_handles_labels()[1]
    assert sorted(labels) == ["came back", "gone (out)", "led"]
    marks = [line.get_xdata() for line in ax.get_lines() if line.get_marker() == "x"]
    assert [float(np.asarray(at).item()) for at in marks] == [3.0]
    curve = ax.get_lines()[labels.index("led")]
    assert np.isnan(curve.get_ydata()[0]) and np.isfinite(curve.get_ydata()[1:]).all()  # type: ignore[index]


def test_signs_that_the_font_lacks_are_drawn_as_boxes_without_a_warning() -> None:
    labels = ["\N{PARTY POPPER}" * (k + 1) for k in range(4)]
    lacking = np.ones((2, 4))
    as_png(plot_race([1, 2], lacking, labels, 0.05, None))
    as_png(plot_estimates(labels, [0.1, 0.2, 0.3, 0.4], [0.0] * 4, [1.0] * 4, 3))
