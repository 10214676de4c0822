"""What a policy says of a state of a study, computed in steps; with thousands of connected arms, that takes seconds."""

from __future__ import annotations

from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from spectralbai.patience import within
from spectralbai.threads import one_thread

if TYPE_CHECKING:
    from spectralbai.arrays import Vector
    from spectralbai.policy import Estimates, Policy, State, Verdict


class Statement(NamedTuple):
    """What a policy says of a state."""

    state: tuple[int, ...]
    """Which state it is, of those of its study."""
    verdict: Verdict
    omega: Vector | None
    """The shares of future pulls, if there are any."""
    estimates: Estimates | None = None
    """None while they are computed."""
    remaining: float | None = None
    """Forecast of the trials still needed; None while it is computed, which happens last."""

    @classmethod
    def begun(cls, policy: Policy, state: State) -> Statement:
        """Returns the part that takes no time."""
        verdict = policy.verdict(state)
        return cls(_key(state), verdict, policy.shares(state) if verdict.stopped_at is None else None)

    def continued(self, policy: Policy, state: State) -> Statement:
        """Returns the statement with the next part that was missing; itself if it is complete."""
        with one_thread():
            if self.estimates is None:
                return self._replace(estimates=policy.estimates(state))
            if self.remaining is None:
                return self._replace(remaining=policy.remaining(state))
        return self


class Statements:
    """The last statement about a study, which threads share: each open study has one of these."""

    def __init__(self) -> None:
        self._lock = Lock()  # who asks meanwhile waits, and does not compute the same again
        self._last: Statement | None = None

    def read(self, policy: Policy, state: State, patience: float | None = None) -> Statement:
        """Returns what the policy says of a state: everything, or what is known after `patience` seconds if they are
        given. The rest is then computed by a thread, for those who ask later."""
        known = self._known(state)
        if known is not None and known.remaining is not None:
            return known
        if patience is None:
            with self._lock:
                return self._complete(policy, state)
        until = monotonic() + patience

        def work() -> None:
            try:
                self._complete(policy, state)
            finally:
                self._lock.release()

        if self._lock.acquire(timeout=patience):
            within(until - monotonic(), work)
        return self._known(state) or Statement.begun(policy, state)

    def _known(self, state: State) -> Statement | None:
        last = self._last
        return last if last is not None and last.state == _key(state) else None

    def _complete(self, policy: Policy, state: State) -> Statement:
        said = self._known(state) or Statement.begun(policy, state)
        while said.remaining is None:
            self._last = said = said.continued(policy, state)
        return said


def _key(state: State) -> tuple[int, ...]:
    """Returns which of the states of a study it is: results, blocks, withdrawals and joins are only appended."""
    return state.samples, state.opened, len(state.withdrawn), len(state.joined)
