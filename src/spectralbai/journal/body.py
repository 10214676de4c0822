"""The bodies of events in JSON: each field is written and read as its type says.

What is read has the right type then; `journal.replay` checks whether it can have happened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from spectralbai.checks import check_integer, check_number
from spectralbai.documents import plain
from spectralbai.errors import InvalidInput
from spectralbai.verdict import Verdict

REMEDY = "export the study again"
LARGE = 2**31
"""Whole numbers in a log are below this, as in the columns of a database."""

Reader = Callable[[str, Any], Any]
"""Returns the value of the field with that name; raises InvalidInput if it cannot be one."""


def write_fields(thing: Any) -> dict[str, Any]:
    """Returns the fields of a dataclass, JSON-ready; those that have their default are left out."""
    body = {}
    for name, _, default in _fields_of(thing.__class__):
        value = getattr(thing, name)
        if value != default:
            body[name] = _written(value)
    return body


def _written(value: Any) -> Any:
    if isinstance(value, str | int):
        return value
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return [list(row) for row in value]  # there may be a million
    return value.as_dict() if isinstance(value, Verdict) else plain(value)


def read_fields(kind: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of the fields of a dataclass; those with a default may be missing."""
    values: dict[str, Any] = {}
    for name, read, default in _fields_of(kind):
        if name in body:
            values[name] = read(name, body[name])
        elif default is MISSING:
            raise InvalidInput(f"`{name}` is missing")
    return values


@cache
def _fields_of(kind: Any) -> list[tuple[str, Reader, Any]]:
    """Returns the name of each field, what reads it, and its default."""
    hints = get_type_hints(kind)
    return [
        (
            each.name,
            _reader(hints[each.name]),
            each.default if each.default_factory is MISSING else each.default_factory(),
        )
        for each in fields(kind)
    ]


def _reader(kind: Any) -> Reader:
    """Returns what reads values of a type; those of other types than events have are taken as they are."""
    if get_origin(kind) is UnionType:
        return _optional(_reader(get_args(kind)[0]))
    if get_origin(kind) is tuple:
        return _several(_reader(get_args(kind)[0]))
    return _row(kind) if hasattr(kind, "_fields") else READERS.get(kind, lambda name, value: value)


def _optional(read: Reader) -> Reader:
    return lambda name, value: None if value is None else read(name, value)


def _several(read: Reader) -> Reader:
    return lambda name, value: tuple([read(name, each) for each in _of_kind(list, "a list", name, value)])


def _row(kind: Any) -> Reader:
    """Returns what reads a named tuple, written as a list."""
    columns = [(each, _reader(hint)) for each, hint in get_type_hints(kind).items()]

    def read_row(name: str, value: Any) -> Any:
        if type(value) is not list or len(value) != len(columns):
            raise InvalidInput(f"`{name}` must hold lists of {', '.join(kind._fields)}")
        return kind._make([read(column, each) for (column, read), each in zip(columns, value, strict=True)])

    return read_row


def _of_kind(kind: type, what: str, name: str, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    raise InvalidInput(f"`{name}` must be {what}, got {str(value)[:40]!r}")


# There may be a million values: those that are right are let through at once.


def text(name: str, value: Any) -> str:
    return value if type(value) is str else str(_of_kind(str, "text", name, value))


def whole(name: str, value: Any) -> int:
    return value if type(value) is int and 0 <= value < LARGE else check_integer(name, value, 0, LARGE - 1)


def number(name: str, value: Any) -> float:
    if type(value) is float and -math.inf < value < math.inf:
        return value
    return check_number(name, value, "a finite number", low=-math.inf, strict=True)


def _object(name: str, value: Any) -> dict[str, Any]:
    return {text(name, key): each for key, each in _of_kind(dict, "an object", name, value).items()}


def _texts(name: str, value: Any) -> dict[str, str]:
    return {key: text(name, each) for key, each in _object(name, value).items()}


def _verdict(name: str, value: Any) -> Verdict:
    try:
        verdict = Verdict.from_dict(value)
        counts = (verdict.arm, verdict.samples, verdict.stopped_at or 0, *(verdict.candidates or ()))
        numbers = (verdict.statistic, verdict.threshold, *(verdict.lacking or ()))
        words = (verdict.consistent, verdict.proved, verdict.doubted)
        right = [
            all(type(each) is int and 0 <= each < LARGE for each in counts),
            all(type(each) in (int, float) and not math.isnan(each) for each in numbers),
            all(type(each) is bool for each in words),
        ]
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        right = [False]
    if not all(right):
        raise InvalidInput(f"`{name}` is no verdict")
    return verdict


READERS: dict[Any, Reader] = {
    int: whole,
    float: number,
    str: text,
    dict[str, Any]: _object,
    dict[str, str]: _texts,
    Verdict: _verdict,
}
"""How values are read, by their type."""
