"""What all documents have in common: their format, and how numbers that JSON does not have are written in it."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from spectralbai.errors import InvalidInput

AGAIN = "make it again with this version of spectralbai, or use the one that wrote it"


def check_format(name: str, found: Any, needed: str, remedy: str = AGAIN) -> None:
    """Raises InvalidInput unless a document has the one format of its kind that this version reads."""
    if found != needed:
        raise InvalidInput(f'{name} must be "{needed}", got {reprlib.repr(found)}; {remedy}')


def plain(value: Any) -> Any:
    """Returns a value in a form that JSON can represent, the same in every document.

    Infinite numbers become "inf" and "-inf", as in instance files, and NaN, which means "not known", becomes None.
    Arrays and tuples become lists; dataclasses and mappings become objects.
    """
    if hasattr(value, "tolist"):  # an array of numpy; numpy itself is not imported, so that commands start fast
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value


def number(value: Any) -> float:
    """Returns the number that `plain` wrote as `value`; what it never writes is returned as it is, for a check to
    refuse."""
    if value is None:
        return math.nan
    found: float = float(value) if value in ("inf", "-inf") else value
    return found
