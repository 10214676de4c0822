"""Rows of one kind, which can be turned into columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


class Rows(list[T]):
    """A list of dataclasses of one kind."""

    def __init__(self, kind: type[T], rows: Iterable[T] = ()) -> None:
        super().__init__(rows)
        self._names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # a dataclass

    def columns(self) -> dict[str, list[Any]]:
        """Returns a list for each field, all of one length, as tables are made of: `pandas.DataFrame(rows.columns())`.

        Examples:
            >>> from spectralbai.rows import Rows
            >>> from spectralbai.simulate import Spread
            >>> sorted(Rows(Spread, [Spread.of([10, 30]), Spread.of([40])]).columns().items())[1:3]
            [('mean', [20.0, 40.0]), ('median', [20.0, 40.0])]
        """
        return {name: [getattr(row, name) for row in self] for name in self._names}
