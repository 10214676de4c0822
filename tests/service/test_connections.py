"""Slow and many clients: attacks on a service that runs, while a worker goes on."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

import pytest

import spectralbai as sb
from spectralbai.service.connections import Sparingly
from spectralbai.service.limits import Limits
from tests.study.contract import SCORES

HEAD = b"POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
FEW = Limits(rate=0, connections=20, of_address=20)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def connected(stack: ExitStack, url: str, begin: bytes = b"") -> socket.socket:
    """Returns a connection on which something was sent."""
    address = urlsplit(url)
    made = stack.enter_context(closing(socket.create_connection((str(address.hostname), address.port or 0), 20)))
    made.sendall(begin)
    return made


def answer(connection: socket.socket) -> bytes:
    """Returns all that comes until a connection is closed."""
    received = b""
    try:
        while more := connection.recv(65536):
            received += more
    except ConnectionResetError:
        pass
    return received


@pytest.mark.parametrize("half", [b"", b"GET /api/hea", HEAD + b"Content-Length: 99\r\n\r\n{", HEAD + b"x: y\r\n"])
@pytest.mark.parametrize("limits", [FEW, Limits(rate=0, connections=100, of_address=20)])
def test_more_half_requests_than_there_may_be_connections_do_not_stop_a_worker(
    studies: sb.Studies, serve: Callable[..., str], stack: ExitStack, half: bytes, limits: Limits
) -> None:
    url = serve(studies, limits=limits)
    study = sb.Client(url, timeout=20).create("s", SCORES)
    slow = []
    for _ in range(3):
        slow += [connected(stack, url, half) for _ in range(15)]
        assert study.tell(study.ask()[0], 0.5)
    assert answer(slow[0]) == b""  # closed for one that came later


def test_where_every_connection_is_used_others_are_told_to_come_again(
    studies: sb.Studies, serve: Callable[..., str], stack: ExitStack
) -> None:
    url = serve(studies, limits=Limits(connections=3, of_address=3))
    for _ in range(3):
        listener = connected(stack, url, b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert listener.recv(100).startswith(b"HTTP/1.1 200")
    assert answer(connected(stack, url)).startswith(b"HTTP/1.1 503")
    with pytest.raises(sb.Busy):
        sb.Client(url, patience=0).list()
    listener.close()
    assert sb.Client(url).list() == []


def test_a_request_whose_head_does_not_come_in_time_is_not_waited_for(
    studies: sb.Studies, serve: Callable[..., str], stack: ExitStack
) -> None:
    url = serve(studies, limits=Limits(head=0.1))
    first = connected(stack, url, b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n")
    later = connected(stack, url, b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api/")
    try:
        while True:  # a byte now and then does not help
            first.sendall(b"x")
            time.sleep(0.05)
    except OSError:
        pass
    assert answer(later).startswith(b"HTTP/1.1 200")  # and was closed


def test_a_client_that_does_not_read_is_left(
    studies: sb.Studies, serve: Callable[..., str], stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spectralbai.service.routes.about.software", lambda: {"spectralbai": "x" * 50_000_000})
    url = serve(studies, limits=Limits(unread=0.1))
    connection = connected(stack, url, b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    connection.recv(1)
    time.sleep(2)
    assert len(answer(connection)) < 50_000_000


def test_a_log_has_only_the_first_of_many_warnings_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    def record(level: int = logging.WARNING) -> logging.LogRecord:
        return logging.LogRecord("uvicorn.error", level, "", 0, "Invalid HTTP request received.", (), None)

    sparingly = Sparingly()
    assert sum(sparingly.filter(record()) for _ in range(1000)) == Sparingly.MOST
    assert all(sparingly.filter(record(logging.INFO)) for _ in range(10))
    monkeypatch.setattr(Sparingly, "SECONDS", -1.0)
    last = record()
    assert sparingly.filter(last)
    assert last.getMessage() == "Invalid HTTP request received. (995 like those before were left out)"
