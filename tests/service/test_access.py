"""Who may do what."""

from __future__ import annotations

import multiprocessing
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.client import HTTPConnection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

import spectralbai as sb
from spectralbai.service import Access, access, make_app
from spectralbai.service.access import Token, TokenFile
from spectralbai.service.limits import Limits, Rates
from tests.study.contract import SCORES


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


@pytest.fixture
def guarded(studies: sb.Studies, tokens: TokenFile) -> Iterator[tuple[TestClient, str, str]]:
    """A service that needs tokens, one that only reads and one that writes."""
    reads, writes = tokens.create("read-only", "page"), tokens.create("read-write", "lab")
    studies.create("s", SCORES)
    with TestClient(make_app(studies, Access(tokens)), base_url="http://lab.example") as http:
        yield http, reads, writes


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_file_of_tokens_holds_hashes_only_and_is_its_owners(tokens: TokenFile) -> None:
    secret = tokens.create("read-write", "lab")
    assert secret not in tokens.file.read_text()
    assert stat.S_IMODE(tokens.file.stat().st_mode) == 0o600
    found = TokenFile(tokens.file).find(secret)
    assert found is not None and (found.label, found.access) == ("lab", "read-write")
    assert tokens.find(secret + "x") is None
    assert tokens.find("") is None


