"""A live study: ask which arms to try, tell their outcomes, until it says stop. No result told is ever lost.

Whatever happens to a study is an event in its log (`journal.events`), and its state is a fold of the log
(`journal.fold`). Most calls of `tell` append an event and do nothing else. When a block is complete, the worker who
told its last result updates the stored state (see `upkeep`). Each ticket belongs to a slot of a block; when every slot
is taken, the worker who asks opens the next block ahead.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterable, Sequence

from spectralbai.checks import check_integer, check_number, check_words, did_you_mean
from spectralbai.closing import Closing
from spectralbai.documents import software
from spectralbai.errors import InvalidInput, NotFound, SpectralBAIError
from spectralbai.instance import Instance
from spectralbai.journal.body import LARGE
from spectralbai.journal.definition import Definition, Goal, named_items
from spectralbai.journal.entries import CountRows, Outcome, Outcomes, Result, Snapshot, Ticket
from spectralbai.journal.events import Entry, Event, StudyCreated
from spectralbai.journal.fold import Fold, OnCheck
from spectralbai.journal.records import Records
from spectralbai.report import Status
from spectralbai.report.by_items import MOST_ITEMS
from spectralbai.report.from_snapshot import status_of
from spectralbai.report.report import Report
from spectralbai.report.statement import Statements
from spectralbai.study import changes, corrections, telling, traffic
from spectralbai.study.acting import actor
from spectralbai.study.asking import give
from spectralbai.study.ledger import Ledger, Mark, StoredState, find_marks, insert_study
from spectralbai.study.pairs import table_of
from spectralbai.study.storage import Storage
from spectralbai.study.upkeep import Draft, Upkeep
from spectralbai.tables import Table
from spectralbai.text.wording import as_time
from spectralbai.verdict import Verdict

LEASE = 3600.0
"""Default number of seconds after which a ticket no longer counts as pending."""
MOST_TICKETS = 10_000
"""Most tickets that one call of `ask` gives."""


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

    def __init__(self, mark: Mark, place: Storage, owns_storage: bool) -> None:
        """Use `Study.create` or `Study.open`."""
        self._upkeep = Upkeep(place, mark.id, mark.name)
        self._statements = Statements()
        self._owns_storage = owns_storage
        self.name: str = mark.name
        self.created: float = mark.created

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
        *,
        budget: int | None = None,
        until: float | None = None,
        failed_as: float | None = None,
        items: Sequence[str] | None = None,
        seed: int | None = None,
        control: str | None = None,
        control_share: float | None = None,
        lapse_as: float | None = None,
        window: float | None = None,
    ) -> Study:
        """Returns a new study that finds the best arm at risk `delta`, with the graph, R and noise of `instance`.

        `storage` is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE; by default spectralbai.db in the
        working directory. `goal` says whether large or small outcomes are good. After `budget` trials, or at the
        time `until` (seconds since 1970), the study ends, decided or not. A failed trial counts as the outcome
        `failed_as`; if this is None, it does not count, and the trial is handed out again.

        `items` are the names of the items on which options are tried, if the problem of the instance has items; without
        them, the items of a list are called 1, 2, and so on. They are tried in a random order, drawn here; `seed` fixes
        it, which is for simulations only: options may have been tuned on the items that come first.

        `control` is the label of an option that all others are compared with: it keeps getting trials even if it
        cannot be the best, at least the part `control_share` of them or, if that is None, so many that the race does
        not wait for it. The intervals of the differences then have a risk `delta` of their own (theory, section 20).

        A ticket that is not told within `window` seconds counts as the outcome `lapse_as`, such as 0 for visitors who
        did not buy, and cannot be told any more; give both or neither.
        """
        name = check_words("name", name, 100)
        limits = {"budget": budget, "until": until, "failed_as": failed_as}
        chosen = {"items": _shuffled(instance, items, seed), "control": control, "control_share": control_share}
        chosen |= {"lapse_as": lapse_as, "window": window}
        definition = Definition(instance, delta, goal, **limits, **chosen)  # type: ignore[arg-type]  # checked inside
        # These raise errors for a definition that cannot be stored or run, before anything is written.
        created = StudyCreated(definition.as_dict(), software("SQLAlchemy"))
        fold = Fold(definition, definition.start())
        stored = StoredState.of(fold)
        with Storage.given(storage, create=True) as place:
            now = float(place.clock())
            end = definition.until
            if end is not None and end <= now:
                raise InvalidInput(f"`until` must be in the future, got {as_time(end)}, and it is {as_time(now)}")
            log = [Entry(1, now, created, actor())]
            log += [Entry(number, now, event) for number, event in enumerate(fold.openings(), 2)]
            with place.writing() as connection:
                insert_study(connection, name, log, definition, stored)
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
            marks = find_marks(connection, name) or find_marks(connection)
        if marks and marks[0].name == name:
            return cls(marks[0], place, owns_storage)
        others = [mark.name for mark in marks]
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
        once it has decided, the data contradict R, or all trials of the budget, or on the items that there are, are
        done or handed out.

        Tickets that other workers hold are taken into account. One that is not told within `lease` seconds no longer
        is: its trial may then be handed out again. Whether a result comes in time must not depend on its value.
        If the answer was lost, ask again with the same `key` to get the same tickets; give every other ask a new key,
        such as a random one. `on_give` is called right before tickets are recorded, which makes them pending.
        """
        n = check_integer("n", n, 1)
        if n > MOST_TICKETS:
            raise InvalidInput(f"`n` must be at most {MOST_TICKETS}, got {n}; ask again for more")
        worker = check_words("worker", worker, 100, blank=True)
        lease = check_number("lease", lease, "a positive number of seconds", low=0.0, strict=True)
        key = None if key is None else check_words("key", key, 200)
        telling.lapse(self._upkeep)
        window = self.definition.window
        return give(self._upkeep, n, worker, lease if window is None else window, key, on_give)

    def tell(self, ticket: Ticket | str, outcome: Outcome) -> bool:
        """Records the outcome of a ticket; returns whether it was new.

        Telling the same outcome again changes nothing, so it is safe to retry; a different outcome is refused. For a
        trial that failed, tell None or a `Failure` with the reason: it is handed out again, or counts as the study's
        `failed_as`. If failed trials are handed out again, whether a trial fails must not depend on its outcome.
        """
        return self.tell_many([(ticket, outcome)]) == 1

    def tell_many(self, results: Outcomes) -> int:
        """Records outcomes of tickets, all or none; returns how many were new."""
        return telling.tell(self._upkeep, results)

    def tell_batches(
        self, batches: Sequence[Outcomes], on_recorded: Callable[[list[int | SpectralBAIError]], object] | None = None
    ) -> list[int | SpectralBAIError]:
        """Records several batches of outcomes in one transaction, each all or none; returns for each how many were new,
        or why it was refused.

        `on_recorded` is called with that once everything is written, before rules are read, which may take longer.
        """
        return telling.tell_batches(self._upkeep, batches, on_recorded)

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
        return telling.add(self._upkeep, pairs, origin, on_check, tickets, origins)

    def add_known(self, labels: Sequence[str], items: Sequence[str], outcomes: Sequence[float], origin: str) -> int:
        """Records outcomes of options on items that are known from elsewhere, all or none, with a note of their origin;
        returns how many were new.

        `ask` never hands such a pair out: when its turn comes, its outcome is recorded as if it had been tried, with
        the origin as the worker. Which pairs are known must not depend on the order of the items. Pairs that are known
        already, or have a result, stay as they are.
        """
        try:
            pairs = list(zip(labels, items, outcomes, strict=True))
        except (TypeError, ValueError):
            pairs = []
        if not pairs:
            raise InvalidInput("`labels`, `items` and `outcomes` must be three lists of one length, at least 1")
        return telling.add_known(self._upkeep, pairs, check_words("origin", origin, 100))

    def name_score(self, score: str) -> None:
        """Records which command or function finds the outcomes, for reports; raises Conflict if the study has outcomes
        of another one already, since the two must not be mixed."""
        changes.name_score(self._upkeep, score)

    def tell_counts(self, counts: CountRows, id: str, past: bool = False) -> int:
        """Records trials and successes per arm, such as a day's traffic, all or none; returns how many trials were new.

        `counts` is {label: (trials, successes)} or rows of (label, trials, successes). Outcomes must have a known
        range; a success is its upper end. `id` names the counts, for example the day: the same counts under the same id
        again change nothing, different ones are refused. How many trials an arm got must not depend on their outcomes.
        With `past`, for trials done before the study or chosen in another way, they only inform, as with `add`.
        """
        return traffic.tell_counts(self._upkeep, counts, check_words("id", id, 200), past)

    def void(
        self, id: str | None = None, *, ticket: Ticket | str | None = None, reason: str = "", only_say: bool = False
    ) -> str:
        """Takes wrong results out: the counts or past results with this `id`, or the result of a `ticket`; returns what
        that changes, in words. With `only_say` nothing is changed.

        The state is computed again without them: bets on them are gone, options that only these eliminated come back,
        and a decision may be revoked. The log keeps what was told. The risk of each answer stays delta if results are
        taken out, or corrected, without regard to how options compare (theory, section 21).
        """
        if (id is None) == (ticket is None):
            raise InvalidInput("`id` or `ticket` is needed, and not both: which results are wrong")
        origin = None if id is None else check_words("id", id, 200)
        return corrections.void(self._upkeep, origin, None if ticket is None else _id(ticket), reason, only_say)

    def correct(self, ticket: Ticket | str, outcome: float, *, reason: str = "", only_say: bool = False) -> str:
        """Corrects the outcome of a ticket; returns what that changes. What `void` says holds here, too."""
        return corrections.correct(self._upkeep, _id(ticket), outcome, reason, only_say)

    def correct_counts(self, counts: CountRows, id: str, *, reason: str = "", only_say: bool = False) -> str:
        """Replaces the counts told as `id` by the right ones, which count as told now; returns what that changes. What
        `void` says holds here, too. It is safe to repeat."""
        return corrections.correct_counts(self._upkeep, check_words("id", id, 200), counts, reason, only_say)

    def withdraw(self, label: str) -> bool:
        """Takes an option out of the study, perhaps because it is out of stock or unsafe; returns whether it was in.

        It is never tried again and never the answer. A decision for it is revoked, and the study goes on. Open blocks
        with a trial of it are cancelled: their tickets are given back, and results told for them only inform. You may
        withdraw an option because of what the study says, but not because of single results of blocks that are not
        complete; then the risk of all answers together is at most 2 delta (theory 12.15).
        """
        return changes.withdraw(self._upkeep, label)

    def join(self, instance: Instance) -> str:
        """Adds options to the study; returns what changed, in words. The race goes on, even if it had decided.

        `instance` has all options: the present ones first and in the same order, then the new ones, with the same noise
        and tolerance. Its graph and R may differ, and must hold for the means from the beginning. Eliminated options
        stay out, and trials that are handed out count as before. Which options join, and when, must not depend on
        results; then later answers are wrong with probability at most delta, as before. If it depends on what `status`
        says about completed blocks, the risk is at most delta for each option that was the best at some time
        (theory 12.16, 12.17).
        """
        return changes.join(self._upkeep, instance)

    def stop(self) -> bool:
        """Ends the study by hand, as if its time were over; returns whether it was running.

        No trials are handed out from then on. The candidates and intervals hold at all times, and so they do when the
        study is stopped, for whatever reason. Results of tickets that are out are welcome, and may even bring the
        decision. One that has decided, ended or contradicts R stays as it is.
        """
        return changes.stop(self._upkeep)

    def shares(self) -> dict[str, float]:
        """Returns how to split the next traffic, as shares by label: as planned, or equally before there is a plan; all
        to the recommended option once the study has decided, and equally among those that may be the best if it ended
        without a decision. A study with items has none: its trials are those of `ask`."""
        self._upkeep.catch_up()
        telling.check_without_items(self._upkeep, "tickets, from ask")
        with self._upkeep.reading() as ledger:
            _, fold = self._upkeep.resume(ledger)
        fold.feed()
        labels, shares = fold.definition.of(fold.state).instance.labels, traffic.shares_of(fold, self._upkeep.now)
        return dict(zip(labels, shares.tolist(), strict=True))

    def abandon(self, *tickets: Ticket | str) -> None:
        """Gives tickets back, all or none: they are no longer pending, but a result told later is still accepted."""
        telling.abandon(self._upkeep, tickets)

    def delete(self) -> None:
        """Deletes the study with all its tickets and results, for good; processes that have it open get NotFound."""
        with self._upkeep.writing() as ledger:
            ledger.standing(lock=True)  # all writers lock the study's row first
            ledger.delete(self._upkeep.now, actor())

    def status(self, control: str | None = None, patience: float | None = None) -> Status:
        """Returns the status of the study; every option is compared with the one labelled `control`, if given, or else
        with the study's own control, if it has one.

        With thousands of connected options, estimates, intervals and the forecast take seconds. If `patience` is given,
        those that are not there after so many seconds are None, and `Status.computing` says so; ask again for them.
        """
        if patience is not None:
            patience = min(check_number("patience", patience, "a number of seconds", low=0.0, strict=False), LEASE)
        telling.lapse(self._upkeep)
        self._upkeep.catch_up(patience=patience)
        base = None if control is None else self.definition.check_arm(control)
        with self._upkeep.reading() as ledger:
            at = self._snapshot(ledger, accounts=False)
        return status_of(at, base, self._statements.read(at, patience))

    def report(self, control: str | None = None) -> Report:
        """Returns the report of the study, for a page or JSON: `.as_html()`, `.as_dict()`.

        Every option is compared with the one labelled `control`, if given.
        """
        telling.lapse(self._upkeep)
        self._upkeep.catch_up()
        base = None if control is None else self.definition.check_arm(control)
        with self._upkeep.reading() as ledger:
            at, log = self._snapshot(ledger), ledger.log()
            outcomes = table_of(ledger, at.definition, MOST_ITEMS) if at.definition.has_items else None
        # Outside the transaction, because this computes and may have to compile.
        return Report.of(at, Records.of(log), self.versions, base, self._statements.read(at), outcomes)

    def snapshot(self) -> Snapshot:
        """Returns everything that a report needs, as of one instant."""
        with self._upkeep.reading() as ledger:
            return self._snapshot(ledger)

    def verdicts(self, most: int | None = None) -> tuple[Verdict, ...]:
        """Returns what the stopping rule said each time that a block closed, or at `most` of these times, at equal
        steps."""
        most = None if most is None else check_integer("most", most, 1)
        self._upkeep.catch_up()
        with self._upkeep.reading() as ledger:
            return tuple(ledger.verdicts(most))

    def pending(self) -> tuple[Ticket, ...]:
        """Returns the tickets that count as pending, oldest first."""
        with self._upkeep.reading() as ledger:
            self._upkeep.read(ledger, with_state=False)
            return ledger.pending(self._upkeep.now, self.definition)

    def recent(self, most: int = 100, before: int | None = None) -> list[Result]:
        """Returns the last results told, the newest first; or the last before the result of number `before`."""
        most = min(check_integer("most", most, 1), LARGE)
        before = None if before is None else min(check_integer("before", before, 0), LARGE)
        with self._upkeep.reading() as ledger:
            self._upkeep.read(ledger, with_state=False)
            return ledger.recent(most, before, self.definition)

    def table(self, most: int | None = None) -> Table:
        """Returns the outcomes told so far of options on items, as a table: the items that any option was tried on, in
        the order in which they were begun. If there are more than `most`, so many of them, at equal steps.

        Pairs without an outcome are `missing`; of two outcomes of a pair, the first told counts.
        """
        most = None if most is None else check_integer("most", most, 1)
        with self._upkeep.reading() as ledger:
            self._upkeep.read(ledger, with_state=False)
            table = table_of(ledger, self.definition, most)
        if table is None:
            told = "no outcome on an item is told yet" if self.definition.has_items else "its options have no items"
            raise InvalidInput(f'the study "{self.name}" has no table: {told}')
        return table

    def log(self) -> tuple[Entry, ...]:
        """Returns everything that happened to the study, in order."""
        with self._upkeep.reading() as ledger:
            ledger.standing()  # raises NotFound if the study was deleted meanwhile; it would look empty
            return tuple(ledger.log())

    def record(self, event: Event) -> int:
        """Appends an event to the log, of a kind of your own that changes neither the state nor the definition; returns
        its revision. All else has methods of its own."""

        if any(getattr(type(event), name) is not getattr(Event, name) for name in ("define", "apply", "enter")):
            raise InvalidInput(f'an event of the kind "{event.kind}" changes the study; it needs its own method')

        def fill(draft: Draft) -> int:
            draft.events.append(event)
            return draft.standing.revision + 1

        return self._upkeep.write(lambda: (self._upkeep.basis.revision, fill))

    def records(self) -> Records:
        """Returns all results, tickets and blocks ever recorded, as of one instant."""
        return Records.of(self.log())

    @property
    def revision(self) -> int:
        """The revision of the study: a number that every change raises."""
        with self._upkeep.reading() as ledger:
            return ledger.standing().revision

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the software that created the study."""
        with self._upkeep.reading() as ledger:
            created = ledger.log([StudyCreated.kind])[0].event
        assert isinstance(created, StudyCreated)
        return created.versions

    def catch_up(self, on_check: OnCheck | None = None) -> None:
        """Updates the stored state if results are not yet processed and no other worker is doing it.

        All methods that read the state call this first.
        """
        self._upkeep.catch_up(on_check)

    def _snapshot(self, ledger: Ledger, accounts: bool = True) -> Snapshot:
        """Returns the study as of now; `accounts` says whether its verdicts have theirs, which takes long to read."""
        now = self._upkeep.now
        standing, fold = self._upkeep.resume(ledger)
        fold.feed()
        return Snapshot(
            name=self.name,
            created=self.created,
            definition=fold.definition,
            time=now,
            folded=standing.folded,
            state=fold.state,
            known=standing.known,
            unprocessed=standing.results - fold.state.samples,
            pending=ledger.pending(now, fold.definition),
            verdicts=tuple(ledger.verdicts(bulk=accounts)),
            failures=ledger.failures(),
            joins=ledger.joins(),
            corrections=ledger.voided(),
            days=ledger.counted(),
            lapsed=ledger.n_lapsed(now),
        )


def _id(ticket: Ticket | str) -> str:
    return check_words("ticket", ticket.id if isinstance(ticket, Ticket) else ticket, 100)


def _shuffled(instance: Instance, items: Sequence[str] | None, seed: int | None) -> tuple[str, ...] | None:
    """Returns the names of the items in the order in which they are tried, which nobody can foresee; None if items are
    endless, or if there are none."""
    named = named_items(items, instance.problem.items if isinstance(instance, Instance) else None)
    if named is None:
        return None
    chance = secrets.SystemRandom() if seed is None else random.Random(check_integer("seed", seed, 0))
    names = list(named)
    chance.shuffle(names)
    return tuple(names)
