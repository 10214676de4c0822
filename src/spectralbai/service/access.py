"""Who may do what: tokens, stored as hashes in a separate file.

They are not in the database of studies: otherwise everyone who may write there could create tokens, copies of the
database would contain them, and a server that only reads studies would need to write. A file that only its owner can
read avoids this. It is read again whenever it changes, so that a revoked token is invalid from then on.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from spectralbai.checks import check_words
from spectralbai.documents import check_format
from spectralbai.errors import Busy, Conflict, InvalidInput, NotFound

FORMAT = "spectralbai-tokens/3"
REMEDY = "name another file, and create tokens in it with spectralbai serve token create"
DEFAULT = Path("spectralbai-tokens.json")
"""The default file, in the working directory, like the default storage."""
PREFIX = "sbai_"
"""The beginning of every token, so that people and programs that search for secrets recognise them."""

LONGEST_WAIT = 20.0
"""Seconds that a change of the file waits for others."""

LATEST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""Latest time at which a token may end."""

Right = Literal["read-only", "read-write"]


@dataclass(frozen=True)
class Token:
    """What is stored about a token; the token itself is not."""

    id: str
    label: str
    access: Right
    created: str
    sha256: str
    study: str | None = None
    """The only study that it is for; None for all."""
    until: str | None = None
    """When it ends, if it does."""

    @property
    def writes(self) -> bool:
        """Whether its owner may change anything."""
        return self.access == "read-write"

    @property
    def valid(self) -> bool:
        """Whether it has not ended."""
        return self.until is None or datetime.now(UTC) < datetime.fromisoformat(self.until)

    def check(self) -> None:
        """Raises ValueError or TypeError if it cannot have been written here."""
        texts = (self.id, self.label, self.created, self.sha256, self.study or "", self.until or "")
        if self.access not in ("read-only", "read-write") or not all(isinstance(each, str) for each in texts):
            raise ValueError
        if self.until is not None and datetime.fromisoformat(self.until).tzinfo is None:
            raise ValueError


