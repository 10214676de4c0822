"""Tickets for the trials to do next: the slots of open blocks that nobody holds, or what the policy asks for."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from spectralbai.evidence.blocks import unclaimed
from spectralbai.journal.entries import Ticket
from spectralbai.study.ledger import Ledger
from spectralbai.study.replay import advance
from spectralbai.study.standing import Standing, key
from spectralbai.study.upkeep import Upkeep

if TYPE_CHECKING:
    from spectralbai.policy import State


def give(
    upkeep: Upkeep, n: int, worker: str, lease: float, asked: str | None, on_give: Callable[[], object] | None
) -> list[Ticket]:
    """Returns at most n tickets; `Study.ask` says which. `asked` is the key of the ask, if it has one."""
    ids = _ids(upkeep, n, asked)
    policy = upkeep.definition.policy
    if not policy.in_blocks:  # pulls are chosen inside the transaction: load compiled code before
        policy.ask(policy.init())
    upkeep.catch_up()
    while True:
        with upkeep.writing() as ledger:
            standing = ledger.standing(lock=True)
            now = upkeep.now
            state = upkeep.kept(ledger)
            labels, policy = upkeep.definition.instance.labels, upkeep.definition.policy
            if asked is not None and (before := ledger.given(ids, labels)):
                return before
            room = _room(upkeep, ledger, standing, now)
            pulls = _pulls(upkeep, ledger, state, int(min(n, room)), now) if room > 0 else []
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
            upkeep.wait()
        else:
            _open_ahead(upkeep, state)


def _ids(upkeep: Upkeep, n: int, key: str | None) -> list[str]:
    """Returns ids for n tickets: random ones, or those that follow from the key of an ask."""
    if key is None:
        return [secrets.token_hex(8) for _ in range(n)]
    return [hashlib.sha256(f"{upkeep.id}\n{key}\n{i}".encode()).hexdigest()[:16] for i in range(n)]


def _room(upkeep: Upkeep, ledger: Ledger, standing: Standing, now: float) -> float:
    """Returns how many more trials the limits of the study allow to hand out."""
    definition = upkeep.definition
    if definition.over(standing.results, now):
        return 0
    if definition.budget is None:
        return math.inf
    out = ledger.pending_per_arm(now, definition.instance.problem.n_arms).sum()
    return definition.budget - standing.results - int(out)


def _pulls(upkeep: Upkeep, ledger: Ledger, state: State, n: int, now: float) -> Sequence[tuple[int | None, int]]:
    """Returns (block, arm) of up to n pulls that are not handed out."""
    policy = upkeep.definition.policy
    if policy.in_blocks:
        stopped = policy.verdict(state).stopped_at is not None
        return [] if stopped else unclaimed(state.blocks, ledger.taken(now, state), n)
    state, waiting = upkeep.state(ledger)
    arms = policy.ask(state, n, waiting + ledger.pending_per_arm(now, policy.problem.n_arms))
    return [(None, arm) for arm in arms.tolist()]


def _open_ahead(upkeep: Upkeep, state: State) -> None:
    """Opens one more block, planned with the results told since the stored `state`, unless another worker has changed
    the state meanwhile or is about to close a block."""
    with upkeep.reading() as ledger:
        standing = ledger.standing()
        if standing.behind or ledger.kept() != key(state):
            return
        told = ledger.results(state.samples, standing.results)
    known, _ = advance(upkeep.definition, state, told)
    new = upkeep.definition.of(known).policy.open(known)
    text = json.dumps(new.as_dict())
    with upkeep.writing() as ledger:
        ledger.standing(lock=True)
        ledger.replace_state(key(state), new, text, upkeep.now)
