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

KINDS = {
    "refused": (422, "The request breaks a stated rule"),
    "not-found": (404, "There is no such thing"),
    "conflict": (409, "It contradicts what is recorded, or what others are doing"),
    "busy": (503, "The database is busy; try again"),
    "broken": (503, "The database cannot be read or written"),
    "damaged": (503, "The records of the study are damaged"),
    "malformed": (400, "The request cannot be read"),
    "unauthorized": (401, "A token is needed"),
    "forbidden": (403, "The token does not allow this"),
    "no-such-method": (405, "There is no such method here"),
    "too-slow": (408, "The request came too slowly"),
    "too-large": (413, "The request is too large"),
    "not-json": (415, "The body must be JSON"),
    "wrong-host": (421, "The service is not called by this name"),
    "too-many": (429, "Too many requests"),
    "unexpected": (500, "Something went wrong inside the service"),
}
"""HTTP status and title of each kind of error: the first six are those of `spectralbai.errors`."""
OF_STATUS = {status: kind for kind, (status, _) in KINDS.items()} | {503: "busy"}
RETRY_AFTER = 1
"""Seconds after which a request that found the database busy may be made again."""
MEDIA_TYPE = "application/problem+json"


def problem(kind: str, detail: str, headers: Mapping[str, str] | None = None, status: int | None = None) -> Response:
    """Returns an error response: its kind, and a sentence that says what is wrong and what to do instead.

    `status` is its HTTP status, if that is not the one of its kind.
    """
    usual, title = KINDS[kind]
    status = usual if status is None else status
    document = {
        "type": f"urn:spectralbai:{kind}",
        "title": title,
        "status": status,
        "detail": " ".join(detail.split()),  # one line, whatever names the client has made up
        "kind": kind,
    }
    return Response(as_json(document), status, headers, MEDIA_TYPE)


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
    storage = request.app.state.shelf.studies.storage  # where it is concerns nobody who calls
    return problem(error.kind, str(error).replace(storage, "the storage"), headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    return problem("malformed" if errors[0]["type"] == "json_invalid" else "refused", sentence(errors))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = {
        400: "the body cannot be read; send JSON, in UTF-8 and not compressed",
        404: f"there is nothing at {request.url.path}",
        405: f"{request.method} is not possible here",
    }
    status = error.status_code
    said = detail.get(status, str(error.detail))
    return problem(OF_STATUS.get(status, "malformed"), said, error.headers, status)


async def _memory(request: Request, error: Exception) -> Response:
    return problem("refused", "there is not enough memory for a problem of this size")


async def _unexpected(request: Request, error: Exception) -> Response:
    return problem("unexpected", "something went wrong inside the service; its log says what")
