"""Requests to a service: JSON over HTTP. Requests whose answer may have been lost are repeated, and errors become
exceptions."""

from __future__ import annotations

import http.client
import json
import random
import secrets
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from spectralbai.errors import Busy, Conflict, Damaged, InvalidInput, NotFound, SpectralBAIError, StorageError

KINDS: dict[str, type[SpectralBAIError]] = {
    "refused": InvalidInput,
    "not-found": NotFound,
    "conflict": Conflict,
    "busy": Busy,
    "broken": StorageError,
    "damaged": Damaged,
    "unexpected": StorageError,
}
"""The exception to raise for each kind of problem; for kinds not listed it is `InvalidInput`."""
LATER = (429, 503)
"""HTTP statuses for which a request is repeated, because it may succeed a little later."""
PAUSE, LONGEST_PAUSE = 0.05, 5.0
"""Seconds before the first repetition, and the longest pause between two; each pause is twice the one before."""


class Transport:
    """The connections to a service, one for each thread."""

    def __init__(self, url: str, token: str | None, timeout: float, patience: float) -> None:
        parts = urlsplit(url if isinstance(url, str) else "")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise InvalidInput(f"`url` must be the address of a service, such as http://127.0.0.1:8000, got {url!r}")
        if token is not None and (
            not isinstance(token, str) or not token.isascii() or not token.isprintable() or " " in token
        ):
            raise InvalidInput("`token` must be a token that spectralbai serve token create printed")
        try:
            self._port = parts.port
        except ValueError:
            raise InvalidInput(f"`url` must have a port up to 65535, got {url!r}") from None
        self.url = url.rstrip("/")
        self._secure = parts.scheme == "https"
        self._host, self._prefix = parts.hostname, parts.path.rstrip("/")
        self._token = token
        self._timeout, self._patience = timeout, patience
        self._local = threading.local()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
        page: bool = False,
    ) -> Any:
        """Returns the answer to a request: what its JSON says, or its text if it is a page; everything that is called
        may be called twice.

        `key` marks the request, and its repetitions, as the same one. Without it, only the repetitions are marked: they
        may find that the first was successful after all. So may a repetition of a deletion, which then finds nothing.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        target = self._prefix + path + (f"?{urlencode(given)}" if given else "")
        headers = {"Accept": "application/json, */*", "User-Agent": "spectralbai"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if key is not None:
            headers["Idempotency-Key"] = key
        content = None
        if body is not None:
            content = _as_json(body)
            headers["Content-Type"] = "application/json"
        deadline, pause, repeated = time.monotonic() + self._patience, PAUSE, False
        while True:
            error: Exception
            after = 0.0
            try:
                status, answered, answer = self._exchange(method, target, content, headers)
            except (OSError, http.client.HTTPException) as trouble:
                error = Busy(f"{self.url} cannot be reached ({_reason(trouble)}); once it can, do the same again")
                if isinstance(trouble, ssl.SSLError):
                    raise error from None
            else:
                if method == "DELETE" and (status < 400 or (repeated and status == 404)):
                    return None
                if status < 400:
                    return answer.decode(errors="replace") if page else _document(self.url, status, answer)
                error = _error(self.url, status, answer)
                if status not in LATER or not (isinstance(error, Busy) or status == 429):
                    raise error
                after = _seconds(answered.get("Retry-After"))
            pause = min(2 * pause, LONGEST_PAUSE)
            wait = max(after, pause * random.uniform(0.5, 1.0))
            if time.monotonic() + wait > deadline:
                raise error
            time.sleep(wait)
            repeated = True
            headers.setdefault("Idempotency-Key", secrets.token_hex(16))

    def close(self) -> None:
        """Closes the connection of this thread; those of others close with their threads."""
        self._local.kept = None

    def _exchange(
        self, method: str, target: str, content: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        kept = getattr(self._local, "kept", None)
        if kept is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            kept = self._local.kept = _Kept(kind(self._host, self._port, timeout=self._timeout))
        connection = kept.connection
        try:
            connection.request(method, target, content, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except BaseException:
            self.close()
            raise


class _Kept:
    """A connection that is closed when nothing refers to it any more, for example when its thread ends."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


def _as_json(body: Any) -> bytes:
    try:
        return json.dumps(body, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"this cannot be sent as JSON: {error}") from None


def _plain(value: Any) -> Any:
    """Returns a number of numpy as a number of Python."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return value.item()
    raise TypeError(f"{type(value).__name__} is neither a number nor text")


def _document(url: str, status: int, answer: bytes) -> Any:
    """Returns the JSON object of an answer."""
    try:
        document = json.loads(answer)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise StorageError(f"{_not_as_expected(url, status)}; give the address of one")
    return document


def _not_as_expected(url: str, status: int) -> str:
    return f"{url} answered with HTTP status {status}, and not as a service of spectralbai does"


def _error(url: str, status: int, answer: bytes) -> SpectralBAIError:
    """Returns the exception for an error response; one that is not in the service's format comes from something in
    between, such as a proxy."""
    try:
        problem = json.loads(answer)
        kind, detail = str(problem["kind"]), str(problem["detail"])
    except (ValueError, TypeError, KeyError):
        words = _not_as_expected(url, status)
        return Busy(words) if status in (502, 503, 504) else StorageError(words)
    return KINDS.get(kind, InvalidInput)(detail)


def _reason(trouble: Exception) -> str:
    return " ".join(str(getattr(trouble, "strerror", None) or trouble).split()) or type(trouble).__name__


def _seconds(text: str | None) -> float:
    """Returns the whole seconds of a header; 0 if it says something else."""
    return min(float(text), 60.0) if text is not None and text.isdecimal() else 0.0
