"""Studies as a whole: create, list, look up, import, export, report, stop, delete."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from spectralbai.errors import Conflict, InvalidInput, NotFound
from spectralbai.instance import Instance
from spectralbai.journal.definition import named_items
from spectralbai.service import models
from spectralbai.service.access import Token
from spectralbai.service.answers import Answer, as_json
from spectralbai.service.lanes import on
from spectralbai.service.limits import check_options
from spectralbai.service.routes.common import Key, Name, TheLimits, TheShelf, answers
from spectralbai.study import Definition, Study, export_study, results_as_csv, table_as_csv
from spectralbai.text.wording import as_time

router = APIRouter(tags=["studies"])

Limit = Annotated[int, Query(ge=1, le=10_000, description="Most that are returned.")]


@router.get("/api/studies", responses=answers(models.Lines))
@on("view")
def list_studies(
    request: Request,
    shelf: TheShelf,
    limit: Limit = 100,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> Response:
    """Lists the studies, oldest first."""
    token: Token | None = request.scope["spectralbai.token"]
    only = None if token is None else token.study
    found = [each for each in shelf.studies.list() if only in (None, each.name)]
    first = 0
    if after is not None:
        places = [place for place, each in enumerate(found, 1) if each.name == after]
        if not places:
            raise NotFound(f'there is no study "{after}" any more to go on after; begin anew')
        first = places[0]
    page = found[first : first + limit]
    more = first + limit < len(found)
    return Answer({"studies": [asdict(each) for each in page], "next": page[-1].name if more else None})


@router.post("/api/studies", status_code=201, responses=answers(models.StudyReply, 201))
@on("change")
def create_study(body: models.Creation, shelf: TheShelf, limits: TheLimits, key: Key = None) -> Response:
    """Creates a study.

    A name that is taken is refused. With an Idempotency-Key the study there is returned if it is the same: so a request
    whose answer was lost can be made again.
    """
    check_options(body.instance, limits)
    instance = Instance.from_dict(body.instance)
    chosen = body.model_dump(exclude={"name", "instance"})
    try:
        study = shelf.studies.create(body.name, instance, **chosen)
    except (Conflict, InvalidInput) as refusal:  # also where `until` is over by now
        if key is None:
            raise
        try:
            study = shelf.studies.open(body.name)
        except NotFound:
            raise refusal from None
        if not _is(study.definition.history[0], instance, **chosen):
            raise
        return Answer(_study(study))
    shelf.keep(study)
    return Answer(_study(study), 201)


@router.post("/api/imports", status_code=201, responses=answers(models.StudyReply, 201))
@on("long")
def import_study(body: models.Import, shelf: TheShelf, limits: TheLimits, key: Key = None) -> Response:
    """Restores an exported study, under its old name or another."""
    check_options(body.document, limits)
    try:
        study = shelf.studies.import_(body.document, body.name)
    except Conflict:
        if key is None:
            raise
        study = shelf.studies.open(str(body.document["name"]) if body.name is None else body.name)
        if export_study(study) != {**body.document, "name": study.name}:
            raise
        return Answer(_study(study))
    shelf.keep(study)
    return Answer(_study(study), 201)


@router.get("/api/studies/{name}", responses=answers(models.StudyReply))
@on("view")
def get_study(name: Name, shelf: TheShelf) -> Response:
    """Returns the definition of a study."""

    def look(study: Study) -> dict[str, Any]:
        study.catch_up()
        return _study(study)

    return Answer(shelf.use(name, look))


@router.delete("/api/studies/{name}", responses=answers(models.Deleted))
@on("change")
def delete_study(name: Name, shelf: TheShelf) -> Response:
    """Deletes a study with all its tickets and results. It cannot be restored, except from an export."""
    shelf.studies.delete(name)
    shelf.forget(name)
    return Answer({"deleted": name})


@router.post("/api/studies/{name}/stop", responses=answers(models.Stopped))
@on("change")
def stop_study(name: Name, shelf: TheShelf) -> Response:
    """Ends a running study by hand, decided or not. Results of pending tickets are still accepted."""

    def stop(study: Study) -> dict[str, Any]:
        return {"new": study.stop(), "answer": study.status().answer}

    return Answer(shelf.use(name, stop))


@router.get("/api/studies/{name}/report", responses=answers(models.Reply))
@on("long")
def report(name: Name, shelf: TheShelf, control: str | None = None) -> Response:
    """Returns the report of a study."""
    return Answer(shelf.use(name, lambda study: study.report(control)).as_dict())


@router.get("/api/studies/{name}/report.html", response_class=Response, responses={200: {"content": {"text/html": {}}}})
@on("long")
def report_page(name: Name, shelf: TheShelf, control: str | None = None) -> Response:
    """Returns the report of a study as one HTML page with pictures, to download."""
    page = shelf.use(name, lambda study: study.report(control)).as_html()
    return Response(
        page.encode("utf-8", "backslashreplace"),
        media_type="text/html; charset=utf-8",
        headers={**_download(name, "html"), "Content-Security-Policy": "sandbox"},
    )


@router.get("/api/studies/{name}/export", responses=answers(models.Reply))
@on("long")
def export(
    name: Name,
    shelf: TheShelf,
    readable: Annotated[bool, Query(description="Of a damaged study, as much as can be read.")] = False,
) -> Response:
    """Returns everything about a study, in the form that `POST /api/imports` takes."""
    document = shelf.studies.export_readable(name) if readable else shelf.use(name, export_study)
    return Response(as_json(document), media_type="application/json", headers=_download(name, "json"))


@router.get("/api/studies/{name}/check", responses=answers(models.Checked))
@on("long")
def check(name: Name, shelf: TheShelf) -> Response:
    """Compares all that is stored of a study with its log."""
    return Answer(shelf.studies.check(name).as_dict())


@router.get("/api/studies/{name}/results.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
@on("long")
def results_table(name: Name, shelf: TheShelf) -> Response:
    """Returns the results of a study as a table."""
    text = shelf.use(name, results_as_csv)
    return Response(
        text.encode("utf-8", "backslashreplace"),
        media_type="text/csv; charset=utf-8",
        headers=_download(name, "csv"),
    )


@router.get("/api/studies/{name}/table.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
@on("long")
def table(name: Name, shelf: TheShelf) -> Response:
    """Returns the outcomes of options on items: a row for each option, a column for each item that was begun."""
    text = table_as_csv(shelf.use(name, lambda study: study.table()))
    return Response(
        text.encode("utf-8", "backslashreplace"),
        media_type="text/csv; charset=utf-8",
        headers=_download(name, "csv"),
    )


def _is(first: Definition, instance: Instance, items: Any, seed: Any, **chosen: Any) -> bool:
    """Returns whether a study was created with these choices. The order of its items may be any."""
    given = named_items(items, instance.problem.items)
    if given is not None and first.items is not None and sorted(given) == sorted(first.items):
        given = first.items
    return replace(first, stopped=None).as_dict() == Definition(instance, items=given, **chosen).as_dict()


def _study(study: Study) -> dict[str, Any]:
    return {
        "name": study.name,
        "created": as_time(study.created),
        "created_seconds": study.created,
        "definition": study.definition.as_dict(),
        "versions": study.versions,
    }


def _download(name: str, ending: str) -> dict[str, str]:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "study"
    return {"Content-Disposition": f'attachment; filename="{plain}.{ending}"'}
