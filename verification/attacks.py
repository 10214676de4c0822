"""Attacks on a service while a worker goes on: `python -m verification.attacks [--seconds N]`.

Half requests on more connections than there may be, reports whose clients hang up, a study that is locked, threads that
cannot be started, instances larger than the memory, and a full disk. Throughout, a worker with a token asks and tells:
99 of 100 times within 2 seconds, and nothing that was acknowledged is lost. While the disk is full, telling fails in a
sentence, `health` answers and `ready` says so.
"""

from __future__ import annotations

import argparse
import random
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
from sqlalchemy import select

import spectralbai as sb
from spectralbai.study.schema import studies as rows
from verification.postgres import postgres
from verification.workers import INSTANCE

LIMIT = 2.0
"""Seconds in which 99 of 100 pairs of an ask and a tell are answered."""
CONNECTIONS = 1060
SPAWN = get_context("spawn")
LARGE = {"format": "spectralbai-instance/3", "n_arms": 30_000_000, "edges": [], "R": 1.0, "sigma": 1.0}


def serve(storage: str, tokens: str, failing: float, room: int | None, pipe: Connection) -> None:
    """Serves a storage; a part `failing` of all threads cannot be started, and files cannot grow beyond `room`."""
    import resource

    from spectralbai.service import Access, Server, make_app
    from spectralbai.service.access import TokenFile
    from spectralbai.service.limits import Limits

    chance, start = random.Random(1), threading.Thread.start

    def start_or_fail(self: threading.Thread) -> None:
        if chance.random() < failing:
            raise RuntimeError("can't start new thread")
        start(self)

    with sb.Studies(storage, connections=40, patience=5.0) as studies:
        app = make_app(studies, Access(TokenFile(Path(tokens))), Limits(rate=0))
        server = Server(app, port=0)
        pipe.send(server.url)
        threading.Thread.start = start_or_fail  # type: ignore[method-assign]
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        server.serve_until_stopped()