def test_changes_of_several_processes_at_one_instant_are_all_kept(tokens: TokenFile) -> None:
    for n in range(4):
        tokens.create("read-only", f"old {n}")
    context = multiprocessing.get_context("fork")
    together = context.Barrier(4)
    processes = [context.Process(target=change, args=(tokens.file, n, together)) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    found = sorted(token.label for token in tokens.tokens)
    assert found == [f"new {n}" for n in range(4)]


def change(file: Path, n: int, together: Barrier) -> None:
    """Creates a token and revokes one, at the time when others do, on a slow disk."""
    own = TokenFile(file)
    write = own._write

    def slowly(tokens: tuple[Token, ...]) -> None:
        time.sleep(0.05)
        write(tokens)

    own._write = slowly  # type: ignore[method-assign]  # in this process only
    together.wait(30)
    own.create("read-only", f"new {n}")
    own.revoke(f"old {n}")


def test_a_change_that_waits_too_long_says_so(tokens: TokenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "LONGEST_WAIT", 0.01)
    with tokens._changing(), pytest.raises(sb.Busy, match=r"another command is changing .*tokens.json .*; try again"):
        TokenFile(tokens.file).create("read-only")
    tokens.create("read-only")


def test_a_file_that_others_can_read_is_refused(tokens: TokenFile) -> None:
    tokens.create("read-only")
    tokens.file.chmod(0o644)
    with pytest.raises(sb.InvalidInput, match="others than its owner can read .*; run: chmod 600"):
        TokenFile(tokens.file)
    tokens.file.chmod(0o600)
    tokens.file.write_text("{}")
    with pytest.raises(sb.InvalidInput, match="is no file of tokens"):
        TokenFile(tokens.file)
    tokens.file.write_text('{"format": "spectralbai-tokens/1", "tokens": []}')
    with pytest.raises(
        sb.InvalidInput, match="must be \"spectralbai-tokens/3\", got 'spectralbai-tokens/1'; name another"
    ):
        TokenFile(tokens.file)


def test_tokens_are_revoked_by_id_or_label(tokens: TokenFile) -> None:
    for label in ("a", "b", ""):
        tokens.create("read-only", label)
    assert tokens.revoke("a").label == "a"
    with pytest.raises(sb.Conflict, match='there is a token "b" already; choose another label'):
        tokens.create("read-write", "b")
    tokens.revoke(tokens.tokens[1].id)
    assert [token.label for token in tokens.tokens] == ["b"]
    with pytest.raises(sb.NotFound, match='there is no token "a"'):
        tokens.revoke("a")


def test_without_a_token_nothing_is_answered(guarded: tuple[TestClient, str, str]) -> None:
    http, _, _ = guarded
    for path in ("/api/studies", "/api/studies/s/status", "/metrics", "/api/events", "/api/studies/s/events"):
        for headers in ({}, bearer("sbai_wrong"), {"Authorization": "Basic eA=="}, {"Cookie": "spectralbai=x"}):
            answer = http.get(path, headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert "SpectralBAI" not in answer.text
    assert http.get("/api/health").status_code == 200
    assert http.get("/").status_code == 200
    assert http.get("/api/session").json() == {"needed": True, "access": "none", "label": None, "study": None}


def test_a_token_that_reads_changes_nothing(guarded: tuple[TestClient, str, str]) -> None:
    http, reads, writes = guarded
    assert http.get("/api/studies/s/status", headers=bearer(reads)).status_code == 200
    assert http.get("/api/session", headers=bearer(reads)).json()["access"] == "read-only"
    for method, path in (("POST", "/api/studies/s/ask"), ("DELETE", "/api/studies/s"), ("POST", "/api/studies/s/stop")):
        answer = http.request(method, path, json={}, headers=bearer(reads))
        assert (answer.status_code, answer.json()["kind"]) == (403, "forbidden")
    plan = {"instance": {**SCORES.as_dict(), "mu": [0.9, 0.5, 0.5, 0.2, 0.2]}}
    assert http.post("/api/plan", json=plan, headers=bearer(reads)).status_code == 200
    assert http.post("/api/studies/s/ask", json={}, headers=bearer(writes)).status_code == 200


def test_a_token_that_is_revoked_is_of_no_use_at_once(guarded: tuple[TestClient, str, str], tokens: TokenFile) -> None:
    http, reads, writes = guarded
    assert http.get("/api/studies", headers=bearer(reads)).status_code == 200
    TokenFile(tokens.file).revoke("page")
    assert http.get("/api/studies", headers=bearer(reads)).status_code == 401
    TokenFile(tokens.file).revoke("lab")
    assert http.get("/api/studies", headers=bearer(writes)).status_code == 401
    assert http.get("/api/studies").status_code == 401
    tokens.file.unlink()
    assert http.get("/api/studies").status_code == 401
    assert Access(tokens).needed is False  # a file that nobody named need not be there


def test_a_file_that_is_not_as_it_should_be_lets_nobody_in_while_the_service_runs(
    guarded: tuple[TestClient, str, str], tokens: TokenFile, tmp_path: Path
) -> None:
    http, reads, _ = guarded
    kept = tmp_path / "kept.json"

    def loop() -> None:
        tokens.file.unlink()
        tokens.file.symlink_to(tokens.file)

    def nowhere() -> None:
        tokens.file.unlink()
        tokens.file.symlink_to(tmp_path / "nowhere")

    def folder() -> None:
        tokens.file.unlink()
        tokens.file.mkdir(0o700)

    harms: list[Callable[[], object]] = [
        lambda: tokens.file.chmod(0o644),
        lambda: tokens.file.write_text("{"),
        lambda: tokens.file.write_text("[" * 100_000),
        lambda: tokens.file.write_text(tokens.file.read_text().replace('"until": null', '"until": 7')),
        lambda: tokens.file.write_text(tokens.file.read_text().replace('"until": null', '"until": "2020-01-01"')),
        loop,
        nowhere,
        folder,
    ]
    for harm in harms:
        tokens.file.rename(kept)
        tokens.file.write_bytes(kept.read_bytes())
        tokens.file.chmod(0o600)
        assert http.get("/api/studies", headers=bearer(reads)).status_code == 200
        harm()
        assert http.get("/api/studies", headers=bearer(reads)).status_code == 401
        with pytest.raises(sb.InvalidInput, match=str(tokens.file)):
            TokenFile(tokens.file)
        if tokens.file.is_dir():
            tokens.file.rmdir()
        else:
            tokens.file.unlink()
        kept.rename(tokens.file)


def test_a_token_ends_at_its_time(studies: sb.Studies, tokens: TokenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tokens.create("read-only", "guest", until=time.time() + 60)
    with TestClient(make_app(studies, Access(tokens))) as http:
        assert http.get("/api/studies", headers=bearer(secret)).status_code == 200
        ended = replace(tokens.tokens[0], until="2020-01-01T00:00:00+00:00")
        tokens._write((ended,))
        assert http.get("/api/studies", headers=bearer(secret)).status_code == 401
        assert not Access(tokens).still_valid(ended)
    for wrong in (time.time() - 1, 1e300, float("nan")):
        with pytest.raises(sb.InvalidInput, match="the end of a token must be in the future"):
            tokens.create("read-only", until=wrong)


def test_a_token_for_one_study_has_nothing_of_others(studies: sb.Studies, tokens: TokenFile) -> None:
    secret = tokens.create("read-write", "lab", "a/b")
    for name in ("a/b", "a", "other"):
        studies.create(name, SCORES)
    with TestClient(make_app(studies, Access(tokens)), headers=bearer(secret)) as http:
        assert [each["name"] for each in http.get("/api/studies").json()["studies"]] == ["a/b"]
        assert http.get("/api/studies/a%2Fb/status").status_code == 200
        assert http.post("/api/studies/a%2Fb/ask", json={}).status_code == 200
        for method, path in (
            ("GET", "/api/studies/a"),
            ("GET", "/api/studies/other/status"),
            ("POST", "/api/studies/a/b/ask"),
            ("DELETE", "/api/studies/other"),
            ("POST", "/api/studies"),
            ("POST", "/api/imports"),
            ("GET", "/metrics"),
            ("GET", "/api/studies/other/events"),
        ):
            answer = http.request(method, path, json={})
            assert (answer.status_code, answer.json()["kind"]) == (403, "forbidden"), path


def test_who_listens_with_a_token_that_is_revoked_hears_no_more(
    studies: sb.Studies, tokens: TokenFile, serve: Callable[..., str]
) -> None:
    reads = tokens.create("read-only", "page")
    study = studies.create("s", SCORES)
    url = urlsplit(serve(studies, Access(tokens), every=0.02))
    connection = HTTPConnection(url.netloc, timeout=20)
    connection.request("GET", "/api/events", headers=bearer(reads))
    answer = connection.getresponse()
    while b'"results":0' not in answer.readline():
        pass
    TokenFile(tokens.file).revoke("page")
    study.tell(study.ask(1)[0], 0.5)
    for line in iter(answer.readline, b""):
        assert b'"results":1' not in line
    connection.close()


def test_a_browser_keeps_the_token_in_a_cookie_that_scripts_cannot_read(
    guarded: tuple[TestClient, str, str],
) -> None:
    http, _, writes = guarded
    assert http.post("/api/login", json={"token": "wrong"}).status_code == 401
    answer = http.post("/api/login", json={"token": writes})
    cookie = answer.headers["set-cookie"]
    assert all(each in cookie for each in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert "Secure" not in cookie
    assert http.get("/api/studies").status_code == 200
    assert http.post("/api/studies/s/ask", json={}, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
    http.post("/api/logout")
    assert http.get("/api/studies").status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://localhost"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://localhost:81"}, 403),
    ],
)
def test_other_sites_cannot_make_a_browser_change_anything(
    http: TestClient, studies: sb.Studies, headers: dict[str, str], status: int
) -> None:
    studies.create("s", SCORES)
    assert http.post("/api/studies/s/ask", json={}, headers=headers).status_code == status
    assert http.get("/api/studies", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:8000", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ],
)
def test_without_tokens_requests_for_other_host_names_are_refused(http: TestClient, host: str, status: int) -> None:
    assert http.get("/api/studies", headers={"Host": host}).status_code == status


def test_every_answer_has_the_headers_that_keep_browsers_safe(http: TestClient) -> None:
    for path in ("/", "/api/studies", "/api/nothing", "/nothing"):
        headers = http.get(path).headers
        assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert http.get("/api/studies").headers["cache-control"] == "no-store"


def test_the_log_has_neither_tokens_nor_queries(
    guarded: tuple[TestClient, str, str], caplog: pytest.LogCaptureFixture
) -> None:
    http, reads, _ = guarded
    with caplog.at_level("INFO"):
        http.get("/api/studies?after=secret", headers=bearer(reads))
        http.post("/api/login", json={"token": reads})
    ours = [record.getMessage() for record in caplog.records if record.name == "spectralbai.service"]
    assert len(ours) == 2 and "/api/studies" in ours[0]
    assert all(reads not in each and "secret" not in each for each in ours)


def test_what_clients_make_up_is_escaped_in_the_log_and_counted_as_one(
    studies: sb.Studies, serve: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    url = urlsplit(serve(studies))
    connection = HTTPConnection(url.netloc, timeout=20)
    with caplog.at_level("INFO", "spectralbai.service"):
        for number in range(3):
            connection.request(f"MADEUP{number}", "/api/%1B[31m", headers={"X-Forwarded-For": "\x1b[31mred"})
            assert connection.getresponse().read()
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    connection.close()
    ours = [record.getMessage() for record in caplog.records if record.name == "spectralbai.service"]
    assert all(each.isprintable() for each in ours)
    assert len([line for line in text.splitlines() if 'method="other"' in line]) == 1 and "MADEUP" not in text


def test_a_bucket_fills_at_the_rate() -> None:
    now = 0.0
    rates = Rates(Limits(rate=2.0, burst=3.0), clock=lambda: now)
    assert [rates.wait("a") for _ in range(4)] == [0, 0, 0, 1]
    assert rates.wait("b") == 0
    now = 1.0
    assert [rates.wait("a") for _ in range(3)] == [0, 0, 1]
    assert [Rates(Limits(rate=0.0)).wait("a") for _ in range(3)] == [0, 0, 0]
