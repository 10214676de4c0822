"""Parts that several routes use."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Depends, Header, Path, Request
from pydantic import AfterValidator, BaseModel

from spectralbai.service.limits import Limits
from spectralbai.service.models import ProblemReply
from spectralbai.service.shelf import Shelf


async def _shelf(request: Request) -> Shelf:
    shelf: Shelf = request.app.state.shelf
    return shelf


async def _limits(request: Request) -> Limits:
    limits: Limits = request.app.state.limits
    return limits


TheLimits = Annotated[Limits, Depends(_limits)]
TheShelf = Annotated[Shelf, Depends(_shelf)]
Name = Annotated[
    str,
    Path(description="Name of the study; / and % are written %2F and %25.", examples=["pages"]),
    AfterValidator(unquote),
]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="A random text for each request. The same again, after a lost answer, does not do it twice.",
        examples=["0d4b8a9e-54a1-4f57-9cde-1f2c5b0c7a11"],
    ),
]

_REFUSALS = {
    401: "A token is needed.",
    403: "The token does not allow this.",
    404: "There is no such study, ticket or option.",
    409: "It contradicts what is recorded, or what others are doing.",
    413: "The request is too large.",
    422: "The request breaks a stated rule.",
    429: "Too many requests.",
    503: "The database is busy or cannot be reached.",
    400: "The request cannot be read.",
}


def answers(model: type[BaseModel], status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Returns the possible answers of a route, for OpenAPI, where each refusal becomes a `ProblemReply`."""
    return {
        status: {"model": model, "description": "Done."},
        **{code: {"model": ProblemReply, "description": text} for code, text in _REFUSALS.items()},
    }
