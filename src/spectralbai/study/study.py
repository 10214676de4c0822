"""A live study: ask which arms to try, tell their outcomes, until it says stop. No result told is ever lost.

Results are appended in a transaction; most calls of `tell` do nothing else. When a block is complete, the worker who
told its last result updates the stored state (see `upkeep`).

If pulls come in blocks, each ticket belongs to a slot of a block from the moment it is handed out. When every slot is
taken, the worker who asks opens the next block ahead. The stored state always equals what `replay` computes from the
recorded blocks and results.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
from sqlalchemy import Row

from spectralbai.checks import check_integer, check_number, did_you_mean
from spectralbai.closing import Closing
from spectralbai.errors import Conflict, InvalidInput, NotFound, SpectralBAIError
from spectralbai.evidence.blocks import unclaimed
from spectralbai.instance import Instance
from spectralbai.journal.definition import Definition, Goal
from spectralbai.journal.entries import Check, Failure, Join, Records, Result, Snapshot, Summary, Ticket, Withdrawal
from spectralbai.report import Report, Status, status_of
from spectralbai.software import software
from spectralbai.study.ledger import HEAD, Ledger, Standing, find_studies, insert_study, key, openings_of
from spectralbai.study.replay import advance, summary
from spectralbai.study.storage import Storage
from spectralbai.study.traffic import Counts, settle
from spectralbai.study.upkeep import OnCheck, Upkeep, undamaged
from spectralbai.wording import as_time

if TYPE_CHECKING:
    from spectralbai.policy import State

LEASE = 3600.0
"""Default number of seconds after which a ticket no longer counts as pending."""
MOST_TICKETS = 10_000
"""Most tickets that one call of `ask` gives."""

Outcome = float | Failure | None
CountRows = Mapping[str, tuple[int, int]] | Iterable[tuple[str, int, int]]


class _Told(NamedTuple):
    """What is told for a ticket, checked."""

    id: str
    value: float | None
    """None: the trial failed, and does not count."""
    reason: str | None
    """Why it failed, if it did."""


class Study(Closing):
    """A study in a storage, as a context manager: leaving it closes the connections.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01, sigma=0.1)
        >>> doses = sb.Instance(problem, labels=["placebo", "5 mg", "10 mg"])
        >>> response = {"placebo": 0.1, "5 mg": 0.6, "10 mg": 0.7}  # stands for the world
        >>> study = sb.Study.create("doses", doses, delta=0.05)  # later: sb.Study.open("doses")
        >>> while tickets := study.ask(2, worker="lab 3"):  # none once it has decided
        ...     for ticket in tickets:
        ...         new = study.tell(ticket, response[ticket.label])
        >>> study.status().state, study.status().best
        ('decided', '10 mg')
        >>> study.close()
    """

    def __init__(self, upkeep: Upkeep, row: Row[Any], owns_storage: bool) -> None:
        """Use `Study.create` or `Study.open`."""
        self._upkeep = upkeep
        self._owns_storage = owns_storage
        self.name: str = row.name
        self.created: float = row.created
        with undamaged(row.name):
            self.versions: dict[str, str] = json.loads(row.versions)
            """Versions of the software that created the study."""

    @property
    def definition(self) -> Definition:
        """The question of the study; it changes when options join, even if another process adds them."""
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
        """Returns a new study that finds the best arm at risk `delta`, with the graph, R and noise of `instance`.

        `storage` is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE; by default spectralbai.db in the
        working directory. `goal` says whether large or small outcomes are good. `stopping` is the rule that decides:
        with betting the study is a race, with other rules it samples like SpectralTaS. After `budget` trials, or at the
        time `until` (seconds since 1970), the study ends, decided or not. A failed trial counts as the outcome
        `failed_as`; if this is None, it does not count, and the trial is handed out again.
        """
        name = check_words("name", name, 100)
        definition = Definition(instance, delta, goal, stopping, budget, until, failed_as)
        # These raise errors for a definition that cannot be stored or run, before anything is written.
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
        """Returns the study with that name."""
        name = check_words("name", name, 100)
        with Storage.given(storage) as place:
            return cls.named(name, place, place is not storage)

    @classmethod
    def named(cls, name: str, place: Storage, owns_storage: bool) -> Study:
        """Returns the study with that name in an open storage; if it owns the storage, closing the study closes it."""
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
        """Closes the connections to the storage, unless they belong to `Studies`."""
        if self._owns_storage:
            self._upkeep.storage.close()

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
        """Returns tickets for the trials to do next: at most n, and at least one while the study runs. There are none
        once it has decided, the data contradict R, or all trials of the budget are done or handed out.

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
        policy.ask(policy.init())  # loads compiled code now, and not while others wait for the transaction
        self._upkeep.catch_up()
        while True:
            with self._upkeep.writing() as ledger:
                standing = ledger.standing(lock=True)
                now = self._upkeep.now
                state = self._upkeep.kept(ledger)
                labels, policy = self.definition.instance.labels, self.definition.policy
                if key is not None and (before := ledger.given(ids, labels)):
                    return before
                room = self._room(ledger, standing, now)
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
            if standing.behind:  # another worker is about to close a block
                self._upkeep.wait()
            else:
                self._open_ahead(state)

    def _ids(self, n: int, key: str | None) -> list[str]:
        """Returns ids for n tickets: random ones, or those that follow from the key of an ask."""
        if key is None:
            return [secrets.token_hex(8) for _ in range(n)]
        return [hashlib.sha256(f"{self._upkeep.id}\n{key}\n{i}".encode()).hexdigest()[:16] for i in range(n)]

    def _room(self, ledger: Ledger, standing: Standing, now: float) -> float:
        """Returns how many more trials the limits of the study allow to hand out."""
        definition = self.definition
        if definition.over(standing.results, now):
            return 0
        if definition.budget is None:
            return math.inf
        out = ledger.pending_per_arm(now, definition.instance.problem.n_arms).sum()
        return definition.budget - standing.results - int(out)

    def _pulls(self, ledger: Ledger, state: State, n: int, now: float) -> Sequence[tuple[int | None, int]]:
        """Returns (block, arm) of up to n pulls that are not handed out."""
        policy = self.definition.policy
        if policy.in_blocks:
            if policy.verdict(state).stopped_at is not None or not state.blocks:
                return []
            return unclaimed(state.blocks, ledger.taken(now, state.blocks[0].number), n)
        state, waiting = self._upkeep.state(ledger)
        arms = policy.ask(state, n, waiting + ledger.pending_per_arm(now, policy.problem.n_arms))
        return [(None, arm) for arm in arms.tolist()]

    def _open_ahead(self, state: State) -> None:
        """Opens one more block in the stored `state`, unless another worker has changed the state meanwhile."""
        new = self.definition.of(state).policy.open(state)
        text = json.dumps(new.as_dict())
        with self._upkeep.writing() as ledger:
            ledger.standing(lock=True)
            ledger.replace_state(key(state), new, text, self._upkeep.now)

    def tell(self, ticket: Ticket | str, outcome: Outcome) -> bool:
        """Records the outcome of a ticket; returns whether it was new.

        Telling the same outcome again changes nothing, so it is safe to retry; a different outcome is refused. For a
        trial that failed, tell None or a `Failure` with the reason: it is handed out again, or counts as the study's
        `failed_as`. If failed trials are handed out again, whether a trial fails must not depend on its outcome.
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
            standing = ledger.standing(lock=True)
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
            filled = sum(known[id_][2] is not None and known[id_][2] == standing.first_block for id_ in new)
            claimed = self._upkeep.append(ledger, standing, list(new.values()), filled)
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
        """Records results without tickets, all or none, with a note of their origin; returns how many were new.

        They inform estimates and plans; with the rule betting, only results of tickets count as evidence. Give all
        results of one origin in one call, and do not choose them by their outcomes. Giving the same results of the same
        origin again changes nothing; different results of that origin are refused. `tickets` and `origins` are those
        that the results name, like the columns of an exported table. Results that are in this study already are
        refused, since the risk would not hold if they were counted twice.
        """
        origin = check_words("origin", origin, 200)
        try:
            pairs = list(zip(labels, outcomes, strict=True))
        except (TypeError, ValueError):
            pairs = []
        if not pairs:
            raise InvalidInput("`labels` and `outcomes` must be two lists of one length, at least 1")
        # What cannot be a ticket or an origin here comes from elsewhere.
        named = sorted({each for each in tickets if _is_line(each, 16)})
        others = sorted({each for each in origins if _is_line(each, 200)} - {origin})
        self._upkeep.refresh()
        results = [
            (self.definition.check_arm(label), self.definition.check_outcome(outcome)) for label, outcome in pairs
        ]
        with self._upkeep.writing() as ledger:
            standing = ledger.standing(lock=True)
            own = [each for each in others if ledger.results_of(each)]
            own += ledger.outcomes_of(named)
            if own:
                raise Conflict(
                    f'these results are in the study "{self.name}" already, such as that of "{min(own)}"; nothing was '
                    "recorded"
                )
            known = _recorded(ledger, origin, results)
            new = [] if known else [{"arm": arm, "outcome": outcome, "origin": origin} for arm, outcome in results]
            claimed = self._upkeep.append(ledger, standing, new)
        if claimed:
            self._upkeep.advance(on_check)
        return len(new)

    def tell_counts(self, counts: CountRows, id: str, past: bool = False) -> int:
        """Records trials and successes per arm, such as a day's traffic, all or none; returns how many trials were new.

        `counts` is {label: (trials, successes)} or rows of (label, trials, successes). Outcomes must have a known
        range; a success is its upper end. `id` names the counts, for example the day: the same counts under the same id
        again change nothing, different ones are refused. How many trials an arm got must not depend on their outcomes.
        With `past`, for trials done before the study or chosen in another way, they only inform, as with `add`.
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
                before, kept = ledger.standing(), self._upkeep.kept(ledger)
                self._check_idle(ledger, kept)
                unseen = ledger.results(kept.samples, before.results)
            state, seen = advance(self.definition, kept, unseen)
            now = self._upkeep.now
            day = settle(self.definition, state, arms, outcomes, now)
            text = json.dumps(day.state.as_dict())
            with self._upkeep.writing() as ledger:
                standing = ledger.standing(lock=True)
                if standing != before or ledger.kept() != key(kept):
                    continue  # another worker was faster: start again from the new state
                self._check_idle(ledger, kept)
                rows = [
                    {"arm": arm, "outcome": outcome, "block": block, "origin": id}
                    for (arm, outcome), block in zip(results, day.blocks, strict=True)
                ]
                ledger.append(standing, now, rows, 0)
                for opening in day.openings:
                    if opening.number < state.opened:
                        ledger.change_opening(opening.number, opening.arms)
                ledger.add_openings([each for each in day.openings if each.number >= state.opened])
                ledger.replace_state(key(kept), day.state, text, now, (*seen, *day.checks))
                ledger.update(**summary(self.definition, day.state))
            self._upkeep.replaced(day.state)
            return len(results)

    def withdraw(self, label: str) -> bool:
        """Takes an option out of the study, for example because it is out of stock or unsafe; returns whether it was
        in.

        It is never tried again and never the answer. A decision for it is revoked, and the study goes on. Open blocks
        with a trial of it are cancelled: their tickets are given back, and results told for them only inform. The
        decision to withdraw must not depend on outcomes; then the risk of all answers together is at most 2 delta.
        """
        self._upkeep.refresh()
        arm = self.definition.check_arm(label)
        while True:
            self._upkeep.catch_up()
            with self._upkeep.reading() as ledger:
                before, kept = ledger.standing(), self._upkeep.kept(ledger)
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
                standing = ledger.standing(lock=True)
                if standing != before or ledger.kept() != key(kept):
                    continue  # another worker was faster: start again from the new state
                now = self._upkeep.now
                ledger.add_withdrawals([Withdrawal(arm, state.samples, state.opened, now)])
                ledger.replace_state(key(kept), new, text, now, seen)
                ledger.void([block.number for block in new.blocks], now)
                ledger.update(**summary(self.definition, new))
            self._upkeep.replaced(new)
            return True

    def join(self, instance: Instance) -> str:
        """Adds options to the study; returns what changed, in words. The race goes on, even if it had decided.

        `instance` has all options: the present ones first and in the same order, then the new ones, with the same noise
        and tolerance. Its graph and R may differ, and must hold for the means from the beginning. Eliminated options
        stay out, and trials that are handed out count as before. Which options join, and when, must not depend on
        results; then later answers are wrong with probability at most delta, as before. If it depends on what `status`
        says about completed blocks, the risk is at most delta for each option that was the best at some time
        (theory 12.16, 12.17).
        """
        while True:
            self._upkeep.catch_up()
            definition = self.definition.joined(instance)
            with self._upkeep.reading() as ledger:
                before, kept = ledger.standing(), self._upkeep.kept(ledger)
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
                standing = ledger.standing(lock=True)
                same = standing == before and ledger.kept() == key(kept)
                if not same or self._handed_out(ledger, kept, now) != handed_out:
                    continue  # another worker was faster: start again from the new state
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
                before, kept = ledger.standing(), self._upkeep.kept(ledger)
            if before.behind:  # another worker is about to close a block, which may bring the decision
                self._upkeep.wait()
                continue
            now, definition = self._upkeep.now, self.definition
            if definition.of(kept).policy.verdict(kept).state != "running" or definition.over(before.results, now):
                return False
            stopped = replace(definition, until=now, by_hand=True)
            whole = json.dumps(stopped.as_dict())
            with self._upkeep.writing() as ledger:
                if ledger.standing(lock=True) != before or ledger.kept() != key(kept):
                    continue  # another worker was faster: again, from what is there now
                ledger.update(definition=whole)
            self._upkeep.replaced(kept, stopped, whole)
            return True

    def _handed_out(self, ledger: Ledger, state: State, now: float) -> tuple[int, ...]:
        """Returns the numbers of the open blocks of which a trial is handed out or has a result."""
        if not state.blocks:
            return ()
        taken = {block for block, _ in ledger.taken(now, state.blocks[0].number)}
        return tuple(block.number for block in state.blocks if block.number in taken)

    def _check_idle(self, ledger: Ledger, state: State) -> None:
        """Raises Conflict if trials of the open blocks are handed out or have results: counts and tickets cannot share
        a block."""
        if state.blocks and ledger.taken(self._upkeep.now, state.blocks[0].number):
            raise Conflict(
                f'trials of the study "{self.name}" that were asked for are not finished; ask for and tell the rest of '
                "their block first (study status shows them), or tell these counts as past ones, which only inform"
            )

    def shares(self) -> dict[str, float]:
        """Returns how to split the next traffic, as shares by label: as planned, or equally before there is a plan; all
        to the recommended option once the study has decided or ended."""
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
        """Gives tickets back, all or none: they no longer count as pending. If a result is told later, it is still
        accepted."""
        ids = [_ticket_id(ticket) for ticket in tickets]
        with self._upkeep.writing() as ledger:
            ledger.standing(lock=True)
            found = ledger.outcomes_of(ids)
            for id_ in ids:
                if id_ not in found:
                    raise NotFound(f'"{id_}" is no ticket of the study "{self.name}"')
                if found[id_][1] is not None:
                    raise Conflict(f'the ticket "{id_}" has its result already and cannot be given back')
            ledger.abandon(ids, self._upkeep.now)

    def delete(self) -> None:
        """Deletes the study with all its tickets and results, for good. Processes that have it open get NotFound from
        then on."""
        with self._upkeep.writing() as ledger:
            ledger.standing(lock=True)  # all writers lock the study's row first
            ledger.delete()

    def status(self, control: str | None = None) -> Status:
        """Returns the status of the study; every option is compared with the one labelled `control`, if given."""
        self._upkeep.catch_up()
        base = None if control is None else self.definition.check_arm(control)
        with self._upkeep.reading() as ledger:
            at = self._snapshot(ledger, accounts=False)
        return status_of(at, base)

    def report(self, control: str | None = None) -> Report:
        """Returns the report of the study, for a page or JSON: `.as_html()`, `.as_dict()`.

        Every option is compared with the one labelled `control`, if given.
        """
        self._upkeep.catch_up()
        base = None if control is None else self.definition.check_arm(control)
        with self._upkeep.reading() as ledger:
            at, records = self._snapshot(ledger), self._records(ledger)
        return Report.of(
            at, records, self.versions, base
        )  # outside the transaction, because this computes and may have to compile

    def snapshot(self) -> Snapshot:
        """Returns everything that a report needs, as of one instant."""
        with self._upkeep.reading() as ledger:
            return self._snapshot(ledger)

    def checks(self, most: int | None = None) -> tuple[Check, ...]:
        """Returns what the stopping rule said each time it was read; if `most` is given, at so many of these times at
        most, at equal steps."""
        most = None if most is None else check_integer("most", most, 1)
        self._upkeep.catch_up()
        with self._upkeep.reading() as ledger:
            self._upkeep.learn(ledger)
            return ledger.checks(most)

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
        """Returns all results, tickets and blocks ever recorded, as of one instant."""
        with self._upkeep.reading() as ledger:
            ledger.standing()  # raises NotFound if the study was deleted meanwhile; it would look empty
            return self._records(ledger)

    def catch_up(self, on_check: OnCheck | None = None) -> None:
        """Updates the stored state if results are not yet processed and no other worker is doing it.

        All methods that read the state call this first.
        """
        self._upkeep.catch_up(on_check)

    def _records(self, ledger: Ledger) -> Records:
        made = ledger.openings(), ledger.withdrawals(), ledger.joins()
        return Records(ledger.observations(), ledger.tickets(), *made)

    def _snapshot(self, ledger: Ledger, accounts: bool = True) -> Snapshot:
        """Returns the study as of now; `accounts` says whether its checks have theirs, which takes long to read."""
        now = self._upkeep.now
        state, waiting = self._upkeep.state(ledger)
        pending = ledger.pending(now, self.definition.instance.labels)
        failures = ledger.failures_per_arm(len(self.definition.instance.labels)).astype(int).tolist()
        return Snapshot(
            self.name,
            self.created,
            self.definition,
            now,
            state,
            int(waiting.sum()),
            pending,
            ledger.checks(accounts=accounts),
            tuple(failures),
            ledger.joins(),
        )


