"""The body of an event in a document, read value by value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from spectralbai.checks import check_integer, check_number, check_words, is_line
from spectralbai.errors import InvalidInput
from spectralbai.verdict import Verdict

REMEDY = "export the study again"
FAR = 1e18
"""No time is later, in seconds since 1970."""
LARGE = 2**31
"""Whole numbers in a log are below this, as in the columns of a database."""


class Body:
    """The body of an event in a document; each method returns a value, or says what is wrong where.

    There may be hundreds of thousands: what is right is let through before a sentence about it is put together.
    """

    __slots__ = ("_values", "place")

    def __init__(self, place: int, values: Mapping[str, Any]) -> None:
        """`place` is the number of the event in the list of all events."""
        self.place = place
        self._values = values

    @property
    def path(self) -> str:
        return f"$.events[{self.place}]"

    def value(self, name: str, *default: Any) -> Any:
        try:
            return self._values[name]
        except KeyError:
            if default:
                return default[0]
            raise InvalidInput(f"{self.path} lacks {name}; {REMEDY}") from None

    def holds(self, name: str) -> bool:
        """Returns whether there is a value of that name."""
        return self._values.get(name) is not None

    def integer(self, name: str) -> int:
        return self.whole(name, self.value(name))

    def whole(self, name: str, value: Any) -> int:
        if type(value) is int and 0 <= value < LARGE:
            return value
        return check_integer(f"{self.path}.{name}", value, 0, LARGE - 1)

    def number(self, name: str) -> float:
        value = self.value(name)
        if type(value) is float and 0 <= value < FAR:
            return value
        return check_number(f"{self.path}.{name}", value, "a time", low=0.0, strict=False)

    def words(self, name: str, most: int, *, blank: bool = False) -> str:
        value = self.value(name)
        if is_line(value, most) and (blank or value.strip()):
            return value
        return check_words(f"{self.path}.{name}", value, most, blank=blank)

    def object(self, name: str, *default: Any) -> dict[str, Any]:
        value = self.value(name, *default)
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise InvalidInput(f"{self.path}.{name} must be an object; {REMEDY}")
        return value

    def list(self, name: str) -> list[Any]:
        value = self.value(name)
        if not isinstance(value, list):
            raise InvalidInput(f"{self.path}.{name} must be a list; {REMEDY}")
        return value

    def rows(self, name: str, columns: str) -> Iterable[Any]:
        """Returns lists with a value for each of these columns."""
        rows, width = self.list(name), columns.count(",") + 1
        for row in rows:
            if type(row) is not list or len(row) != width:
                raise InvalidInput(f"{self.path}.{name} must hold lists of {columns}; {REMEDY}")
        return rows

    def integers(self, name: str) -> tuple[int, ...]:
        return tuple(self.whole(name, each) for each in self.list(name))

    def ids(self, name: str) -> tuple[str, ...]:
        return tuple(self.id(name, each) for each in self.list(name))

    def id(self, name: str, value: Any) -> str:
        if not is_line(value, 16) or not value:
            raise InvalidInput(
                f"{self.path}.{name}: an id must be up to 16 characters, got {str(value)[:40]!r}; {REMEDY}"
            )
        return str(value)

    def texts(self, name: str) -> dict[str, str]:
        value = self.object(name)
        if not all(is_line(text, 200) for text in value.values()):
            raise InvalidInput(f"{self.path}.{name} must be an object of strings; {REMEDY}")
        return value

    def verdict(self) -> Verdict:
        document = {**self.object("verdict"), "lacking": self._values.get("lacking")}
        try:
            verdict = Verdict.from_dict(document)
            whole = (verdict.arm, verdict.samples, verdict.stopped_at or 0, *(verdict.candidates or ()))
            numbers = (verdict.statistic, verdict.threshold, *(verdict.lacking or ()))
            words = (verdict.consistent, verdict.proved, verdict.doubted)
            right = [
                all(type(number) is int and 0 <= number < LARGE for number in whole),
                all(type(number) in (int, float) and not math.isnan(number) for number in numbers),
                all(type(word) is bool for word in words),
            ]
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            right = [False]
        if not all(right):
            raise InvalidInput(f"{self.path}.verdict is no verdict; {REMEDY}")
        return verdict
