"""The progress of all studies, from two small queries."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectralbai.errors import NotFound
from spectralbai.study import Definition, Studies

if TYPE_CHECKING:
    from spectralbai.study.standing import Mark


@dataclass(frozen=True)
class Beat:
    """The progress of a study at one instant."""

    study: str
    results: int
    state: str
    version: str
    """Changes whenever anything except tickets has changed."""
    pending: int
    """Number of pending tickets."""
    last: float
    """When the last of them was handed out, in seconds since 1970; 0 if there are none."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the beat, JSON-ready."""
        return {name: value for name, value in vars(self).items() if name != "last"}


class Pulse:
    """Reads the progress of the studies of a storage. Definitions are read only when they change."""

    def __init__(self, studies: Studies) -> None:
        self._studies = studies
        self._known: dict[tuple[int, int, str], Definition] = {}

    def read(self) -> list[Beat]:
        """Returns the progress of all studies, oldest first."""
        marks, pending, now = self._studies.marks(), self._studies.pending(), self._studies.now
        known: dict[tuple[int, int, str], Definition] = {}
        beats = []
        for mark in marks:
            key = (mark.id, mark.joined, mark.head)
            try:
                definition = self._known.get(key) or self._studies.open(mark.name).definition
            except NotFound:  # deleted meanwhile
                continue
            known[key] = definition
            state = mark.progress
            if state == "running" and definition.over(mark.results, now):
                state = "ended"
            beats.append(Beat(mark.name, mark.results, state, _version(mark, state), *pending.get(mark.id, (0, 0.0))))
        self._known = known
        return beats


def _version(mark: Mark, state: str) -> str:
    return hashlib.sha256(repr((tuple(mark), state)).encode("utf-8", "backslashreplace")).hexdigest()[:16]
