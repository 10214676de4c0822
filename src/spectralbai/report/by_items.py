"""What a status says of the items that options are tried on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectralbai.text.wording import in_words

if TYPE_CHECKING:
    from spectralbai.evidence.item_data import ItemData
    from spectralbai.policy import State
    from spectralbai.problem import Problem

MOST_ITEMS = 500
"""Most items that a picture of options on items has as columns, at least two dots wide each."""


@dataclass(frozen=True)
class ItemsStatus:
    """How far a study is with its items.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem.bounded(sb.Graph.from_edges(2, []), float("inf"), items=sb.Items.listed(40))
        >>> study = sb.Study.create("items", sb.Instance(problem, labels=["old", "new"]))
        >>> study.status().items.described
        '0 of 40 items are done; of 2 more, 4 pairs are missing.'
        >>> study.close()
    """

    available: int | None
    """Number of items that can be tried; None if there is no end."""
    listed: bool
    """Whether these are all items that count; otherwise they are draws from a population."""
    done: int
    """Number of items of which no trial is missing."""
    under_way: int
    """Number of items of the open blocks."""
    missing: int
    """Number of trials of these that have no result."""
    known: int
    """Number of results that were known from elsewhere, without a trial."""
    ratio: float | None
    """The variance over items of the difference between the two best options, over the sum of their variances: what
    remains of the variance if both are tried on the same items. None if it is not known yet."""
    worth: str
    """What it is worth to try options on the same items, in words; empty if it is not known yet."""

    @property
    def described(self) -> str:
        """How far the study is with its items, in a sentence or two."""
        total = self.done if self.available is None else self.available
        of = "" if self.available is None else f" of {self.available:,}"
        verb = "is" if total == 1 else "are"
        words = f"{self.done:,}{of} {'item' if total == 1 else 'items'} {verb} done"
        if self.missing:
            pairs = f"{in_words(self.missing, 'pair')} {'is' if self.missing == 1 else 'are'} missing"
            words += f"; of {self.under_way:,} more, {pairs}" if self.under_way else f"; {pairs}"
        used = f" {in_words(self.known, 'outcome')} {'was' if self.known == 1 else 'were'} known without a trial."
        return f"{words}.{used if self.known else ''} {self.worth}".rstrip()

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> ItemsStatus:
        """Returns the status of items that a document holds."""
        return cls(**{name: d[name] for name in cls.__dataclass_fields__})


def items_of(problem: Problem, state: State, labels: tuple[str, ...], known: int) -> ItemsStatus | None:
    """Returns how far a state is with its items; None if trials have none."""
    from spectralbai.evidence.item_data import ItemData  # it loads numpy, which a client can do without

    items, data = problem.items, state.data
    if items is None or not isinstance(data, ItemData):
        return None
    missing, open_ = sum(block.free.size for block in state.blocks), state.drawn - data.drawn
    return ItemsStatus(items.available, items.n is not None, data.drawn, open_, missing, known, *_worth(data, labels))


def _worth(data: ItemData, labels: tuple[str, ...]) -> tuple[float | None, str]:
    """Returns what pairing is worth for the two best arms of those tried on most of the same items."""
    import numpy as np

    from spectralbai.tables import Pairing

    together = data.together.copy()
    np.fill_diagonal(together, 0.0)
    often = np.flatnonzero(together.max(axis=1) >= max(2.0, 0.9 * together.max()))
    if often.size < 2:
        return None, ""
    best, rival = pair = often[np.argsort(-data.means[often], kind="stable")[:2]].tolist()
    n = data.together[best, rival]
    if n < 2:
        return None, ""
    variances = np.maximum(data.squares[pair] / data.counts[pair] - data.means[pair] ** 2, 0.0)
    gap = (data.crossed[best, rival] - data.crossed[rival, best]) / n
    paired, apart = max(float(data.distances[best, rival] / n - gap**2), 0.0), float(variances.sum())
    ratio = paired / apart if apart > 0 else float("nan")
    words = Pairing(labels[best], labels[rival], ratio, float("nan"), int(n)).described()
    return None if ratio != ratio else ratio, words
