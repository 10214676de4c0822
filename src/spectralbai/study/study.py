"""A live study: ask which arms to try, tell what came out, until it says stop. Nothing told is ever lost.

Results are appended in a transaction; that is all most tells do. When a block is complete, the worker who told its last
result brings the kept state up to date (`upkeep`).

Where pulls come in blocks, a ticket is a slot of a block from the moment it is handed out. When every slot is taken,
the worker who asks opens the next block ahead. The kept state is at all times what `replay` makes of the blocks and
results written down.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sqlalchemy import Row

from spectralbai.blocks import unclaimed
from spectralbai.checks import check_integer, check_number, did_you_mean
from spectralbai.errors import Conflict, InvalidInput, NotFound, SpectralBAIError
from spectralbai.instance import Instance
from spectralbai.software import software
from spectralbai.study.definition import Definition, Goal
from spectralbai.study.ledger import HEAD, Ledger, Progress, find_studies, insert_study, key, openings_of
from spectralbai.study.records import Failure, Join, Records, Result, Snapshot, Summary, Ticket, Withdrawal, as_time
from spectralbai.study.replay import advance, summary
from spectralbai.study.storage import Storage
from spectralbai.study.traffic import Counts, settle
from spectralbai.study.upkeep import OnCheck, Upkeep, undamaged

if TYPE_CHECKING:
    from spectralbai.policy import State
    from spectralbai.study.report import Report
    from spectralbai.study.status import Status

LEASE = 3600.0
"""Seconds after which a ticket stops counting as pending, unless told otherwise."""
MOST_TICKETS = 10_000
"""In one ask."""

Outcome = float | Failure | None
CountRows = Mapping[str, tuple[int, int]] | Iterable[tuple[str, int, int]]


class _Told(NamedTuple):
    """What is told for a ticket, checked."""

    id: str
    value: float | None
    """None: the trial failed, and does not count."""
    reason: str | None
    """Why it failed, if it did."""


class Study:
    """A study in a storage. A context: leaving it closes the connections.

    >>> study = sb.Study.create("doses", instance, delta=0.05)    # or sb.Study.open("doses")
    >>> while tickets := study.ask(2, worker="lab 3"):            # none once it has decided
    ...     for ticket in tickets:
    ...         study.tell(ticket, outcome_of(ticket.label))
    """

    def __init__(self, upkeep: Upkeep, row: Row[Any], owns_storage: bool) -> None:
        """Use `Study.create` or `Study.open`."""
        self._upkeep = upkeep
        self._owns_storage = owns_storage
        self.name: str = row.name
        self.created: float = row.created
        with undamaged(row.name):
            self.versions: dict[str, str] = json.loads(row.versions)
            """Of the software that created the study."""

    @property
    def definition(self) -> Definition:
        """What the study is about; it changes when options join, also by another process."""
        return self._upkeep.definition

    @classmethod
    def create(
        cls,
        name: str,
        instance: Instance,
        delta: float = 0.05,
        storage: str | Storage | None = None,
        goal: Goal = "max",
        stopping: str = "betting",
        budget: int | None = None,
        until: float | None = None,
        failed_as: float | None = None,
    ) -> Study:
        """Returns a new study of which arm is best, at risk `delta`; the graph, R and the noise are those of
        `instance`.

        `storage` is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE; spectralbai.db in the working directory
        if not given. `goal` says whether large or small outcomes are good. `stopping` is the rule that decides:
        betting races, the other rules sample as SpectralTaS does. After `budget` trials, or at the time `until`
        (seconds since 1970), the study ends, decided or not. A failed trial counts as the outcome `failed_as`, or not
        at all.
        """
        name = check_words("name", name, 100)
        definition = Definition(instance, delta, goal, stopping, budget, until, failed_as)
        # What cannot be kept or done is refused before anything is written.
        definition.as_dict()
        state = definition.policy.init()
        with Storage.given(storage, create=True) as place:
            now = place.clock()
            if until is not None and until <= now:
                raise InvalidInput(f"`until` must be in the future, got {as_time(until)}, and it is {as_time(now)}")
            records = Records((), (), tuple(openings_of(state, now)))
            with place.writing() as connection:
                insert_study(connection, name, now, definition, software("SQLAlchemy"), records, state, ())
            return cls.named(name, place, place is not storage)

    @classmethod
    def open(cls, name: str, storage: str | Storage | None = None) -> Study:
        """Returns the study of that name."""
        name = check_words("name", name, 100)
        with Storage.given(storage) as place:
            return cls.named(name, place, place is not storage)

    @classmethod
    def named(cls, name: str, place: Storage, owns_storage: bool) -> Study:
        """Returns the study of that name in a storage that is open, and whose connections it closes if it owns it."""
        with place.reading() as connection:
            found = find_studies(connection, name)
            if found:
                row = found[0]
                with undamaged(name):
                    definition = Ledger(connection, row.id).definition()
                return cls(Upkeep(place, row.id, row.name, definition, row.definition[:HEAD]), row, owns_storage)
            others = [row.name for row in find_studies(connection)]
        remedy = did_you_mean(name, others, "spectralbai study list shows those that are there")
        raise NotFound(f'{place.name} holds no study "{name}"; {remedy}')

    def close(self) -> None:
        """Closes the connections to the storage, unless they are those of `Studies`."""
        if self._owns_storage:
            self._upkeep.storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Study {self.name!r} in {self._upkeep.storage.name}>"

    def ask(
        self,
        n: int = 1,
        worker: str = "",
        lease: float = LEASE,
        *,
        key: str | None = None,
        on_give: Callable[[], object] | None = None,
    ) -> list[Ticket]:
        """Returns trials to do next, as tickets: at most n, at least one while the study runs, and none once it has
        decided, the data contradict R, or all that the budget allows are done or out.

        Tickets that other workers hold are taken into account. One that is not told within `lease` seconds no longer
        is: its trial may then be handed out again. Whether a result comes in time must not depend on its value.
        Who asks again with the same `key`, since the answer was lost, gets the same tickets: choose a new key, a random
        one, say, for each ask. `on_give` is called right before tickets are recorded, from when on they are pending.
        """
        n = check_integer("n", n, 1)
        if n > MOST_TICKETS:
            raise InvalidInput(f"`n` must be at most {MOST_TICKETS}, got {n}; ask again for more")
        worker = check_words("worker", worker, 100, blank=True)
        lease = check_number("lease", lease, "a positive number of seconds", low=0.0, strict=True)
        ids = self._ids(n, None if key is None else check_words("key", key, 200))
        policy = self.definition.policy
        policy.ask(policy.init())  # compiled code is loaded before others have to wait
        self._upkeep.catch_up()
        while True:
            with self._upkeep.writing() as ledger:
                progress = ledger.progress(lock=True)
                now = self._upkeep.now
                state = self._upkeep.kept(ledger)
                labels, policy = self.definition.instance.labels, self.definition.policy
                if key is not None and (before := ledger.given(ids, labels)):
                    return before
                room = self._room(ledger, progress, now)
                pulls = self._pulls(ledger, state, int(min(n, room)), now) if room > 0 else []
                given = [
                    Ticket(id_, arm, labels[arm], worker, now, now + lease, block)
                    for id_, (block, arm) in zip(ids, pulls, strict=False)
                ]
                if given and on_give is not None:
                    on_give()
                ledger.give(given)
            if given or room <= 0 or not policy.in_blocks or policy.verdict(state).stopped_at is not None:
                return given
            if progress.behind:  # another worker is about to close a block
                self._upkeep.wait()
            else:
                self._open_ahead(state)

    def _ids(self, n: int, key: str | None) -> list[str]:
        """Returns ids for n tickets: random ones, or those that follow from the key of an ask."""
        if key is None:
            return [secrets.token_hex(8) for _ in range(n)]
        return [hashlib.sha256(f"{self._upkeep.id}\n{key}\n{i}".encode()).hexdigest()[:16] for i in range(n)]

    def _room(self, ledger: Ledger, progress: Progress, now: float) -> float:
        """Returns how many more trials the limits of the study allow to hand out."""
        definition = self.definition
        if definition.over(progress.results, now):
            return 0
        if definition.budget is None:
            return math.inf
        out = ledger.pending_per_arm(now, definition.instance.problem.n_arms).sum()
        return definition.budget - progress.results - int(out)

    def _pulls(self, ledger: Ledger, state: State, n: int, now: float) -> Sequence[tuple[int | None, int]]:
        """Returns (block, arm) of at most n pulls that nobody has."""
        policy = self.definition.policy
        if policy.in_blocks:
            if policy.verdict(state).stopped_at is not None or not state.blocks:
                return []
            return unclaimed(state.blocks, ledger.taken(now, state.blocks[0].number), n)
        state, waiting = self._upkeep.state(ledger)
        arms = policy.ask(state, n, waiting + ledger.pending_per_arm(now, policy.problem.n_arms))
        return [(None, arm) for arm in arms.tolist()]

    def _open_ahead(self, state: State) -> None:
        """Opens a block beside those of the kept `state`, unless another worker has changed that meanwhile."""
        new = self.definition.of(state).policy.open(state)
        text = json.dumps(new.as_dict())
        with self._upkeep.writing() as ledger:
            ledger.progress(lock=True)
            ledger.replace_state(key(state), new, text, self._upkeep.now)

    def tell(self, ticket: Ticket | str, outcome: Outcome) -> bool:
        """Records the outcome of a ticket; returns whether it was new.

        Telling it again with the same outcome changes nothing, so that it is safe to retry; with another one it is
        refused. A trial that failed has the outcome None, or a `Failure` that says why: it is handed out again, or
        counts as the study's `failed_as`. Whether trials fail must then not depend on what their outcomes would be.
        """
        return self.tell_many([(ticket, outcome)]) == 1

    def tell_many(self, results: Iterable[tuple[Ticket | str, Outcome]]) -> int:
        """Records outcomes of tickets, all or none; returns how many were new."""
        (told,) = self.tell_batches([results])
        if isinstance(told, SpectralBAIError):
            raise told
        return told

    def tell_batches(
        self,
        batches: Sequence[Iterable[tuple[Ticket | str, Outcome]]],
        on_recorded: Callable[[list[int | SpectralBAIError]], object] | None = None,
    ) -> list[int | SpectralBAIError]:
        """Records several batches of outcomes in one transaction, each all or none; returns for each how many were new,
        or why it was refused.

        `on_recorded` is called with that once everything is written, before rules are read, which may take longer.
        """
        parsed = [self._parsed(batch) for batch in batches]
        ids = {each.id for batch in parsed if not isinstance(batch, SpectralBAIError) for each in batch}
        told: list[int | SpectralBAIError] = []
        with self._upkeep.writing() as ledger:
            progress = ledger.progress(lock=True)
            known = ledger.outcomes_of(sorted(ids))
            new: dict[str, dict[str, Any]] = {}
            given_back: dict[str, None] = {}
            reasons: dict[str, str] = {}
            for batch in parsed:
                try:
                    if isinstance(batch, SpectralBAIError):
                        raise batch
                    own, back = self._weighed(batch, known)
                except SpectralBAIError as error:
                    told.append(error)
                    continue
                for id_, row in own.items():
                    arm, _, block = known[id_]
                    known[id_] = (arm, row["outcome"], block)
                new |= own
                given_back |= dict.fromkeys(back)
                changed = own.keys() | back
                reasons |= {each.id: each.reason for each in batch if each.reason is not None and each.id in changed}
                told.append(len(own) + len(back))
            ledger.fail(reasons)
            ledger.abandon(list(given_back), self._upkeep.now)
            filled = sum(known[id_][2] is not None and known[id_][2] == progress.first_block for id_ in new)
            claimed = self._upkeep.append(ledger, progress, list(new.values()), filled)
        if on_recorded is not None:
            on_recorded(told)
        if claimed:
            self._upkeep.advance()
        return told

    def _parsed(self, results: Iterable[tuple[Ticket | str, Outcome]]) -> list[_Told] | SpectralBAIError:
        """Returns outcomes of tickets as they are kept, or what is wrong with them."""
        try:
            pairs = [(ticket, outcome) for ticket, outcome in results]
        except (TypeError, ValueError):
            return InvalidInput("`results` must be pairs of a ticket and an outcome")
        told: list[_Told] = []
        try:
            for ticket, outcome in pairs:
                id_ = _ticket_id(ticket)
                if outcome is None or isinstance(outcome, Failure):
                    reason = "no outcome" if outcome is None else outcome.reason
                    told.append(_Told(id_, self.definition.failed_as, check_words("reason", reason, 200)))
                else:
                    told.append(_Told(id_, self.definition.check_outcome(outcome), None))
        except SpectralBAIError as error:
            return error
        return told

    def _weighed(
        self, told: Sequence[_Told], known: Mapping[str, tuple[int, float | None, int | None]]
    ) -> tuple[dict[str, dict[str, Any]], set[str]]:
        """Returns the new results among these, as rows by ticket, and the tickets to give back."""
        new: dict[str, dict[str, Any]] = {}
        given_back: set[str] = set()
        for id_, value, _ in told:
            if id_ not in known:
                raise NotFound(f'"{id_}" is no ticket of the study "{self.name}"; tell under the id that ask gave')
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
        self,
        labels: Sequence[str],
        outcomes: Sequence[float],
        origin: str,
        on_check: OnCheck | None = None,
        *,
        tickets: Iterable[str] = (),
        origins: Iterable[str] = (),
    ) -> int:
        """Records results that come without tickets, all or none, under a note of their origin; returns how many were
        new.

        They inform estimates and plans; the rule betting takes only results of tickets for evidence. Give all results
        of that origin in one call, and do not pick them by their outcomes. The same origin again with the same results
        changes nothing; with others it is refused. `tickets` and `origins` are those that the results themselves name,
        as the columns of an exported table do: results of this very study are refused, since counting them twice would
        void the risk.
        """
        origin = check_words("origin", origin, 200)
        try:
            pairs = list(zip(labels, outcomes, strict=True))
        except (TypeError, ValueError):
            pairs = []
        if not pairs:
            raise InvalidInput("`labels` and `outcomes` must be two lists of one length, at least 1")
        self._upkeep.refresh()
        results = [
            (self.definition.check_arm(label), self.definition.check_outcome(outcome)) for label, outcome in pairs
        ]
        with self._upkeep.writing() as ledger:
            progress = ledger.progress(lock=True)
            own = [each for each in origins if each != origin and ledger.results_of(each)]
            own += ledger.outcomes_of([each for each in tickets if each])
            if own:
                raise Conflict(
                    f'these results are in the study "{self.name}" already, such as that of "{min(own)}"; nothing was '
                    "recorded"
                )
            known = _recorded(ledger, origin, results)
            new = [] if known else [{"arm": arm, "outcome": outcome, "origin": origin} for arm, outcome in results]
            claimed = self._upkeep.append(ledger, progress, new)
        if claimed:
            self._upkeep.advance(on_check)
        return len(new)

    def tell_counts(self, counts: CountRows, id: str, past: bool = False) -> int:
        """Records trials and successes per arm, such as a day's traffic, all or none; returns how many trials were new.

        `counts` is {label: (trials, successes)} or rows of (label, trials, successes); outcomes have a range, of which
        a success is the upper end. `id` names them, such as the day: the same counts under the same id again change
        nothing, others are refused. How many trials an arm got must not depend on their outcomes. `past` trials, done
        before the study or chosen otherwise, only inform, as `add` says.
        """
        id = check_words("id", id, 200)
        self._upkeep.refresh()
        arms, outcomes = Counts.of(self.definition, counts).in_order(f"{self.name}\n{id}")
        policy = self.definition.policy
        if past or not policy.in_blocks:
            labels = self.definition.instance.labels
            return self.add([labels[arm] for arm in arms.tolist()], outcomes.tolist(), id)
        results = list(zip(arms.tolist(), outcomes.tolist(), strict=True))
        while True:
            self._upkeep.catch_up()
            with self._upkeep.reading() as ledger:
                if _recorded(ledger, id, results):
                    return 0
                before, kept = ledger.progress(), self._upkeep.kept(ledger)
                self._check_idle(ledger, kept)
                unseen = ledger.results(kept.samples, before.results)
            state, seen = advance(self.definition, kept, unseen)
            now = self._upkeep.now
            day = settle(self.definition, state, arms, outcomes, now)
            text = json.dumps(day.state.as_dict())
            with self._upkeep.writing() as ledger:
                progress = ledger.progress(lock=True)
                if progress != before or ledger.kept() != key(kept):
                    continue  # another worker was faster: again, from what is there now
                self._check_idle(ledger, kept)
                rows = [
                    {"arm": arm, "outcome": outcome, "block": block, "origin": id}
                    for (arm, outcome), block in zip(results, day.blocks, strict=True)
                ]
                ledger.append(progress, now, rows, 0)
                for opening in day.openings:
                    if opening.number < state.opened:
                        ledger.change_opening(opening.number, opening.arms)
                ledger.add_openings([each for each in day.openings if each.number >= state.opened])
                ledger.replace_state(key(kept), day.state, text, now, (*seen, *day.checks))
                ledger.update(**summary(self.definition, day.state))
            self._upkeep.replaced(day.state)
            return len(results)

    def withdraw(self, label: str) -> bool:
        """Takes an arm out of the study, out of stock or unsafe, say; returns whether it was in.

        It is never asked for again and never the answer; a decision for it falls, and the study goes on. Open blocks
        that hold a trial of it are void: their tickets are given back, and results told for them only inform. Whether
        an arm is withdrawn must not depend on outcomes; the risk of all answers together is then at most 2 delta.
        """
        self._upkeep.refresh()
        arm = self.definition.check_arm(label)
        while True:
            self._upkeep.catch_up()
            with self._upkeep.reading() as ledger:
                before, kept = ledger.progress(), self._upkeep.kept(ledger)
                unseen = ledger.results(kept.samples, before.results)
            if arm in kept.withdrawn:
                return False
            if before.behind:  # another worker is about to close a block
                self._upkeep.wait()
                continue
            state, seen = advance(self.definition, kept, unseen)
            new = self.definition.of(state).policy.withdraw(state, arm)
            text = json.dumps(new.as_dict())
            with self._upkeep.writing() as ledger:
                progress = ledger.progress(lock=True)
                if progress != before or ledger.kept() != key(kept):
                    continue  # another worker was faster: again, from what is there now
                now = self._upkeep.now
                ledger.add_withdrawals([Withdrawal(arm, state.samples, state.opened, now)])
                ledger.replace_state(key(kept), new, text, now, seen)
                ledger.void([block.number for block in new.blocks], now)
                ledger.update(**summary(self.definition, new))
            self._upkeep.replaced(new)
            return True

    def join(self, instance: Instance) -> str:
        """Takes further options into the study, which races on, decided or not; returns what changed, in words.

        `instance` holds all options, the present ones first and in their order, with the same noise and tolerance; its
        graph and R may be others, and are true of the means from the beginning. What is out stays out. Trials that are
        out count as before. Which options join, and when, must not depend on results; answers since are then wrong with
        probability at most delta, as before. Should it depend on what `status` says of blocks that are complete, the
        risk is at most delta for each option that was the best at some time (theory 12.16, 12.17).
        """
        while True:
            self._upkeep.catch_up()
            definition = self.definition.joined(instance)
            with self._upkeep.reading() as ledger:
                before, kept = ledger.progress(), self._upkeep.kept(ledger)
                unseen = ledger.results(kept.samples, before.results)
                now = self._upkeep.now
                handed_out = self._handed_out(ledger, kept, now)
            if definition.before is not self.definition:
                continue  # others joined meanwhile
            if before.behind:  # another worker is about to close a block
                self._upkeep.wait()
                continue
            if definition.over(before.results, now):
                raise Conflict(f'the study "{self.name}" has ended, and nothing could be tried; create another one')
            state, seen = advance(definition, kept, unseen)
            new = definition.policy.join(state, handed_out)
            text, whole = json.dumps(new.as_dict()), json.dumps(definition.as_dict())
            with self._upkeep.writing() as ledger:
                progress = ledger.progress(lock=True)
                same = progress == before and ledger.kept() == key(kept)
                if not same or self._handed_out(ledger, kept, now) != handed_out:
                    continue  # another worker was faster: again, from what is there now
                written = Join(
                    state.samples,
                    state.opened,
                    len(state.withdrawn),
                    now,
                    handed_out,
                    self.definition.of(state).instance.as_dict(),
                )
                ledger.add_join(len(state.joined), written)
                ledger.replace_state(key(kept), new, text, now, seen)
                ledger.void([block.number for block in new.blocks], now)
                ledger.update(definition=whole, **summary(definition, new))
            self._upkeep.replaced(new, definition, whole)
            return definition.changes

    def stop(self) -> bool:
        """Ends the study by hand, as if its time were over; returns whether it was running.

        No trials are handed out from then on. The candidates and intervals hold at all times, and so they do when the
        study is stopped, for whatever reason. Results of tickets that are out are welcome, and may even bring the
        decision. One that has decided, ended or contradicts R stays as it is.
        """
        while True:
            self._upkeep.catch_up()
            with self._upkeep.reading() as ledger:
                before, kept = ledger.progress(), self._upkeep.kept(ledger)
            if before.behind:  # another worker is about to close a block, which may bring the decision
                self._upkeep.wait()
                continue
            now, definition = self._upkeep.now, self.definition
            if definition.of(kept).policy.verdict(kept).progress != "running" or definition.over(before.results, now):
                return False
            stopped = replace(definition, until=now)
            whole = json.dumps(stopped.as_dict())
            with self._upkeep.writing() as ledger:
                if ledger.progress(lock=True) != before or ledger.kept() != key(kept):
                    continue  # another worker was faster: again, from what is there now
                ledger.update(definition=whole)
            self._upkeep.replaced(kept, stopped, whole)
            return True

    def _handed_out(self, ledger: Ledger, state: State, now: float) -> tuple[int, ...]:
        """Returns the numbers of the open blocks of which somebody has a trial, or has told one."""
        if not state.blocks:
            return ()
        taken = {block for block, _ in ledger.taken(now, state.blocks[0].number)}
        return tuple(block.number for block in state.blocks if block.number in taken)

    def _check_idle(self, ledger: Ledger, state: State) -> None:
        """Refuses counts while trials of the open blocks are out or told: a block is made of tickets or of counts."""
        if state.blocks and ledger.taken(self._upkeep.now, state.blocks[0].number):
            raise Conflict(
                f'trials of the study "{self.name}" that were asked for are not finished; ask for and tell the rest of '
                "their block first (study status shows them), or tell these counts as past ones, which only inform"
            )

    def shares(self) -> dict[str, float]:
        """Returns in what shares to split the next traffic, by label: as planned, even before there is a plan, and all
        to the arm recommended once the study has decided or ended."""
        self._upkeep.catch_up()
        with self._upkeep.reading() as ledger:
            state, _ = self._upkeep.state(ledger)
        definition = self.definition.of(state)
        policy, labels = definition.policy, definition.instance.labels
        shares = policy.shares(state)
        verdict = policy.verdict(state)
        if verdict.decided or (shares is not None and self.definition.over(state.samples, self._upkeep.now)):
            shares = np.eye(len(labels))[verdict.arm]
        if shares is None:
            shares = np.full(len(labels), 1 / len(labels))
        return dict(zip(labels, (shares / shares.sum()).tolist(), strict=True))

    def abandon(self, *tickets: Ticket | str) -> None:
        """Gives tickets back, all or none: they no longer count as pending. Should a result come after all, it is still
        accepted."""
        ids = [_ticket_id(ticket) for ticket in tickets]
        with self._upkeep.writing() as ledger:
            ledger.progress(lock=True)
            found = ledger.outcomes_of(ids)
            for id_ in ids:
                if id_ not in found:
                    raise NotFound(f'"{id_}" is no ticket of the study "{self.name}"')
                if found[id_][1] is not None:
                    raise Conflict(f'the ticket "{id_}" has its result already and cannot be given back')
            ledger.abandon(ids, self._upkeep.now)

    def delete(self) -> None:
        """Removes the study and all that was asked and told, for good. Whoever has it open is refused from then on."""
        with self._upkeep.writing() as ledger:
            ledger.progress(lock=True)  # the study's row first, as all writers do
            ledger.delete()

    def status(self, control: str | None = None) -> Status:
        """Returns where the study stands, with every arm compared with the one labelled `control`, if given."""
        from spectralbai.study.status import status_of

        self._upkeep.catch_up()
        base = None if control is None else self.definition.check_arm(control)
        return status_of(self, self.snapshot(), base)

    def report(self, control: str | None = None) -> Report:
        """Returns the record of the study, for a page or JSON: `.as_html()`, `.as_dict()`.

        Every arm is compared with the one labelled `control`, if given.
        """
        from spectralbai.study.report import Report

        self._upkeep.catch_up()
        base = None if control is None else self.definition.check_arm(control)
        with self._upkeep.reading() as ledger:
            at, records = self._snapshot(ledger), self._records(ledger)
        return Report.of(self, at, records, base)  # computes, and may have to compile: not inside a transaction

    def snapshot(self) -> Snapshot:
        """Returns everything that a status is made of, as of one instant."""
        with self._upkeep.reading() as ledger:
            return self._snapshot(ledger)

    def pending(self) -> tuple[Ticket, ...]:
        """Returns the tickets that count as pending, oldest first."""
        with self._upkeep.reading() as ledger:
            self._upkeep.learn(ledger)
            return ledger.pending(self._upkeep.now, self.definition.instance.labels)

    def recent(self, most: int = 100, before: int | None = None) -> list[Result]:
        """Returns the last results told, the newest first; or the last before the result of number `before`."""
        most = check_integer("most", most, 1)
        with self._upkeep.reading() as ledger:
            self._upkeep.learn(ledger)
            labels = self.definition.instance.labels
            return [
                Result(number, labels[each.arm], each.outcome, each.told, each.ticket, worker, each.origin)
                for number, each, worker in ledger.recent(most, before)
            ]

    def records(self) -> Records:
        """Returns everything ever told, asked and opened, as of one instant."""
        with self._upkeep.reading() as ledger:
            ledger.progress()  # refuses a study deleted meanwhile, which would look empty
            return self._records(ledger)

    def catch_up(self, on_check: OnCheck | None = None) -> None:
        """Brings the kept state up to date, if it is behind and no worker is at it: all that read it do so first."""
        self._upkeep.catch_up(on_check)

    def _records(self, ledger: Ledger) -> Records:
        made = ledger.openings(), ledger.withdrawals(), ledger.joins()
        return Records(ledger.observations(), ledger.tickets(), *made)

    def _snapshot(self, ledger: Ledger) -> Snapshot:
        now = self._upkeep.now
        state, waiting = self._upkeep.state(ledger)
        pending = ledger.pending(now, self.definition.instance.labels)
        failures = ledger.failures_per_arm(len(self.definition.instance.labels)).astype(int).tolist()
        return Snapshot(now, state, int(waiting.sum()), pending, ledger.checks(), tuple(failures), ledger.joins())


def list_studies(storage: str | Storage | None = None) -> list[Summary]:
    """Returns a line for each study in a storage, oldest first."""
    with Storage.given(storage) as place:
        with place.reading() as connection:
            rows = find_studies(connection)
        now = place.clock()
        if place is not storage:
            place.close()
    return [_summary(row, now) for row in rows]


def check_words(name: str, value: Any, longest: int, *, blank: bool = False) -> str:
    """Returns a user's words if they fit on one line."""
    if not isinstance(value, str) or len(value) > longest or not value.isprintable() or not (blank or value.strip()):
        raise InvalidInput(
            f"`{name}` must be one line of 1 to {longest} printable characters, got {str(value)[:120]!r}"
        )
    return value


def _summary(row: Row[Any], now: float) -> Summary:
    with undamaged(row.name):
        definition = Definition.from_dict(json.loads(row.definition))
    labels = definition.instance.labels
    best = None if row.best is None else labels[row.best]
    ended = row.progress == "running" and definition.over(row.results, now)
    return Summary(
        row.name,
        as_time(row.created),
        len(labels),
        definition.goal,
        definition.delta,
        row.results,
        "ended" if ended else row.progress,
        best,
    )


def _recorded(ledger: Ledger, origin: str, results: list[tuple[int, float]]) -> bool:
    """Returns whether these results of an origin are recorded; others of the same origin are refused."""
    known = ledger.results_of(origin)
    if known and sorted(known) != sorted(results):  # counts have no order of their own
        raise Conflict(f'results of the origin "{origin}" are recorded already, and differ; results are never changed')
    return bool(known)


def _ticket_id(ticket: Any) -> str:
    id_ = ticket.id if isinstance(ticket, Ticket) else ticket
    if not isinstance(id_, str) or len(id_) > 100 or not id_.isprintable():
        raise InvalidInput(f"`ticket` must be a ticket that ask gave, or its id, got {str(ticket)[:120]!r}")
    return id_
