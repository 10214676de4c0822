"""What a policy says of a state of a study, computed in steps; with thousands of connected arms, that takes seconds."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from spectralbai.threads import ProcessLock, one_thread, within

if TYPE_CHECKING:
    from spectralbai.arrays import Vector
    from spectralbai.journal.entries import Snapshot
    from spectralbai.policy import Estimates, Verdict


class Statement(NamedTuple):
    """What a policy says of a state."""

    key: tuple[int, int]
    """Which state it is: the revision of the stored state, and the number of results."""
    verdict: Verdict
    omega: Vector | None
    """The shares of future pulls, if there are any."""
    estimates: Estimates | None = None
    """None while they are computed."""
    remaining: float | None = None
    """Forecast of the trials still needed; None while it is computed, which happens last."""

    @classmethod
    def begun(cls, at: Snapshot) -> Statement:
        """Returns the part that takes no time."""
        policy = at.definition.of(at.state).policy
        verdict = policy.verdict(at.state)
        return cls(_key(at), verdict, policy.shares(at.state) if verdict.stopped_at is None else None)

    def continued(self, at: Snapshot) -> Statement:
        """Returns the statement with the next part that was missing."""
        policy = at.definition.of(at.state).policy
        with one_thread():
            if self.estimates is None:
                return self._replace(estimates=policy.estimates(at.state))
            return self._replace(remaining=policy.remaining(at.state))


class Statements:
    """The last statement about a study, which threads share: each open study has one of these."""

    def __init__(self) -> None:
        self._lock = ProcessLock()  # who asks meanwhile waits, and does not compute the same again
        self._last: Statement | None = None

    def read(self, at: Snapshot, patience: float | None = None) -> Statement:
        """Returns what the policy says of a state: everything, or what is known after `patience` seconds if they are
        given. The rest is then computed by a thread, for those who ask later."""
        said = self._begun(at)
        if said.remaining is not None:
            return said
        lock = self._lock.lock
        if patience is None:
            with lock:
                return self._complete(at)
        until = monotonic() + patience

        def work() -> None:
            try:
                self._complete(at)
            finally:
                lock.release()

        if lock.acquire(timeout=patience):
            within(until - monotonic(), work)
        return self._begun(at)

    def _begun(self, at: Snapshot) -> Statement:
        last = self._last
        return last if last is not None and last.key == _key(at) else Statement.begun(at)

    def _complete(self, at: Snapshot) -> Statement:
        said = self._begun(at)
        while said.remaining is None:
            self._last = said = said.continued(at)
        return said


def _key(at: Snapshot) -> tuple[int, int]:
    return at.folded, at.state.samples
