"""Errors in the format of RFC 9457 (application/problem+json), with the same messages as on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spectralbai.errors import SpectralBAIError
from spectralbai.service.answers import as_json

STATUS = {"refused": 422, "not-found": 404, "conflict": 409, "busy": 503, "broken": 503}
"""HTTP status for each kind of error (`spectralbai.errors`)."""
OF_HTTP = {
    400: "malformed",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "no-such-method",
    408: "too-slow",
    413: "too-large",
    415: "not-json",
    421: "wrong-host",
    429: "too-many",
    500: "unexpected",
}
"""Kind of error for each status that the service gives by itself, not because of an exception of the library."""
TITLES = {
    "refused": "The request breaks a stated rule",
    "not-found": "There is no such thing",
    "conflict": "It contradicts what is recorded, or what others are doing",
    "busy": "The database is busy; try again",
    "broken": "The database cannot be read or written",
    "malformed": "The request cannot be read",
    "unauthorized": "A token is needed",
    "forbidden": "The token does not allow this",
    "no-such-method": "There is no such method here",
    "too-slow": "The request came too slowly",
    "too-large": "The request is too large",
    "not-json": "The body must be JSON",
    "wrong-host": "The service is not called by this name",
    "too-many": "Too many requests",
    "unexpected": "Something went wrong inside the service",
}
RETRY_AFTER = 1
"""Seconds after which a request that found the database busy may be made again."""
MEDIA_TYPE = "application/problem+json"


def problem(status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Returns an error response: its kind, and a sentence that says what is wrong and what to do instead."""
    document = {
        "type": f"urn:spectralbai:{kind}",
        "title": TITLES.get(kind, kind),
        "status": status,
        "detail": detail,
        "kind": kind,
    }
    return Response(as_json(document), status, headers, MEDIA_TYPE)


def of_http(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Returns an error response for a status that the service gives by itself."""
    return problem(status, OF_HTTP.get(status, "malformed"), detail, headers)


def install(app: FastAPI) -> None:
    """Makes an application answer every error with a problem document."""
    app.add_exception_handler(SpectralBAIError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(MemoryError, _memory)
    app.add_exception_handler(Exception, _unexpected)


def sentence(errors: Sequence[Any]) -> str:
    """Returns a sentence about the first thing that is wrong with a request."""
    first = errors[0]
    where, *path = first["loc"]
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    name = f"`{name}`" if name else f"the {where}"
    what = str(first["msg"])
    if first["type"] == "missing":
        return f"{name} is missing; add it"
    if first["type"] == "extra_forbidden":
        return f"{name} is not known here; remove it, or correct its name"
    if first["type"] == "json_invalid":
        return f"the body is not JSON: {first.get('ctx', {}).get('error', what)}"
    return f"{name}: {what[:1].lower()}{what[1:]}"


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, SpectralBAIError)
    headers = {"Retry-After": str(RETRY_AFTER)} if error.kind == "busy" else None
    return problem(STATUS[error.kind], error.kind, " ".join(str(error).split()), headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    if errors[0]["type"] == "json_invalid":
        return of_http(400, sentence(errors))
    return problem(422, "refused", sentence(errors))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = {
        400: "the body cannot be read; send JSON, in UTF-8 and not compressed",
        404: f"there is nothing at {request.url.path}",
        405: f"{request.method} is not possible here",
    }
    said = detail.get(error.status_code, str(error.detail))
    return of_http(error.status_code, said, error.headers)


async def _memory(request: Request, error: Exception) -> Response:
    return problem(422, "refused", "there is not enough memory for a problem of this size")


async def _unexpected(request: Request, error: Exception) -> Response:
    return of_http(500, "something went wrong inside the service; its log says what")
