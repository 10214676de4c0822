"""Tables of outcomes that are known already: options tried on items, and what it is worth to try them on the same."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectralbai.arrays import Matrix, Vector
from spectralbai.errors import InvalidInput, NotFound, about
from spectralbai.inputs.outcomes import Outcomes, outcomes_from
from spectralbai.inputs.table import CsvTable
from spectralbai.text.decimals import percent
from spectralbai.text.wording import in_words

LITTLE = 0.1
"""A share of the variance by which nobody would choose how to try options."""


@dataclass(frozen=True)
class Pairing:
    """What it is worth to try options on the same items, according to a table."""

    best: str
    """The option with the largest mean."""
    runner_up: str
    """The option with the largest mean of the others."""
    ratio: float
    """The variance over items of the difference between these two, over the sum of their variances: what remains of the
    variance if both are tried on the same items. nan if neither varies."""
    correlation: float
    """The mean correlation over items of two options that vary; nan if there are no two."""
    n_items: int
    """The items that this was computed from."""

    def described(self) -> str:
        """Returns what pairing is worth, as sentences for people."""
        pair = f'The best option is "{self.best}", the next "{self.runner_up}".'
        if math.isnan(self.ratio):
            return f"{pair} Neither varies from item to item: one item tells them apart."
        if self.ratio < 1e-12:
            return f"{pair} Their difference is the same on every item: one item tells them apart."
        share = f"{pair} On the same items their difference has {percent(self.ratio)} of the variance on different ones"
        if self.ratio > 1 + LITTLE:
            return f"{share}: better try options on different items."
        if self.ratio > 1 - LITTLE:
            return f"{share}: it hardly matters whether options are tried on the same items."
        fewer = f"{1 / self.ratio:,.{0 if self.ratio < LITTLE else 1}f}"
        return f"{share}: tried on the same items, options need up to {fewer} times fewer trials."


@dataclass(frozen=True, eq=False, init=False)
class Table:
    """Outcomes of options on items, such as scores of prompts on questions or yields of conditions on substrates.

    Larger outcomes are better. Pairs of an option and an item may be missing.

    Examples:
        >>> import spectralbai as sb
        >>> table = sb.Table([[0.9, 0.5, 0.7], [0.8, 0.4, 0.5]], options=["new", "old"], items=["q1", "q2", "q3"])
        >>> table.means.round(2).tolist()
        [0.7, 0.57]
        >>> table.described()
        '2 options on 3 items'
        >>> round(table.pairing.ratio, 3)
        0.04
        >>> sb.Table([[0.9, None, 0.7], [0.8, 0.4, 0.5]]).described()
        '2 options on 3 items; 1 of 6 pairs is missing: option "0", item "1"'
    """

    outcomes: Matrix
    """Shape (n_options, n_items), nan for pairs that are missing. Read-only."""
    options: tuple[str, ...]
    """Unique names of the options; "0", "1", ... unless given."""
    items: tuple[str, ...]
    """Unique names of the items; "0", "1", ... unless given."""
    clusters: tuple[str, ...] | None
    """The name of the cluster of each item, such as the document of a question; None if items are not in clusters."""

    def __init__(
        self,
        outcomes: NDArray[Any] | Sequence[Sequence[float | None]],
        options: Sequence[str] | None = None,
        items: Sequence[str] | None = None,
        clusters: Sequence[str] | None = None,
    ) -> None:
        matrix = _checked(outcomes)
        n_options, n_items = matrix.shape
        names = (
            ("outcomes", matrix),
            ("options", _labels("options", options, n_options, "row")),
            ("items", _labels("items", items, n_items, "column")),
            ("clusters", None if clusters is None else _names("clusters", clusters, n_items, "column")),
        )
        for name, value in names:
            object.__setattr__(self, name, value)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        option: str | None = None,
        item: str | None = None,
        outcome: str | None = None,
        cluster: str | None = None,
    ) -> Table:
        """Returns the table in a CSV file, of either form; error messages name the file and the line.

        The long form has a row for each pair, with columns option, item and outcome, and perhaps cluster; a file where
        they have other names needs these as arguments. Any other file is wide: a row for each option, whose name is in
        the first column, and a column for each item. Empty cells, and pairs without a row, are missing.

        Examples:
            >>> from pathlib import Path
            >>> import spectralbai as sb
            >>> rows = ["model,question,score", "a,q1,0.9", "a,q2,0.6", "b,q1,0.7"]
            >>> length = Path("scores.csv").write_text("\\n".join(rows))
            >>> table = sb.Table.from_csv("scores.csv", option="model", item="question", outcome="score")
            >>> table.outcomes.tolist(), table.missing
            ([[0.9, 0.6], [0.7, nan]], (('b', 'q2'),))
            >>> length = Path("wide.csv").write_text("model,q1,q2\\na,0.9,0.6\\nb,0.7,\\n")
            >>> sb.Table.from_csv("wide.csv").missing
            (('b', 'q2'),)
        """
        with about(path):
            outcomes = outcomes_from(CsvTable.from_text(_text(path)), option, item, outcome, cluster)
            if len(outcomes.options) < 2:
                raise InvalidInput(f'there is one option, "{outcomes.options[0]}"; a choice needs at least two')
            return cls(*outcomes)

    @property
    def n_options(self) -> int:
        return len(self.options)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def means(self) -> Vector:
        """The mean outcome of each option over all items: (n_options,); nan for options with a missing pair."""
        means: Vector = self.outcomes.mean(axis=1)
        return means

    @cached_property
    def missing(self) -> tuple[tuple[str, str], ...]:
        """The pairs (option, item) without an outcome."""
        return tuple((self.options[a], self.items[j]) for a, j in np.argwhere(np.isnan(self.outcomes)).tolist())

    def described(self) -> str:
        """Returns the size of the table and what is missing, for people."""
        size = f"{self.n_options:,} options on {in_words(self.n_items, 'item')}"
        if self.clusters is not None:
            size += f" in {in_words(len(set(self.clusters)), 'cluster')}"
        return f"{size}; {self._lacking()}" if self.missing else size

    def _lacking(self) -> str:
        return Outcomes(self.outcomes, self.options, self.items, self.clusters).lacking

    def complete(self) -> Table:
        """Returns the table of those items whose outcome is known for every option."""
        known = np.flatnonzero(~np.isnan(self.outcomes).any(axis=0)).tolist()
        if not known:
            counts = (~np.isnan(self.outcomes)).sum(axis=1)
            least = int(counts.argmin())
            raise InvalidInput(
                f'no item has an outcome of every option; option "{self.options[least]}" has the fewest, '
                f"{counts[least]:,} of {self.n_items:,}: leave it out, or complete the table"
            )
        if len(known) == self.n_items:
            return self
        clusters = None if self.clusters is None else [self.clusters[j] for j in known]
        return Table(self.outcomes[:, known], self.options, [self.items[j] for j in known], clusters)

    def by_cluster(self) -> Table:
        """Returns the table with one item for each cluster, whose outcomes are the means over its items.

        The mean of an option then counts every cluster once, however many items it has, and clusters that are
        independent are items that are, which those of one cluster need not be. The table must be complete: means over
        different items do not compare options.
        """
        if self.clusters is None:
            raise InvalidInput("the items of this table are in no clusters; give `clusters`, a name for each item")
        if self.missing:
            raise InvalidInput(
                f"the mean over a cluster needs all its outcomes, and {self._lacking()}; use complete() first"
            )
        names = list(dict.fromkeys(self.clusters))
        number = {name: at for at, name in enumerate(names)}
        of_item = np.array([number[name] for name in self.clusters])
        sums = np.zeros((len(names), self.n_options))
        np.add.at(sums, of_item, self.outcomes.T)
        return Table(sums.T / np.bincount(of_item), self.options, names)

    @cached_property
    def pairing(self) -> Pairing:
        """What it is worth to try options on the same items, from those known for every option."""
        outcomes = self.complete().outcomes
        n_items = outcomes.shape[1]
        if n_items < 2:
            raise InvalidInput(
                f"pairing needs two items with an outcome of every option, got {n_items}; complete the table"
            )
        best, next_best = np.argsort(-outcomes.mean(axis=1), kind="stable")[:2].tolist()
        a, b = outcomes[best], outcomes[next_best]
        apart = float(a.var() + b.var())
        ratio = float((a - b).var()) / apart if apart > 0 else math.nan
        return Pairing(self.options[best], self.options[next_best], ratio, _mean_correlation(outcomes), n_items)


def _mean_correlation(outcomes: Matrix) -> float:
    """Returns the mean correlation of two rows that vary; nan if there are no two.

    With z_a the standardised rows, sum over pairs a != b of z_a . z_b = |sum_a z_a|^2 - sum_a |z_a|^2.
    """
    centred = outcomes - outcomes.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=1))
    varies = spread > 1e-12 * np.abs(outcomes).max()
    count = int(varies.sum())
    if count < 2:
        return math.nan
    z = centred[varies] / spread[varies, None]
    return float((z.sum(axis=0) ** 2).mean() - count) / (count * (count - 1))


def _checked(outcomes: NDArray[Any] | Sequence[Sequence[float | None]]) -> Matrix:
    try:
        given = np.asarray(outcomes)
        if given.dtype.kind == "O":  # None, for a pair that is missing
            given = np.array([[math.nan if cell is None else cell for cell in row] for row in given])
    except (TypeError, ValueError):  # ragged
        given = np.array(None)
    if given.dtype.kind not in "iuf":
        raise InvalidInput(f"`outcomes` must be a matrix of numbers, got {reprlib.repr(outcomes)}")
    if given.ndim != 2 or given.shape[0] < 2 or given.shape[1] < 1:
        raise InvalidInput(
            f"`outcomes` must have shape (n_options, n_items) with at least two options and an item, got {given.shape}"
        )
    matrix = np.array(given, dtype=np.float64)
    infinite = np.argwhere(np.isinf(matrix))
    if infinite.size:
        a, j = infinite[0].tolist()
        raise InvalidInput(f"`outcomes[{a}, {j}]` must be finite, or nan where the pair is missing, got {matrix[a, j]}")
    matrix.setflags(write=False)
    return matrix


def _labels(name: str, given: Sequence[str] | None, length: int, what: str) -> tuple[str, ...]:
    if given is None:
        return tuple(map(str, range(length)))
    labels = _names(name, given, length, what)
    first: dict[str, int] = {}
    for at, label in enumerate(labels):
        if first.setdefault(label, at) != at:
            raise InvalidInput(
                f"`{name}[{at}]` must be new, got {label!r}, already the name of {what} {first[label]}; give every "
                f"{what} its own"
            )
    return labels


def _names(name: str, given: Sequence[str], length: int, what: str) -> tuple[str, ...]:
    if isinstance(given, str) or len(given) != length:
        raise InvalidInput(f"`{name}` must hold one name for each {what}, got {len(given)} for {length}")
    for at, label in enumerate(given):
        if not isinstance(label, str) or not label.strip():
            raise InvalidInput(f"`{name}[{at}]` must be a string that is not blank, got {reprlib.repr(label)}")
    return tuple(map(str, given))


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise NotFound("there is no such file; give the path of a CSV file") from None
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}; give the path of a CSV file") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"line {line}: not UTF-8 text; save the file as UTF-8") from None
