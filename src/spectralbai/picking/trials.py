"""The trials of a study, run side by side: what to try next, what failed and how often, and what was under way."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from spectralbai.errors import InvalidInput, SpectralBAIError
from spectralbai.journal.entries import Failure, Ticket
from spectralbai.picking.entries import Entry
from spectralbai.report import Status
from spectralbai.study import Study
from spectralbai.text.wording import MOST_NAMED

LEASE = 86400.0
"""Seconds for which other runs leave a trial alone: as long as hardly any takes. A run that died gives its trials back
at once, if the next one is on the same machine."""
TICK = 0.2
"""Seconds between two looks at whether Ctrl-C was pressed."""
BETWEEN_LOOKS = 0.5
"""Least number of seconds between two statuses for the display."""
SHARE_OF_LOOKS = 0.1
"""Most of the time that may go into them."""
MOST_SUSPECTS = 3
"""After so many options have failed with no success in between, the command is at fault and not the options."""
OURS = "pick"
"""The first word of the name of a worker that is a run of `pick`."""

Submit = Callable[[Entry, Entry], "Future[Any]"]
"""Starts one run of a score."""


def as_number(value: Any) -> float:
    """Returns what a score returned as a number."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise ValueError(f"the score returned {str(value)[:80]!r}, which is no number")
    return number


@dataclass(frozen=True)
class Progress:
    """How far a search is; as a string, for people.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.picking
        >>> states = []
        >>> best = sb.pick(["a", "b"], range(9), lambda a, j: a == "b", low=0, high=1, on_progress=states.append)
        >>> print(states[0])
        0 trials done; 2 options left
    """

    trials: int
    """Trials done, those of earlier runs too."""
    expected: int | None
    """Trials in all, as forecast; None if it is too early."""
    pairs: int
    """Trials that trying everything would take."""
    options: int
    left: tuple[str, ...] | None
    """The options that may still be the best; None before anything is known."""
    under_way: int

    @property
    def counts(self) -> str:
        """Trials and options, in words."""
        done = f"{self.trials:,} trials done" + ("" if self.expected is None else f" of about {self.expected:,}")
        left = f"{self.options}" if self.left is None else f"{len(self.left)} of {self.options}"
        return f"{done}; {left} options left"

    def __str__(self) -> str:
        few = self.left is not None and len(self.left) <= MOST_NAMED
        return self.counts + (f": {', '.join(self.left or ())}" if few else "")