def list_studies(storage: str | Storage | None = None) -> list[Summary]:
    """Returns a summary of each study in a storage, oldest first.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.study
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("list", sb.Instance(problem, labels=["old", "new"]))
        >>> study.close()
        >>> [each.name for each in sb.study.list_studies()]
        ['list']
    """
    with Storage.given(storage) as place:
        with place.reading() as connection:
            rows = find_studies(connection)
        now = place.clock()
        if place is not storage:
            place.close()
    return [_summary(row, now) for row in rows]


def check_words(name: str, value: Any, longest: int, *, blank: bool = False) -> str:
    """Returns a user's text; raises InvalidInput unless it is one line of at most `longest` printable characters."""
    if not _is_line(value, longest) or not (blank or value.strip()):
        raise InvalidInput(
            f"`{name}` must be one line of 1 to {longest} printable characters, got {str(value)[:120]!r}"
        )
    return value


def _is_line(value: Any, longest: int) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= longest and value.isprintable()


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
    """Returns whether these results of an origin are recorded; raises Conflict if different ones of it are."""
    known = ledger.results_of(origin)
    if known and sorted(known) != sorted(results):  # sorted, because counts have no order
        raise Conflict(f'results of the origin "{origin}" are recorded already, and differ; results are never changed')
    return bool(known)


def _ticket_id(ticket: Any) -> str:
    id_ = ticket.id if isinstance(ticket, Ticket) else ticket
    if not isinstance(id_, str) or len(id_) > 100 or not id_.isprintable():
        raise InvalidInput(f"`ticket` must be a ticket that ask gave, or its id, got {str(ticket)[:120]!r}")
    return id_
