"""The connections of a service: how many there may be, and how long each may take to send and to read.

Whoever sends half a request and then nothing holds a connection, of which there are only so many. So a request must
come within a time, and where all connections are taken, the one whose client has been sending for the longest, or has
nothing to ask, is closed for the next. A client that sends its requests at once is never closed for another.
"""

from __future__ import annotations

import logging
import time
from asyncio import Transport
from collections import Counter, OrderedDict
from collections.abc import Collection
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from spectralbai.service.limits import Limits

FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: 37\r\n\r\ntoo many connections; try again later"
)
BACKLOG = 100
"""Most connections that are accepted before it is looked at how many there are."""
FILES = 200
"""Files that a process needs besides connections of clients: those to its database, of its page, and of the backlog."""
LOGGERS = ("asyncio", "uvicorn.error", "spectralbai.service", "spectralbai.service.events", "spectralbai.service.tells")


class Connections:
    """The connections that are open."""

    def __init__(self, limits: Limits, proxies: Collection[str] = ()) -> None:
        """Connections from `proxies` are of many clients: they are limited together with all others only."""
        self._limits, self._proxies = limits, frozenset(proxies)
        self._most = min(limits.connections, _files() - FILES)
        self._of: Counter[str] = Counter()
        self._sending: OrderedDict[Guarded, float] = OrderedDict()
        """Those that may be closed for others, and since when: no request of theirs is complete."""
        self._unread: dict[Guarded, float] = {}
        """Those whose clients do not read what was sent, and since when."""

    def enter(self, connection: Guarded) -> bool:
        """Returns whether there is room for a connection, having closed another for it if need be."""
        address = connection.address
        full = self._of.total() >= self._most
        if address not in self._proxies and self._of[address] >= self._limits.of_address:
            last = next((each for each in self._sending if each.address == address), None)
        else:
            last = next(iter(self._sending), None) if full else connection
        if last is None:
            return False
        if last is not connection:
            self.leave(last)
            last.transport.abort()
        self._of[address] += 1
        connection.entered = True
        self.sends(connection, True)
        return True

    def leave(self, connection: Guarded) -> None:
        """Forgets a connection."""
        if connection.entered:
            connection.entered = False
            self._of[connection.address] -= 1
            self._of += Counter()  # without those at 0
        self._sending.pop(connection, None)
        self._unread.pop(connection, None)

    def sends(self, connection: Guarded, still: bool) -> None:
        """Takes note that a client is still to send a part of a request, or has sent it."""
        if not still or not connection.entered:
            self._sending.pop(connection, None)
        elif connection not in self._sending:
            self._sending[connection] = time.monotonic()

    def reads(self, connection: Guarded, still: bool) -> None:
        """Takes note whether a client reads what it is sent."""
        if still:
            self._unread.pop(connection, None)
        else:
            self._unread[connection] = time.monotonic()

    def close_slow(self) -> None:
        """Closes the connections whose clients have taken too long. The time for bodies is measured elsewhere."""
        now = time.monotonic()
        slow = [each for each, begun in self._sending.items() if now - begun > self._limits.head and each.at_head]
        slow += [each for each, begun in self._unread.items() if now - begun > self._limits.unread]
        for connection in slow:
            self.leave(connection)
            connection.transport.abort()


class Guarded(H11Protocol):
    """A connection that is one of those of a service."""

    def __init__(self, *args: Any, guard: Connections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._guard = guard
        self.address = ""
        self.entered = False

    @property
    def at_head(self) -> bool:
        """Whether no request is being answered: its head has not come, or all was said before the body had."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self.address = str((self.client or ("",))[0])
        if not self._guard.enter(self):
            transport.write(FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.entered:
            super().data_received(data)
            self._note()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._guard.sends(self, False)  # the time for the next request begins anew
        self._note()

    def _note(self) -> None:
        self._guard.sends(self, self.at_head or self.cycle.more_body)

    def pause_writing(self) -> None:
        self._guard.reads(self, False)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._guard.reads(self, True)
        super().resume_writing()


def _files() -> int:
    """Returns how many files this process may have open, after asking for as many as it may have."""
    try:
        import resource
    except ImportError:  # Windows
        return 1 << 16
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


class Sparingly(logging.Filter):
    """Lets only the first few of the warnings that are alike into a log each minute, because clients cause them."""

    MOST, SECONDS = 5, 60.0

    def __init__(self) -> None:
        super().__init__()
        self._counts: Counter[object] = Counter()
        self._begun = time.monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns whether a record shall be written."""
        if record.levelno < logging.WARNING:
            return True
        if time.monotonic() - self._begun > self.SECONDS:
            left = self._counts.total() - sum(min(count, self.MOST) for count in self._counts.values())
            if left:
                record.msg, record.args = f"{record.getMessage()} ({left:,} like those before were left out)", ()
            self._counts.clear()
            self._begun = time.monotonic()
        self._counts[record.name, str(record.msg)[:100]] += 1
        return self._counts[record.name, str(record.msg)[:100]] <= self.MOST


def log_sparingly() -> None:
    """Makes the logs that clients can write to let through only the first of many warnings that are alike."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(each, Sparingly) for each in logger.filters):
            logger.addFilter(Sparingly())
