"""Changes of a running study: an option is taken out, options join, or it is stopped by hand.

Each is computed when no block is about to close. Results that others tell meanwhile come after the change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from spectralbai.errors import Conflict
from spectralbai.instance import Instance
from spectralbai.journal.events import OptionsChanged, OptionsJoined, OptionWithdrawn, ScoreNamed, StudyStopped
from spectralbai.journal.fold import Fold
from spectralbai.study.ledger import Ledger, StoredState
from spectralbai.study.upkeep import Change, Draft, Upkeep
from spectralbai.text.wording import in_words

if TYPE_CHECKING:
    from spectralbai.policy import State


def withdraw(upkeep: Upkeep, label: str) -> bool:
    """Takes an option out; see `Study.withdraw`."""

    def compute() -> Change[bool]:
        revision, fold = upkeep.up_to_date()
        before, arm = fold.state, fold.definition.check_arm(label)
        if arm in before.withdrawn:
            return revision, lambda draft: False
        fold.withdraw(arm)
        event = OptionWithdrawn(before.samples, fold.definition.rule, fold.verdict, arm)
        stored = StoredState.of(fold)

        def fill(draft: Draft) -> bool:
            _fill(draft, event, fold, stored)
            return True

        return revision, fill

    upkeep.refresh()
    upkeep.definition.check_arm(label)  # before results are processed, which may take long
    return upkeep.write(compute)


def join(upkeep: Upkeep, instance: Instance) -> str:
    """Adds options; see `Study.join`."""

    def compute() -> Change[str | None]:
        revision, fold = upkeep.up_to_date()
        before, now = fold.state, upkeep.now
        definition = fold.definition.joined(instance)
        with upkeep.reading() as ledger:
            standing, out = ledger.standing(), _handed_out(ledger, before, now)
        if definition.over(standing.trials, now):
            raise Conflict(f'the study "{upkeep.name}" has ended, and nothing could be tried; create another one')
        joining = Fold(definition, before)
        joining.join(out)
        event = OptionsJoined(before.samples, definition.rule, joining.verdict, out, instance.as_dict())
        stored = StoredState.of(joining)

        def fill(draft: Draft) -> str | None:
            if _handed_out(draft.ledger, before, now) != out:
                return None  # trials of other blocks were handed out meanwhile
            draft.definition = definition
            _fill(draft, event, joining, stored)
            return definition.changes

        return revision, fill

    while (changes := upkeep.write(compute)) is None:
        pass
    return changes


def stop(upkeep: Upkeep) -> bool:
    """Ends the study by hand; see `Study.stop`."""

    def compute() -> Change[bool]:
        revision, fold = upkeep.up_to_date()
        running = fold.verdict.state == "running"

        def fill(draft: Draft) -> bool:
            if not running or fold.definition.over(draft.standing.trials, draft.now):
                return False
            draft.events.append(StudyStopped())
            draft.definition = replace(fold.definition, stopped=draft.now)
            return True

        return revision, fill

    return upkeep.write(compute)


def name_score(upkeep: Upkeep, score: str) -> None:
    """Records how outcomes are found; see `Study.name_score`."""

    def compute() -> Change[None]:
        basis = upkeep.basis
        definition = basis.definition
        before = definition.scored_by

        def fill(draft: Draft) -> None:
            if before == score:
                return
            if before is not None and draft.standing.trials:
                raise Conflict(
                    f'the study "{upkeep.name}" has {in_words(draft.standing.trials, "outcome")} of another score, '
                    f"{_shortened(before)}, and not of {_shortened(score)}; go on with that one, or give the study of "
                    "this one another name"
                )
            draft.events.append(ScoreNamed(score))
            draft.definition = replace(definition, scored_by=score)

        return basis.revision, fill

    upkeep.refresh()
    upkeep.write(compute)


def _shortened(text: str, most: int = 200) -> str:
    text = " ".join(text.split())
    return f'"{text}"' if len(text) <= most else f'"{text[:most]}..."'


def _fill(draft: Draft, event: OptionsChanged, fold: Fold, stored: StoredState) -> None:
    """Puts a change of the options into a draft, and the blocks that closed and opened with it; tickets of blocks that
    are not open any more are given back."""
    state = stored.state
    tickets = draft.ledger.cancelled([block.number for block in state.blocks], state.withdrawn)
    draft.events += [replace(event, abandoned=tickets), *fold.events]
    draft.stored = stored


def _handed_out(ledger: Ledger, state: State, now: float) -> tuple[int, ...]:
    """Returns the numbers of the open blocks of which a trial is handed out or has a result."""
    taken = ledger.taken(now, state)
    return tuple(block.number for block in state.blocks if block.number in taken)
