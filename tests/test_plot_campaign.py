"""Figures of campaigns and graphs: labelled, complete, and with legends that cover nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.patches import Rectangle

from spectralbai import Graph, Instance, Problem, instances
from spectralbai.campaign import Cell, RunRow
from spectralbai.layout import layout
from spectralbai.plot import as_png, plot_estimates, plot_graph, plot_proportions, plot_tau_against, plot_tau_by_policy
from spectralbai.plot.style import STYLES

POLICIES = (
    "spectral-race",
    "race",
    "spectral-tas",
    "uniform",
    "lucb",
    "graph-elimination",
    "oracle",
    "top-two",
    "track-and-stop",
)


def row(policy: str, run: int, tau: int, counts: tuple[int, ...] = (3, 1)) -> RunRow:
    return RunRow("x", policy, 0.1, run, run, "gk16", True, "decided", tau, 0, True, counts, 0.1)


def cell(policy: str, **changes: Any) -> Cell:
    values: dict[str, Any] = {name: 1 for name in Cell.__dataclass_fields__} | {
        "policy": policy,
        "instance": "x",
        "runs": 5,
        "proved": True,
    }
    return Cell(**values | {"delta": 0.1, "mean_tau": 100.0, "mean_tau_high": 120.0, "lower_bound": 40.0} | changes)


ROWS = [row(policy, run, 100 * (k + 1) + run) for k, policy in enumerate(POLICIES) for run in range(9)]


def legend_is_outside(ax: Axes) -> bool:
    legend = ax.get_legend()
    as_png(ax)  # lays everything out
    assert legend is not None
    return bool(legend.get_window_extent().y0 >= ax.get_window_extent().y1)


def test_a_box_per_policy_with_every_run_and_the_bound() -> None:
    ax = plot_tau_by_policy(ROWS, 50.0)
    assert [label.get_text() for label in ax.get_xticklabels()] == list(POLICIES)
    assert "(samples)" in ax.get_ylabel() and ax.get_xlabel() == "policy"
    dots = [line for line in ax.lines if line.get_marker() == "o" and line.get_linestyle() == "None"]
    assert [sorted(np.asarray(line.get_ydata()).tolist()) for line in dots] == [
        [100 * (k + 1) + run for run in range(9)] for k in range(len(POLICIES))
    ]
    medians = {float(np.asarray(line.get_ydata())[0]) for line in ax.lines if line.get_linewidth() == 2.4}
    assert medians == {100 * (k + 1) + 4 for k in range(len(POLICIES))}
    bound = next(line for line in ax.lines if "lower bound" in str(line.get_label()))
    assert np.asarray(bound.get_ydata()).tolist() == [50.0, 50.0]
    assert legend_is_outside(ax)
    assert ax.get_yscale() == "linear" and ax.get_ylim()[0] == 0


def test_times_of_other_orders_are_shown_on_a_logarithmic_scale() -> None:
    assert plot_tau_by_policy([row("a", 0, 100), row("b", 0, 9000)]).get_yscale() == "log"
    assert (
        plot_tau_against([cell("a", R=1), cell("b", R=1, mean_tau=9000.0, mean_tau_high=9500.0)], "R").get_yscale()
        == "log"
    )


@pytest.mark.parametrize(
    ("x", "values", "ticks"),
    [
        ("R", (0.01, 0.02, math.inf), ["0.01", "0.02", "∞"]),
        ("delta", (0.1, 0.01, 1e-8), ["0.1", "0.01", "1e-08"]),
        ("n_arms", (21, 51, 101), ["21", "51", "101"]),
    ],
)
def test_a_curve_per_policy_with_intervals_above_the_bound(x: Any, values: tuple[float, ...], ticks: list[str]) -> None:
    cells = [
        cell(
            policy,
            **{x: value},
            mean_tau=100.0 * (k + 1),
            mean_tau_high=110.0 * (k + 1),
            lower_bound=10.0 * (1 + place),
        )
        for k, policy in enumerate(POLICIES)
        for place, value in enumerate(values)
    ]
    ax = plot_tau_against(cells, x)
    assert [label.get_text() for label in ax.get_xticklabels()] == ticks
    assert ax.get_xlabel() and "(samples)" in ax.get_ylabel()
    bound = next(line for line in ax.lines if "lower bound" in str(line.get_label()))
    assert np.asarray(bound.get_ydata()).tolist() == [10.0, 20.0, 30.0]
    curves = [each for each in ax.containers if isinstance(each, ErrorbarContainer)]
    assert [list(curve[0].get_ydata()) for curve in curves] == [[100.0 * (k + 1)] * 3 for k in range(len(POLICIES))]
    assert legend_is_outside(ax)


def test_a_rule_that_is_not_proved_is_said_so() -> None:
    legend = plot_tau_against([cell("a", R=1), cell("b", R=1, proved=False)], "R").get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][1:] == ["a", "b (risk not proved)"]


def test_rules_are_named_where_they_differ() -> None:
    legend = plot_tau_against([cell("a", R=1, rule="betting"), cell("b", R=1, rule="paper")], "R").get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][1:] == ["a, betting", "b, paper"]
    ax = plot_tau_by_policy([row("a", 0, 50), replace(row("b", 0, 60), rule="paper")])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a\ngk16", "b\npaper"]


def test_means_of_runs_cut_short_are_marked() -> None:
    ax = plot_tau_against([cell("a", R=1, truncated=0), cell("a", R=2, truncated=3)], "R")
    assert [text.get_text() for text in ax.texts] == ["cut short"]


def test_styles_differ_in_colour_marker_and_line() -> None:
    assert len(STYLES) >= len(POLICIES)
    for look in ("colour", "marker", "line"):
        assert len({getattr(style, look) for style in STYLES}) == len(STYLES)


def test_proportions_are_mean_shares_beside_the_optimal_ones() -> None:
    rows = [row("a", 0, 4, (3, 1)), row("a", 1, 4, (1, 3)), row("b", 0, 4, (4, 0))]
    ax = plot_proportions(rows, (0.6, 0.4), ("left", "right"))
    assert [bar.get_height() for bar in ax.patches if isinstance(bar, Rectangle)] == [0.6, 0.4]
    assert [np.asarray(line.get_ydata()).tolist() for line in ax.lines] == [[0.5, 0.5], [1.0, 0.0]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["left", "right"]
    assert legend_is_outside(ax)
    many = plot_proportions(
        [row("a", 0, 4, tuple(range(100)))], tuple(np.arange(100) / 4950), tuple(map(str, range(100))), most=10
    )
    assert [label.get_text() for label in many.get_xticklabels()] == [str(arm) for arm in range(90, 100)]
    assert "10 of 100" in many.get_xlabel()
    assert len(plot_proportions(rows, (), ("left", "right")).patches) == 0


def test_the_graph_shows_every_edge_the_labels_and_the_best_arm() -> None:
    instance = instances.karate_club()
    ax = plot_graph(instance, np.full(34, 1 / 34).tolist())
    assert len(ax.collections[0].get_paths()) == instance.problem.graph.n_edges
    written = {text.get_text() for text in ax.texts}
    assert written <= set(instance.labels) and len(written) >= 28, "all labels but those that would cover others"
    legend = ax.get_legend()
    assert instance.mu is not None and legend is not None
    assert legend.get_texts()[0].get_text() == f"best arm: {int(np.argmax(instance.mu))}"
    assert legend_is_outside(ax)
    assert as_png(plot_graph(Instance(Problem(Graph.from_edges(2, []), 1.0)))).startswith(b"\x89PNG")


@pytest.mark.parametrize("n_arms", [30, 100])
def test_labels_of_many_arms_cover_neither_one_another_nor_leave_the_picture(n_arms: int) -> None:
    made = instances.path(n_arms)
    labels = [f"an option with a long name, number {arm}" for arm in range(n_arms)]
    ax = plot_graph(Instance(made.problem, made.mu, labels), best=7, named=[n_arms - 1])
    as_png(ax)
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) >= 10
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    assert all(0 <= box.x0 and box.x1 <= ax.figure.bbox.x1 for box in boxes)
    shown = {text.get_text()[-2:].strip() for text in ax.texts}
    legend = ax.get_legend()
    assert str(n_arms - 1) in shown and legend is not None and legend.get_texts()[0].get_text().endswith("number 7")


@pytest.mark.parametrize("n_arms", [3, 30, 100, 1000])
def test_estimates_have_a_row_per_arm_and_labels_apart(n_arms: int) -> None:
    labels = [f"an option with a very long name, number {arm}" for arm in range(n_arms)]
    means = np.linspace(1, 0, n_arms)
    ax = plot_estimates(labels, means.tolist(), (means - 1).tolist(), (means + 1).tolist(), 1, control=2)
    as_png(ax)
    legend = ax.get_legend()
    assert legend is not None and legend.get_window_extent().y0 >= ax.get_window_extent().y1
    assert legend.get_window_extent().x1 <= ax.figure.bbox.x1
    written = [label for label in ax.get_yticklabels() if label.get_text()]
    boxes = sorted((label.get_window_extent() for label in written), key=lambda box: box.y0)
    assert all(a.y1 <= b.y0 for a, b in pairwise(boxes)) and boxes[0].x0 >= 0
    assert len(written) == n_arms if n_arms <= 30 else len(written) >= 30
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first on top
    assert 1 in ax.get_yticks()


@pytest.mark.parametrize(
    "made", [instances.cliques(4, 6), instances.karate_club(), instances.path(30), instances.star(12)]
)
def test_no_two_arms_are_drawn_on_one_another(made: Instance) -> None:
    places = layout(made.problem.graph)
    apart = np.sqrt(((places[:, None] - places[None]) ** 2).sum(-1))
    np.fill_diagonal(apart, np.inf)
    assert apart.min() > 0.01 * np.ptp(places, axis=0).max()


def test_a_large_grid_is_drawn_unfolded() -> None:
    side = 15
    number = np.arange(side * side).reshape(side, side)
    joined = [(number[:-1], number[1:]), (number[:, :-1], number[:, 1:])]
    edges = np.vstack([np.column_stack([first.flat, second.flat]) for first, second in joined])
    graph = Graph.from_edges(side * side, edges.tolist())
    places = layout(graph)
    long = np.linalg.norm(places[graph.pairs[:, 0]] - places[graph.pairs[:, 1]], axis=1)
    across = np.linalg.norm(places[number[0, 0]] - places[number[-1, -1]])
    assert long.max() < 2 * np.median(long) and across > 0.8 * side * np.median(long)
    assert layout(graph) is places, "a page asks for the same places many times"
