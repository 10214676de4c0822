"""Options and items as people list them: a label, and perhaps more columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from spectralbai.errors import InvalidInput
from spectralbai.inputs.table import CsvTable
from spectralbai.text.wording import in_words

CLUSTER = "cluster"
Role = Literal["option", "item"]


@dataclass(frozen=True)
class Entry:
    """An option or an item."""

    label: str
    value: Any
    """What a score is computed from: the label, or what was given with it."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The other cells of its row, by column."""


@dataclass(frozen=True)
class Entries:
    """All options, or all items, in the order in which they were listed."""

    role: Role
    listed: tuple[Entry, ...]
    names: tuple[str, ...] = ()
    """The columns of the table that they come from."""

    def __post_init__(self) -> None:
        if len(self.listed) < (least := 2 if self.role == "option" else 1):
            raise InvalidInput(f"{in_words(len(self.listed), self.role)} listed; list at least {least}")
        first: dict[str, int] = {}
        for place, label in enumerate(self.labels, 1):
            if not label.strip() or not label.isprintable() or label != label.strip():
                raise InvalidInput(
                    f"a label must be one line that is not blank, without blanks at its ends, got {label[:60]!r} for "
                    f"{self.role} {place}; use a short name, and keep the text in another column"
                )
            if first.setdefault(label, place) != place:
                raise InvalidInput(
                    f'{self.role} {place} has the label "{label}", as {self.role} {first[label]} has; give each its own'
                )

    def __len__(self) -> int:
        return len(self.listed)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.listed)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(entry.label for entry in self.listed)

    @classmethod
    def of(cls, role: Role, given: Any) -> Entries:
        """Returns those in a list of labels, or in a mapping from labels to what a score is computed from."""
        if isinstance(given, Mapping):
            pairs = list(given.items())
        elif isinstance(given, Sequence) and not isinstance(given, str | bytes):
            pairs = [(value if isinstance(value, str) else str(value), value) for value in given]
        else:
            raise InvalidInput(f"`{role}s` must be a list, or a dict of labels and values, got {type(given).__name__}")
        for label, _ in pairs:
            if not isinstance(label, str):
                raise InvalidInput(f"`{role}s` must have labels that are strings, got {label!r}")
        return cls(role, tuple(Entry(label, value) for label, value in pairs))

    @classmethod
    def from_lines(cls, role: Role, text: str) -> Entries:
        """Returns those in a text, a label a line; blank lines are skipped."""
        lines = (line.strip() for line in text.splitlines())
        return cls(role, tuple(Entry(line, line) for line in lines if line))

    @classmethod
    def from_table(cls, role: Role, table: CsvTable) -> Entries:
        """Returns those in a table; the labels are in the column with the name of the role, or in the first."""
        name = role if role in table.columns else table.columns[0]
        rows = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
        return cls(role, tuple(Entry(row[name], row[name], row) for row in rows), tuple(table.columns))

    def with_column(self, name: str, cells: Sequence[str]) -> Entries:
        """Returns these entries with one more column."""
        if isinstance(cells, str) or not isinstance(cells, Sequence) or len(cells) != len(self):
            raise InvalidInput(f"`{name}s` must be a list of {len(self)} names, one for each {self.role}")
        rows = zip(self.listed, cells, strict=True)
        listed = tuple(replace(entry, columns={**entry.columns, name: str(cell)}) for entry, cell in rows)
        return Entries(self.role, listed, (*self.names, name))

    def in_clusters(self) -> dict[str, tuple[Entry, ...]] | None:
        """Returns the items of each cluster, or None if there is no column for it."""
        if CLUSTER not in self.names:
            return None
        clusters: dict[str, list[Entry]] = {}
        for entry in self.listed:
            clusters.setdefault(entry.columns[CLUSTER], []).append(entry)
        return {name: tuple(members) for name, members in clusters.items()}
