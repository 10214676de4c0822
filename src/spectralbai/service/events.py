"""The progress of all studies, and server-sent events: listeners are told when a study has changed.

One task per process queries the database once a second for all listeners, and only while there are any.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from spectralbai.errors import Busy
from spectralbai.service.answers import as_json
from spectralbai.study import Studies

EVERY = 1.0
"""Seconds between queries of the database."""
RETRY = 1000
"""Milliseconds after which a browser that has lost the connection tries again."""
HEARTBEAT = 15.0
"""After this many seconds without an event, something is sent, so that proxies do not close the connection."""
MOST_LISTENERS = 500
"""Most streams of one process at the same time: half of its connections."""
MOST_WAITING = 1000
"""Most events that wait for a slow listener; then the oldest are dropped, which does no harm, since later events of a
study replace earlier ones."""


@dataclass(frozen=True)
class Beat:
    """The progress of a study at one instant."""

    study: str
    results: int
    state: str
    revision: int
    """Every change of the study raises it."""
    folded: int
    """Revision up to which results are processed: if it and `results` stay the same, only tickets have changed."""
    id: int
    """Tells a study from one that had its name before and was deleted."""
    pending: int
    """Number of pending tickets: they may expire without a change of the study."""
    damage: str | None = None
    """What is wrong with its records, if its state is "damaged"."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the beat, JSON-ready."""
        hidden = {"id"} if self.damage is not None else {"id", "damage"}
        return {name: value for name, value in vars(self).items() if name not in hidden}


def beats(studies: Studies) -> list[Beat]:
    """Returns the progress of all studies, oldest first."""
    marks, pending, now = studies.marks(), studies.pending(), studies.now
    return [
        Beat(
            mark.name,
            mark.results,
            mark.state(now),
            mark.revision,
            mark.folded,
            mark.id,
            pending.get(mark.id, 0),
            mark.damage,
        )
        for mark in marks
    ]


Change = Beat | str
"""A study that has changed, or the name of one that was deleted."""


class Events:
    """The listeners of a process."""

    def __init__(self, studies: Studies, every: float = EVERY, heartbeat: float = HEARTBEAT) -> None:
        self._studies = studies
        self._every = every
        self._heartbeat = heartbeat
        self._listeners: dict[asyncio.Queue[Change | None], str | None] = {}
        self._last: dict[str, Beat] = {}
        self._watching: asyncio.Task[None] | None = None
        self._closed = False

    def stream(self, name: str | None, allowed: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Returns the events of a study, or of all studies: first their present state, then every change, until `close`
        or until they are no longer `allowed`."""
        if len(self._listeners) >= MOST_LISTENERS:
            raise Busy(f"{MOST_LISTENERS:,} listen already; try again in a while")
        return self._stream(name, allowed)

    async def _stream(self, name: str | None, allowed: Callable[[], bool]) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[Change | None] = asyncio.Queue(MOST_WAITING)
        self._listeners[queue] = name  # before it reads, so that no change after that is missed
        try:
            yield f"retry: {RETRY}\n\n".encode()
            for beat in await self._beats():
                if name in (None, beat.study):
                    yield _event(beat)
                    self._last.setdefault(beat.study, beat)
            if self._watching is None or self._watching.done():
                self._watching = asyncio.create_task(self._watch())
            while not self._closed:
                try:
                    change: Change | bytes | None = await asyncio.wait_for(queue.get(), self._heartbeat)
                except TimeoutError:
                    change = b": still here\n\n"
                if change is None or not allowed():
                    return
                yield change if isinstance(change, bytes) else _event(change)
                if change == name:
                    return
        finally:
            del self._listeners[queue]

    def close(self) -> None:
        """Ends all streams."""
        self._closed = True
        for queue in self._listeners:
            _put(queue, None)

    async def _beats(self) -> list[Beat]:
        return await asyncio.to_thread(beats, self._studies)

    async def _watch(self) -> None:
        while self._listeners and not self._closed:
            await asyncio.sleep(self._every)
            try:
                now = {beat.study: beat for beat in await self._beats()}
            except Exception as error:  # for example busy, or no thread is left: the next query may succeed
                logging.getLogger(__name__).warning("%s", error)
                continue
            changes: list[Change] = [beat for name, beat in now.items() if self._last.get(name) != beat]
            changes += [name for name in self._last if name not in now]
            self._last = now
            for change in changes:
                of = change if isinstance(change, str) else change.study
                for queue, wanted in self._listeners.items():
                    if wanted in (None, of):
                        _put(queue, change)
        self._last = {}


def _put(queue: asyncio.Queue[Change | None], change: Change | None) -> None:
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(change)


def _event(change: Change) -> bytes:
    if isinstance(change, str):
        return b"event: deleted\ndata: " + as_json({"study": change}) + b"\n\n"
    return b"event: study\nid: " + str(change.revision).encode() + b"\ndata: " + as_json(change.as_dict()) + b"\n\n"
