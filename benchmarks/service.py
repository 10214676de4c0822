"""What telling a service costs: `python -m benchmarks.service [--quick]`. One process of the service on PostgreSQL, 32
clients at once; beside it Optuna's storage on the same server of PostgreSQL, told by as many threads.

Every client tells one result at a time, and waits for the answer. The two are not quite alike: our clients are in two
processes and the service in a third, while Optuna's threads share one process, and tell the database directly.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np
from rich.console import Console
from rich.table import Table

import spectralbai as sb
from verification.postgres import postgres

CLIENTS = 32
PROCESSES = 2
"""Processes that the clients run in, so that the clients are not the bottleneck."""
EACH = 10
"""Tickets of a client in a round; they are asked for before the clock starts."""
SPAWN = get_context("spawn")


def serve(storage: str, pipe: Connection) -> None:
    """Serves a storage until the process is ended; says at which address."""
    from spectralbai.service import Server, make_app
    from spectralbai.service.limits import Limits

    with sb.Studies(storage, connections=40) as studies:
        server = Server(make_app(studies, limits=Limits(rate=0)), port=0)
        pipe.send(server.url)
        server.serve_until_stopped()


def tell_in_turn(tell: Callable[[str], object], tickets: Sequence[str]) -> list[float]:
    """Tells tickets one after the other; returns the seconds that each took."""
    spent = []
    for ticket in tickets:
        begin = time.perf_counter()
        tell(ticket)
        spent.append(time.perf_counter() - begin)
    return spent


def clients(url: str, pipe: Connection) -> None:
    """Tells the tickets that come through the pipe, each share by a client of its own, all at once; sends back the
    seconds of each."""
    study = sb.Client(url).open("bench")
    rng = random.Random(1)
    with ThreadPoolExecutor(CLIENTS // PROCESSES) as pool:
        while True:
            shares = pipe.recv()
            told = pool.map(
                lambda share: tell_in_turn(lambda id_: study.tell(id_, float(rng.random() < 0.5)), share), shares
            )
            pipe.send([seconds for each in told for seconds in each])


def of_service(storage: str, rounds: int) -> tuple[float, list[float]]:
    """Returns the results told per second, and the seconds of each."""
    from spectralbai.service.sample import sample_instance

    here, there = SPAWN.Pipe()
    processes = [SPAWN.Process(target=serve, args=(storage, there), daemon=True)]
    processes[0].start()
    url = here.recv()
    study = sb.Client(url).create("bench", sample_instance(), 0.001)
    pipes = []
    for _ in range(PROCESSES):
        ours, theirs = SPAWN.Pipe()
        processes.append(SPAWN.Process(target=clients, args=(url, theirs), daemon=True))
        processes[-1].start()
        pipes.append(ours)
    spent: list[float] = []
    passed = 0.0
    for number in range(rounds + 1):
        tickets: list[str] = []
        while len(tickets) < EACH * CLIENTS:
            tickets += [ticket.id for ticket in study.ask(EACH * CLIENTS - len(tickets))]
        shares = [tickets[first::CLIENTS] for first in range(CLIENTS)]
        begin = time.perf_counter()
        for place, pipe in enumerate(pipes):
            pipe.send(shares[place::PROCESSES])
        told = [seconds for pipe in pipes for seconds in pipe.recv()]
        if number:  # the first is for connections and compiled code
            passed += time.perf_counter() - begin
            spent += told
    assert study.status().results == len(spent) + EACH * CLIENTS
    for process in processes:
        process.terminate()
        process.join()
    return len(spent) / passed, spent


def of_optuna(storage: str, rounds: int) -> tuple[float, list[float]]:
    """Returns the same for Optuna, whose trials are told by threads."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    url = storage.replace("postgresql://", "postgresql+psycopg://")
    place = optuna.storages.RDBStorage(url, engine_kwargs={"pool_size": 40})
    study = optuna.create_study(storage=place, sampler=optuna.samplers.RandomSampler(seed=1))
    trials = [study.ask() for _ in range(rounds * EACH * CLIENTS)]
    rng = random.Random(1)
    shares = [trials[first::CLIENTS] for first in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        begin = time.perf_counter()
        told = pool.map(lambda share: tell_in_turn(lambda trial: study.tell(trial, rng.random()), share), shares)
        spent = [seconds for each in told for seconds in each]
    return len(spent) / (time.perf_counter() - begin), spent


def main() -> None:
    quick = "--quick" in sys.argv
    console = Console(width=110)
    table = Table("what", "results", "per second", "median (ms)", "p99 (ms)", title=f"{CLIENTS} clients, PostgreSQL")
    with postgres() as database:
        for name, measure, rounds in (
            ("service", of_service, 1 if quick else 8),
            ("Optuna, no service between", of_optuna, 1 if quick else 2),
        ):
            rate, spent = measure(database(), rounds)
            milliseconds = 1e3 * np.array(spent)
            table.add_row(
                name,
                f"{len(spent):,}",
                f"{rate:,.0f}",
                f"{np.median(milliseconds):.1f}",
                f"{np.quantile(milliseconds, 0.99):.1f}",
            )
    console.print(table)


if __name__ == "__main__":
    main()
