"""Trials of a study: ask, tell, counts, past results, shares; options that leave or join."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from spectralbai.errors import InvalidInput
from spectralbai.instance import Instance
from spectralbai.service import models
from spectralbai.service.answers import Answer
from spectralbai.service.lanes import on
from spectralbai.service.limits import check_options, check_rows
from spectralbai.service.routes.common import Key, Name, TheLimits, TheShelf, answers
from spectralbai.service.tells import Tells
from spectralbai.study import Failure, Study

router = APIRouter(prefix="/api/studies/{name}", tags=["trials"])


@router.post("/ask", responses=answers(models.Asked))
@on("ask")
def ask(name: Name, body: models.Asking, shelf: TheShelf, key: Key = None) -> Response:
    """Says what to try next, as tickets. Asking again with the same Idempotency-Key gives the same tickets."""

    def asked(study: Study) -> dict[str, Any]:
        tickets = study.ask(body.n, body.worker, body.lease, key=key)
        answer = None if tickets else study.status().answer
        return {"tickets": [ticket.as_dict() for ticket in tickets], "answer": answer}

    return Answer(shelf.use(name, asked))


@router.post("/tell", responses=answers(models.Recorded))
async def tell(name: Name, body: models.Telling, request: Request) -> Response:
    """Records outcomes, all or none. Telling the same again does no harm: do so whenever in doubt."""
    results = [(each.ticket, _outcome(each)) for each in body.results]
    tells: Tells = request.app.state.tells
    new = await tells.tell(name, results)
    return Answer({"recorded": new, "known": len(results) - new})


def _outcome(told: models.TicketOutcome) -> float | Failure | None:
    if told.failed is None:
        outcome: float | None = told.outcome
        return outcome
    if told.outcome is not None:
        raise InvalidInput(f"a failed trial has no outcome, got {told.outcome!r}; leave it out, or leave out `failed`")
    return Failure(told.failed)


@router.post("/counts", responses=answers(models.Recorded))
@on("change")
def counts(name: Name, body: models.Counts, shelf: TheShelf, limits: TheLimits) -> Response:
    """Records trials and successes of options, such as a day's traffic. The same again under one id counts once."""
    rows = [(row.label, row.trials, row.successes) for row in body.rows]
    trials = sum(row.trials for row in body.rows if isinstance(row.trials, int) and row.trials > 0)
    check_rows("trials", min(trials, 1e300), limits.rows, "tell them in parts, each with a different id")
    new = shelf.use(name, lambda study: study.tell_counts(rows, body.id, body.past))
    return Answer({"recorded": new, "known": sum(row.trials for row in body.rows) - new})


@router.post("/results", responses=answers(models.Recorded))
@on("change")
def add(name: Name, body: models.PastResults, shelf: TheShelf, limits: TheLimits) -> Response:
    """Records past results, which only inform. Give all results of an origin at once, not only those that look good."""
    labels, outcomes = [row.label for row in body.rows], [row.outcome for row in body.rows]
    check_rows("results", len(labels), limits.rows, "add them with spectralbai study import, where the storage is")

    def added(study: Study) -> int:
        return study.add(labels, outcomes, body.origin, tickets=body.tickets, origins=body.origins)

    new = shelf.use(name, added)
    return Answer({"recorded": new, "known": len(labels) - new})


@router.post("/known", responses=answers(models.Recorded))
@on("change")
def add_known(name: Name, body: models.KnownOutcomes, shelf: TheShelf) -> Response:
    """Records outcomes of options on items that are known from elsewhere: these pairs are not handed out."""
    labels, items, outcomes = ([getattr(row, column) for row in body.rows] for column in ("label", "item", "outcome"))
    new = shelf.use(name, lambda study: study.add_known(labels, items, outcomes, body.origin))
    return Answer({"recorded": new, "known": len(body.rows) - new})


@router.post("/abandon", responses=answers(models.Abandoned))
@on("ask")
def abandon(name: Name, body: models.Abandoning, shelf: TheShelf) -> Response:
    """Gives back tickets whose trials will not be done, all or none."""
    shelf.use(name, lambda study: study.abandon(*body.tickets))
    return Answer({"abandoned": body.tickets})


@router.get("/shares", responses=answers(models.Shares))
@on("view")
def shares(name: Name, shelf: TheShelf) -> Response:
    """Says how to split the next traffic."""
    split = shelf.use(name, lambda study: study.shares())
    return Answer({"shares": [{"label": label, "share": share} for label, share in split.items()]})


@router.post("/withdraw", responses=answers(models.Withdrawn))
@on("change")
def withdraw(name: Name, body: models.Withdrawing, shelf: TheShelf) -> Response:
    """Takes an option out of a study, for example because it is out of stock or unsafe."""

    def withdrawn(study: Study) -> dict[str, Any]:
        return {"withdrawn": body.label, "new": study.withdraw(body.label), "answer": study.status().answer}

    return Answer(shelf.use(name, withdrawn))


@router.post("/join", responses=answers(models.Joined))
@on("change")
def join(name: Name, body: models.Joining, shelf: TheShelf, limits: TheLimits, key: Key = None) -> Response:
    """Adds options to a study. With an Idempotency-Key it is no error if they have joined already."""
    check_options(body.instance, limits)
    instance = Instance.from_dict(body.instance)

    def joined(study: Study) -> dict[str, Any]:
        study.catch_up()
        definition = study.definition
        again = key is not None and definition.before is not None
        if body.check:
            definition = definition.joined(instance)
        elif not again or definition.instance.as_dict() != instance.as_dict():
            study.join(instance)
            definition = study.definition
        assert definition.before is not None
        new = definition.instance.labels[len(definition.before.instance.labels) :]
        return {"joined": list(new), "changes": definition.changes, "answer": study.status().answer}

    return Answer(shelf.use(name, joined))
