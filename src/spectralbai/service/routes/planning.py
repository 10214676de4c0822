"""Before a study: an instance from tables, and how many trials to expect."""

from __future__ import annotations

import math
from dataclasses import replace

from fastapi import APIRouter
from starlette.responses import Response

from spectralbai.errors import InvalidInput
from spectralbai.inputs.from_tables import Choices, Made, instance_from
from spectralbai.inputs.table import CsvTable, arms_from
from spectralbai.instance import FORMAT, Instance
from spectralbai.items import Items
from spectralbai.planning import plan as make_plan
from spectralbai.service import models
from spectralbai.service.answers import Answer
from spectralbai.service.lanes import on
from spectralbai.service.limits import Limits, check_options, check_rows
from spectralbai.service.routes.common import TheLimits, answers

router = APIRouter(tags=["planning"])


@router.post("/api/instances", responses=answers(models.MadeReply))
@on("long")
def make_instance(body: models.Tables, limits: TheLimits) -> Response:
    """Makes an instance from tables of options, like `spectralbai instance`."""
    made = _made(body, limits)
    return Answer({"instance": made.instance.as_dict(), "remarks": list(made.remarks)})


@router.post("/api/plan", responses=answers(models.Planned))
@on("long")
def plan(body: models.Planning, limits: TheLimits) -> Response:
    """Says how many trials to expect and what the graph saves, without simulation, like `spectralbai plan --quick`."""
    if body.instance is None:
        made = _made(body, limits)
    else:
        given = body.model_fields_set - {"instance", "delta"}
        if given:
            raise InvalidInput(f"`instance` and `{min(given)}` are both given; keep one")
        check_options(body.instance, limits)
        made = Made(Instance.from_dict(body.instance), ())
    planned = make_plan(made.instance, body.delta, runs=0)
    document = planned.as_dict()
    document.pop("instance"), document.pop("signals")
    with_graph, without = planned.rules_of_thumb
    return Answer(
        {
            "instance": made.instance.as_dict(),
            "remarks": list(made.remarks),
            "expected": with_graph if math.isfinite(with_graph) else None,
            "expected_without_graph": without if math.isfinite(without) else None,
            "saving": document["saving"],
            "advice": planned.advice,
            "plan": document,
        }
    )


def _made(body: models.Tables, limits: Limits) -> Made:
    for table in (body.arms, body.edges, body.observations):
        check_rows(
            "rows of a table", (table or "").count("\n"), 5 * limits.options, "make it with spectralbai instance"
        )
    check_rows("options", (body.arms or "").count("\n") - 1, limits.options, "leave options out")
    items = None if body.items is None else Items.from_json(body.items, "`items`")
    if items is not None and not (body.features or body.edges or body.by):
        return _unrelated(body, items)
    chosen = body.model_dump(exclude={"arms", "edges", "observations", "items", "instance", "delta"})
    tables = (
        None if text is None else CsvTable.named(name, text)
        for name, text in (("arms", body.arms), ("edges", body.edges), ("observations", body.observations))
    )
    made = instance_from(Choices(**chosen, called="`{}`".format), *tables)
    return made if items is None else replace(made, instance=_on(made.instance, items))


def _unrelated(body: models.Tables, items: Items) -> Made:
    """Returns an instance of options that are not alike: on items they are compared with each other all the same."""
    if body.arms is None:
        raise InvalidInput("`arms` is needed: a table with a row for each option")
    labels = arms_from(CsvTable.named("arms", body.arms), body.label)
    noise = {"sigma": body.sigma, "low": body.low, "high": body.high, "binary": body.binary or None}
    document = {name: value for name, value in noise.items() if value is not None}
    if body.binary:
        document = {"low": 0.0, "high": 1.0, **document}
    edges = {"n_arms": len(labels), "edges": [], "R": "inf", "tolerance": body.tolerance, "labels": list(labels)}
    return Made(_on(Instance.from_dict({"format": FORMAT, **edges, **document}), items), ())


def _on(instance: Instance, items: Items) -> Instance:
    """Returns the instance with options that are tried on these items."""
    return replace(instance, problem=replace(instance.problem, items=items))
