"""`spectralbai solve`: the characteristic times with and without the graph, and the optimal allocation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from spectralbai import __version__
from spectralbai.cli.extensions import Import
from spectralbai.cli.files import InstanceFile, read_instance
from spectralbai.cli.tables import empty_table, print_plain
from spectralbai.cli.work import progress
from spectralbai.documents import plain
from spectralbai.errors import InvalidInput
from spectralbai.text.wording import in_words

if TYPE_CHECKING:
    from spectralbai.allocation import Allocation
    from spectralbai.arrays import Vector
    from spectralbai.instance import Instance

MOST_ROWS = 30
"""Longer tables are cut to `ROWS_KEPT` rows."""
ROWS_KEPT = 20
BAR_WIDTH = 24
UNFINISHED = 3


def solve(
    file: InstanceFile,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")] = False,
    tol: Annotated[float, Option(help="Relative gap of the certified bounds at which to stop.")] = 1e-6,
    solver: Annotated[
        str, Option(help="auto, mirror-ascent, closed-form, interior-point, binary or catalogue.")
    ] = "auto",
    max_iterations: Annotated[
        int | None, Option(help="Most steps; the solver's own limit if not given.", metavar="N")
    ] = None,
    modules: Import = None,
) -> None:
    """Says what the graph saves, and how to share the samples.

    T_R* is the least expected number of samples per unit of log(1/delta) if the means are known to be smooth on the
    graph, T_inf* if the graph is ignored; both come with certified bounds. For scores in a range they are computed for
    Gaussian outcomes whose sigma is half of the range, and give no lower bound on the samples.

    \b
    Example:
      echo '{"format": "spectralbai-instance/3", "n_arms": 3, "edges": [[1, 2, 1.0]],
             "mu": [0.9, 0.5, 0.6], "R": 0.01, "sigma": 1.0}' | spectralbai solve -

    The exit code is 3 if the bounds are further apart than --tol; they are still valid then.
    """
    instance = read_instance(file)
    problem, mu = instance.problem, instance.mu
    if mu is None:
        name = "standard input" if file == "-" else file
        raise InvalidInput(
            f'{name}: "mu" is missing; add "mu": [...] with {problem.n_arms} numbers, the mean of each arm'
        )

    from spectralbai.allocation import solve_allocation

    with progress("solving"):
        with_graph = solve_allocation(problem, mu, tol=tol, solver=solver, max_iterations=max_iterations)
        without_graph = solve_allocation(problem.without_graph(), mu, tol=tol)
    if as_json:
        document = _as_dict(instance, mu, tol, with_graph, without_graph)
        typer.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
    else:
        _print_tables(instance, mu, tol, with_graph, without_graph)
    if "unfinished" in (with_graph.status, without_graph.status):
        raise typer.Exit(UNFINISHED)


def _as_dict(
    instance: Instance, mu: Vector, tol: float, with_graph: Allocation, without_graph: Allocation
) -> dict[str, Any]:
    problem = instance.problem
    return {
        "format": "spectralbai-solve/2",
        "version": __version__,
        "n_arms": problem.n_arms,
        "labels": list(instance.labels),
        "mu": mu.tolist(),
        "R": plain(problem.R),
        "smoothness": problem.smoothness(mu),
        "sigma": problem.sigma.tolist(),
        "divergence": problem.noise.divergence,
        "tolerance": problem.tolerance,
        "tol": tol,
        **with_graph.as_dict(),
        "without_graph": without_graph.as_dict(),
        "saving": with_graph.saving(without_graph),
    }


def _print_tables(
    instance: Instance, mu: Vector, tol: float, with_graph: Allocation, without_graph: Allocation
) -> None:
    from rich.table import Table

    problem = instance.problem
    labels = [_printable(label) for label in instance.labels]

    summary = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    sigmas = {f"{sigma:g}" for sigma in problem.sigma.tolist()}
    graph = f"{in_words(problem.n_arms, 'arm')}, {problem.graph.described()}"
    noise = f"sigma {sigmas.pop() if len(sigmas) == 1 else 'per arm'}"
    if problem.outcome_range is not None:
        noise = problem.noise.described()
    summary.add_row("problem", f"{graph}, {noise}, tolerance {problem.tolerance:g}")
    if problem.noise.divergence is None:
        summary.add_row("", "T* is that of Gaussian outcomes whose sigma is half of the range: no bound for scores")
    summary.add_row("smoothness", f"S(mu) = {problem.smoothness(mu):.6g}, {problem.described_R()}")
    summary.add_row("best arm", labels[with_graph.best])
    summary.add_row("T_R*", f"{with_graph.characteristic_time:.6g} samples per unit of log(1/delta)")
    summary.add_row("T_inf*", f"{without_graph.characteristic_time:.6g} without the graph")
    if with_graph.lower > 0:
        times, saving = with_graph.lower / without_graph.lower, with_graph.saving(without_graph)
        summary.add_row("the graph saves", f"{saving:.1%} of the samples (T_inf*/T_R* = {times:.3g})")
    summary.add_row("certificate", f"{with_graph.lower:.8g} <= 1/T_R* <= {with_graph.upper:.8g}")
    summary.add_row("", f"{with_graph.status}: gap {with_graph.gap:.1e}, asked {tol:.1e}")
    summary.add_row("solver", f"{with_graph.solver}, {in_words(with_graph.iterations, 'step')}")

    by_share = sorted(range(problem.n_arms), key=lambda arm: -with_graph.omega[arm])
    shown = range(problem.n_arms) if problem.n_arms <= MOST_ROWS else by_share[:ROWS_KEPT]
    largest = with_graph.omega.max()
    bar = "share of the samples"
    arms = empty_table("arm", "mean", "omega", bar, left=("arm", bar), folded=("arm",), least={bar: BAR_WIDTH})
    for arm in shown:
        omega = float(with_graph.omega[arm])
        arms.add_row(labels[arm], f"{mu[arm]:.6g}", f"{omega:.2%}", "█" * round(BAR_WIDTH * omega / largest))
    rest = float(with_graph.omega[by_share[ROWS_KEPT:]].sum())
    more = f"and {problem.n_arms - ROWS_KEPT} more arms that share {rest:.2%}; --json lists them all"
    print_plain(summary, "", arms, *([more] if problem.n_arms > MOST_ROWS else []))


def _printable(label: str) -> str:
    return label if label.isprintable() else ascii(label)
