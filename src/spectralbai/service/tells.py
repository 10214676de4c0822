"""Results of many clients, told together.

Every tell is a transaction that waits for the disk, and transactions of one study wait for each other. So requests that
arrive while one is running are told together in the next transaction: with more clients, more of them share the wait.
Each request is still recorded completely or not at all, refused separately, and acknowledged once it is on the disk.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from spectralbai.errors import SpectralBAIError
from spectralbai.service.shelf import Shelf

LOG = logging.getLogger(__name__)
PATIENCE = 1.0
"""Seconds that an answer waits for rules that its results made due, so that a status asked for next knows what they
say. With thousands of connected options they take longer, and nobody shall wait for that."""
MOST_AT_ONCE = 64
"""Most requests that share a transaction."""


class _Batch:
    """The results of one request."""

    def __init__(self, results: Sequence[tuple[Any, Any]]) -> None:
        self.results = results
        self.woken = threading.Event()
        """Set when its answer is there, or when it is its turn to tell the waiting requests together."""
        self.answer: int | BaseException | None = None


class Tells:
    """The waiting requests, by study."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[_Batch]] = {}

    def tell(self, name: str, results: Sequence[tuple[Any, Any]]) -> int:
        """Records outcomes of tickets, all or none; returns how many were new."""
        batch = _Batch(results)
        with self._lock:
            waiting = self._waiting.get(name)
            if waiting is None:
                self._waiting[name] = deque()  # requests that arrive from now on wait for this one
            else:
                waiting.append(batch)
        if waiting is not None:
            batch.woken.wait()
        if batch.answer is None:
            self._tell_together(name, batch)
        if isinstance(batch.answer, BaseException):
            raise batch.answer
        assert isinstance(batch.answer, int)
        return batch.answer

    def _tell_together(self, name: str, first: _Batch) -> None:
        with self._lock:
            waiting = self._waiting[name]
            together = [first, *(waiting.popleft() for _ in range(min(len(waiting), MOST_AT_ONCE - 1)))]
        recorded = threading.Event()

        def acknowledge(answers: Sequence[int | BaseException]) -> None:
            if recorded.is_set():
                return  # told again to a study that replaced this one meanwhile
            self._pass_on(name)
            for batch, answer in zip(together, answers, strict=True):
                batch.answer = answer
                batch.woken.set()
            recorded.set()

        def tell() -> None:
            try:
                batches = [batch.results for batch in together]
                self._shelf.use(name, lambda study: study.tell_batches(batches, acknowledge))
            except BaseException as error:
                if not recorded.is_set():
                    acknowledge([error] * len(together))
                elif not isinstance(error, SpectralBAIError):
                    LOG.exception('reading the rules of the study "%s" failed', name)

        thread = threading.Thread(target=tell)
        thread.start()
        recorded.wait()
        thread.join(PATIENCE)

    def _pass_on(self, name: str) -> None:
        """Wakes the next waiting request, which tells all that wait, while this one may still have to read rules."""
        with self._lock:
            waiting = self._waiting[name]
            if waiting:
                waiting.popleft().woken.set()
            else:
                del self._waiting[name]
