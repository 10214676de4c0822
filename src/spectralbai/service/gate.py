"""The checks that every request passes before it reaches a route: access and limits; also metrics and headers."""

from __future__ import annotations

import logging
import time
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spectralbai.errors import SpectralBAIError
from spectralbai.service.access import Access, Token
from spectralbai.service.limits import Limits, Rates, measured, too_large
from spectralbai.service.metrics import Metrics
from spectralbai.service.problems import problem

LOG = logging.getLogger("spectralbai.service")
COOKIE = "spectralbai"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS = SAFE | {"POST", "PUT", "PATCH", "DELETE"}
"""Methods that metrics count one by one; clients can make up any number of others."""
PUBLIC = frozenset({"/api/health", "/api/ready", "/api/session", "/api/login", "/api/logout", "/api/openapi.json"})
"""Paths that need no token. The files of the page need none either, because they contain no data."""
READING = frozenset({"/api/plan", "/api/instances"})
"""Paths that a read-only token may call although the method is not GET, because they change nothing."""
FILTERED = frozenset({"/api/studies", "/api/events"})
"""Paths whose answers a token for one study limits to that study."""
STUDIES = "/api/studies/"
OF_API = ("/api", "/metrics")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Gate:
    """Passes requests on to an application, or refuses them."""

    def __init__(self, app: ASGIApp, access: Access, limits: Limits, metrics: Metrics) -> None:
        self._app = app
        self._access = access
        self._limits = limits
        self._rates = Rates(limits)
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500
        of_api = scope["path"].startswith(OF_API)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                # Browsers may cache files of the page, but must ask whether they have changed: files of two versions do
                # not work together.
                headers.setdefault("Cache-Control", "no-store" if of_api else "no-cache")
            await send(message)

        shown = scope["path"]
        _keep_slashes(scope)
        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await refusal(scope, receive, send_with_headers)
            else:
                await self._app(scope, measured(receive, self._limits), send_with_headers)
        finally:
            seconds = time.perf_counter() - begun
            route = getattr(scope.get("route"), "path", "") or ("other" if of_api else "page")
            self._metrics.count(scope["method"] if scope["method"] in METHODS else "other", route, status, seconds)
            # A proxy passes on an address that the client may have made up, so it is escaped like the path.
            client = (scope.get("client") or ("-",))[0]
            LOG.info("%r %s %r %d %.1f ms", client, scope["method"], shown[:200], status, 1000 * seconds)

    def _refusal(self, scope: Scope) -> Response | None:
        """Returns the response to a request that is refused; otherwise None, and notes in the scope who makes it."""
        headers = Headers(scope=scope)
        method, path = scope["method"], scope["path"]
        if not self._access.needed and not _is_local(headers.get("host", "")):
            return problem(
                "wrong-host",
                "without tokens the service answers to localhost and addresses only, so that no web page can reach it "
                "under a name of its own; create a token: spectralbai serve token create",
            )
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        bearer = secret.strip() if scheme.lower() == "bearer" else ""
        try:
            token = self._access.find(bearer or HTTPConnection(scope).cookies.get(COOKIE))
        except SpectralBAIError as error:  # the file of tokens is damaged
            LOG.error("%s", error)
            token = None
        scope["spectralbai.token"] = token
        client = f"token {token.id}" if token is not None else str((scope.get("client") or ("-",))[0])
        wait = self._rates.wait(client)
        if wait:
            limit = f"{self._limits.rate:g} requests per second"
            return problem(
                "too-many",
                f"more than {limit}; try again in {wait} s, or tell many results at once",
                {"Retry-After": str(wait)},
            )
        if path.startswith(OF_API) and path not in PUBLIC and self._access.needed:
            refusal = _not_allowed(token, method, path)
            if refusal is not None:
                return refusal
        if method not in SAFE and not bearer and not _same_site(headers):
            return problem(
                "forbidden", "a request that changes something must come from the page of this service itself"
            )
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._limits.body:
            return problem("too-large", too_large(self._limits.body))
        return None


def _not_allowed(token: Token | None, method: str, path: str) -> Response | None:
    if token is None:
        return problem(
            "unauthorized",
            "a token is needed, as Authorization: Bearer TOKEN; spectralbai serve token create makes one",
            {"WWW-Authenticate": "Bearer"},
        )
    if method not in SAFE and not token.writes and path not in READING:
        return problem(
            "forbidden", "this token may only read; spectralbai serve token create --read-write makes one that writes"
        )
    if token.study is not None and not _of_study(token.study, method, path):
        return problem("forbidden", f'this token is for the study "{token.study}" only')
    return None


def _of_study(study: str, method: str, path: str) -> bool:
    """Returns whether a token for one study is good for a request: lists and events have nothing of others then."""
    if path.startswith(STUDIES):
        return unquote(path.removeprefix(STUDIES).split("/")[0]) == study
    return path in READING or (method in SAFE and path in FILTERED)


def _same_site(headers: Headers) -> bool:
    """Returns whether a request comes from a page of this service, or from no page at all.

    Browsers say so in Sec-Fetch-Site, older ones in Origin; programs send neither.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host")


def _is_local(host: str) -> bool:
    """Returns whether a Host header is localhost or an IP address; any other name may belong to an attacker who made it
    lead here (DNS rebinding)."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name == "localhost" or name.endswith(".localhost"):
            return True
        ip_address(name)
    except ValueError:
        return False
    return True


def _keep_slashes(scope: Scope) -> None:
    """Keeps %2F and %25 in the path undecoded, so that the name of a study stays one part of the path."""
    raw = scope.get("raw_path")
    if raw and b"%" in raw:
        text = raw.decode("ascii", "replace").split("?")[0]
        for code in ("%25", "%2F", "%2f"):
            text = text.replace(code, "%25" + code[1:])
        scope["path"] = unquote(text)
