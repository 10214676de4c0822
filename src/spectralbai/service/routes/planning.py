"""Before a study: an instance from tables, and how many trials to expect."""

from __future__ import annotations

import math

from fastapi import APIRouter
from starlette.responses import Response

from spectralbai.errors import InvalidInput
from spectralbai.inputs.from_tables import Choices, Made, instance_from
from spectralbai.inputs.table import CsvTable
from spectralbai.instance import Instance
from spectralbai.planning import plan as make_plan
from spectralbai.service import models
from spectralbai.service.answers import Answer
from spectralbai.service.lanes import on
from spectralbai.service.routes.common import answers

router = APIRouter(tags=["planning"])


@router.post("/api/instances", responses=answers(models.MadeReply))
@on("long")
def make_instance(body: models.Tables) -> Response:
    """Makes an instance from tables of options, like `spectralbai instance`."""
    made = _made(body)
    return Answer({"instance": made.instance.as_dict(), "remarks": list(made.remarks)})


@router.post("/api/plan", responses=answers(models.Planned))
@on("long")
def plan(body: models.Planning) -> Response:
    """Says how many trials to expect and what the graph saves, without simulation, like `spectralbai plan --quick`."""
    if body.instance is None:
        made = _made(body)
    else:
        given = body.model_fields_set - {"instance", "delta"}
        if given:
            raise InvalidInput(f"`instance` and `{min(given)}` are both given; keep one")
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


def _made(body: models.Tables) -> Made:
    chosen = body.model_dump(exclude={"arms", "edges", "observations", "instance", "delta"})
    tables = (
        None if text is None else CsvTable.named(name, text)
        for name, text in (("arms", body.arms), ("edges", body.edges), ("observations", body.observations))
    )
    return instance_from(Choices(**chosen, called="`{}`".format), *tables)
