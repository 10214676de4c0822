"""Checks of what users give: each returns a clean value or raises `InvalidInput`.

`name` is an argument or option, or a place: a path such as $.mu in a JSON document, or a line of a table.
Arrays are checked in `arrays`: this module needs the standard library only, and numbers of numpy are numbers here too.
"""

from __future__ import annotations

import difflib
import math
import os
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar

from spectralbai.errors import InvalidInput

T = TypeVar("T")
MOST_COMPARED = 10_000
"""Most names that an unknown one is compared with, half a second's work."""
LARGEST_COUNT = 10**15
"""Most trials of a budget or of counts; numbers up to here are exact as floats."""


def subject(name: str) -> str:
    """Returns the name as messages start with it: arguments and options in backquotes, places unchanged."""
    return name if name.startswith(("$", "line ")) else f"`{name}`"


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Returns advice about an unknown name: the most similar known name, or `otherwise` if none is similar, or if they
    are so many that comparing takes long."""
    names = list(islice(known, MOST_COMPARED + 1))
    near = difflib.get_close_matches(word, names, n=1) if len(names) <= MOST_COMPARED else []
    return f'did you mean "{near[0]}"?' if near else otherwise


def check_keys(
    place: str, document: Mapping[Any, Any], known: Iterable[str], required: Iterable[str], others: Iterable[str] = ()
) -> None:
    """Raises InvalidInput if an object in a file has a key that is not in `known`, or lacks one in `required`.

    `others` are keys that were read before; a message lists them too.
    """
    known = tuple(known)
    for key in document:
        if key not in known:
            remedy = did_you_mean(str(key), known, f"remove it; the keys are {', '.join((*others, *known))}")
            raise InvalidInput(f'{place} has the unknown key "{key}"; {remedy}')
    for key in required:
        if key not in document:
            raise InvalidInput(f'{place} lacks the key "{key}"; add it')


def check_kind(name: str, value: Any, known: Mapping[str, T]) -> T:
    """Returns the entry of `known` for the "kind" of an object in a file; raises InvalidInput if there is none."""
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
        raise InvalidInput(f'{subject(name)} must be an object with a "kind", got {reprlib.repr(value)}')
    kind = value["kind"]
    if kind not in known:
        remedy = did_you_mean(kind, known, "import the module that defines it first (--import MODULE)")
        raise InvalidInput(f'{subject(name)} must be of a known kind, got "{kind}"; {remedy}')
    return known[kind]


def check_number(
    name: str, value: Any, rule: str, *, low: float, high: float | None = None, strict: bool, allow_inf: bool = False
) -> float:
    """Returns `value` as a float above `low`, and below `high` if that is given, strictly or not; `rule` is the end of
    "`name` must be ..."."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Real)):
        raise InvalidInput(f"{subject(name)} must be {rule}, got {reprlib.repr(value)}; give a number")
    try:
        number = float(value)
    except OverflowError:  # an int too large for a float
        number = -math.inf if value < 0 else math.inf
    in_range = number > low if strict else number >= low
    if high is not None:
        in_range &= number < high if strict else number <= high
    if not in_range or (math.isinf(number) and not allow_inf):
        raise InvalidInput(f"{subject(name)} must be {rule}, got {number if math.isinf(number) else value}")
    return number


def check_amount(name: str, value: Any, ends: tuple[float, float] | None) -> Any:
    """Returns a difference of outcomes that lie between `ends`, if these are known: "0.5%" as 0.005, other text as the
    number that it is. Percent are understood where outcomes lie between 0 and 1, and refused elsewhere."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        number = float(text.removesuffix("%").replace("_", "?"))
    except ValueError:
        raise InvalidInput(f"{subject(name)} must be a number, got {value!r}; decimals have a point") from None
    if not text.endswith("%"):
        return number
    if ends != (0.0, 1.0):
        where = "have no range" if ends is None else f"lie between {ends[0]:g} and {ends[1]:g}"
        raise InvalidInput(
            f"{subject(name)} must be a number in the unit of the outcomes, which {where}, got {text!r}; percent are "
            "for outcomes between 0 and 1"
        )
    return number / 100


def check_time(name: str, value: Any) -> float:
    """Returns `value` as a time."""
    return check_number(name, value, "a time in seconds since 1970", low=0.0, strict=True)


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Returns `value` as an int from `low` to `high`, if that is given."""
    if isinstance(value, bool) or not isinstance(value, (int, Integral)) or int(value) < low:
        raise InvalidInput(f"{subject(name)} must be a whole number of at least {low}, got {reprlib.repr(value)}")
    if high is not None and int(value) > high:
        raise InvalidInput(f"{subject(name)} must be at most {high:,}, got {reprlib.repr(value)}")
    return int(value)


