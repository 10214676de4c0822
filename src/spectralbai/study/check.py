"""Checks of a study: its log is folded again, and all that is stored is compared with it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectralbai.documents import plain
from spectralbai.errors import InvalidInput, NotFound, SpectralBAIError
from spectralbai.journal.events import Entry, ResultsTold
from spectralbai.journal.fold import Fold
from spectralbai.journal.records import Records
from spectralbai.journal.replay import replay
from spectralbai.study.ledger import Damage, Ledger, Mark, StoredState, find_marks, note_damage, sound
from spectralbai.study.storage import Storage

MOST_NAMED = 20
"""Most differences that a check names."""


@dataclass(frozen=True)
class Check:
    """What a check of a study found.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.study
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> with sb.Studies() as studies:
        ...     study = studies.create("checked", sb.Instance(problem, labels=["old", "new"]))
        ...     studies.check("checked").damage
        ()
    """

    name: str
    events: int
    """Number of events in its log that can be read."""
    results: int
    """Number of results that they tell of."""
    damage: tuple[str, ...]
    """What is not as it should be, in words; empty if all is."""

    @property
    def sound(self) -> bool:
        """Whether all is as it should be."""
        return not self.damage

    def as_dict(self) -> dict[str, Any]:
        """Returns the check, JSON-ready."""
        return {**plain(vars(self)), "sound": self.sound}


def check_studies(storage: Storage, name: str | None = None) -> list[Check]:
    """Returns the checks of all studies, oldest first, or that of the study with the given name. What they find is
    noted in the row of the study, which lists show."""
    with storage.reading() as connection:
        marks = [mark for mark in find_marks(connection) if name in (None, mark.name)]
    if not marks and name is not None:
        raise NotFound(f'{storage.name} holds no study "{name}"; spectralbai study list shows those that are there')
    return [_check(storage, mark) for mark in marks]


def _check(storage: Storage, mark: Mark) -> Check:
    log: list[Entry] = []
    damage: list[str] = []
    with storage.reading() as connection:
        ledger = Ledger(connection, mark.id)
        try:
            log, broken = ledger.readable()
            if broken is not None:
                raise Damage(broken)
            damage += _differences(ledger, log)
        except NotFound:
            return Check(mark.name, 0, 0, ())  # deleted meanwhile
        except (Damage, SpectralBAIError) as error:
            damage.append(str(error))
        found = find_marks(connection, mark.name)
        wrong = found[0].damage if found else None
        if not damage and wrong is not None and "column" in wrong:
            damage.append(wrong)
    sentence = f'the study "{mark.name}" is damaged: {damage[0]}' if damage else None
    if sentence is not None or mark.damage is not None:
        with storage.writing() as connection:
            note_damage(connection, mark.id, sentence)
    results = Records.of(log).observations
    return Check(mark.name, len(log), len(results), tuple(damage[:MOST_NAMED]))


def _differences(ledger: Ledger, log: list[Entry]) -> list[str]:
    """Returns where the tables of a study differ from its log."""
    standing = ledger.standing()
    fold = replay(log)
    records = Records.of(log)
    damage = [
        *_differing("result", {each.number: vars(each) for each in records.observations}, ledger.rows("results")),
        *_differing("ticket", {each.id: vars(each) for each in records.tickets}, ledger.rows("tickets")),
    ]
    if damage:
        return damage
    definition = fold.definition
    with sound("the stored state"):
        from spectralbai.policy import State

        stored = Fold(definition, State.from_dict(json.loads(ledger.state(standing.folded))))
        columns = StoredState.of(stored).columns
        before = stored.state.samples
        stored.queue = ledger.queue(before, standing.results)
        stored.feed()
        fold.feed()
        if not alike(stored.state.as_dict(), fold.state.as_dict()):
            damage.append("the stored state is not the one that follows from the log")
    events = [entry.event for entry in log]
    last = max(entry.revision for entry in log if entry.event.defines)
    wanted = {
        "results": fold.queue.end,  # also those that were taken out
        "known": sum(len(told.results) for told in events if isinstance(told, ResultsTold) and told.known),
        "created": log[0].time,
        **{name: getattr(definition, name) for name in ("goal", "delta", "budget", "until", "stopped")},
        **columns,
    }
    row = ledger.row(tuple(wanted))
    if not last <= standing.defined <= standing.folded <= standing.revision:
        damage.append("the numbers of the last events of the study cannot be right")
    damage += [
        f"the study has the {name} {row[name]!r}, and by its log it is {value!r}"
        for name, value in wanted.items()
        if not alike(row[name], value)
    ]
    return damage


def _differing(what: str, wanted: Mapping[Any, Mapping[str, Any]], rows: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    damage = [f"the {what} {key} is in the log and not in its table" for key in wanted if key not in rows]
    damage += [f"the {what} {key} is in its table and not in the log" for key in rows if key not in wanted]
    for key in wanted.keys() & rows.keys():
        damage += [
            f"the {what} {key} has the {name} {rows[key][name]!r}, and by the log it is {value!r}"
            for name, value in wanted[key].items()
            if rows[key][name] != value or isinstance(rows[key][name], str) != isinstance(value, str)
        ]
        if rows[key]["checksum"] != rows[key]["wanted"]:
            damage.append(f"the {what} {key} has another checksum than its values")
    return damage


def alike(one: Any, other: Any) -> bool:
    """Returns whether two documents are the same but for rounding: another machine may have computed one of them."""
    if isinstance(one, float) and isinstance(other, (float, int)):
        return one == other or math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def readable_part(storage: Storage, name: str) -> list[Entry]:
    """Returns as much of the log of a study as can be read and can have happened, from its beginning."""
    with storage.reading() as connection:
        marks = find_marks(connection, name)
        if not marks:
            raise NotFound(f'{storage.name} holds no study "{name}"; spectralbai study list shows those that are there')
        log, _ = Ledger(connection, marks[0].id).readable()
    while log:
        try:
            replay(log)
            return log
        except InvalidInput:
            log = log[:-1]  # a block may have closed, and the event that says so cannot be read
    raise InvalidInput(f'nothing of the study "{name}" can be read; restore a backup')
