"""How documents for people and programs write numbers that JSON does not have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def plain(value: Any) -> Any:
    """Returns a value as JSON can hold it, the same way in every document.

    Infinite numbers become "inf" and "-inf", as in instance files, and NaN, which stands for "not known", becomes None.
    Arrays and tuples become lists, dataclasses and mappings objects.
    """
    if hasattr(value, "tolist"):  # of numpy, which the command line does not load for every answer
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
