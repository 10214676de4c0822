"""A sample study to look at: twelve designs of a page, and simulated visitors."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from spectralbai.errors import Conflict, NotFound, SpectralBAIError
from spectralbai.graph import Graph
from spectralbai.instance import Instance
from spectralbai.problem import Problem
from spectralbai.study import Studies, Study

NAME = "sample"
RATES = {
    "plain": 0.30,
    "plain, large": 0.32,
    "plain, larger": 0.31,
    "warm": 0.42,
    "warm, large": 0.46,
    "warm, larger": 0.44,
    "cold": 0.22,
    "cold, large": 0.24,
    "cold, larger": 0.25,
    "dark": 0.55,
    "dark, large": 0.66,
    "dark, larger": 0.58,
}
"""The part of the visitors who click, for each design."""
R = 0.03
"""Bound on how much designs of one colour differ: on the sum of squared differences over neighbours."""
PAUSE = 0.25
"""Seconds between visitors, on average."""
AT_ONCE = 500
"""So many visitors come at once, so that there is something to look at from the beginning."""


def sample_instance() -> Instance:
    """Returns the instance of the sample study: each design is joined to the next size of the same colour."""
    edges = [(first + size, first + size + 1) for first in range(0, len(RATES), 3) for size in (0, 1)]
    problem = Problem.bounded(Graph.from_edges(len(RATES), edges), R, 0.0, 1.0, 0.02, binary=True)
    return Instance(problem, labels=tuple(RATES))


@contextmanager
def visitors(studies: Studies | None, pause: float = PAUSE, seed: int = 1) -> Iterator[None]:
    """Creates the sample study, if it does not exist, and tells what visitors do until the end of the context."""
    if studies is None:
        yield
        return
    try:
        study = studies.create(NAME, sample_instance(), 0.05)
    except Conflict:
        study = studies.open(NAME)
    over = threading.Event()
    at_once = max(0, AT_ONCE - study.status().results)
    thread = threading.Thread(target=_visit, args=(study, over, pause, random.Random(seed), at_once), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(10)


def _visit(study: Study, over: threading.Event, pause: float, rng: random.Random, at_once: int) -> None:
    told, wait = 0, 0.0
    while not over.wait(rng.expovariate(1 / wait) if wait else 0):
        try:
            tickets = study.ask(rng.randint(1, 3), f"server {rng.randint(1, 2)}", lease=60)
            for ticket in tickets:
                if over.wait(rng.uniform(0, wait)):
                    study.abandon(ticket)
                else:
                    told += study.tell(ticket, float(rng.random() < RATES.get(ticket.label, 0.3)))
        except NotFound:
            return  # the study was deleted
        except SpectralBAIError as error:
            logging.getLogger(__name__).warning("%s", error)
            over.wait(1)
            continue
        wait = pause if told >= at_once else 0.0
        if not tickets:
            over.wait(5)  # decided; options may still be withdrawn or join
