"""Lanes: each kind of work has threads of its own, so that one kind never keeps another waiting.

A lane runs so many calls at once, and only some of them of one study: a study that is locked delays its own requests
only. Others wait, the first first, for a limited time; if too many wait, or for too long, they are refused as busy.
Work whose client has left while it waited is not begun.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from asyncio import Semaphore
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial, wraps
from typing import Any, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response

from spectralbai.errors import Busy
from spectralbai.service.access import Token
from spectralbai.study.acting import acting

T = TypeVar("T")
GONE = 499
"""The status that metrics count for a client that left; nobody receives it."""
UNLIMITED = math.inf
"""Lanes count their threads themselves."""


class Left(Exception):
    """The client left before its work was begun."""


async def _stays() -> bool:
    return False


class Lane:
    """Threads for one kind of work."""

    def __init__(self, threads: int, of_study: int, waiting: int, patience: float) -> None:
        """At most `threads` calls run at once, `of_study` of them of one study; at most `waiting` wait, for at most
        `patience` seconds."""
        self._all, self._of_study = Semaphore(threads), of_study
        self._most, self._patience = waiting, patience
        self._waiting = 0
        self._studies: dict[str, tuple[Semaphore, list[None]]] = {}

    async def run(
        self, call: Callable[[], T], study: str | None = None, left: Callable[[], Awaitable[bool]] = _stays
    ) -> T:
        """Returns what a call returns; raises Left without calling it if its client had left when its turn came."""
        if study is None:
            return await self._run(call, None, left)
        own, users = self._studies.setdefault(study, (Semaphore(self._of_study), []))
        users.append(None)
        try:
            return await self._run(call, own, left)
        finally:
            users.pop()
            if not users:
                del self._studies[study]

    async def _run(self, call: Callable[[], T], own: Semaphore | None, left: Callable[[], Awaitable[bool]]) -> T:
        waits = self._all.locked() or (own is not None and own.locked())
        if waits and self._waiting >= self._most:
            raise Busy("too many requests of this kind wait already; try again in a while")
        self._waiting += waits
        entered: list[Semaphore] = []
        try:
            try:
                async with asyncio.timeout(self._patience) if waits else nullcontext():
                    for semaphore in (own, self._all):
                        if semaphore is not None:
                            await semaphore.acquire()
                            entered.append(semaphore)
            except TimeoutError:
                raise Busy("other requests of this kind take long; try again in a while") from None
            finally:
                self._waiting -= waits
            if waits and await left():
                raise Left
            return await _in_thread(call)
        finally:
            for semaphore in entered:
                semaphore.release()


async def _in_thread(call: Callable[[], T]) -> T:
    try:
        return await run_sync(call, limiter=CapacityLimiter(UNLIMITED))
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        raise Busy("this machine has no thread left for the request; try again in a while") from None


def actor_of(request: Request) -> str:
    """Returns who makes a request, as the log of a study names it."""
    token: Token | None = request.scope["spectralbai.token"]
    return "the service, without a token" if token is None else f"token {token.label or token.id}"


def _acting(name: str, call: Callable[[], T]) -> T:
    with acting(name):
        return call()


def lanes() -> dict[str, Lane]:
    """Returns the lanes of a service: for telling, asking, views, other changes, and what takes long."""
    return {
        "tell": Lane(16, 3, 1000, 10.0),
        "ask": Lane(16, 4, 1000, 10.0),
        "view": Lane(8, 4, 200, 10.0),
        "change": Lane(6, 2, 100, 30.0),
        "long": Lane(2, 2, 8, 30.0),
        "ready": Lane(1, 1, 0, 0.0),
    }


def on(lane: str) -> Callable[[Callable[..., Response]], Callable[..., Any]]:
    """Makes a route run on a lane."""

    def decorate(route: Callable[..., Response]) -> Callable[..., Any]:
        described = inspect.signature(route, eval_str=True)
        parameters = described.parameters
        takes_request = "request" in parameters

        @wraps(route)
        async def run(request: Request, **values: Any) -> Response:
            here: Lane = request.app.state.lanes[lane]
            given = {**values, "request": request} if takes_request else values
            call = partial(_acting, actor_of(request), partial(route, **given))
            try:
                return await here.run(call, values.get("name"), request.is_disconnected)
            except Left:
                return Response(status_code=GONE)

        # FastAPI reads from the signature what to pass; behind `wraps` it would see that of the route.
        del run.__wrapped__
        own = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)
        others = [each for name, each in parameters.items() if name != "request"]
        run.__signature__ = described.replace(parameters=[own, *others])  # type: ignore[attr-defined]
        return run

    return decorate
