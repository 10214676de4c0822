"""What a rule remembers from one block of results to the next, and its JSON form."""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from spectralbai.errors import InvalidInput
from spectralbai.run_lengths import runs_of


@dataclass(frozen=True, eq=False)
class Memory:
    """The memory of a rule: a frozen dataclass of arrays, numbers, words, memories, tuples of these, or None.

    A rule that remembers something defines a subclass with a unique `kind`, the word that identifies it in files.
    Arrays are made read-only. A rule that remembers nothing uses this class itself.
    """

    kind: ClassVar[str] = "nothing"
    _kinds: ClassVar[dict[str, type[Memory]]] = {}

    def __init_subclass__(cls) -> None:
        cls._kinds[cls.kind] = cls

    def __post_init__(self) -> None:
        for value in self.__dict__.values():  # holds only the fields: no property is cached yet
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def as_dict(self) -> dict[str, Any]:
        """Returns the memory in JSON-ready form; floats survive the round trip exactly."""
        return {"kind": self.kind} | {field.name: _as_json(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_dict(cls, d: dict[str, Any]) -> Self:
        """Returns the memory that `as_dict` wrote."""
        kind = cls._kinds.get(d["kind"])
        if kind is None or not issubclass(kind, cls):
            raise InvalidInput(
                f"a state must hold memories of known kinds, got {d['kind']!r}; import the module of the rule "
                "that wrote it"
            )
        return kind(**{field.name: _from_json(d[field.name]) for field in fields(kind)})


Memory._kinds[Memory.kind] = Memory


LARGE = 1000
"""Matrices of floats with more entries than this are written as compressed bytes: as numbers they take ten times the
room, since the tables of pairs of options repeat themselves."""


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.ndim == 2 and value.size > LARGE and value.dtype.kind == "f":
            packed = zlib.compress(value.astype("<f8").tobytes())
            return {"packed": base64.b64encode(packed).decode("ascii"), "shape": list(value.shape)}
        if not value.size:  # an empty list would lose the shape and the type
            return {"array": [], "shape": list(value.shape), "type": value.dtype.str}
        runs = runs_of(value.tolist()) if value.ndim == 1 else None
        if runs is not None:
            return {"runs": [[_as_json(each), times] for each, times in runs]}
        return {"array": [_as_json(each) for each in value.tolist()]}
    if isinstance(value, Memory):
        return value.as_dict()
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        if "kind" in value:
            return Memory.from_dict(value)
        if "packed" in value:
            numbers = np.frombuffer(zlib.decompress(base64.b64decode(value["packed"])), "<f8")
            return numbers.astype(np.float64).reshape(value["shape"])
        if "shape" in value:
            return np.zeros(value["shape"], dtype=value["type"])
        if "runs" in value:
            values, times = zip(*value["runs"], strict=True)
            return np.repeat(np.array([_from_json(each) for each in values]), np.array(times))
        if "array" in value:
            return np.array([_from_json(each) for each in value["array"]])
        return float(value["number"])
    return tuple(map(_from_json, value)) if isinstance(value, list) else value
