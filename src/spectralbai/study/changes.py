"""Changes of a running study: an option is taken out, options join, or it is stopped by hand.

Each is computed outside any transaction from the stored state, and written if the state is still the same then. Results
that others tell meanwhile come after the change.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from spectralbai.errors import Conflict
from spectralbai.instance import Instance
from spectralbai.journal.entries import Join, Told, Withdrawal
from spectralbai.study.ledger import Ledger
from spectralbai.study.replay import advance, checks_of, summary
from spectralbai.study.standing import Standing, key
from spectralbai.study.upkeep import Upkeep

if TYPE_CHECKING:
    from spectralbai.policy import State


def withdraw(upkeep: Upkeep, label: str) -> bool:
    """Takes an option out; see `Study.withdraw`."""
    upkeep.refresh()
    arm = upkeep.definition.check_arm(label)
    while True:
        before, kept, unseen = _up_to_date(upkeep)
        if arm in kept.withdrawn:
            return False
        state, seen = advance(upkeep.definition, kept, unseen)
        new, readings = upkeep.definition.of(state).policy.after_withdrawal(state, arm)
        text, columns = json.dumps(new.as_dict()), summary(upkeep.definition, new)
        with upkeep.writing() as ledger:
            ledger.standing(lock=True)
            if ledger.signs() != (key(kept), before.head):
                continue  # another worker was faster: start again from the new state
            now = upkeep.now
            ledger.add([Withdrawal(arm, state.samples, state.opened, now)])
            ledger.replace_state(key(kept), new, text, now, checks_of(readings, seen), **columns)
            ledger.void([block.number for block in new.blocks], now)
        upkeep.replaced(new)
        return True


def join(upkeep: Upkeep, instance: Instance) -> str:
    """Adds options; see `Study.join`."""
    while True:
        before, kept, unseen = _up_to_date(upkeep)
        definition, now = upkeep.definition.joined(instance), upkeep.now
        with upkeep.reading() as ledger:
            same, out = upkeep.learn(ledger) == key(kept), handed_out(ledger, kept, now)
        if not same or definition.before is not upkeep.definition:
            continue  # others joined meanwhile
        if definition.over(before.results, now):
            raise Conflict(f'the study "{upkeep.name}" has ended, and nothing could be tried; create another one')
        state, seen = advance(definition, kept, unseen)
        new, readings = definition.policy.after_join(state, out)
        text, whole = json.dumps(new.as_dict()), json.dumps(definition.as_dict())
        columns = {"definition": whole, **summary(definition, new)}
        with upkeep.writing() as ledger:
            ledger.standing(lock=True)
            if ledger.signs() != (key(kept), before.head) or handed_out(ledger, kept, now) != out:
                continue  # another worker was faster: start again from the new state
            earlier = definition.of(state).instance.as_dict()
            written = Join(state.samples, state.opened, len(state.withdrawn), now, out, earlier)
            ledger.add([written], number=len(state.joined))
            ledger.replace_state(key(kept), new, text, now, checks_of(readings, seen), **columns)
            ledger.void([block.number for block in new.blocks], now)
        upkeep.replaced(new, definition, whole)
        return definition.changes


def stop(upkeep: Upkeep) -> bool:
    """Ends the study by hand; see `Study.stop`."""
    while True:
        before, kept, _ = _up_to_date(upkeep)
        now, definition = upkeep.now, upkeep.definition
        if definition.of(kept).policy.verdict(kept).state != "running" or definition.over(before.results, now):
            return False
        stopped = replace(definition, until=now, by_hand=True)
        whole = json.dumps(stopped.as_dict())
        with upkeep.writing() as ledger:
            ledger.standing(lock=True)
            if ledger.signs() != (key(kept), before.head):
                continue  # another worker was faster: start again from the new state
            ledger.update(definition=whole)
        upkeep.replaced(kept, stopped, whole)
        return True


def _up_to_date(upkeep: Upkeep) -> tuple[Standing, State, Told]:
    """Returns how far the study is, the stored state and the results told since, when no block is about to close."""
    while True:
        upkeep.catch_up()
        with upkeep.reading() as ledger:
            standing, kept = ledger.standing(), upkeep.kept(ledger)
            unseen = ledger.results(kept.samples, standing.results)
        if not standing.behind:
            return standing, kept, unseen
        upkeep.wait()  # another worker is about to close a block, which may bring the decision


def handed_out(ledger: Ledger, state: State, now: float) -> tuple[int, ...]:
    """Returns the numbers of the open blocks of which a trial is handed out or has a result."""
    taken = {block for block, _ in ledger.taken(now, state)}
    return tuple(block.number for block in state.blocks if block.number in taken)
