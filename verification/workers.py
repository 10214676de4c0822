"""Workers of a study that can be killed at any instant, and what must be true afterwards."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np

import spectralbai as sb
from spectralbai.journal.records import Records
from spectralbai.journal.replay import replay
from spectralbai.policy import State

SPAWN = get_context("forkserver")
SPAWN.set_forkserver_preload(["spectralbai.policy", "spectralbai.study", "verification.workers", "psycopg"])

INSTANCE = sb.Instance(
    sb.Problem(sb.Graph.from_edges(5, [(1, 2), (3, 4)]), R=0.001, sigma=0.5), [0.40, 0.22, 0.21, 0.16, 0.15]
)
"""Takes about a thousand results at delta = 0.05."""
LISTED = sb.Instance(
    sb.Problem.bounded(sb.Graph.from_edges(5, []), math.inf, tolerance=0.02, items=sb.Items.listed(600)),
    [0.40, 0.34, 0.33, 0.30, 0.29],
)
"""Takes about as many on a list of items that are as hard for all options."""
assert INSTANCE.mu is not None and LISTED.mu is not None
# Workers are forked from a process that has imported this and so loaded all compiled code: kills hit asks and tells,
# not the start.
sb.simulate.run(sb.SpectralRace(INSTANCE.problem, 0.05), INSTANCE.mu, seed=0, max_samples=300)
sb.simulate.replay(sb.SpectralRace(LISTED.problem, 0.05), LISTED.mu[:, None] * np.ones(600), seed=0)


def work(url: str, name: str, seed: int, acknowledged: str, most: int | None = None) -> None:
    """Asks and tells until the study has decided, or has `most` results from here; writes down every result that was
    acknowledged."""
    rng = np.random.default_rng(seed)
    log = os.open(acknowledged, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    done = 0
    late: list[sb.study.Ticket] = []
    with sb.Study.open(name, url) as study:
        while (most is None or done < most) and (
            tickets := study.ask(int(rng.integers(1, 4)), worker=f"worker {seed}", lease=2.0)
        ):
            late, late_now = [], late
            for ticket in (*tickets, *late_now):
                if ticket in tickets and rng.random() < 0.05:
                    study.abandon(ticket)
                    if rng.random() < 0.5:
                        late.append(ticket)  # the trial was done after all, perhaps by another worker, too
                    continue
                outcome = outcome_of(ticket, study.definition.instance, rng)
                study.tell(ticket, outcome)
                os.write(log, f"{ticket.id} {outcome!r}\n".encode())
                done += 1
                if rng.random() < 0.1:
                    study.tell(ticket, outcome)  # again, as after a doubt
    os.close(log)


def outcome_of(ticket: sb.study.Ticket, instance: sb.Instance, rng: np.random.Generator) -> float:
    """Returns a new outcome of a trial; on an item, that of another trial of the same pair is another one."""
    assert instance.mu is not None
    if ticket.item is None:
        return float(instance.mu[ticket.arm] + 0.5 * rng.standard_normal())
    ease = 0.4 * (0.618 * int(ticket.item) % 1.0)
    return float(np.clip(instance.mu[ticket.arm] + ease + 0.1 * rng.standard_normal(), 0.0, 1.0))


def start(*arguments: object) -> BaseProcess:
    """Starts a worker."""
    worker = SPAWN.Process(target=work, args=arguments)
    worker.start()
    return worker


def check(url: str, name: str, acknowledged: Path) -> int:
    """Checks that nothing is lost or twice there, and that state and decision are those of a replay; returns the
    number of results."""
    with sb.Study.open(name, url) as study:
        study.catch_up()
        while (at := study.snapshot()).unprocessed:  # the claim of a killed worker has to expire first
            time.sleep(0.5)
            study.catch_up()
        log = study.log()
        records, replayed = Records.of(log), replay(log)
        replayed.feed()
        kept = {each.number: each.outcome for each in study.recent(len(records.observations) + 1)}
    told = {each.ticket: each.outcome for each in records.observations}
    twice = [ticket for ticket, count in Counter(each.ticket for each in records.observations).items() if count > 1]
    written = dict(line.split() for line in acknowledged.read_text().splitlines())
    lost = [ticket for ticket, outcome in written.items() if told.get(ticket) != float(outcome)]
    if twice or lost:
        raise SystemExit(f"{name}: {len(lost)} acknowledged results lost, {len(twice)} there twice")
    if kept != {each.number: each.outcome for each in records.observations}:
        raise SystemExit(f"{name}: the table of results differs from the log")
    if replayed.state.as_dict() != at.state.as_dict():
        raise SystemExit(f"{name}: state or decision differ from an undisturbed replay")
    if at.definition.has_items:
        check_pairs(name, records, at.state)
    return len(records.observations)


def check_pairs(name: str, records: Records, state: State) -> None:
    """Checks that every pair of an option and an item counts once, with the first of its results."""
    first: dict[tuple[int, int | None], float] = {}
    for each in records.observations:
        first.setdefault((each.arm, each.item), each.outcome)
    arms = np.array([arm for arm, _ in first], dtype=np.intp)
    counts = np.bincount(arms, minlength=state.n_arms)
    sums = np.bincount(arms, np.fromiter(first.values(), dtype=float), minlength=state.n_arms)
    counted = sum((block.results for block in state.blocks), start=state.data)
    if (counted.counts != counts).any() or not np.allclose(counted.sums + state.origin * counted.counts, sums):
        raise SystemExit(f"{name}: a pair counts twice, or not at all")
