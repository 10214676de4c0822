"""Results of many clients, told together.

Every tell is a transaction that waits for the disk, and transactions of one study wait for each other. So requests that
arrive while one is running are told together in the next transaction: with more clients, more of them share the wait.
Each request is still recorded completely or not at all, refused separately, and acknowledged once it is on the disk.
Requests that wait hold no thread.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future, Task
from collections import deque
from collections.abc import Sequence
from typing import Any

from spectralbai.errors import Busy, SpectralBAIError
from spectralbai.service.lanes import Lane
from spectralbai.service.shelf import Shelf

LOG = logging.getLogger(__name__)
PATIENCE = 1.0
"""Seconds that an answer waits for rules that its results made due, so that a status asked for next knows what they
say. With thousands of connected options they take longer, and nobody shall wait for that."""
MOST_AT_ONCE = 64
"""Most requests that share a transaction."""
MOST_WAITING = 2000
"""Most requests of a study that wait for the next transactions."""

Answers = Sequence[int | BaseException]
Results = Sequence[tuple[Any, Any]]


class _Batch:
    """The results of one request."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.answer: Future[int] = asyncio.get_running_loop().create_future()

    def settle(self, answer: int | BaseException) -> None:
        """Answers the request, unless its client does not wait any more."""
        if self.answer.done():
            return
        if isinstance(answer, BaseException):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class Tells:
    """The waiting requests, by study."""

    def __init__(self, shelf: Shelf, lane: Lane) -> None:
        self._shelf, self._lane = shelf, lane
        self._waiting: dict[str, deque[_Batch]] = {}
        """A study is here while results of it are being recorded."""
        self._tasks: set[Task[Any]] = set()  # the loop itself does not keep them

    async def tell(self, name: str, results: Results) -> int:
        """Records outcomes of tickets, all or none; returns how many were new."""
        batch, waiting = _Batch(results), self._waiting.get(name)
        if waiting is None:
            self._waiting[name] = deque([batch])
            self._start(self._tell_in_turn(name))
        elif len(waiting) >= MOST_WAITING:
            raise Busy("too many results of this study wait to be recorded; try again in a while")
        else:
            waiting.append(batch)
        return await batch.answer

    def _start(self, work: Any) -> Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _tell_in_turn(self, name: str) -> None:
        """Tells what waits, until nothing does."""
        waiting = self._waiting[name]
        try:
            while waiting:
                await self._tell_together(name, [waiting.popleft() for _ in range(min(len(waiting), MOST_AT_ONCE))])
        finally:
            del self._waiting[name]
            for batch in waiting:  # only if this was cancelled, because the service ends
                batch.settle(Busy("the service ends; do the same again once it runs"))

    async def _tell_together(self, name: str, together: Sequence[_Batch]) -> None:
        """Returns when these requests are recorded, or refused; rules that are due then may still be read."""
        loop = asyncio.get_running_loop()
        recorded: Future[None] = loop.create_future()
        batches = [batch.results for batch in together]

        def settle(answers: Answers) -> None:
            if recorded.done():
                return  # told again to a study that replaced this one meanwhile
            recorded.set_result(None)
            for batch, answer in zip(together[1:], answers[1:], strict=True):
                batch.settle(answer)
            if work.done():
                together[0].settle(answers[0])
            else:
                work.add_done_callback(lambda _: together[0].settle(answers[0]))
                loop.call_later(PATIENCE, together[0].settle, answers[0])

        def tell() -> None:
            def acknowledge(answers: Answers) -> None:
                loop.call_soon_threadsafe(settle, answers)

            self._shelf.use(name, lambda study: study.tell_batches(batches, acknowledge))

        async def run() -> None:
            try:
                await self._lane.run(tell, name)
            except BaseException as error:
                if not recorded.done():
                    _settle_all(error)
                elif not isinstance(error, SpectralBAIError):
                    LOG.exception('reading the rules of the study "%s" failed', name)

        def _settle_all(error: BaseException) -> None:
            recorded.set_result(None)
            late = self._waiting[name] if isinstance(error, Busy) else ()  # they would wait as long, one after another
            for batch in (*together, *late):
                batch.settle(error)
            if late:
                self._waiting[name].clear()

        work = self._start(run())
        await recorded
