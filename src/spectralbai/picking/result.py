"""The result of a pick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectralbai.report import ArmStatus, Status
from spectralbai.report.tables import Columns, TextTable, means_of
from spectralbai.tables import Table
from spectralbai.text import html
from spectralbai.text.decimals import Decimals, percent
from spectralbai.text.wording import in_words

SHORT = 5
"""A list is short if its length times the tolerance, as a part of the range, is below this: little can be saved."""
MUCH = 0.5
"""A search that took a larger part of all trials is told why."""


@dataclass(frozen=True)
class Pick:
    """The option that was picked, and what was tried for it. A notebook shows it as a table.

    Examples:
        >>> import spectralbai as sb
        >>> best = sb.pick(["-", "+"], range(40), lambda sign, n: n / 40 if sign == "+" else 0, low=0, high=1, seed=1)
        >>> best.option, best.value, best.decided, best.trials < best.pairs
        ('+', '+', True, True)
        >>> best.table.options, best.table.n_items
        (('-', '+'), 40)
        >>> best.saved.startswith("This took")
        True
    """

    option: str | None
    """The label of the option: the answer if `status` says "decided", otherwise the present recommendation; None if
    there is none."""
    value: Any
    """What was given with this label, or the label."""
    trials: int
    """The trials done."""
    known: int
    """The outcomes that were used without a trial, since they were known before."""
    pairs: int
    """The trials that trying everything would have taken."""
    table: Table
    """The outcomes, nan where a pair was not tried."""
    held_back: Mapping[str, str]
    """The options out of the answer because their runs failed, with the last reason of each."""
    status: Status
    """The status of the study at the end."""
    width: float
    """The width of the range of outcomes."""

    @property
    def decided(self) -> bool:
        return self.status.state == "decided"

    @property
    def saved(self) -> str:
        """What was saved, in a sentence or two."""
        share = self.trials / self.pairs
        if not self.decided:
            words = f"This took {self.trials:,} trials; trying everything would take {self.pairs:,}."
            return words + self._from_before
        words = f"This took {self.trials:,} of {self.pairs:,} trials"
        words += f": {percent(1 - share)} of them were not needed." if self.trials < self.pairs else ", all of them."
        words += self._from_before
        return words + (f" {reason}" if (reason := self._why_little()) and share > MUCH else "")

    @property
    def _from_before(self) -> str:
        if not self.known:
            return ""
        return f" {in_words(self.known, 'more outcome')} {'was' if self.known == 1 else 'were'} known before."

    def _why_little(self) -> str:
        items = self.status.items
        if items is None or not items.listed or items.available is None:
            return ""
        product = items.available * self.status.tolerance / self.width
        if product >= SHORT:
            return ""
        return (
            f"Little can be saved on a list as short as {in_words(items.available, 'item')} at a tolerance of "
            f"{self.status.tolerance:g}: the items that are left could still turn the answer round."
        )

    @property
    def withheld(self) -> str:
        """Which options are out of the answer because their runs failed, in a sentence; empty if none is."""
        if not self.held_back:
            return ""
        named = ", ".join(f'"{label}" ({reason})' for label, reason in self.held_back.items())
        return f"Out of the answer, since their runs failed: {named}."

    @property
    def ranking(self) -> TextTable:
        """The options, the best first: trials, mean outcome, how far behind the best, and what became of them."""
        status = self.status
        mean = means_of(status)
        gap = Decimals.of(
            [arm.behind for arm in status.arms if arm.behind is not None], "points" if status.rates else ""
        )
        columns: Columns[ArmStatus] = [
            ("option", lambda arm: arm.label + (" *" if arm.label == status.best else "")),
            ("trials", lambda arm: f"{arm.results:,}"),
            ("mean", lambda arm: mean(arm.mean)),
            ("behind", lambda arm: "" if arm.behind is None else gap(arm.behind[0])),
            ("interval", lambda arm: "" if arm.behind is None else gap.interval(*arm.behind[1:])),
            ("", lambda arm: "held back" if arm.label in self.held_back else status.account(arm)),
        ]
        return TextTable.of(columns, status.top)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What came out, as sentences."""
        return tuple(each for each in (self.status.answer, self.withheld, self.saved) if each)

    def as_dict(self) -> dict[str, Any]:
        """Returns everything but the outcomes, JSON-ready."""
        return {
            "option": self.option,
            "decided": self.decided,
            "trials": self.trials,
            "known": self.known,
            "pairs": self.pairs,
            "held_back": dict(self.held_back),
            "sentences": list(self.sentences),
            "status": self.status.as_dict(),
        }

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        return "".join(map(html.paragraph, self.sentences)) + html.table(*self.ranking)