@dataclass(eq=False)
class Trial:
    """A ticket whose outcome is being found: a run for each member of its item."""

    ticket: Ticket
    members: tuple[Entry, ...]
    attempts: int = 0
    """Runs of the present member so far."""
    begun: int = 0
    """The number of its last run; 0 before the first."""
    outcomes: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Trials:
    """How the trials of a study are run."""

    study: Study
    options: Mapping[str, Entry]
    members: Mapping[str, tuple[Entry, ...]]
    """What an item stands for: itself, or the items of a cluster."""
    submit: Submit
    jobs: int = 1
    """How many runs are under way at once."""
    retries: int = 0
    """How often a run that failed is repeated."""
    known: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Outcomes of members of clusters, which are not run."""
    on_progress: Callable[[Progress], object] = lambda progress: None
    on_tick: Callable[[], object] = lambda: None
    """Called a few times a second; it may raise KeyboardInterrupt."""

    def run(self) -> Status:
        """Returns the status of the study when it has decided or ended; on any error, what is under way is given
        back."""
        give_back_of_the_dead(self.study)
        run = _Run(self, own_name())
        with run.given_back():
            while run.step():
                pass
        return self.study.status()


class _Run:
    """What is under way."""

    def __init__(self, trials: Trials, worker: str) -> None:
        self._task = trials
        self._study = trials.study
        self._worker = worker
        self._under_way: dict[Future[Any], Trial] = {}
        self._suspects: list[tuple[Ticket, str]] = []
        """Trials that failed, with the reasons, while nothing that began later has succeeded."""
        self._out: dict[str, str] = {}
        """Options that will be held back as soon as they can be withdrawn, with the reasons."""
        self._begun = self._failed_at = 0
        """Number of runs so far, and when one last failed for good."""
        self._next_look = 0.0

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Gives back what is under way if the block is left by an error."""
        try:
            yield
        except BaseException:
            for future in self._under_way:
                future.cancel()
            self._give_back()
            raise

    def _give_back(self) -> None:
        tickets = [ticket for ticket in self._study.pending() if ticket.worker == self._worker]
        if tickets:
            self._study.abandon(*tickets)

    def step(self) -> bool:
        """Starts what can be started, and records what has ended; returns whether anything is left to do."""
        self._start()
        self._look()
        if not self._under_way:
            if self._study.status().state != "running":
                self._give_back()  # trials that failed, if the study decided before it was clear why
                return False
            if self._suspects:
                self._give_up()
            time.sleep(TICK)  # others have the last trials
            self._task.on_tick()
            return True
        ended, _ = wait(self._under_way, TICK, FIRST_COMPLETED)
        self._task.on_tick()
        for future in ended:
            self._end(future)
        return True

    def _start(self) -> None:
        while (room := self._task.jobs - len(self._under_way)) > 0:
            # While it is open whether an option or the command is at fault, only what tells is run.
            if self._suspects and self._under_way:
                return
            tickets = self._study.ask(1 if self._suspects else room, self._worker, LEASE)
            if not tickets:
                return
            for ticket in tickets:
                self._begin(ticket)

    def _begin(self, ticket: Ticket) -> None:
        assert ticket.item is not None, "the study has items"
        reasons = {failed.label: reason for failed, reason in self._suspects}
        if ticket.label in self._out:
            self._write_off(ticket, self._out[ticket.label])
        elif ticket.label in reasons:
            self._suspects.append((ticket, reasons[ticket.label]))  # it would fail too
        else:
            self._go_on(Trial(ticket, self._task.members[ticket.item]))

    def _go_on(self, trial: Trial) -> None:
        """Starts the next run of a trial, or tells its outcome if there is none."""
        while len(trial.outcomes) < len(trial.members):
            pair = trial.ticket.label, trial.members[len(trial.outcomes)].label
            if pair not in self._task.known:
                option, member = self._task.options[trial.ticket.label], trial.members[len(trial.outcomes)]
                trial.attempts += 1
                self._begun += 1
                trial.begun = self._begun
                self._under_way[self._task.submit(option, member)] = trial
                return
            trial.outcomes.append(self._task.known[pair])
        self._study.tell(trial.ticket, math.fsum(trial.outcomes) / len(trial.outcomes))
        if trial.begun > self._failed_at:
            self._clear_suspects()

    def _end(self, future: Future[Any]) -> None:
        trial = self._under_way[future]
        try:
            outcome = as_number(future.result())
        except BrokenExecutor:
            raise SpectralBAIError(
                "the executor broke down, perhaps for want of memory; go on with fewer `jobs`, nothing else is lost"
            ) from None
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            del self._under_way[future]
            if trial.attempts <= self._task.retries:
                self._go_on(trial)
            else:
                self._fail(trial.ticket, reason)
            return
        self._check_range(outcome, trial)  # an error gives the trial back
        del self._under_way[future]
        trial.outcomes.append(outcome)
        trial.attempts = 0
        self._go_on(trial)

    def _check_range(self, outcome: float, trial: Trial) -> None:
        noise = self._study.definition.instance.problem.noise
        if not noise.allows(outcome):
            low, high = noise.outcome_range or (-math.inf, math.inf)
            end = f"above `high`, {high:g}" if outcome > high else f"below `low`, {low:g}"
            raise InvalidInput(
                f'"{trial.ticket.label}" scored {outcome:g} on "{trial.members[len(trial.outcomes)].label}", {end}; '
                "correct the score and go on, or begin another study with a range that holds"
            )

    def _fail(self, ticket: Ticket, reason: str) -> None:
        reason = "".join(sign if sign.isprintable() else " " for sign in reason)[:200].strip() or "no reason"
        if self._study.definition.failed_as is not None:
            self._study.tell(ticket, Failure(reason))
            return
        self._suspects.append((ticket, reason))
        self._failed_at = self._begun
        left = sum(not arm.withdrawn for arm in self._study.status().arms)
        if len({each.label for each, _ in self._suspects}) >= min(MOST_SUSPECTS, left):
            self._give_up()

    def _give_up(self) -> NoReturn:
        named = ", ".join(f'"{label}"' for label in dict.fromkeys(ticket.label for ticket, _ in self._suspects))
        last, reason = self._suspects[-1]
        raise SpectralBAIError(
            f'nothing succeeds: runs of {named} failed one after the other, the last on "{last.item}" ({reason}); put '
            "that right and go on, nothing else is lost"
        )

    def _clear_suspects(self) -> None:
        """Holds back the options that failed, now that a run of another one has succeeded that began later."""
        suspects, self._suspects = self._suspects, []
        self._out.update({ticket.label: reason for ticket, reason in suspects})
        for ticket, reason in suspects:
            self._write_off(ticket, reason)
        for label in [*self._out]:
            self._hold_back(label)

    def _hold_back(self, label: str) -> bool:
        """Withdraws an option whose runs fail; returns whether that is possible already."""
        if not self._can_withdraw(label):
            return False
        self._study.withdraw(label)
        self._out.pop(label, None)
        return True

    def _can_withdraw(self, label: str) -> bool:
        """Whether an option can be withdrawn already: before there are estimates, something like it must be left."""
        status, components = self._study.status(), self._study.definition.instance.problem.components
        arm = self._study.definition.check_arm(label)
        mates = [status.arms[mate] for mate in (components == components[arm]).nonzero()[0] if mate != arm]
        return status.best is not None or any(not mate.withdrawn for mate in mates)

    def _write_off(self, ticket: Ticket, reason: str) -> None:
        """Records that a trial of an option that is held back failed. If the option cannot be withdrawn yet, the trial
        gets the worst outcome, so that the first block can end; the option is out of the answer all the same."""
        self._study.tell(ticket, Failure(reason))
        if not self._hold_back(ticket.label):
            low, high = self._study.definition.instance.problem.outcome_range or (-math.inf, math.inf)
            self._study.tell(ticket, low if self._study.definition.goal == "max" else high)

    def _look(self) -> None:
        began = time.monotonic()
        if began < self._next_look:
            return
        self._task.on_progress(progress_of(self._study.status(), len(self._task.members), len(self._under_way)))
        took = time.monotonic() - began
        self._next_look = began + max(BETWEEN_LOOKS, took / SHARE_OF_LOOKS)


