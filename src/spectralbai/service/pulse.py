"""The progress of all studies, from two small queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spectralbai.study import Studies


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

    def as_dict(self) -> dict[str, Any]:
        """Returns the beat, JSON-ready."""
        return {name: value for name, value in vars(self).items() if name != "id"}


def beats(studies: Studies) -> list[Beat]:
    """Returns the progress of all studies, oldest first."""
    marks, pending, now = studies.marks(), studies.pending(), studies.now
    return [
        Beat(mark.name, mark.results, mark.state(now), mark.revision, mark.folded, mark.id, pending.get(mark.id, 0))
        for mark in marks
    ]
