"""What documents have in common: their format, numbers that JSON does not have, columns, and versions of software."""

from __future__ import annotations

import math
import platform
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any, TypeVar

from spectralbai.errors import InvalidInput

T = TypeVar("T")

AGAIN = "make it again with this version of spectralbai, or use the one that wrote it"


def check_format(name: str, found: Any, needed: str, remedy: str = AGAIN) -> None:
    """Raises InvalidInput unless a document has the one format of its kind that this version reads."""
    if not isinstance(found, str) or found != needed:
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


class Rows(list[T]):
    """A list of dataclasses of one kind."""

    def __init__(self, kind: type[T], rows: Iterable[T] = ()) -> None:
        super().__init__(rows)
        self._names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # a dataclass

    def columns(self) -> dict[str, list[Any]]:
        """Returns a list for each field, all of one length, as tables are made of: `pandas.DataFrame(rows.columns())`.

        Examples:
            >>> from spectralbai.documents import Rows
            >>> from spectralbai.simulate import Spread
            >>> sorted(Rows(Spread, [Spread.of([10, 30]), Spread.of([40])]).columns().items())[1:3]
            [('mean', [20.0, 40.0]), ('median', [20.0, 40.0])]
        """
        return {name: [getattr(row, name) for row in self] for name in self._names}


def software(*more: str) -> dict[str, str]:
    """Returns the versions of Python, this package, its numerical libraries and `more`, and the type of machine."""
    packages = {name: version(name) for name in ("spectralbai", "numpy", "scipy", "numba", *more)}
    return {"python": platform.python_version(), **packages, "machine": platform.machine()}