def is_line(value: Any, longest: int) -> TypeGuard[str]:
    """Returns whether this is one line of at most `longest` printable characters."""
    return isinstance(value, str) and len(value) <= longest and value.isprintable()


def check_words(name: str, value: Any, longest: int, *, blank: bool = False) -> str:
    """Returns a user's text; raises InvalidInput unless it is one line of at most `longest` printable characters."""
    if not is_line(value, longest) or not (blank or value.strip()):
        raise InvalidInput(
            f"`{name}` must be one line of 1 to {longest} printable characters, got {str(value)[:120]!r}"
        )
    return value


def check_ends(low: Any, high: Any, names: tuple[str, str] = ("low", "high")) -> tuple[float, float]:
    """Returns the ends of an interval as floats, `low` below `high` by a finite amount."""
    low, high = (
        check_number(name, value, "a finite number", low=-math.inf, strict=True)
        for name, value in zip(names, (low, high), strict=True)
    )
    if not 0 < (high - low) / 2 < math.inf:
        first, second = map(subject, names)
        raise InvalidInput(f"{first} must be below {second} by a finite amount, got {low!r} and {high!r}")
    return low, high


def check_share(name: str, value: Any, rule: str) -> float:
    """Returns `value` as a float in (0, 1); `rule` is the end of "`name` must be ..."."""
    return check_number(name, value, rule, low=0.0, high=1.0, strict=True)


def check_delta(delta: Any) -> float:
    """Returns the risk `delta` as a float in (0, 1)."""
    return check_share("delta", delta, "a risk between 0 and 1, such as 0.05")


def check_numbers(name: str, values: Any, n_arms: int, rule: str, *, low: float) -> list[float]:
    """Returns a list of a JSON document as numbers above `low`, one per arm."""
    if not isinstance(values, list | tuple):
        raise InvalidInput(f"{subject(name)} must be a list of {n_arms} numbers, got {reprlib.repr(values)}")
    numbers = [check_number(f"{name}[{arm}]", value, rule, low=low, strict=True) for arm, value in enumerate(values)]
    if len(numbers) != n_arms:
        raise InvalidInput(f"{subject(name)} must hold one number per arm, got {len(numbers)} for {n_arms} arms")
    return numbers


def check_arm(name: str, value: Any, n_arms: int) -> int:
    """Returns `value` as the 0-based index of an arm."""
    if isinstance(value, bool) or not isinstance(value, (int, Integral)) or not 0 <= int(value) < n_arms:
        raise InvalidInput(f"{subject(name)} must be an arm between 0 and {n_arms - 1}, got {reprlib.repr(value)}")
    return int(value)


def arm_of(label: str, labels: Sequence[str]) -> int:
    """Returns the arm with that label."""
    if label not in labels:
        remedy = did_you_mean(label, labels, f'the first is "{labels[0]}"')
        raise InvalidInput(f'"{label}" is no label of an option; {remedy}')
    return labels.index(label)


def check_memory(what: str, needed: float, remedy: str) -> None:
    """Raises `InvalidInput` if `what` needs more bytes than half of the memory of this machine."""
    installed, needed = _memory(), min(needed, 1e300)  # a whole number may be larger than any float
    if installed is not None and needed > installed / 2:
        raise InvalidInput(
            f"{what} would need about {needed / 1e9:,.1f} GB of memory, and this machine has "
            f"{installed / 1e9:,.1f} GB; {remedy}"
        )


def _memory() -> int | None:
    """Returns the bytes of memory of this machine; None on systems that do not say, such as Windows."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def check_matrices(n_arms: int, bytes_per_pair: int) -> None:
    """Raises `InvalidInput` if matrices with this many bytes for each pair of arms do not fit in memory."""
    remedy = "put the arms in categories, with an R for each, and use the race"
    check_memory(f"the matrices of {n_arms:,} arms", bytes_per_pair * n_arms**2, remedy)
