"""What people look at: the status of a study, its race, results, tickets and graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query
from starlette.responses import Response

from spectralbai.errors import InvalidInput
from spectralbai.graph import Categories
from spectralbai.layout import layout
from spectralbai.report.by_category import lacking_of, most_lacking
from spectralbai.report.tables import arms_of, categories_of, comparisons_of
from spectralbai.service import models
from spectralbai.service.answers import Answer
from spectralbai.service.lanes import on
from spectralbai.service.routes.common import Name, TheShelf, answers
from spectralbai.study import ArmStatus, Status, Study
from spectralbai.text.wording import finite
from spectralbai.verdict import Verdict

router = APIRouter(prefix="/api/studies/{name}", tags=["views"])

MOST_ARMS = 100
FIRST = 20
"""Up to the first number of arms the history has one line each; of more it has one for each category, or for so many
arms that are hardest to beat."""
MOST_IN_CATEGORIES, MOST_DRAWN, MOST_EDGES = 500, 2_000, 20_000
"""Up to so many arms in categories, or arms and edges of another graph, it is drawn arm by arm."""

PATIENCE = 1.0
"""Seconds after which a picture does without an order of the options that takes longer to compute."""

Control = Annotated[str | None, Query(description="Compare every option with this one.")]


@router.get("/status", responses=answers(models.StatusReply))
@on("view")
def status(
    name: Name,
    shelf: TheShelf,
    control: Control = None,
    category: Annotated[str | None, Query(description="Only the arms of this category.")] = None,
    search: Annotated[str | None, Query(description="Only the arms with this in their labels.")] = None,
    limit: Annotated[int, Query(ge=0, le=1_000_000, description="Most arms that are returned.")] = 100,
    after: Annotated[int, Query(ge=0, le=1_000_000, description="The `next` of the page before.")] = 0,
    order: Annotated[Literal["best", "study"], Query(description="The best first, or as in the study.")] = "best",
    patience: Annotated[
        float | None,
        Query(ge=0, le=60, description="Seconds after which what is not computed yet is left out; see `computing`."),
    ] = None,
) -> Response:
    """Returns the status of a study, with one page of its arms, the recommended one first."""
    seen = shelf.use(name, lambda study: study.status(control, patience))
    arms: Sequence[ArmStatus] = seen.select(category, search)
    if order == "study":
        found = {arm.label for arm in arms}
        arms = [arm for arm in seen.arms if arm.label in found]
    page = arms[after : after + limit]
    return Answer(
        {
            **seen.as_dict(()),
            "evidence": seen.evidence,
            "agreement": seen.agreement,
            "compared": None if seen.control is None else seen.compared,
            "arms": [{**arm.as_dict(), "account": seen.account(arm)} for arm in page],
            "arms_not_shown": len(seen.arms) - len(page),
            "arms_found": len(arms),
            "n_arms": len(seen.arms),
            "next": after + limit if limit and after + limit < len(arms) else None,
            "tables": _tables(seen, page),
        }
    )


def _tables(seen: Status, page: Sequence[ArmStatus]) -> dict[str, Any]:
    tables = {"arms": arms_of(seen, page)}
    if seen.categories is not None:
        tables["categories"] = categories_of(seen)
    if seen.control is not None:
        tables["compared"] = comparisons_of(seen, page)
    return {name: {"headings": table.headings, "rows": table.rows} for name, table in tables.items()}


@router.get("/history", responses=answers(models.History))
@on("view")
def history(
    name: Name,
    shelf: TheShelf,
    limit: Annotated[int, Query(ge=2, le=10_000, description="Most checks; of more, as many at equal steps.")] = 300,
) -> Response:
    """Returns what the stopping rule said each time it was read, for the picture of the race."""
    return Answer(shelf.use(name, lambda study: _history(study, limit)))


def _history(study: Study, limit: int) -> dict[str, Any]:
    verdicts = study.verdicts(limit)
    definition = study.definition
    labels, graph = definition.instance.labels, definition.instance.problem.graph
    n_arms = len(labels)
    kind, names, of = "arms", list(labels), np.arange(n_arms)
    lacking = lacking_of(verdicts, [False] * n_arms, leaders=False)
    if n_arms > MOST_ARMS and isinstance(graph, Categories):
        kind, names, of = "categories", list(graph.categories), np.asarray(graph.of_arm)
        lacking = most_lacking(lacking, of)
    elif n_arms > MOST_ARMS:
        chosen = _rivals(verdicts, n_arms)
        names, of = [labels[arm] for arm in chosen], np.full(n_arms, -1)
        of[chosen] = np.arange(len(chosen))
        lacking = lacking[:, chosen]
    left = [
        np.bincount(of[list(verdict.candidates or ())] + 1, minlength=len(names) + 1)[1:].tolist()
        for verdict in verdicts
    ]
    return {
        "kind": kind,
        "names": names,
        "samples": [verdict.samples for verdict in verdicts],
        "best": [labels[verdict.arm] for verdict in verdicts],
        "candidates": [len(verdict.candidates or ()) for verdict in verdicts],
        "lacking": [[finite(each) for each in row] for row in lacking],
        "left": left,
        "needed": math.log(1 / definition.delta),
        "n_arms": n_arms,
    }


def _rivals(verdicts: tuple[Verdict, ...], n_arms: int) -> list[int]:
    """Returns the arms with a line each if there are many: those whose accounts lacked most at the last verdict."""
    if not verdicts:
        return list(range(min(FIRST, n_arms)))
    lacking = np.array(verdicts[-1].lacking, dtype=float)
    lacking[verdicts[-1].arm] = -math.inf
    chosen: list[int] = np.argsort(-lacking, kind="stable")[:FIRST].tolist()
    return sorted(chosen)


@router.get("/outcomes", responses=answers(models.OutcomesReply))
@on("view")
def outcomes(
    name: Name,
    shelf: TheShelf,
    options: Annotated[int, Query(ge=1, le=1_000, description="Most options; the one recommended is the first.")] = 25,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Most items; of more, as many at equal steps.")] = 300,
) -> Response:
    """Returns the outcomes of options on items, for their picture."""
    return Answer(shelf.use(name, lambda study: _outcomes(study, options, limit)))


def _outcomes(study: Study, n_options: int, n_items: int) -> dict[str, Any]:
    seen = study.status(patience=PATIENCE)
    noise = study.definition.instance.problem.noise
    shown = [arm.label for arm in seen.listed[:n_options]]
    items = seen.items
    document = {"options": shown, "items": [], "outcomes": [[] for _ in shown], "low": None, "high": None, "begun": 0}
    document["available"] = None if items is None else items.available
    if items is None or not seen.results:
        return document
    table = study.table(n_items)
    row = {label: at for at, label in enumerate(table.options)}
    cells = table.outcomes[[row[label] for label in shown]]
    low, high = noise.outcome_range or (float(np.nanmin(table.outcomes)), float(np.nanmax(table.outcomes)))
    return document | {
        "items": table.items,
        "outcomes": [[finite(each) for each in line] for line in cells.tolist()],
        "low": low,
        "high": high,
        "begun": max(items.done, table.n_items),
    }


@router.get("/results", responses=answers(models.ResultsReply))
@on("view")
def results(
    name: Name,
    shelf: TheShelf,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="The `next` of the page before.")] = None,
) -> Response:
    """Returns the results told, the newest first."""
    found = shelf.use(name, lambda study: study.recent(limit, before))
    more = len(found) == limit and found[-1].number > 1
    return Answer({"results": [each.as_dict() for each in found], "next": found[-1].number if more else None})


@router.get("/tickets", responses=answers(models.Tickets))
@on("view")
def tickets(name: Name, shelf: TheShelf) -> Response:
    """Returns the pending tickets."""
    return Answer({"tickets": [each.as_dict() for each in shelf.use(name, lambda study: study.pending())]})


@router.get("/graph", responses=answers(models.GraphReply))
@on("view")
def graph(name: Name, shelf: TheShelf) -> Response:
    """Returns the graph with a position for each node, to draw it; if there are thousands of options, the
    categories."""
    return Answer(shelf.use(name, _graph))


def _graph(study: Study) -> dict[str, Any]:
    study.catch_up()
    instance = study.definition.instance
    graph, labels = instance.problem.graph, instance.labels
    categories: list[dict[str, Any]] = []
    if isinstance(graph, Categories):
        sizes = np.bincount(graph.of_arm, minlength=len(graph.categories)).tolist()
        categories = [{"name": each, "arms": n} for each, n in zip(graph.categories, sizes, strict=True)]
    kind = "categories" if categories else "edges"
    if categories and len(labels) > MOST_IN_CATEGORIES:
        return {"kind": kind, "nodes": [], "edges": [], "categories": categories}
    if not categories and (len(labels) > MOST_DRAWN or graph.n_edges > MOST_EDGES):
        raise InvalidInput(
            f"a graph of {len(labels):,} options and {graph.n_edges:,} edges is too large to draw; the table has the "
            "options"
        )
    places = layout(graph)
    nodes: list[dict[str, Any]] = [
        {"label": label, "x": x, "y": y} for label, (x, y) in zip(labels, places.tolist(), strict=True)
    ]
    if isinstance(graph, Categories):
        for node, category in zip(nodes, graph.of_arm.tolist(), strict=True):
            node["category"] = graph.categories[category]
    pairs = [] if categories else zip(graph.pairs.tolist(), graph.weights.tolist(), strict=True)
    edges = [[a, b, weight] for (a, b), weight in pairs]
    return {"kind": kind, "nodes": nodes, "edges": edges, "categories": categories}