def progress_of(status: Status, n_items: int, under_way: int = 0) -> Progress:
    """Returns how far a study is."""
    expected = None if status.remaining is None else status.results + round(status.remaining)
    pairs = len(status.arms) * n_items
    if status.items is not None and status.items.listed and expected is not None:
        expected = min(expected, pairs)
    return Progress(status.results, expected, pairs, len(status.arms), status.candidates, under_way)


def own_name() -> str:
    """Returns the name of this process as a worker: its machine, its number, and when it began."""
    return f"{OURS} {socket.gethostname()} {os.getpid()} {_began(os.getpid())}"


def give_back_of_the_dead(study: Study) -> None:
    """Gives back the trials that were under way when a run on this machine died."""
    lost = [ticket for ticket in study.pending() if _is_dead(ticket.worker)]
    if lost:
        study.abandon(*lost)


def _is_dead(worker: str) -> bool:
    words = worker.split(" ")
    if len(words) != 4 or words[:2] != [OURS, socket.gethostname()] or not words[2].isdecimal():
        return False
    return _began(int(words[2])) != words[3]


def _began(process: int) -> str:
    """Returns when a process began, as its system counts; "0" where that is not told, and "-" if it does not run."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return "-"
    except PermissionError:
        pass
    with suppress(OSError):
        stat = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
        return stat.rpartition(")")[2].split()[19]
    return "0"
