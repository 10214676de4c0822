"""Limits on how much one client may send, and how often."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

MOST_CLIENTS = 10_000
"""Most clients whose requests are counted; the one that has been silent longest is forgotten first."""


@dataclass(frozen=True)
class Limits:
    """The limits on one request and on one client."""

    body: int = 16 * 2**20
    """Most bytes in the body of a request."""
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


def measured(receive: Receive, most: int) -> Receive:
    """Returns a `receive` that refuses a body of more than `most` bytes, even if its headers claim fewer."""
    total = 0

    async def receive_measured() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > most:
            raise HTTPException(413, too_large(most))
        return message

    return receive_measured


def too_large(most: int) -> str:
    """Returns the message for a body that is too large."""
    return f"a request may hold at most {most:,} bytes; send it in parts"
