"""Workers of a study that can be killed at any instant, and what must be true afterwards."""

from __future__ import annotations

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

SPAWN = get_context("forkserver")
SPAWN.set_forkserver_preload(["spectralbai.policy", "spectralbai.study", "verification.workers", "psycopg"])

INSTANCE = sb.Instance(
    sb.Problem(sb.Graph.from_edges(5, [(1, 2), (3, 4)]), R=0.001, sigma=0.5), [0.40, 0.22, 0.21, 0.16, 0.15]
)
"""Takes about a thousand results at delta = 0.05."""
assert INSTANCE.mu is not None
# Workers are forked from a process that has imported this and so loaded all compiled code: kills hit asks and tells,
# not the start.
sb.simulate.run(sb.SpectralRace(INSTANCE.problem, 0.05), INSTANCE.mu, seed=0, max_samples=300)


def work(url: str, name: str, seed: int, acknowledged: str, most: int | None = None) -> None:
    """Asks and tells until the study has decided, or has `most` results from here; writes down every result that was
    acknowledged."""
    rng = np.random.default_rng(seed)
    assert INSTANCE.mu is not None
    log = os.open(acknowledged, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    done = 0
    with sb.Study.open(name, url) as study:
        while (most is None or done < most) and (
            tickets := study.ask(int(rng.integers(1, 4)), worker=f"worker {seed}", lease=2.0)
        ):
            for ticket in tickets:
                if rng.random() < 0.05:
                    study.abandon(ticket)
                    continue
                outcome = float(INSTANCE.mu[ticket.arm] + 0.5 * rng.standard_normal())
                study.tell(ticket, outcome)
                os.write(log, f"{ticket.id} {outcome!r}\n".encode())
                done += 1
                if rng.random() < 0.1:
                    study.tell(ticket, outcome)  # again, as after a doubt
    os.close(log)


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
    return len(records.observations)
