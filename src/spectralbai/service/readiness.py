"""Whether the database can be written to: tried at most once a second, however many ask."""

from __future__ import annotations

import asyncio
import time
from asyncio import Task

from spectralbai.errors import Busy
from spectralbai.service.lanes import Lane
from spectralbai.study import Studies

EVERY = 1.0
"""Seconds for which an answer holds."""
PATIENCE = 3.0
"""Seconds after which a database that does not answer counts as not ready."""


class Readiness:
    """The last attempt to write."""

    def __init__(self, studies: Studies, lane: Lane) -> None:
        self._studies, self._lane = studies, lane
        self._attempt: Task[None] | None = None
        self._begun = -EVERY

    async def check(self) -> None:
        """Raises StorageError if the database cannot be written to."""
        now = time.monotonic()
        if self._attempt is None or (self._attempt.done() and now - self._begun >= EVERY):
            self._begun = now
            self._attempt = asyncio.get_running_loop().create_task(self._lane.run(self._studies.try_writing))
        done, _ = await asyncio.wait([self._attempt], timeout=PATIENCE)
        if not done:
            raise Busy(f"the database has not answered for {time.monotonic() - self._begun:.0f} seconds")
        self._attempt.result()
