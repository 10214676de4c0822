"""Items: what options are tried on, such as questions, folds or substrates (theory, section 18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectralbai.checks import check_integer, check_keys
from spectralbai.errors import InvalidInput


@dataclass(frozen=True)
class Items:
    """What is assumed of the items that options are tried on.

    Examples:
        >>> import spectralbai as sb
        >>> sb.Items.listed(300)
        Items(n=300)
        >>> sb.Items.fresh().described()
        'fresh items'
    """

    n: int | None
    """Number of items of the list; None if every item is a new draw from a population."""

    @classmethod
    def fresh(cls) -> Items:
        """Returns items that are independent draws from a population; means are averages over all of it."""
        return cls(None)

    @classmethod
    def listed(cls, n: int) -> Items:
        """Returns a list of n items; means are averages over these items, each tried at most once with an option."""
        return cls(check_integer("n", n, 1))

    def described(self) -> str:
        """Returns the items in a few words."""
        return "fresh items" if self.n is None else f"a list of {self.n:,} items"

    def as_json(self) -> str | dict[str, int]:
        """Returns the entry `items` of a JSON document."""
        return "fresh" if self.n is None else {"listed": self.n}

    @classmethod
    def from_json(cls, value: Any, place: str = "$.items") -> Items:
        """Returns the items that `as_json` wrote."""
        if value == "fresh":
            return cls.fresh()
        if not isinstance(value, Mapping):
            raise InvalidInput(f'{place} must be "fresh" or {{"listed": number of items}}, got {value!r}')
        check_keys(place, value, ("listed",), ("listed",))
        return cls(check_integer(f"{place}.listed", value["listed"], 1))
