"""Corrections of results that were wrong: what they change is said before they are made, and the log keeps both.

A correction is computed when no block is about to close, from the whole log (`journal.refold`). How it bears on the
risk is in theory, section 21.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spectralbai.checks import check_words
from spectralbai.errors import Conflict, NotFound
from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import CountRows
from spectralbai.journal.events import Entry, ResultsVoided
from spectralbai.journal.fold import Fold
from spectralbai.journal.refold import refolded
from spectralbai.study.ledger import Ledger, StoredState
from spectralbai.study.traffic import counted, in_order, tell_counts
from spectralbai.study.upkeep import Change, Draft, Upkeep
from spectralbai.text.wording import MOST_NAMED, in_words
from spectralbai.verdict import Verdict


def void(upkeep: Upkeep, origin: str | None, ticket: str | None, reason: str, only_say: bool) -> str:
    """Takes out the results of an origin or a ticket; returns what that changes. See `Study.void`."""
    return _corrected(upkeep, _event(origin, ticket, None, reason), only_say)


def correct(upkeep: Upkeep, ticket: str, outcome: float, reason: str, only_say: bool) -> str:
    """Corrects the outcome of a ticket; returns what that changes. See `Study.correct`."""
    upkeep.refresh()
    return _corrected(upkeep, _event(None, ticket, upkeep.definition.check_outcome(outcome), reason), only_say)


def correct_counts(upkeep: Upkeep, id_: str, counts: CountRows, reason: str, only_say: bool) -> str:
    """Replaces the counts of an id by others; returns what that changes. See `Study.correct_counts`."""
    upkeep.refresh()
    definition = upkeep.definition
    given = counts if isinstance(counts, Mapping) else list(counts)
    trials, successes, ends = counted(definition, given)  # raises an error before anything is changed
    arms, outcomes = in_order(trials, successes, ends, f"{upkeep.name}\n{id_}")
    right = sorted(zip(arms.tolist(), outcomes.tolist(), strict=True))
    with upkeep.reading() as ledger:
        there = sorted(ledger.results_of(id_))
    if there == right:
        return f'The counts of "{id_}" are already so.'
    words = _corrected(upkeep, _event(id_, None, None, reason), only_say) if there else ""
    if not only_say:
        tell_counts(upkeep, given, id_, past=False)
    return f'{words} {in_words(len(right), "trial")} of "{id_}" are told in their place, as a day of now.'.strip()


def _event(origin: str | None, ticket: str | None, outcome: float | None, reason: str) -> ResultsVoided:
    reason = check_words("reason", reason, 200, blank=True)
    nothing = Verdict()
    return ResultsVoided(0, "", nothing, origin=origin, ticket=ticket, outcome=outcome, reason=reason)


def _corrected(upkeep: Upkeep, event: ResultsVoided, only_say: bool) -> str:
    """Folds the log again with a correction and records that, unless it shall `only_say` what would change."""

    def compute() -> Change[str | None]:
        revision, fold = upkeep.up_to_date()
        before = fold.state
        with upkeep.reading() as ledger:
            known = _concerned(upkeep, ledger, event)
            log = ledger.log()
        again = refolded([*log, Entry(len(log) + 1, upkeep.now, event)], fold.definition)
        recorded = replace(event, results=before.samples, rule=fold.definition.rule, verdict=again.verdict)
        stored, words = StoredState.of(again), _words(fold, again, event, known)

        def fill(draft: Draft) -> str | None:
            if draft.standing.results != before.samples:
                return None  # results were told meanwhile
            if only_say:
                return words
            tickets = draft.ledger.cancelled([block.number for block in again.state.blocks], again.state.withdrawn)
            draft.events += [replace(recorded, abandoned=tickets), *again.openings(before.opened)]
            draft.stored = stored
            return words

        return revision, fill

    while (words := upkeep.write(compute)) is None:
        pass
    return words


def _concerned(upkeep: Upkeep, ledger: Ledger, event: ResultsVoided) -> int:
    """Returns how many results a correction is about; raises an error if it is about none."""
    if event.ticket is None:
        found = ledger.results_of(event.origin or "")
        if not found:
            raise NotFound(f'the study "{upkeep.name}" has no results of "{event.origin}"; study status shows its days')
        return len(found)
    row = ledger.ticket_rows([event.ticket]).get(event.ticket)
    if row is None or row.outcome is None:
        raise NotFound(f'"{event.ticket}" is no ticket with a result in the study "{upkeep.name}"')
    if row.item is not None and event.outcome is None:
        raise Conflict("a trial on an item cannot be taken out, since options are compared item by item; correct it")
    return 1


def _words(before: Fold, after: Fold, event: ResultsVoided, known: int) -> str:
    """Returns what a correction changes."""
    definition: Definition = before.definition
    labels, then, now = definition.instance.labels, before.verdict, after.verdict
    what = f'{in_words(known, "result")} of "{event.ticket if event.origin is None else event.origin}"'
    words = [f"{what} {'is' if known == 1 else 'are'} " + ("taken out." if event.outcome is None else "corrected.")]
    if not then.consistent and now.consistent:
        words.append("Without that the data agree with the hypotheses, and the study goes on.")
    if then.consistent and not now.consistent:
        words.append("With that the data contradict the hypotheses.")
    if then.decided and now.decided:
        same = then.arm == now.arm
        words.append(f'The answer {"stays" if same else "changes to"} "{labels[now.arm]}".')
    elif then.decided:
        words.append(f'The decision for "{labels[then.arm]}" is revoked, and the study goes on.')
    elif now.decided:
        words.append(f'With that the study has decided: "{labels[now.arm]}".')
    back = [labels[arm] for arm in now.candidates or () if arm not in (then.candidates or now.candidates or ())]
    if back:
        named = ", ".join(back) if len(back) <= MOST_NAMED else in_words(len(back), "option")
        words.append(f"May be the best again: {named}.")
    words.append(
        "The risk of a wrong answer stays what it is if this correction was made without regard to how options compare."
    )
    return " ".join(words)
