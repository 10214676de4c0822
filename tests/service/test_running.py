"""Services that run: events, results told together, clients whose connection is lost, several services at once."""

from __future__ import annotations

import asyncio
import http.client
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

import spectralbai as sb
import spectralbai.report
from spectralbai.client import transport
from spectralbai.service import make_app
from spectralbai.service.events import RETRY, Beat, Events
from spectralbai.service.lanes import lanes
from spectralbai.service.limits import Limits
from spectralbai.service.sample import NAME, sample_instance, visitors
from spectralbai.service.shelf import Shelf
from spectralbai.service.tells import Tells
from tests.service.running import running
from tests.study.contract import SCORES, SIX, SLOW, drive


def events(url: str, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the kind and the data of server-sent events."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    kind = ""
    try:
        while line := answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "retry":
                assert int(value) == RETRY
            elif name == "data":
                yield kind, json.loads(value)
    finally:
        answer.close()
        connection.close()


def test_listeners_are_told_of_every_change_and_of_the_end(studies: sb.Studies, serve: Callable[..., str]) -> None:
    url = serve(studies, every=0.02)
    study = studies.create("s", SLOW)
    studies.create("other", SLOW)
    heard = events(url, "/api/studies/s/events")
    everything = events(url, "/api/events")
    first = next(heard)[1]
    assert first == {"study": "s", "results": 0, "state": "running", "revision": 2, "folded": 2, "pending": 0}
    assert [next(everything)[1]["study"] for _ in range(2)] == ["s", "other"]
    ticket = study.ask()[0]
    assert next(heard)[1] == first | {"pending": 1, "revision": 3}
    study.abandon(ticket)
    assert next(heard)[1] == first | {"revision": 4}
    study.tell(ticket, 0.5)
    assert next(heard)[1]["results"] == 1
    study.stop()
    assert next(each for _, each in heard if each["state"] == "ended")["results"] == 1
    study.delete()
    assert next(heard) == ("deleted", {"study": "s"})
    assert list(heard) == []
    assert any(kind == "deleted" for kind, _ in everything)


def test_a_change_while_a_listener_begins_is_not_missed(studies: sb.Studies, monkeypatch: pytest.MonkeyPatch) -> None:
    study = studies.create("s", SLOW, 0.05)
    ticket = study.ask()[0]

    async def listen() -> bytes:
        listeners = Events(studies, every=0.01, heartbeat=5.0)
        first, second = (listeners.stream("s", lambda: True) for _ in range(2))
        await anext(first), await anext(first)
        change = asyncio.ensure_future(anext(first))  # from now on changes are looked for
        read = listeners._beats

        async def slowly() -> list[Beat]:
            beats = await read()
            if asyncio.current_task() is not listeners._watching:
                study.tell(ticket, 0.5)
                await change
            return beats

        monkeypatch.setattr(listeners, "_beats", slowly)
        await anext(second), await anext(second)
        heard = await anext(second)
        listeners.close()
        return heard

    assert b'"results":1' in asyncio.run(listen())


def test_a_service_that_ends_ends_its_events(studies: sb.Studies) -> None:
    studies.create("s", SLOW)
    with running() as start:
        heard = events(start(studies), "/api/events")
        assert next(heard)[1]["study"] == "s"
    assert list(heard) == []


def telling(study: sb.Study, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], threading.Event, threading.Event]:
    """Makes tells wait until the last event; returns the sizes of what is told together, and an event that says that
    one has begun."""
    sizes: list[int] = []
    entered, go_on = threading.Event(), threading.Event()
    whole = sb.Study.tell_batches

    def slow(self: sb.Study, batches: Any, on_recorded: Any = None) -> Any:
        sizes.append(len(batches))
        entered.set()
        assert go_on.wait(20)
        return whole(self, batches, on_recorded)

    monkeypatch.setattr(sb.Study, "tell_batches", slow)
    return sizes, entered, go_on


