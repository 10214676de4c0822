"""Results as they are told: checked, compared with what is recorded, and appended, all or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spectralbai.checks import check_words, is_line
from spectralbai.errors import Conflict, InvalidInput, NotFound, SpectralBAIError
from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import Failure, Outcomes, Ticket
from spectralbai.journal.events import KnownPair, PairsKnown, ResultsTold, TicketsAbandoned, Told
from spectralbai.journal.fold import OnCheck
from spectralbai.study.ledger import Ledger, TicketRow
from spectralbai.study.upkeep import Change, Draft, Upkeep


class Tell:
    """Outcomes of tickets that are told together: what is new among them."""

    def __init__(self, name: str, definition: Definition, results: Outcomes) -> None:
        """Checks the outcomes; `name` is that of the study."""
        self._name = name
        self._lapses = definition.lapse_as is not None
        self._outcomes: list[tuple[str, float | None]] = []  # None if the trial failed and does not count
        self._reasons: dict[str, str] = {}
        try:
            for ticket, outcome in results:
                id_ = _ticket_id(ticket)
                if outcome is None or isinstance(outcome, Failure):
                    reason = "no outcome" if outcome is None else outcome.reason
                    self._reasons[id_] = check_words("reason", reason, 200)
                    self._outcomes.append((id_, definition.failed_as))
                else:
                    self._outcomes.append((id_, definition.check_outcome(outcome)))
        except (TypeError, ValueError) as error:
            if isinstance(error, SpectralBAIError):
                raise
            raise InvalidInput("`results` must be pairs of a ticket and an outcome") from None

    @property
    def ids(self) -> list[str]:
        return list(dict.fromkeys(id_ for id_, _ in self._outcomes))

    def fill(self, draft: Draft, rows: dict[str, TicketRow]) -> int:
        """Adds what is new to a draft; returns how many outcomes were new. `rows` has what is recorded of the tickets,
        and is brought up to date."""
        new: dict[str, Told] = {}
        failed: set[str] = set()
        for id_, outcome in self._outcomes:
            if id_ not in rows:
                raise NotFound(f'"{id_}" is no ticket of the study "{self._name}"; tell under the id that ask gave')
            before = new[id_].outcome if id_ in new else rows[id_].outcome
            if outcome is None:
                if before is not None:
                    raise Conflict(f'the ticket "{id_}" has the outcome {before!r} already; it did not fail')
                failed.add(id_)
            elif before is None:
                new[id_] = Told(rows[id_].arm, outcome, rows[id_].block, id_, rows[id_].item)
            elif before != outcome:
                late = " (told within the window, or lapsed)" if self._lapses else ""
                raise Conflict(
                    f'the ticket "{id_}" has the outcome {before!r} already{late}, got {outcome!r}; results are never '
                    "changed without saying so: spectralbai study correct"
                )
        changed = new.keys() | failed
        reasons = {id_: why for id_, why in self._reasons.items() if id_ in changed and why != rows[id_].failed}
        abandoned = tuple(id_ for id_ in self.ids if id_ in failed and not rows[id_].abandoned)
        if new or reasons or abandoned:
            draft.events.append(ResultsTold(tuple(new.values()), None, reasons, abandoned))
        for id_ in changed:
            row = rows[id_]
            outcome = new[id_].outcome if id_ in new else row.outcome
            back, why = row.abandoned or id_ in failed, reasons.get(id_, row.failed)
            rows[id_] = row._replace(outcome=outcome, abandoned=back, failed=why)
        return len(new) + len(failed)


def tell(upkeep: Upkeep, results: Outcomes) -> int:
    """Records outcomes of tickets, all or none; see `Study.tell_many`."""
    given = _listed(results)

    def compute() -> Change[int]:
        basis = upkeep.basis
        batch = Tell(upkeep.name, basis.definition, given)
        return basis.revision, lambda draft: batch.fill(draft, draft.ledger.ticket_rows(batch.ids))

    return upkeep.write(compute)


def tell_batches(
    upkeep: Upkeep, batches: Sequence[Outcomes], on_recorded: Callable[[list[int | SpectralBAIError]], object] | None
) -> list[int | SpectralBAIError]:
    """Records batches of outcomes of tickets in one transaction, each all or none; see `Study.tell_batches`."""
    lists = [_listed(batch) for batch in batches]

    def compute() -> Change[list[int | SpectralBAIError]]:
        basis = upkeep.basis
        checked: list[Tell | SpectralBAIError] = []
        for batch in lists:
            try:
                checked.append(Tell(upkeep.name, basis.definition, batch))
            except SpectralBAIError as error:
                checked.append(error)

        def fill(draft: Draft) -> list[int | SpectralBAIError]:
            tells = [each for each in checked if isinstance(each, Tell)]
            rows = draft.ledger.ticket_rows(sorted({id_ for each in tells for id_ in each.ids}))
            answers: list[int | SpectralBAIError] = []
            for each in checked:
                try:
                    answers.append(each.fill(draft, rows) if isinstance(each, Tell) else each)
                except SpectralBAIError as error:
                    answers.append(error)
            return answers

        return basis.revision, fill

    return upkeep.write(compute, on_recorded)


def lapse(upkeep: Upkeep) -> int:
    """Tells the outcome of tickets that lapsed, if the study says what they count as; returns how many did."""
    definition = upkeep.definition
    if definition.lapse_as is None:
        return 0
    outcome = definition.lapse_as
    with upkeep.reading() as ledger:
        if not ledger.n_lapsed(upkeep.now):
            return 0

    def compute() -> Change[int]:
        def fill(draft: Draft) -> int:
            gone = draft.ledger.lapsed(draft.now)  # once more: results may have been told meanwhile
            if gone:
                told = tuple(Told(arm, outcome, block, id_, item) for id_, arm, block, item in gone)
                draft.events.append(ResultsTold(told))
            return len(gone)

        return upkeep.basis.revision, fill

    return upkeep.write(compute)


def add(
    upkeep: Upkeep,
    pairs: Sequence[tuple[str, float]],
    origin: str,
    on_check: OnCheck | None = None,
    tickets: Iterable[str] = (),
    origins: Iterable[str] = (),
) -> int:
    """Records labels and outcomes of one origin, without tickets; see `Study.add`."""
    check_without_items(upkeep, "Study.add_known for pairs of an option and an item")
    # What cannot be a ticket or an origin here comes from elsewhere.
    named = sorted({each for each in tickets if is_line(each, 16)})
    others = sorted({each for each in origins if is_line(each, 200)} - {origin})
    upkeep.refresh()

    def compute() -> Change[int]:
        basis = upkeep.basis
        definition = basis.definition
        results = [(definition.check_arm(label), definition.check_outcome(outcome)) for label, outcome in pairs]

        def fill(draft: Draft) -> int:
            own = [each for each in others if draft.ledger.results_of(each)]
            own += draft.ledger.ticket_rows(named)
            if own:
                raise Conflict(
                    f'these results are in the study "{upkeep.name}" already, such as that of "{min(own)}"; nothing '
                    "was recorded"
                )
            if is_recorded(draft.ledger, origin, results):
                return 0
            draft.events.append(ResultsTold(tuple(Told(*each, None, None, None) for each in results), origin))
            return len(results)

        return basis.revision, fill

    return upkeep.write(compute, on_check=on_check)


def add_known(upkeep: Upkeep, pairs: Sequence[tuple[str, str, float]], origin: str) -> int:
    """Records outcomes (label, item, outcome) of pairs that are known; see `Study.add_known`."""
    upkeep.refresh()
    if upkeep.definition.items is None:
        raise InvalidInput(
            f'the study "{upkeep.name}" has no items with names, so no pairs can be known; use Study.add for past '
            "results"
        )

    def compute() -> Change[int]:
        basis = upkeep.basis
        definition = basis.definition
        given = [(definition.check_arm(label), definition.check_item(item), value) for label, item, value in pairs]
        after = definition.with_known(given, origin)

        def fill(draft: Draft) -> int:
            new = after.known.keys() - definition.known.keys()
            if new:
                rows = tuple(KnownPair(*pair, after.known[pair].outcome) for pair in sorted(new))
                draft.events.append(PairsKnown(origin, rows))
                draft.definition = after
            return len(new)

        return basis.revision, fill

    return upkeep.write(compute)


def check_without_items(upkeep: Upkeep, remedy: str) -> None:
    """Raises InvalidInput if options are tried on items: a result must then say on which."""
    if upkeep.definition.has_items:
        raise InvalidInput(
            f'options of the study "{upkeep.name}" are tried on items, and results must say on which; use {remedy}'
        )


def is_recorded(ledger: Ledger, origin: str, results: list[tuple[int, float]]) -> bool:
    """Returns whether these results of an origin are recorded; raises Conflict if different ones of it are."""
    there = ledger.results_of(origin)
    if there and sorted(there) != sorted(results):  # sorted, because counts have no order
        raise Conflict(f'results of the origin "{origin}" are recorded already, and differ; results are never changed')
    return bool(there)


def abandon(upkeep: Upkeep, tickets: Iterable[Ticket | str]) -> None:
    """Gives tickets back, all or none."""
    ids = list(dict.fromkeys(_ticket_id(ticket) for ticket in tickets))

    def fill(draft: Draft) -> None:
        rows = draft.ledger.ticket_rows(ids)
        for id_ in ids:
            if id_ not in rows:
                raise NotFound(f'"{id_}" is no ticket of the study "{upkeep.name}"')
            if rows[id_].outcome is not None:
                raise Conflict(f'the ticket "{id_}" has its result already and cannot be given back')
        new = tuple(id_ for id_ in ids if not rows[id_].abandoned)
        if new:
            draft.events.append(TicketsAbandoned(new))

    upkeep.write(lambda: (upkeep.basis.revision, fill))


def _listed(results: Outcomes) -> Outcomes:
    """Returns outcomes as a list: they are looked at again if another worker changes the state meanwhile."""
    return list(results) if isinstance(results, Iterable) else results


def _ticket_id(ticket: Any) -> str:
    id_ = ticket.id if isinstance(ticket, Ticket) else ticket
    if not is_line(id_, 100):
        raise InvalidInput(f"`ticket` must be a ticket that ask gave, or its id, got {str(ticket)[:120]!r}")
    return id_
