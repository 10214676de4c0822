"""`spectralbai reproduce`: the example of the paper."""

from __future__ import annotations

import math

from spectralbai.cli.tables import print_plain

MEANS = (0.9, 0.5, 0.6)
DELTA = 0.01


def reproduce() -> None:
    """The paper's example: how the sample complexity grows with R.

    Three arms of means 0.9, 0.5 and 0.6, the last two joined by an edge, noise of standard deviation 1.
    The smaller R, the more the graph says.
    """
    from rich import box
    from rich.table import Table

    from spectralbai.allocation import lower_bound, solve_allocation
    from spectralbai.graph import Graph
    from spectralbai.problem import Problem

    graph = Graph.from_edges(3, [(1, 2)])
    without = solve_allocation(Problem(graph, math.inf), MEANS).characteristic_time
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("R", "T_R*", "saved by the graph", f"least E[tau] at delta = {DELTA:g}"):
        table.add_column(heading, justify="right")
    for R in (k / 100 for k in range(1, 11)):
        problem = Problem(graph, R)
        time = solve_allocation(problem, MEANS).characteristic_time
        table.add_row(f"{R:.2f}", f"{time:.3f}", f"{max(0.0, 1 - time / without):.1%}", f"{lower_bound(problem, MEANS, DELTA):.1f}")
    table.add_row("inf", f"{without:.3f}", "", f"{lower_bound(Problem(graph, math.inf), MEANS, DELTA):.1f}")
    print_plain("Means 0.9, 0.5, 0.6; one edge between the second and the third arm; sigma = 1", "", table)
