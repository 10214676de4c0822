"""Results as they are told: checked, compared with what is recorded, and appended, each batch all or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from spectralbai.checks import check_words, is_line
from spectralbai.errors import Conflict, InvalidInput, NotFound, SpectralBAIError
from spectralbai.journal.entries import Failure, Ticket
from spectralbai.study.ledger import Ledger
from spectralbai.study.upkeep import OnCheck, Upkeep

Outcome = float | Failure | None
Outcomes = Iterable[tuple[Ticket | str, Outcome]]
"""Outcomes of tickets."""
Parsed = tuple[str, float | None, str | None]
"""The id of a ticket, its outcome, None if the trial failed and does not count, and why it failed, if it did."""


def tell_batches(
    upkeep: Upkeep, batches: Sequence[Outcomes], on_recorded: Callable[[list[int | SpectralBAIError]], object] | None
) -> list[int | SpectralBAIError]:
    """Records batches of outcomes of tickets; see `Study.tell_batches`."""
    parsed = [_parsed(upkeep, batch) for batch in batches]
    ids = {id_ for batch in parsed if not isinstance(batch, SpectralBAIError) for id_, _, _ in batch}
    told: list[int | SpectralBAIError] = []
    with upkeep.writing() as ledger:
        standing = ledger.standing(lock=True)
        known = ledger.outcomes_of(sorted(ids))
        new: dict[str, dict[str, Any]] = {}
        given_back: dict[str, None] = {}
        reasons: dict[str, str] = {}
        for batch in parsed:
            try:
                if isinstance(batch, SpectralBAIError):
                    raise batch
                own, back = _sorted_out(upkeep, batch, known)
            except SpectralBAIError as error:
                told.append(error)
                continue
            for id_, row in own.items():
                arm, _, block = known[id_]
                known[id_] = (arm, row["outcome"], block)
            new |= own
            given_back |= dict.fromkeys(back)
            changed = own.keys() | back
            reasons |= {id_: reason for id_, _, reason in batch if reason is not None and id_ in changed}
            told.append(len(own) + len(back))
        ledger.fail(reasons)
        ledger.abandon(list(given_back), upkeep.now)
        filled = sum(known[id_][2] is not None and known[id_][2] == standing.first_block for id_ in new)
        claimed = upkeep.append(ledger, standing, list(new.values()), filled)
    if on_recorded is not None:
        on_recorded(told)
    if claimed:
        upkeep.advance()
    return told


def _parsed(upkeep: Upkeep, results: Outcomes) -> list[Parsed] | SpectralBAIError:
    """Returns outcomes of tickets, checked, or what is wrong with them."""
    told: list[Parsed] = []
    try:
        for ticket, outcome in results:
            id_ = _ticket_id(ticket)
            if outcome is None or isinstance(outcome, Failure):
                reason = "no outcome" if outcome is None else outcome.reason
                told.append((id_, upkeep.definition.failed_as, check_words("reason", reason, 200)))
            else:
                told.append((id_, upkeep.definition.check_outcome(outcome), None))
    except SpectralBAIError as error:
        return error
    except (TypeError, ValueError):
        return InvalidInput("`results` must be pairs of a ticket and an outcome")
    return told


def _sorted_out(
    upkeep: Upkeep, told: Sequence[Parsed], known: Mapping[str, tuple[int, float | None, int | None]]
) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """Returns the new results among these, as rows by ticket, and the tickets to give back."""
    new: dict[str, dict[str, Any]] = {}
    given_back: set[str] = set()
    for id_, value, _ in told:
        if id_ not in known:
            raise NotFound(f'"{id_}" is no ticket of the study "{upkeep.name}"; tell under the id that ask gave')
        arm, before, _ = known[id_]
        if id_ in new:
            before = new[id_]["outcome"]
        if value is None:
            if before is not None:
                raise Conflict(f'the ticket "{id_}" has the outcome {before!r} already; it did not fail')
            given_back.add(id_)
        elif before is None:
            new[id_] = {"arm": arm, "outcome": value, "ticket": id_}
        elif before != value:
            raise Conflict(
                f'the ticket "{id_}" has the outcome {before!r} already, got {value!r}; results are never changed'
            )
    return new, given_back


def add(
    upkeep: Upkeep,
    pairs: Sequence[tuple[str, float]],
    origin: str,
    on_check: OnCheck | None = None,
    tickets: Iterable[str] = (),
    origins: Iterable[str] = (),
) -> int:
    """Records labels and outcomes of one origin, without tickets; see `Study.add`."""
    # What cannot be a ticket or an origin here comes from elsewhere.
    named = sorted({each for each in tickets if is_line(each, 16)})
    others = sorted({each for each in origins if is_line(each, 200)} - {origin})
    upkeep.refresh()
    results = [
        (upkeep.definition.check_arm(label), upkeep.definition.check_outcome(outcome)) for label, outcome in pairs
    ]
    with upkeep.writing() as ledger:
        standing = ledger.standing(lock=True)
        own = [each for each in others if ledger.results_of(each)]
        own += ledger.outcomes_of(named)
        if own:
            raise Conflict(
                f'these results are in the study "{upkeep.name}" already, such as that of "{min(own)}"; nothing was '
                "recorded"
            )
        known = recorded(ledger, origin, results)
        new = [] if known else [{"arm": arm, "outcome": outcome, "origin": origin} for arm, outcome in results]
        claimed = upkeep.append(ledger, standing, new)
    if claimed:
        upkeep.advance(on_check)
    return len(new)


def recorded(ledger: Ledger, origin: str, results: list[tuple[int, float]]) -> bool:
    """Returns whether these results of an origin are recorded; raises Conflict if different ones of it are."""
    known = ledger.results_of(origin)
    if known and sorted(known) != sorted(results):  # sorted, because counts have no order
        raise Conflict(f'results of the origin "{origin}" are recorded already, and differ; results are never changed')
    return bool(known)


def abandon(upkeep: Upkeep, tickets: Iterable[Ticket | str]) -> None:
    """Gives tickets back, all or none."""
    ids = [_ticket_id(ticket) for ticket in tickets]
    with upkeep.writing() as ledger:
        ledger.standing(lock=True)
        found = ledger.outcomes_of(ids)
        for id_ in ids:
            if id_ not in found:
                raise NotFound(f'"{id_}" is no ticket of the study "{upkeep.name}"')
            if found[id_][1] is not None:
                raise Conflict(f'the ticket "{id_}" has its result already and cannot be given back')
        ledger.abandon(ids, upkeep.now)


def _ticket_id(ticket: Any) -> str:
    id_ = ticket.id if isinstance(ticket, Ticket) else ticket
    if not is_line(id_, 100):
        raise InvalidInput(f"`ticket` must be a ticket that ask gave, or its id, got {str(ticket)[:120]!r}")
    return id_
