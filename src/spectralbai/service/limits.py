"""Limits on how much one client may send, and how often."""

from __future__ import annotations

import asyncio
import math
import reprlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from spectralbai.errors import InvalidInput

MOST_CLIENTS = 10_000
"""Most clients whose requests are counted; the one that has been silent longest is forgotten first."""


@dataclass(frozen=True)
class Limits:
    """The limits on one request and on one client."""

    body: int = 16 * 2**20
    """Most bytes in the body of a request."""
    patience: float = 30.0
    """Seconds to wait for the next part of a body."""
    pace: float = 20_000.0
    """Bytes per second at which a body must come after that, on average."""
    head: float = 10.0
    """Seconds in which a client must have sent the head of its request."""
    unread: float = 60.0
    """Seconds after which a client that does not read its answer is left."""
    options: int = 20_000
    """Most options of an instance."""
    rows: int = 100_000
    """Most rows of a table of past results, and most trials of counts, in a request."""
    connections: int = 1000
    """Most connections at once; fewer if the process may not have so many files open."""
    of_address: int = 250
    """Most connections at once of one address, unless it is that of a proxy."""
    rate: float = 500.0
    """Most requests per second of one client, on average; 0 for no limit."""
    burst: float = 2000.0
    """Most requests that one client may make at once after a pause."""


class Rates:
    """A token bucket for each client: it fills at the rate, and every request takes one token out."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, client: str) -> int:
        """Returns 0 if a client may make a request now, otherwise the seconds that it must wait."""
        rate, burst = self._limits.rate, self._limits.burst
        if rate <= 0:
            return 0
        with self._lock:
            now = self._clock()
            left, then = self._buckets.pop(client, (burst, now))
            left = min(burst, left + (now - then) * rate)
            allowed = left >= 1
            self._buckets[client] = (left - 1 if allowed else left, now)
            if len(self._buckets) > MOST_CLIENTS:
                self._buckets.popitem(last=False)
        return 0 if allowed else max(1, math.ceil((1 - left) / rate))


def measured(receive: Receive, limits: Limits) -> Receive:
    """Returns a `receive` that refuses a body that is too large, even if its headers claim less, or too slow."""
    total, complete, begun = 0, False, time.monotonic()

    async def receive_measured() -> Message:
        nonlocal total, complete
        if complete:
            return await receive()  # waits until the client leaves
        try:
            left = begun + limits.patience + total / limits.pace - time.monotonic()
            message = await asyncio.wait_for(receive(), max(0.0, min(limits.patience, left)))
        except TimeoutError:
            raise HTTPException(
                408, f"too little came in {time.monotonic() - begun:.0f} s; send the whole request, or smaller ones"
            ) from None
        total += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if total > limits.body:
            raise HTTPException(413, too_large(limits.body))
        return message

    return receive_measured


def too_large(most: int) -> str:
    """Returns the message for a body that is too large."""
    return f"a request may hold at most {most:,} bytes; send it in parts"


def check_options(document: Any, limits: Limits) -> None:
    """Raises InvalidInput if a document, or a part of it, is an instance of more options than a service takes.

    The numbers in it are looked at, and nothing is made of them.
    """
    if isinstance(document, Mapping):
        n_arms = document.get("n_arms")
        if isinstance(n_arms, int | float) and n_arms > limits.options:
            raise InvalidInput(
                f"an instance may have at most {limits.options:,} options here, got {reprlib.repr(n_arms)}; leave "
                "options out, or start the service with --most-options"
            )
        for name in ("instance", "study", "events"):
            check_options(document.get(name), limits)
    elif isinstance(document, list):
        for part in document:
            if isinstance(part, Mapping) and ("instance" in part or "study" in part):
                check_options(part, limits)


def check_rows(what: str, rows: float, most: int, remedy: str) -> None:
    """Raises InvalidInput if a request holds more rows than a service takes."""
    if rows > most:
        raise InvalidInput(f"there may be at most {most:,} {what} in a request, got {rows:,.0f}; {remedy}")
