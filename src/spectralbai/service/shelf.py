"""The studies that a process has open, by name."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from spectralbai.errors import NotFound
from spectralbai.study import Studies, Study

MOST_OPEN = 64
"""Studies kept open; the one used least lately goes first."""

T = TypeVar("T")


class Shelf:
    """Opens studies of a storage once, and keeps them: a `Study` that is open knows its state, and answers quickly."""

    def __init__(self, studies: Studies) -> None:
        self.studies = studies
        self._open: OrderedDict[str, Study] = OrderedDict()
        self._lock = threading.Lock()

    def use(self, name: str, call: Callable[[Study], T]) -> T:
        """Returns what `call` makes of a study.

        One that is open may have been deleted meanwhile by another process, and another one created under its name: so
        what it does not find is looked for again in the study opened anew.
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
        return call(self._opened(name))

    def forget(self, name: str) -> None:
        """Lets go of a study, which was deleted, say."""
        with self._lock:
            self._open.pop(name, None)

    def keep(self, study: Study) -> None:
        """Keeps a study that was opened elsewhere."""
        with self._lock:
            self._open[study.name] = study
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)

    def _opened(self, name: str) -> Study:
        study = self.studies.open(name)
        self.keep(study)
        return study
