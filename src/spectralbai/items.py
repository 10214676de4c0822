"""Items: what options are tried on, such as questions, folds or substrates (theory, section 18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectralbai.checks import check_integer, check_keys
from spectralbai.errors import InvalidInput


@dataclass(frozen=True, repr=False)
class Items:
    """What is assumed of the items that options are tried on.

    Examples:
        >>> import spectralbai as sb
        >>> sb.Items.listed(300)
        Items.listed(300)
        >>> sb.Items.fresh().described()
        'fresh items'
    """

    n: int | None
    """Number of items of the list; None if every item is a new draw from a population."""
    at_hand: int | None = None
    """How many draws from the population there are; None if there is no end, or a list."""

    @classmethod
    def fresh(cls, at_hand: int | None = None) -> Items:
        """Returns items that are independent draws from a population; means are averages over all of it.

        If only so many draws are `at_hand`, such as those of a file, no other ones are tried.
        """
        return cls(None, None if at_hand is None else check_integer("at_hand", at_hand, 1))

    @classmethod
    def listed(cls, n: int) -> Items:
        """Returns a list of n items; means are averages over these items, each tried at most once with an option."""
        return cls(check_integer("n", n, 1))

    def __repr__(self) -> str:
        return f"Items.listed({self.n})" if self.n is not None else f"Items.fresh({self.at_hand or ''})"

    @property
    def available(self) -> int | None:
        """Number of items that can be tried; None if there is no end."""
        return self.at_hand if self.n is None else self.n

    def described(self) -> str:
        """Returns the items in a few words."""
        if self.n is not None:
            return f"a list of {self.n:,} items"
        return "fresh items" if self.at_hand is None else f"{self.at_hand:,} fresh items"

    def as_json(self) -> str | dict[str, int]:
        """Returns the entry `items` of a JSON document."""
        if self.n is not None:
            return {"listed": self.n}
        return "fresh" if self.at_hand is None else {"fresh": self.at_hand}

    @classmethod
    def from_json(cls, value: Any, place: str = "$.items") -> Items:
        """Returns the items that `as_json` wrote."""
        if value == "fresh":
            return cls.fresh()
        if not isinstance(value, Mapping):
            raise InvalidInput(
                f'{place} must be "fresh", {{"fresh": number of items}} or {{"listed": number of items}}, got {value!r}'
            )
        if "fresh" in value:
            check_keys(place, value, ("fresh",), ("fresh",))
            return cls.fresh(check_integer(f"{place}.fresh", value["fresh"], 1))
        check_keys(place, value, ("listed",), ("listed",))
        return cls(check_integer(f"{place}.listed", value["listed"], 1))
