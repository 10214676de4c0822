"""Before a study: an instance from tables, and how many trials to expect."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import APIRouter
from starlette.responses import Response

from spectralbai.errors import Busy, InvalidInput
from spectralbai.inputs.from_tables import Choices, Made, instance_from
from spectralbai.inputs.table import CsvTable
from spectralbai.instance import Instance
from spectralbai.planning import plan as make_plan
from spectralbai.service import models
from spectralbai.service.answers import Answer
from spectralbai.service.routes.common import answers

router = APIRouter(tags=["planning"])

AT_ONCE, MOST_WAITING = 2, 6
"""Most plans that are computed at the same time, and most that wait for that; each that waits holds one of the few
dozen threads that serve studies."""
PATIENCE = 30.0
"""Seconds that other plans wait before they are refused."""
_room, _queue = threading.BoundedSemaphore(AT_ONCE), threading.BoundedSemaphore(AT_ONCE + MOST_WAITING)


@router.post("/api/instances", responses=answers(models.MadeReply))
def make_instance(body: models.Tables) -> Response:
    """Makes an instance from tables of options, like `spectralbai instance`."""
    with _computing():
        made = _made(body)
        return Answer({"instance": made.instance.as_dict(), "remarks": list(made.remarks)})


@router.post("/api/plan", responses=answers(models.Planned))
def plan(body: models.Planning) -> Response:
    """Says how many trials to expect and what the graph saves, without simulation, like `spectralbai plan --quick`."""
    with _computing():
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


@contextmanager
def _computing() -> Iterator[None]:
    if not _queue.acquire(blocking=False):
        raise Busy("other plans are being computed; try again in a while")
    try:
        if not _room.acquire(timeout=PATIENCE):
            raise Busy("other plans are being computed; try again in a while")
        try:
            yield
        finally:
            _room.release()
    finally:
        _queue.release()
