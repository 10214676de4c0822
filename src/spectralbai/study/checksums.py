"""Checksums of rows, so that what somebody or something changed by hand is noticed.

That of an event includes the one before it: they are a chain, and its end is in the row of the study. Those of a
ticket, a result and a state are of their own. They show damage and changes by hand; whoever can write to the database
and knows how they are made can make them anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

OF_EVENT = ("revision", "kind", "time", "by", "body", "bulk")
OF_TICKET = ("id", "arm", "block", "item", "worker", "issued", "expires")
OF_RESULT = ("number", "arm", "outcome", "block", "item")
"""The columns that each checksum is of."""
NUMBERS = frozenset({"issued", "expires", "outcome"})


def chained(before: str, event: Mapping[Any, Any]) -> str:
    """Returns the checksum of the row of an event, after that of the one before; 32 characters."""
    return blake2b(
        repr((before, *(event[name] for name in OF_EVENT))).encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()


def of_columns(row: Mapping[Any, Any], names: tuple[str, ...]) -> int:
    """Returns the checksum of these columns of a row: a number of 63 bits, as fits into a column.

    Databases do not keep the sign of zero, nor all of them whether a number is whole.
    """
    return of_text(repr([row[name] + 0.0 if name in NUMBERS else row[name] for name in names]))


def of_text(text: str) -> int:
    """Returns the checksum of a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1
