"""Instances from tables of options: which options are alike, how much outcomes vary, and which R follows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.checks import check_amount
from spectralbai.errors import InvalidInput, about
from spectralbai.graph import Graph, usual_neighbors
from spectralbai.inputs.features import features_from
from spectralbai.inputs.history import implied_R, implied_radii, rounded_up, sigma_from, step_inside
from spectralbai.inputs.table import CsvTable, arms_from, edges_from, observations_from
from spectralbai.instance import Instance
from spectralbai.problem import Problem
from spectralbai.text.wording import difference_in_words


@dataclass(frozen=True)
class Choices:
    """The choices besides the tables. `called` gives the user's name of a choice, for messages."""

    features: str | None = None
    """Columns to compare options by, with commas between."""
    neighbors: int | None = None
    """Nearest options that each is joined to."""
    by: str | None = None
    """Column with categories: the options of one are alike."""
    label: str | None = None
    """Column with the labels; the first if not given."""
    guess: str | None = None
    """Column with guesses of the mean outcomes."""
    R: float | None = None
    step: Any = None
    """Instead of R: neighbours differ by at most this: a number or, if outcomes lie between 0 and 1, "3%"."""
    sigma: float | None = None
    low: float | None = None
    high: float | None = None
    binary: bool = False
    tolerance: Any = 0.0
    """A number, or a text, as for `step`."""
    called: Callable[[str], str] = "--{}".format

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval in which outcomes lie, if that is known."""
        if self.low is not None and self.high is not None:
            return self.low, self.high
        return (0.0, 1.0) if self.binary else None

    def in_units(self) -> Choices:
        """Returns the same choices with step and tolerance as numbers; raises InvalidInput if neighbours may differ by
        all of the range, which says nothing."""
        step, tolerance = (
            check_amount(self.called(name), getattr(self, name), self.ends) for name in ("step", "tolerance")
        )
        if step is not None and self.ends is not None and step >= self.ends[1] - self.ends[0]:
            low, high = self.ends
            raise InvalidInput(
                f"{self.called('step')} must be below {high - low:g}, or with outcomes between {low:g} and {high:g} no "
                f"options are alike, got {step:g}"
                + (f"; for {step:g} % give {step:g}%" if (low, high) == (0.0, 1.0) and step < 100 else "; lower it")
            )
        return replace(self, step=step, tolerance=tolerance)

    def check(self, arms: bool, edges: bool, observations: bool) -> None:
        """Raises InvalidInput for choices that do not go together, or do not fit the tables given."""
        self._check_graph(arms, edges)
        self._check_noise(observations)

    def _check_graph(self, arms: bool, edges: bool) -> None:
        c = self.called
        if not (arms or edges):
            raise InvalidInput(
                f"{c('arms')} or {c('edges')} is needed: a CSV file of options, or of pairs of similar ones"
            )
        if not arms and not (self.features is None and self.guess is None and self.by is None):
            raise InvalidInput(
                f"{c('features')}, {c('by')} and {c('guess')} name columns of {c('arms')}, which is missing"
            )
        makers = {"features": self.features is not None, "edges": edges, "by": self.by is not None}
        named = [c(name) for name, there in makers.items() if there]
        if not named:
            raise InvalidInput(
                f"{c('features')} is needed to tell which options are alike, such as {c('features')} dose,age; or give "
                f"{c('edges')}, or {c('by')} a column of categories"
            )
        if len(named) > 1:
            raise InvalidInput(f"{' and '.join(named)} both make the graph; keep one")
        if self.R is not None and self.step is not None:
            raise InvalidInput(f"{c('R')} and {c('step')} both set R; keep one")

    def _check_noise(self, observations: bool) -> None:
        c = self.called
        if (self.low is None) != (self.high is None):
            raise InvalidInput(f"{c('low')} and {c('high')} go together; give both")
        given = {
            c("sigma"): self.sigma is not None,
            c("observations"): observations,
            f"{c('low')}, {c('high')}, {c('binary')}": self.low is not None or self.binary,
        }
        named = [name for name, there in given.items() if there]
        if len(named) > 1:
            raise InvalidInput(f"{' and '.join(named)} both describe the noise; keep one")
        if not named:
            raise InvalidInput(
                f"{c('sigma')} is missing, the standard deviation of one outcome of one option; know it from "
                f"experience, or try a few options several times and give {c('observations')}, a CSV of label and "
                f"outcome, or give {c('low')} and {c('high')} if outcomes lie in a range, or {c('binary')} "
                "if they are 0 or 1"
            )


@dataclass(frozen=True, eq=False)
class Made:
    """An instance, and remarks on how the tables were read and what was chosen."""

    instance: Instance
    remarks: tuple[str, ...]


def instance_from(
    choices: Choices, arms: CsvTable | None = None, edges: CsvTable | None = None, observations: CsvTable | None = None
) -> Made:
    """Returns the instance of a table with a row per option, or of a table of edges.

    `observations`, a table of labels and outcomes, tells sigma and, where options are in categories and nothing else
    says so, how far the options of one differ.
    """
    choices.check(arms is not None, edges is not None, observations is not None)
    choices = choices.in_units()
    labels, graph, mu, remarks = _read(choices, arms, edges)
    sigma, told = choices.sigma, ""
    if observations is not None:
        sigma, told = _estimated_sigma(choices, observations, labels)
    radii, chosen = _radii(choices, graph, labels, observations, sigma)
    made = Instance(_problem(choices, graph, radii, sigma), mu, labels)
    problem = made.problem
    remarks = [_shape(graph, choices.by), *remarks, chosen, told]
    if made.mu is not None:
        problem.noise.check_means(choices.called("guess"), made.mu)
        rough = problem.roughness(made.mu)
        over = rough > problem.radii
        remarks.append(
            f"S of the guesses is {rough.sum():g}"
            + (f", above R = {problem.radii[over][0]:g}: raise R, or guess again" if over.any() else "")
        )
    remarks.append(problem.described_tolerance())
    return Made(made, tuple(each for each in remarks if each))


def _shape(graph: Graph, by: str | None) -> str:
    parts = f" in {graph.n_components} parts that the edges do not join" if graph.n_components > 1 else ""
    shape = f"{graph.n_edges} edges{parts}" if by is None else f"{graph.n_components} categories"
    return f"{graph.n_arms} options, {shape}"


def _read(
    choices: Choices, arms: CsvTable | None, edges: CsvTable | None
) -> tuple[tuple[str, ...], Graph, list[float] | None, list[str]]:
    """Returns labels, graph, guesses, and remarks on how columns were read and what was chosen."""
    labels, mu = None, None
    graph: Graph
    remarks: list[str] = []
    if arms is not None:
        names = [name.strip() for name in (choices.features or "").split(",") if name.strip()]
        with about(arms.name):
            labels = arms_from(arms, choices.label)
            mu = arms.numbers(choices.guess).tolist() if choices.guess is not None else None
            if choices.by is not None:
                categories = arms.filled(choices.by)
                if len(set(categories)) == len(labels):
                    raise InvalidInput(
                        f'the column "{choices.by}" is different for every option: it tells nothing of which are alike'
                    )
                graph = Graph.from_categories(categories)
            elif edges is None:
                if not names:
                    asked = choices.called("features")
                    raise InvalidInput(f'{asked} must name columns, such as dose,age, got "{choices.features}"')
                read = features_from(arms, names, choices.label)
                graph = Graph.from_features(np.hstack([each.values for each in read]), choices.neighbors)
                shown = "; ".join(f"{each.name} ({each.reading})" for each in read)
                nearest = usual_neighbors(len(labels)) if choices.neighbors is None else choices.neighbors
                remarks.append(f"features: {shown}")
                remarks.append(f"each option is joined to its {nearest} nearest")
    if edges is not None:
        with about(edges.name):
            labels, pairs = edges_from(edges, labels)
            graph = Graph.from_edges(len(labels), pairs)
    assert labels is not None
    return labels, graph, mu, remarks


def _radii(
    choices: Choices, graph: Graph, labels: tuple[str, ...], observations: CsvTable | None, sigma: float | None
) -> tuple[float | Vector, str]:
    """Returns R, or one for each category, and a remark that says where it comes from."""
    c, R, step = choices.called, choices.R, choices.step
    if choices.by is None:
        if R is not None:
            return R, ""
        if step is None:
            return math.inf, (
                f"R = inf: the graph says nothing yet; choose {c('R')} or {c('step')}, with the help of "
                '"spectralbai plan --observations"'
            )
        whole = implied_R(graph, step)
        _check_finite(whole, step, c("step"))
        return whole, (
            f"R = {whole:g}: neighbours differ by at most {difference_in_words(step, choices.ends)}, and the weights "
            f"of {graph.n_edges} edges sum to {graph.weights.sum():g}"
        )
    if R is not None:
        return np.full(graph.n_components, R), f"R = {R:g} for each category"
    how = ""
    if step is None:
        if observations is None or sigma is None:
            raise InvalidInput(
                f"{c('step')} is needed: how far two options of one category differ; or {c('R')}, or "
                f"{c('observations')} of some of them"
            )
        with about(observations.name):
            estimated, upper = step_inside(graph, *observations_from(observations, labels), sigma)
        step = rounded_up(upper)
        if step <= 0:
            raise InvalidInput(
                f"the outcomes of {observations.name} show no difference between options of one category; give "
                f"{c('step')}, the largest that you think possible"
            )
        how = f", as observed (about {estimated:.2g}, and the upper end is on the safe side)"
    radii = implied_radii(graph, step)
    _check_finite(radii, step, c("step"))
    several = radii[graph.sizes > 1]
    ends = f"{several.min():g}" if several.min() == several.max() else f"{several.min():g} to {several.max():g}"
    differ = f"two options of one differ by {difference_in_words(step, choices.ends)}"
    return radii, f"R = {ends}, one for each category: {differ}{how}"


def _check_finite(R: float | Vector, step: float, name: str) -> None:
    if not np.isfinite(R).all():
        raise InvalidInput(f"{name} must be a number whose square is finite, got {step:g}")


def _estimated_sigma(choices: Choices, observations: CsvTable, labels: tuple[str, ...]) -> tuple[float, str]:
    """Returns sigma from past outcomes, rounded up, and a remark that says where it comes from."""
    with about(observations.name):
        found = sigma_from(*observations_from(observations, labels))
        if found.sigma == 0:
            raise InvalidInput(
                f"the {found.observations} outcomes never vary within an option, so that sigma cannot be told; add "
                f"outcomes, or give {choices.called('sigma')}"
            )
    sigma = rounded_up(found.high)
    return sigma, (
        f"sigma = {sigma:g}: the outcomes of {observations.name} vary by {found.sigma:.3g} within an option "
        f"({found.confidence:.0%} interval {found.low:.3g} to {found.high:.3g}), and the upper end is on the safe side"
    )


def _problem(choices: Choices, graph: Graph, R: float | Vector, sigma: float | None) -> Problem:
    low, high = choices.low, choices.high
    if choices.binary and low is None:
        low, high = 0.0, 1.0
    if low is not None and high is not None:
        return Problem.bounded(graph, R, low, high, choices.tolerance, choices.binary)
    assert sigma is not None
    return Problem(graph, R, sigma, choices.tolerance)
