"""Who does something by hand: the user of this process, unless somebody else is named for whom it is done."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_NAMED: ContextVar[str | None] = ContextVar("spectralbai_actor", default=None)


def actor() -> str:
    """Returns who acts, in at most 100 printable characters."""
    name = _NAMED.get()
    if name is None:
        try:
            name = f"user {getpass.getuser()}"
        except (OSError, KeyError, ImportError):  # a user without a name, as in some containers
            name = "a user of this machine"
    return "".join(each if each.isprintable() else "?" for each in name)[:100]


@contextmanager
def acting(name: str) -> Iterator[None]:
    """Names who acts inside the `with` block."""
    token = _NAMED.set(name)
    try:
        yield
    finally:
        _NAMED.reset(token)