def test_results_that_come_at_once_are_told_together_each_by_itself(
    studies: sb.Studies, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.create("s", SLOW)
    tickets = study.ask(4) + study.ask(4) + study.ask(4)
    sizes, entered, go_on = telling(study, monkeypatch)

    async def all_tells() -> list[int | BaseException]:
        tells = Tells(Shelf(studies), lanes()["tell"])
        first = asyncio.create_task(tells.tell("s", [(tickets[0].id, 0.5)]))
        assert await asyncio.to_thread(entered.wait, 20)
        good = tells.tell("s", [(tickets[1].id, 0.5), (tickets[2].id, 0.5)])
        unknown = tells.tell("s", [(tickets[3].id, 0.5), ("unknown", 0.5)])
        twice = [tells.tell("s", [(tickets[4].id, 0.25)]) for _ in range(2)]
        rest = asyncio.gather(good, unknown, *twice, return_exceptions=True)
        while len(tells._waiting["s"]) < 4:
            await asyncio.sleep(0)
        go_on.set()
        answers = [await first, *await rest]
        assert tells._waiting == {}
        return answers

    first, good, unknown, *twice = asyncio.run(all_tells())
    assert (first, good, twice) == (1, 2, [1, 0])
    assert isinstance(unknown, sb.NotFound) and '"unknown" is no ticket' in str(unknown)
    assert sizes == [1, 4]
    assert {each.ticket for each in study.records().observations} == {tickets[i].id for i in (0, 1, 2, 4)}


def test_who_tells_first_waits_for_the_rules_and_the_others_do_not(
    studies: sb.Studies, monkeypatch: pytest.MonkeyPatch
) -> None:
    tickets = studies.create("s", SLOW).ask(3)
    read, whole = threading.Event(), sb.Study.tell_batches

    def slow(self: sb.Study, batches: Any, on_recorded: Any = None) -> Any:
        answers = whole(self, batches, on_recorded)
        assert read.wait(20)
        return answers

    monkeypatch.setattr(sb.Study, "tell_batches", slow)

    async def both() -> None:
        tells = Tells(Shelf(studies), lanes()["tell"])
        first, second, third = (asyncio.create_task(tells.tell("s", [(each.id, 0.5)])) for each in tickets)
        assert await second == 1 and await third == 1 and not first.done()
        read.set()
        assert await first == 1

    asyncio.run(both())


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError(), KeyError("x")])
def test_an_exception_while_telling_together_is_said_to_all_and_the_study_stays_usable(
    studies: sb.Studies, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    tickets = studies.create("s", SLOW).ask(3)

    async def failing() -> None:
        tells = Tells(Shelf(studies), lanes()["tell"])

        async def fail(*_: Any) -> None:
            raise error

        with monkeypatch.context() as patched:
            patched.setattr("spectralbai.service.lanes.run_sync", lambda *_, **__: fail())
            answers = await asyncio.gather(
                *(tells.tell("s", [(each.id, 0.5)]) for each in tickets), return_exceptions=True
            )
        assert {type(each) for each in answers} == {sb.Busy if isinstance(error, RuntimeError) else type(error)}
        assert await tells.tell("s", [(each.id, 0.5) for each in tickets]) == 3

    asyncio.run(failing())


def test_what_fails_for_all_is_said_to_all(studies: sb.Studies) -> None:
    tells = Tells(Shelf(studies), lanes()["tell"])
    for _ in range(2):
        with pytest.raises(sb.NotFound, match='holds no study "none"'):
            asyncio.run(tells.tell("none", [("a", 0.5)]))
    assert tells._waiting == {}


def test_a_study_created_anew_under_its_name_is_found(studies: sb.Studies) -> None:
    shelf = Shelf(studies)
    studies.create("s", SCORES)
    assert shelf.use("s", lambda study: study.status().results) == 0
    studies.delete("s")
    with pytest.raises(sb.NotFound):
        shelf.use("s", lambda study: study.status())
    study = studies.create("s", SCORES)
    study.tell(study.ask()[0], 0.5)
    assert shelf.use("s", lambda study: study.status().results) == 1


def test_two_services_on_one_database_are_one(postgresql: str, serve: Callable[..., str]) -> None:
    with sb.Studies(postgresql) as one, sb.Studies(postgresql) as two:
        first, second = sb.Client(serve(one)), sb.Client(serve(two))
        study, same = first.create("s", SCORES), second.open("s")
        tickets = study.ask(3, key="a")
        assert [each.id for each in same.ask(3, key="a")] == [each.id for each in tickets]
        with ThreadPoolExecutor(6) as pool:
            told = [pool.submit(each.tell, ticket, 0.5) for ticket in tickets for each in (study, same)]
            assert sum(each.result() for each in told) == len(tickets)
        assert same.status().results == len(tickets)
        assert study.join(SIX).startswith("1 option joined")
        assert same.status().arms[-1].label == "coldest"
        assert same.stop() is True
        assert study.ask() == []
        second.delete("s")
        with pytest.raises(sb.NotFound):
            study.status()


class Loses:
    """A connection whose answers are lost now and then: the request was done."""

    lost = 0

    def __init__(self, kind: type[http.client.HTTPConnection], every: int) -> None:
        self._kind, self._every, self._count = kind, every, 0

    def __call__(self, *args: Any, **kwargs: Any) -> http.client.HTTPConnection:
        outer = self
        connection = self._kind(*args, **kwargs)
        whole = connection.getresponse

        def getresponse() -> http.client.HTTPResponse:
            answer = whole()
            outer._count += 1
            if outer._count % outer._every == 0:
                answer.read()
                outer.lost += 1
                raise ConnectionResetError("lost")
            return answer

        connection.getresponse = getresponse  # type: ignore[method-assign]  # a stand-in for a bad line
        return connection


def test_nothing_is_done_twice_where_answers_are_lost(
    studies: sb.Studies, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = serve(studies)
    line = Loses(http.client.HTTPConnection, 2)
    monkeypatch.setattr(http.client, "HTTPConnection", line)
    monkeypatch.setattr(transport, "PAUSE", 0.0001)
    client = sb.Client(url)
    for _ in range(2):
        study = client.create("s", SCORES)
        tickets = study.ask(3)
        for ticket in tickets:
            study.tell(ticket, 0.5)
        assert study.add(["plain"], [0.5], "pilot") in (0, 1)
        study.join(SIX)
        study.stop()
        local = studies.open("s")
        records = local.records()
        assert sorted(each.ticket or "" for each in records.observations) == ["", *sorted(each.id for each in tickets)]
        assert len(records.tickets) == len(tickets)
        assert local.status().state == "ended"
        client.import_(study.export(), "copy")
        study.delete()
        client.delete("copy")
        assert client.list() == []
    assert line.lost > 10


def test_a_client_waits_as_long_as_the_service_says(
    studies: sb.Studies, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, sleep = sb.Client(serve(studies, limits=Limits(rate=1.0, burst=1.0))), time.sleep
    waits: list[float] = []

    def waiting(seconds: float) -> None:
        waits.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", waiting)
    assert client.list() == client.list() == []
    assert max(waits) == 1.0


def test_a_service_that_is_not_there_is_busy(studies: sb.Studies) -> None:
    with running() as start:
        url = start(studies)
    with pytest.raises(sb.Busy, match=f"{url} cannot be reached .*; once it can, do the same again"):
        sb.Client(url, patience=0.2).list()


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x", "http://", "", None, "http://a:99999", "http://u:p@h"])
def test_an_invalid_address_is_refused(url: Any) -> None:
    with pytest.raises(sb.InvalidInput, match="`url` must"):
        sb.Client(url)


def test_a_client_of_something_else_than_a_service_says_so(studies: sb.Studies, serve: Callable[..., str]) -> None:
    url = serve(studies)
    with pytest.raises(sb.NotFound, match="there is nothing at /elsewhere/api/studies"):
        sb.Client(f"{url}/elsewhere").list()


@pytest.mark.parametrize("answer", ["<p>Welcome!</p>", "[]"])
def test_what_another_server_says_is_no_answer(answer: str, tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "studies").write_text(answer)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.handle_request).start()
        with pytest.raises(sb.StorageError, match="status 200, and not as a service of spectralbai does; give the"):
            sb.Client(f"http://127.0.0.1:{server.server_port}").list()


@pytest.mark.parametrize("text, seconds", [("7", 7.0), ("900", 60.0), ("nan", 0.0), ("-1", 0.0), (None, 0.0)])
def test_only_whole_seconds_are_waited_for_and_at_most_a_minute(text: str | None, seconds: float) -> None:
    assert transport._seconds(text) == seconds


def test_a_study_may_have_the_name_of_a_page(studies: sb.Studies, serve: Callable[..., str]) -> None:
    client = sb.Client(serve(studies))
    client.create("start.html", SCORES)
    study = client.open("start.html")
    assert study.definition.delta == 0.05 and study.report().as_html().startswith("<!DOCTYPE html>")
    with pytest.raises(sb.InvalidInput, match="`key` must be one line of 1 to 200 ASCII characters, got 'two.nlines'"):
        study.ask(key="two\nlines")
    study.delete()
    assert client.list() == []


def test_a_status_of_a_service_of_another_version_is_refused(studies: sb.Studies) -> None:
    document = studies.create("s", SCORES).status().as_dict()
    sentence = "must be \"spectralbai-status/3\", got 'spectralbai-status/2'; install the version that the service has"
    with pytest.raises(sb.InvalidInput, match=sentence):
        sb.report.Status.from_dict(document | {"format": "spectralbai-status/2"})


def test_a_status_is_the_same_here_and_there(studies: sb.Studies, serve: Callable[..., str]) -> None:
    study = studies.create("s", SCORES, 0.05, budget=1000)
    drive(study, 40)
    there = sb.Client(serve(studies)).open("s").status("cold").as_dict()
    here = study.status("cold").as_dict()
    assert {**there, "time": ""} == {**here, "time": ""}


def test_metrics_count_requests_studies_and_results(studies: sb.Studies) -> None:
    drive(studies.create("done", SCORES, 0.05))
    studies.create('quoted "name"', SLOW).stop()
    with TestClient(make_app(studies), base_url="http://localhost") as http_:
        http_.get("/api/studies/done/status")
        http_.get("/api/studies/none/status")
        http_.get("/api/nothing")
        text = http_.get("/metrics").text
    lines = text.splitlines()
    assert 'spectralbai_studies{state="decided"} 1' in lines
    assert 'spectralbai_studies{state="ended"} 1' in lines
    route = 'route="/api/studies/{name}/status"'
    assert f'spectralbai_requests_total{{method="GET",{route},status="200"}} 1' in lines
    assert f'spectralbai_requests_total{{method="GET",{route},status="404"}} 1' in lines
    assert f'spectralbai_request_seconds_bucket{{{route},le="+Inf"}} 2' in lines
    results = sum(each.results for each in studies.list())
    assert f"spectralbai_results {results}" in lines


def test_the_sample_study_moves_by_itself(studies: sb.Studies) -> None:
    assert len(sample_instance().labels) == 12
    for _ in range(2):  # the second time it is there already
        before = studies.open(NAME).status().results if studies.list() else 0
        with visitors(studies, pause=0.001):
            while studies.list()[0].results < before + 20:
                pass
    with visitors(None):
        pass
