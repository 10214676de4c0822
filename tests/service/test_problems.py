"""Refusals: what they say, and how."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

import spectralbai as sb
from spectralbai.service import events, make_app
from spectralbai.service.limits import Limits
from spectralbai.study import export_study
from tests.study.contract import SCORES


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind", "words"),
    [
        (
            "GET",
            "/api/studies/none",
            None,
            404,
            "not-found",
            'the storage holds no study "none"; spectralbai study list shows',
        ),
        ("GET", "/api/nothing", None, 404, "not-found", "there is nothing at /api/nothing"),
        ("PUT", "/api/studies", None, 405, "no-such-method", "PUT is not possible here"),
        ("POST", "/api/studies", {"name": "a"}, 422, "refused", "`instance` is missing; add it"),
        ("POST", "/api/studies", {"nmae": "a", "instance": {}}, 422, "refused", "`name` is missing; add it"),
        ("POST", "/api/studies", {"name": "a", "instance": {}}, 422, "refused", '$ lacks the key "format"'),
        ("POST", "/api/studies/s/ask", {"m": 1}, 422, "refused", "`m` is not known here; remove it, or correct"),
        ("POST", "/api/studies/s/ask", {"a\nb": 1}, 422, "refused", "`a b` is not known here; remove it, or correct"),
        ("POST", "/api/studies/s/tell", {"results": 5}, 422, "refused", "`results`: input should be a valid list"),
        ("POST", "/api/studies/s/tell", {"results": [{}]}, 422, "refused", "`results[0].ticket` is missing; add it"),
        ("POST", "/api/studies/s/withdraw", {"label": "\ud800"}, 404, "not-found", "is no label of an option"),
        ("GET", "/api/studies/s/results?limit=0", None, 422, "refused", "`limit`: input should be greater than"),
    ],
)
def test_a_refusal_is_a_problem_with_one_sentence(
    http: TestClient, studies: sb.Studies, method: str, path: str, body: Any, status: int, kind: str, words: str
) -> None:
    import json

    studies.create("s", SCORES)
    content = None if body is None else json.dumps(body)
    answer = http.request(method, path, content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert (problem["status"], problem["kind"], problem["type"]) == (status, kind, f"urn:spectralbai:{kind}")
    assert words in problem["detail"]


def test_what_is_not_json_is_malformed(http: TestClient) -> None:
    answer = http.post("/api/studies", content="{", headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["kind"]) == (400, "malformed")
    assert answer.json()["detail"].startswith("the body is not JSON: ")


def test_a_busy_database_says_when_to_try_again(http: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(self: object) -> None:
        raise sb.Busy("others keep it locked")

    monkeypatch.setattr(sb.Studies, "list", busy)
    answer = http.get("/api/studies")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["detail"] == "others keep it locked"


def test_an_unexpected_error_shows_no_details(studies: sb.Studies, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object) -> None:
        raise RuntimeError("password")

    monkeypatch.setattr(sb.Studies, "list", broken)
    with TestClient(make_app(studies), base_url="http://localhost", raise_server_exceptions=False) as http:
        answer = http.get("/api/studies")
    assert (answer.status_code, answer.json()["kind"]) == (500, "unexpected")
    assert "password" not in answer.text


def test_a_body_that_is_too_large_is_refused_whatever_its_headers_say(studies: sb.Studies) -> None:
    with TestClient(make_app(studies, limits=Limits(body=1000)), base_url="http://localhost") as http:
        small, large = b'{"token": "a"}', b'{"token": "' + b"a" * 2000 + b'"}'
        json = {"Content-Type": "application/json"}
        assert http.post("/api/login", content=small, headers=json).status_code == 200
        stated = http.post("/api/login", content=large, headers=json)
        chunked = http.post("/api/login", content=iter([large[:900], large[900:]]), headers=json)
    for answer in (stated, chunked):
        assert (answer.status_code, answer.json()["kind"]) == (413, "too-large")
        assert "at most 1,000 bytes" in answer.json()["detail"]


def test_a_body_that_does_not_come_is_not_waited_for(studies: sb.Studies, serve: Callable[..., str]) -> None:
    address = urlsplit(serve(studies, limits=Limits(patience=0.05)))
    with socket.create_connection((str(address.hostname), address.port or 0), timeout=20) as connection:
        head = f"POST /api/login HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
        connection.sendall(f'{head}Content-Length: 100\r\n\r\n{{"token":'.encode())
        answer = connection.recv(65536)
        while b'"kind":"too-slow"' not in answer:
            answer += connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 408")


def test_only_so_many_listen(http: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_LISTENERS", 0)
    answer = http.get("/api/events")
    assert (answer.status_code, answer.json()["kind"]) == (503, "busy")


def test_who_calls_too_often_is_told_when_to_go_on(studies: sb.Studies) -> None:
    with TestClient(make_app(studies, limits=Limits(rate=0.001, burst=2)), base_url="http://localhost") as http:
        statuses = [http.get("/api/session").status_code for _ in range(3)]
        answer = http.get("/api/session")
    assert statuses == [200, 200, 429]
    assert int(answer.headers["retry-after"]) > 500
    assert answer.json()["kind"] == "too-many"


def test_what_would_cost_too_much_is_refused_before_it_is_made(http: TestClient, studies: sb.Studies) -> None:
    study = studies.create("s", SCORES)
    large = {"format": "spectralbai-instance/3", "n_arms": 30_000_000, "edges": [], "R": 1.0, "sigma": 1.0}
    exported = export_study(study)
    exported["events"][0]["study"]["instance"]["n_arms"] = 10**400
    requests: list[tuple[str, dict[str, Any]]] = [
        ("/api/studies", {"name": "large", "instance": large}),
        ("/api/studies/s/join", {"instance": large}),
        ("/api/plan", {"instance": large}),
        ("/api/imports", {"document": exported, "name": "large"}),
        ("/api/instances", {"arms": "label\n" + "a\n" * 30_000, "R": 1.0, "sigma": 1.0}),
        ("/api/studies/s/counts", {"id": "x", "rows": [{"label": "a", "trials": 1_000_000, "successes": 1}]}),
        ("/api/studies/s/counts", {"id": "x", "rows": [{"label": "a", "trials": 10**400, "successes": 1}]}),
    ]
    for path, body in requests:
        answer = http.post(path, json=body)
        assert answer.status_code == 422 and "at most" in answer.json()["detail"], path
