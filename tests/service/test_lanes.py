"""One kind of request does not keep another waiting: attacks on a service that runs, and what others notice."""

from __future__ import annotations

import asyncio
import inspect
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import select

import spectralbai as sb
from spectralbai.service import make_app
from spectralbai.service.lanes import Lane, Left
from spectralbai.service.routes import ROUTERS
from spectralbai.study.schema import studies as rows
from tests.study.contract import SCORES


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch, method: str) -> Iterator[list[str]]:
    """Makes a method of studies wait until the end; yields the names of the studies that it was called for."""
    calls: list[str] = []
    over = threading.Event()
    whole = getattr(sb.Study, method)

    def waiting(self: sb.Study, *args: Any, **kwargs: Any) -> Any:
        calls.append(self.name)
        assert over.wait(20)
        return whole(self, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(sb.Study, method, waiting)
        try:
            yield calls
        finally:
            over.set()


def request_and_leave(url: str, path: str) -> None:
    """Makes a request, and leaves without waiting for its answer."""
    address = urlsplit(url)
    with socket.create_connection((str(address.hostname), address.port or 0), timeout=20) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


def test_reports_whose_clients_hang_up_delay_nobody_and_are_not_begun(
    studies: sb.Studies, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = serve(studies)
    study = sb.Client(url, timeout=10).create("s", SCORES)
    with held(monkeypatch, "report") as reports:
        for _ in range(60):
            request_and_leave(url, "/api/studies/s/report")
        ticket = study.ask()[0]
        assert study.tell(ticket, 0.5) and study.status().results == 1
        while len(reports) < 2:
            time.sleep(0.001)
        with pytest.raises(sb.Busy, match="too many requests of this kind wait already"):
            sb.Client(url, timeout=10, patience=0).open("s").report()
    assert study.report().as_html()
    assert len(reports) <= 3


def test_a_locked_study_delays_no_other(postgresql: str, serve: Callable[..., str]) -> None:
    with sb.Studies(postgresql, connections=40) as studies:
        url = serve(studies)
        locked, other = (sb.Client(url, timeout=60).create(name, SCORES) for name in ("locked", "other"))
        tickets = locked.ask(2)
        with ThreadPoolExecutor(52) as pool:
            with studies._storage.writing() as holder:
                holder.execute(select(rows.c.id).where(rows.c.name == "locked").with_for_update()).all()
                waiting: list[Future[Any]] = [pool.submit(locked.ask) for _ in range(50)]
                waiting += [pool.submit(locked.tell, ticket, 0.5) for ticket in tickets]
                for _ in range(5):
                    for ticket in other.ask():
                        assert other.tell(ticket, 0.5)
                assert not any(each.done() for each in waiting)
            assert all(each.result() for each in waiting)


def test_health_does_not_wait_for_the_database_and_readiness_says_that_it_cannot_be_written_to(
    studies: sb.Studies, serve: Callable[..., str]
) -> None:
    with sb.Studies(studies.storage, patience=0.1) as impatient:
        transport = sb.Client(serve(impatient), patience=0)._transport
        assert transport.call("GET", "/api/ready")["status"] == "ok"
        with studies._storage.writing():
            time.sleep(1)  # an answer holds for a second
            assert transport.call("GET", "/api/health")["status"] == "ok"
            with pytest.raises(sb.Busy, match="locked for 0.1 seconds"):
                transport.call("GET", "/api/ready")


def test_a_lane_lets_in_so_many_of_a_study_and_of_all() -> None:
    async def all_calls() -> None:
        go_on, running, most = threading.Event(), [], []

        def work(study: str) -> None:
            running.append(study)
            most.append((len(running), running.count("a")))
            assert go_on.wait(20)
            running.remove(study)

        lane = Lane(threads=3, of_study=2, waiting=7, patience=20)
        calls = [asyncio.create_task(lane.run(partial(work, study), study)) for study in "aaaaaabcde"]
        while len(running) < 3:
            await asyncio.sleep(0.001)
        with pytest.raises(sb.Busy, match="too many"):
            await lane.run(lambda: None)
        go_on.set()
        await asyncio.gather(*calls)
        assert max(each for each, _ in most) == 3 and max(each for _, each in most) == 2
        assert lane._studies == {} and lane._waiting == 0

    asyncio.run(all_calls())


def test_who_waits_too_long_is_refused_and_who_left_is_not_served() -> None:
    async def all_calls() -> None:
        go_on, calls = threading.Event(), []

        async def left() -> bool:
            return True

        lane = Lane(threads=1, of_study=1, waiting=5, patience=0.05)
        first = asyncio.create_task(lane.run(lambda: go_on.wait(20)))
        await asyncio.sleep(0)
        with pytest.raises(sb.Busy, match="take long"):
            await lane.run(lambda: calls.append(1))
        second = asyncio.create_task(lane.run(lambda: calls.append(2), "a", left))
        await asyncio.sleep(0)
        go_on.set()
        assert await first is True
        with pytest.raises(Left):
            await second
        assert calls == [] and lane._studies == {}
        await lane.run(lambda: calls.append(3), "a", left)  # who need not wait has not left
        assert calls == [3]

    asyncio.run(all_calls())


def test_every_route_has_a_lane_or_waits_for_nothing(studies: sb.Studies) -> None:
    schema = make_app(studies).openapi()
    endpoints = [route.endpoint for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    assert len(endpoints) == sum(len(methods) for methods in schema["paths"].values())
    assert all(inspect.iscoroutinefunction(endpoint) for endpoint in endpoints)