@contextmanager
def served(storage: str, tokens: Path, failing: float = 0.0, room: int | None = None) -> Iterator[str]:
    """Serves a storage in a process of its own; yields the address."""
    here, there = SPAWN.Pipe()
    process = SPAWN.Process(target=serve, args=(storage, str(tokens), failing, room, there), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.kill()
        process.join()


class Worker(threading.Thread):
    """Asks and tells until it is stopped; keeps the seconds of each pair, and what was acknowledged."""

    def __init__(self, study: Any) -> None:
        super().__init__(daemon=True)
        self.study = study
        self.seconds: list[float] = []
        self.acknowledged: dict[str, float] = {}
        self.over = threading.Event()

    def run(self) -> None:
        rng = np.random.default_rng(1)
        while not self.over.is_set():
            begin = time.monotonic()
            for ticket in self.study.ask(1):
                outcome = float(rng.standard_normal())
                self.study.tell(ticket, outcome)
                self.acknowledged[ticket.id] = outcome
            self.seconds.append(time.monotonic() - begin)
            time.sleep(0.01)


def half_requests(url: str, token: str, over: threading.Event) -> None:
    """Keeps more connections than there may be, each with half a request; opens those anew that are closed."""
    address = urlsplit(url)
    halves = (b"", b"GET /api/", b"POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    with ExitStack() as stack:
        held: list[socket.socket] = []
        while not over.is_set():
            if len(held) >= CONNECTIONS:
                held.pop(0).close()
                time.sleep(0.002)
            with suppress(OSError):
                made = socket.create_connection((str(address.hostname), address.port or 0), timeout=5)
                stack.callback(made.close)
                made.sendall(random.choice(halves))
                held.append(made)


def hang_ups(url: str, token: str, over: threading.Event) -> None:
    """Asks for 60 reports at a time, and leaves at once."""
    address = urlsplit(url)
    head = f"GET /api/studies/other/report HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    while not over.is_set():
        for _ in range(60):
            with suppress(OSError), socket.create_connection((str(address.hostname), address.port or 0), 5) as made:
                made.sendall(head.encode())
        over.wait(1.0)


def large(url: str, token: str, over: threading.Event) -> None:
    """Sends instances and counts of sizes that no memory holds."""
    client = sb.Client(url, token, patience=0)
    while not over.is_set():
        for path, body in (
            ("/api/studies", {"name": "large", "instance": LARGE}),
            ("/api/plan", {"instance": LARGE}),
            ("/api/studies/other/counts", {"id": "x", "rows": [{"label": "0", "trials": 10**12, "successes": 0}]}),
        ):
            with suppress(sb.InvalidInput, sb.Busy):
                client._transport.call("POST", path, body)


@contextmanager
def attacked(attack: Callable[..., None] | None, url: str, token: str) -> Iterator[None]:
    """Attacks from four threads, except for one with a thread of its own."""
    over = threading.Event()
    threads = [threading.Thread(target=attack, args=(url, token, over), daemon=True) for _ in range(2) if attack]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(30)


@contextmanager
def locked(storage: str) -> Iterator[None]:
    """Keeps the row of the study "other" locked, while 30 threads of the worker's service want it."""
    with sb.Studies(storage) as studies, studies._storage.writing() as holder:
        holder.execute(select(rows.c.id).where(rows.c.name == "other").with_for_update()).all()
        yield


def wants_other(url: str, token: str, over: threading.Event) -> None:
    """Asks for trials of the study "other", from 30 threads."""

    def ask() -> None:
        study = sb.Client(url, token, patience=0).open("other")
        while not over.is_set():
            with suppress(sb.StorageError):
                study.ask()

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def measure(name: str, storage: str, folder: Path, seconds: float, tokens: Path, token: str) -> None:
    """Attacks a service for so many seconds, and says how a worker fared."""
    attack = {"half requests": half_requests, "hang-ups": hang_ups, "large": large, "locked": wants_other}.get(name)
    with served(storage, tokens, failing=0.3 if name == "threads that fail" else 0.0) as url, ExitStack() as stack:
        client = sb.Client(url, token, timeout=30)
        study = client.open("worked")
        study.tell(study.ask(1)[0], 0.0)  # connections and compiled code
        worker = Worker(study)
        if name == "locked":
            stack.enter_context(locked(storage))
        with attacked(attack, url, token):
            time.sleep(1.0)
            worker.start()
            time.sleep(seconds)
            worker.over.set()
            worker.join(60)
    with sb.Studies(storage) as studies:
        told = {each.ticket: each.outcome for each in studies.open("worked").records().observations}
        lost = [id_ for id_, outcome in worker.acknowledged.items() if told.get(id_) != outcome]
        sound = studies.check("worked").sound
    p99 = float(np.quantile(worker.seconds, 0.99))
    print(
        f"{name}: {len(worker.seconds):,} asks and tells, p99 {p99:.3f} s, at most {max(worker.seconds):.3f} s; "
        f"{len(worker.acknowledged):,} acknowledged, {len(lost)} lost",
        flush=True,
    )
    if p99 > LIMIT or lost or not sound or not worker.seconds:
        raise SystemExit(f"{name}: that is not good enough")


def full_disk(storage: str, file: Path, tokens: Path, token: str) -> None:
    """Fills the disk of a service while it is told results."""
    with served(storage, tokens, room=file.stat().st_size + 400_000) as url:
        sb.Client(url, token).open("worked")  # waits until it serves
        study = sb.Client(url, token, patience=0).open("worked")
        acknowledged: dict[str, float] = {}
        refusal: sb.StorageError | None = None
        while refusal is None:
            try:
                for ticket in study.ask(50):
                    study.tell(ticket, 0.5)
                    acknowledged[ticket.id] = 0.5
            except sb.StorageError as error:
                refusal = error
        time.sleep(1.5)
        codes = []
        for path in ("/api/health", "/api/ready"):
            try:
                with urlopen(Request(url + path), timeout=10) as answer:
                    codes.append(answer.status)
            except URLError as error:
                codes.append(getattr(error, "code", 0))
    with sb.Studies(storage) as studies:
        told = {each.ticket for each in studies.open("worked").records().observations}
        lost = acknowledged.keys() - told
        sound = studies.check("worked").sound
    said = f"{len(acknowledged):,} acknowledged, {len(lost)} lost; health {codes[0]}, ready {codes[1]}"
    print(f"full disk: {said}; {refusal}")
    if lost or codes != [200, 503] or not sound:
        raise SystemExit("full disk: that is not good enough")


def prepared(storage: str) -> None:
    """Makes the study that is worked on, and another one."""
    problem = sb.Problem(INSTANCE.problem.graph, INSTANCE.problem.R, sigma=100.0)  # nothing is decided for long
    with sb.Studies(storage) as studies:
        for name in ("worked", "other"):
            study = studies.create(name, sb.Instance(problem))
            study.add(["0", "1", "2", "3", "4"] * 400, [1.0] * 2000, "before")


def main() -> None:
    from spectralbai.service.access import TokenFile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, postgres() as database:
        folder = Path(name)
        tokens = folder / "tokens.json"
        token = TokenFile(tokens).create("read-write", "worker")
        for attack in ("none", "half requests", "hang-ups", "large", "threads that fail", "locked"):
            storage = database() if attack == "locked" else f"sqlite:///{folder / attack.replace(' ', '-')}.db"
            prepared(storage)
            measure(attack, storage, folder, chosen.seconds, tokens, token)
        file = folder / "full.db"
        prepared(f"sqlite:///{file}")
        full_disk(f"sqlite:///{file}", file, tokens, token)


if __name__ == "__main__":
    main()
