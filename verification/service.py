"""The service under random requests and under kills: `python -m verification.service [--requests N] [--kills N]`.

1. Requests made at random after its OpenAPI description, and others damaged on purpose: none may be answered by 500 or
   more, every refusal must be a problem with a sentence, and every answer must be of a status that is described.
2. A service under eight clients is killed at random instants and started again: every result that was acknowledged
   must be there exactly once, and state and decision those of an undisturbed replay.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import spectralbai as sb
from verification.postgres import postgres
from verification.workers import INSTANCE, LISTED, check, outcome_of

SPAWN = get_context("forkserver")
SPAWN.set_forkserver_preload(["spectralbai.policy", "spectralbai.service", "verification.workers", "psycopg"])
CLIENTS = 8
THERE = {"there": INSTANCE, "listed": LISTED}
"""The studies that requests are about, by name."""
ENDLESS = ("/api/events", "/api/studies/{name}/events")


def fuzz(storage: str, requests: int, seed: int = 0) -> Counter[int]:
    """Makes that many requests; returns how many got which status."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis.errors import Unsatisfiable

    from spectralbai.service import Server, make_app
    from spectralbai.service.limits import Limits

    statuses: Counter[int] = Counter()
    with sb.Studies(storage) as studies:
        tickets = _prepared(studies)
        server = Server(make_app(studies, limits=Limits(rate=0)), port=0)
        threading.Thread(target=server.serve_until_stopped, daemon=True).start()
        while not server.started:
            time.sleep(0.01)
        schema = schemathesis.openapi.from_url(f"{server.url}/api/openapi.json")
        operations = [each.ok() for each in schema.get_all_operations()]
        operations = [each for each in operations if each.path not in ENDLESS]
        rng = random.Random(seed)

        def one(case: Any) -> None:
            if "name" in (case.path_parameters or {}) and rng.random() < 0.8:
                case.path_parameters["name"] = rng.choice(list(THERE))
            if isinstance(case.body, dict) and rng.random() < 0.5:
                _make_likely(case.body, tickets, rng)
            response = case.call()
            statuses[response.status_code] += 1
            if response.status_code >= 500:
                raise SystemExit(f"{response.status_code} for {case.method} {case.path}: {case.as_curl_command()}")
            if response.status_code >= 400:
                problem = response.json()
                if not problem["detail"] or "\n" in problem["detail"]:
                    raise SystemExit(f"no sentence for {case.method} {case.path}: {problem}")
            if case.method == "DELETE" and response.status_code < 300:
                tickets[:] = _prepared(studies)

        quietly = settings(
            max_examples=40,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        rounds = 0
        while sum(statuses.values()) < requests:  # hypothesis ends early where there is little to vary
            for operation in operations:
                for mode in schemathesis.GenerationMode:  # as described, and not
                    with suppress(Unsatisfiable):  # nothing can be wrong with a request that holds nothing
                        strategy = operation.as_strategy(generation_mode=mode)
                        seeded(seed + rounds)(quietly(given(case=strategy)(one)))()
            rounds += 1
        server.should_exit = True
    return statuses


def _prepared(studies: sb.Studies) -> list[str]:
    """Makes the studies that requests are about, if they are not there; returns tickets of theirs."""
    tickets = []
    for name, instance in THERE.items():
        try:
            study = studies.create(name, instance)
        except sb.Conflict:
            study = studies.open(name)
        tickets += [ticket.id for ticket in study.ask(20)]
    return tickets


def _make_likely(body: dict[str, Any], tickets: list[str], rng: random.Random) -> None:
    """Puts in what such a study holds, so that requests get further than to the first refusal."""
    ticket = rng.choice(tickets) if tickets else "none"
    label = rng.choice(INSTANCE.labels)
    rows = [row for key in ("results", "rows") if isinstance(body.get(key), list) for row in body[key]]
    item = str(rng.randrange(700))
    likely = (
        *(("ticket", ticket), ("label", label), ("outcome", rng.random()), ("instance", _document(rng))),
        *(("item", item), ("items", rng.choice([None, {"listed": 2}, {"fresh": 2}, "fresh", ["a", "b"]]))),
    )
    for row in (body, *rows):
        if isinstance(row, dict):
            row |= {key: value for key, value in likely if key in row}
    if "tickets" in body:
        body["tickets"] = [ticket]


def _document(rng: random.Random) -> dict[str, Any]:
    """Returns an instance, one key of which may be damaged."""
    document = rng.choice(list(THERE.values())).as_dict()
    if rng.random() < 0.7:
        wrong: list[Any] = [None, -1, 0, 1e308, "x", [], {}, [[0, 0, 0]], True, "\ud800", 10**30]
        document[rng.choice(list(document))] = rng.choice(wrong)
    return document


def serve(storage: str, port: int) -> None:
    """Serves a storage at a port until the process is killed."""
    from spectralbai.service import Server, make_app

    with sb.Studies(storage) as studies:
        Server(make_app(studies), port=port).serve_until_stopped()


def kill(storage: str, kills: int, folder: Path, seed: int = 0) -> int:
    """Kills a service under clients so often; returns the number of results."""
    rng = random.Random(seed)
    port = rng.randrange(20_000, 30_000)  # below those that clients get, one of which might else connect to itself
    done = total = 0
    while done < kills:
        name, acknowledged = f"study {secrets.token_hex(4)}", folder / secrets.token_hex(4)
        sb.Study.create(name, rng.choice((INSTANCE, LISTED)), 0.01, storage).close()
        service = _started(storage, port)
        log = os.open(acknowledged, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        errors: list[BaseException] = []
        threads = [
            threading.Thread(target=_work, args=(f"http://127.0.0.1:{port}", name, rng.randrange(10**9), log, errors))
            for _ in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            known = os.fstat(log).st_size
            while os.fstat(log).st_size == known and any(thread.is_alive() for thread in threads):
                time.sleep(0.005)  # until the service answers again
            time.sleep(rng.uniform(0.0, 0.5))
            if done < kills and not errors:
                assert service.pid is not None
                os.kill(service.pid, signal.SIGKILL)
                service.join()
                done += 1
                service = _started(storage, port)
        os.close(log)
        service.terminate()
        service.join()
        if errors:
            raise SystemExit(f"a client ended with {errors[0]!r}")
        total += check(storage, name, acknowledged)
    return total


def _started(storage: str, port: int) -> BaseProcess:
    service = SPAWN.Process(target=serve, args=(storage, port), daemon=True)
    service.start()
    while service.is_alive():  # kills are to hit requests, not the start
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            break
        time.sleep(0.01)
    return service


def _work(url: str, name: str, seed: int, log: int, errors: list[BaseException]) -> None:
    """Asks and tells until the study has decided; writes down every result that was acknowledged."""
    import numpy as np

    rng = np.random.default_rng(seed)
    try:
        study = sb.Client(url, timeout=20, patience=600).open(name)  # kills follow one another quickly
        instance = study.definition.instance
        while tickets := study.ask(int(rng.integers(1, 4)), worker=f"client {seed}", lease=5.0):
            for ticket in tickets:
                outcome = outcome_of(ticket, instance, rng)
                study.tell(ticket, outcome)
                os.write(log, f"{ticket.id} {outcome!r}\n".encode())
    except BaseException as error:
        errors.append(error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--kills", type=int, default=50)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if chosen.requests:
            begin = time.monotonic()
            statuses = fuzz(f"sqlite:///{folder / 'fuzz.db'}", chosen.requests)
            counted = ", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items()))
            seconds = time.monotonic() - begin
            print(f"{sum(statuses.values()):,} requests, none answered by 500 ({counted}); {seconds:.0f} s", flush=True)
        if chosen.kills:
            with postgres() as database:
                begin = time.monotonic()
                results = kill(database(), chosen.kills, folder)
                seconds = time.monotonic() - begin
                print(
                    f"PostgreSQL, {CLIENTS} clients: {chosen.kills} kills of the service, {results:,} results, none "
                    f"lost, none twice, state as in a replay; {seconds:.0f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
