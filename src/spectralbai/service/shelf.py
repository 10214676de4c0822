"""The studies that a process has open, by name."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from spectralbai.errors import NotFound
from spectralbai.study import Studies, Study

MOST_OPEN = 64
"""Most studies that are kept open; the least recently used one is closed first."""

T = TypeVar("T")


class Shelf:
    """Opens studies of a storage once and keeps them open: an open `Study` has its state in memory and answers fast."""

    def __init__(self, studies: Studies) -> None:
        self.studies = studies
        self._open: OrderedDict[str, Study] = OrderedDict()
        self._lock = threading.Lock()

    def use(self, name: str, call: Callable[[Study], T]) -> T:
        """Returns the result of `call` for a study.

        Another process may have deleted an open study and created a new one with the same name. So if `call` raises
        NotFound, the study is opened again and `call` repeated.
        """
        with self._lock:
            study = self._open.get(name)
            if study is not None:
                self._open.move_to_end(name)
        if study is not None:
            try:
                return call(study)
            except NotFound:
                self.forget(name)
        study = self.studies.open(name)
        self.keep(study)
        return call(study)

    def forget(self, name: str) -> None:
        """Removes a study from those kept open, for example because it was deleted."""
        with self._lock:
            self._open.pop(name, None)

    def keep(self, study: Study) -> None:
        """Adds a study that was opened elsewhere to those kept open."""
        with self._lock:
            self._open[study.name] = study
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