class TokenFile:
    """The tokens in a file; read again when the file has changed."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._seen: tuple[int, ...] | None = None
        self._tokens: tuple[Token, ...] = ()
        self._read()

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens in the file, ended ones too; none if it does not exist."""
        self._read()
        return self._tokens

    @property
    def exists(self) -> bool:
        """Whether there is a file, with tokens or without."""
        self._read()
        return self._seen is not None

    def find(self, secret: str) -> Token | None:
        """Returns what is stored about a token, or None if it is not valid.

        The time that this takes does not depend on how much of a wrong token is right, so that nobody can guess one.
        """
        digest = _digest(secret)
        found = None
        for token in self.tokens:
            if hmac.compare_digest(token.sha256.encode(), digest.encode()) and token.valid:
                found = token
        return found

    def create(self, access: Right, label: str = "", study: str | None = None, until: float | None = None) -> str:
        """Returns a new token; only its hash is stored, so that it cannot be shown again. It may be for one study only,
        and end at a time in seconds since 1970."""
        if len(label) > 100 or not label.isprintable():
            raise InvalidInput(f"a label must be one line of at most 100 printable characters, got {label[:120]!r}")
        end = None
        if until is not None:
            if not time.time() < until < LATEST:
                raise InvalidInput("the end of a token must be in the future, and before the year 10,000")
            end = datetime.fromtimestamp(until, UTC).isoformat(timespec="seconds")
        if study is not None:
            check_words("study", study, 100)
        secret = PREFIX + secrets.token_urlsafe(32)
        with self._changing():
            taken = {token.id for token in self.tokens}
            if label and label in {name for token in self.tokens for name in (token.id, token.label)}:
                raise Conflict(f'there is a token "{label}" already; choose another label, or revoke that one first')
            id_ = next(each for each in iter(lambda: secrets.token_hex(3), "") if each not in taken)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self._write((*self.tokens, Token(id_, label, access, now, _digest(secret), study, end)))
        return secret

    def revoke(self, id_: str) -> Token:
        """Removes the token with that id or label, and returns what was stored about it."""
        self._named(id_)  # before a lock is made, so that a refusal leaves nothing
        with self._changing():
            found = self._named(id_)
            self._write(tuple(token for token in self.tokens if token is not found))
        return found

    def _named(self, id_: str) -> Token:
        """Returns what is stored about the token with that id or label."""
        found = [token for token in self.tokens if id_ in (token.id, token.label)]
        if not found:
            raise NotFound(f'there is no token "{id_}" in {self.file}; spectralbai serve token list shows those there')
        if len(found) > 1:
            raise InvalidInput(f'{len(found)} tokens have the label "{id_}"; give the id of one of them')
        return found[0]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Keeps other processes from changing the file meanwhile: what they wrote in between would be lost.

        The lock is that of an empty SQLite database beside the file. It works on every system, and ends with the
        process, even if that is killed.
        """
        if not self.file.parent.is_dir():
            raise NotFound(f"there is no folder {self.file.parent} for the tokens; make it, or name another file")
        lock = self.file.with_name(self.file.name + ".lock")
        os.close(os.open(lock, os.O_CREAT | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(lock, timeout=LONGEST_WAIT, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise Busy(f"another command is changing {self.file} ({error}); try again") from None
            yield

    def _read(self) -> None:
        try:
            stat = os.stat(self.file)
        except OSError as error:
            self._seen, self._tokens = None, ()
            if isinstance(error, FileNotFoundError) and not os.path.lexists(self.file):
                return
            raise InvalidInput(
                f"{self.file} cannot be read ({error.strerror}); mend it, or name another file"
            ) from None
        seen = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino, stat.st_mode)
        if seen == self._seen:
            return
        self._tokens, self._seen = (), None  # if the file cannot be read, no token is valid
        if os.name == "posix" and stat.st_mode & 0o077:
            raise InvalidInput(f"others than its owner can read {self.file}; run: chmod 600 {self.file}")
        try:
            document = json.loads(self.file.read_text("utf-8"))
            check_format(f"the format of {self.file}", document["format"], FORMAT, REMEDY)
            tokens = tuple(Token(**each) for each in document["tokens"])
            for token in tokens:
                token.check()
        except InvalidInput:
            raise
        except OSError as error:
            raise InvalidInput(
                f"{self.file} cannot be read ({error.strerror}); mend it, or name another file"
            ) from None
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InvalidInput(f"{self.file} is no file of tokens ({FORMAT}); name another one") from None
        self._tokens, self._seen = tokens, seen

    def _write(self, tokens: tuple[Token, ...]) -> None:
        document = {"format": FORMAT, "tokens": [asdict(token) for token in tokens]}
        handle, name = tempfile.mkstemp(dir=self.file.parent, prefix=self.file.name)  # readable by its owner only
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
            os.replace(name, self.file)
        except BaseException:
            os.unlink(name)
            raise


class Access:
    """Who may do what: everyone if there is no file of tokens, otherwise everyone with a valid token.

    Whatever happens to the file later, tokens are needed until the server ends: if all are revoked, or the file cannot
    be read, nobody is let in.
    """

    def __init__(self, tokens: TokenFile | None = None) -> None:
        self._file = tokens if tokens is not None and tokens.exists else None

    @property
    def needed(self) -> bool:
        """Whether a token is needed."""
        return self._file is not None

    def find(self, secret: str | None) -> Token | None:
        """Returns what is stored about a token, or None if it is not valid."""
        if self._file is None or not secret:
            return None
        return self._file.find(secret)

    def still_valid(self, token: Token | None) -> bool:
        """Returns whether a token that was valid when a request began is valid now."""
        try:
            return self._file is None or (token is not None and token.valid and token in self._file.tokens)
        except InvalidInput:  # the file is damaged
            return False


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
