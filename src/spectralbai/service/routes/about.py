"""The service itself: health, who is calling, metrics, events."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from spectralbai.documents import software
from spectralbai.service import models
from spectralbai.service.access import Access, Token
from spectralbai.service.answers import Answer
from spectralbai.service.events import Events, beats
from spectralbai.service.gate import COOKIE
from spectralbai.service.lanes import on
from spectralbai.service.metrics import Metrics
from spectralbai.service.problems import problem
from spectralbai.service.readiness import Readiness
from spectralbai.service.routes.common import Name, TheShelf, answers

router = APIRouter(tags=["service"])


@router.get("/api/health", responses=answers(models.Health))
async def health() -> Response:
    """Says that the service runs, whatever its database does: it need not be started anew."""
    return Answer({"status": "ok", "version": software()["spectralbai"]})


@router.get("/api/ready", responses=answers(models.Health))
async def ready(request: Request) -> Response:
    """Says that the database can be written to: requests may be sent to this service."""
    readiness: Readiness = request.app.state.readiness
    await readiness.check()
    return Answer({"status": "ok", "version": software()["spectralbai"]})


@router.get("/api/session", responses=answers(models.Session))
async def session(request: Request) -> Response:
    """Says what the caller may do."""
    return _session(request, request.scope["spectralbai.token"])


@router.post("/api/login", responses=answers(models.Session))
async def login(body: models.Login, request: Request) -> Response:
    """Keeps a token in a cookie of the browser that scripts cannot read and other sites cannot use."""
    access: Access = request.app.state.access
    token = access.find(body.token.strip())
    if access.needed and token is None:
        return problem("unauthorized", "this token is not valid; spectralbai serve token list shows which are")
    answer = _session(request, token)
    if token is not None:
        answer.set_cookie(
            COOKIE, body.token.strip(), httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
    return answer


@router.post("/api/logout", responses=answers(models.Session))
async def logout(request: Request) -> Response:
    """Removes the cookie."""
    answer = _session(request, None)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _session(request: Request, token: Token | None) -> Response:
    needed = request.app.state.access.needed
    access = token.access if token is not None else "none" if needed else "read-write"
    return Answer(
        {
            "needed": needed,
            "access": access,
            "label": None if token is None else token.label,
            "study": None if token is None else token.study,
        }
    )


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
@on("view")
def metrics(request: Request, shelf: TheShelf) -> Response:
    """Counts requests, studies and results, in the text form of Prometheus."""
    counted: Metrics = request.app.state.metrics
    now = beats(shelf.studies)
    text = counted.text((beat.state for beat in now), sum(beat.results for beat in now))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/api/events", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def events(request: Request) -> Response:
    """Reports every change of a study, as server-sent events, until one side closes the connection."""
    return _stream(request, None)


@router.get(
    "/api/studies/{name}/events", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}}
)
@on("view")
def events_of_study(request: Request, name: Name, shelf: TheShelf) -> Response:
    """Reports every change of one study, as server-sent events, until it is deleted or one side closes the
    connection."""
    shelf.use(name, lambda study: study.catch_up())
    return _stream(request, name)


def _stream(request: Request, name: str | None) -> Response:
    listened: Events = request.app.state.events
    access: Access = request.app.state.access
    token: Token | None = request.scope["spectralbai.token"]
    if name is None and token is not None:
        name = token.study
    stream = listened.stream(name, lambda: access.still_valid(token))
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
