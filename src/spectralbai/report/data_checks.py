"""Checks of counts as they came from outside: each that finds something is a sentence that says what to do."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence

import numpy as np

from spectralbai.evidence.sample_ratio import mismatch
from spectralbai.journal.events import CountsTold
from spectralbai.text.wording import MOST_NAMED

SPLIT_RISK = 0.01
"""Probability at most with which a split that is as asked is ever said not to be."""
EXPECTED = 20.0
"""From so many trials asked for on, an option without any is said to be missing."""
LEAST_DAYS, FAR, MUCH = 3, 6.0, 0.3
"""A day is odd if there are so many others at least, and if its rate differs from theirs by so many standard deviations
and by this part of it: weekdays differ, too."""


def checked(name: str, labels: Sequence[str], days: Sequence[CountsTold]) -> Iterator[str]:
    """Yields what is odd about the counts of a study."""
    asked = [day for day in days if day.asked]
    pairs = [(np.array(day.trials, dtype=float), np.array(day.asked)) for day in asked]
    if mismatch(pairs) >= -math.log(SPLIT_RISK):
        yield _uneven(labels, pairs)
    if asked:
        yield from _missing(name, labels, asked[-1])
    yield from _odd(name, days)


def _uneven(labels: Sequence[str], pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> str:
    """Returns a sentence on the option whose share is furthest from that asked for."""
    counts, expected = np.zeros(len(labels)), np.zeros(len(labels))
    for n, share in pairs:
        here = share > 0
        counts[: n.size] += np.where(here, n, 0.0)
        expected[: n.size] += n[here].sum() * share / share.sum()
    worst = int(np.argmax(np.abs(counts - expected) / np.sqrt(np.maximum(expected, 1.0))))
    total = counts.sum()
    return (
        f'Visitors are not split as asked: "{labels[worst]}" got {counts[worst] / total:.1%} of them, and '
        f"{expected[worst] / total:.1%} were asked for; a split as asked looks like this with probability at most "
        f"{SPLIT_RISK:g}. Find out whether visitors of some options are lost or counted twice (redirects, slow pages, "
        "robots): then compare no rates before that is mended. If you split them otherwise on purpose, all is well, as "
        "long as it does not depend on outcomes."
    )


def _missing(name: str, labels: Sequence[str], day: CountsTold) -> Iterator[str]:
    total = sum(day.trials)
    gone = [
        label
        for label, n, share in zip(labels, day.trials, day.asked, strict=False)
        if not n and share * total >= EXPECTED
    ]
    if gone:
        named = ", ".join(f'"{label}"' for label in gone[:MOST_NAMED])
        yield (
            f'On "{day.origin}" there were no trials of {named}, though they were asked for. If an option cannot be '
            f"shown, withdraw it: spectralbai study withdraw {shlex.quote(name)} {shlex.quote(gone[0])}"
        )


def _odd(name: str, days: Sequence[CountsTold]) -> Iterator[str]:
    """Yields a sentence on the day whose rate is furthest from that of the same options on other days."""
    if len(days) <= LEAST_DAYS:
        return
    width = max(len(day.trials) for day in days)
    n, hits = (
        np.array([[*each, *[0] * (width - len(each))] for each in rows], dtype=float)
        for rows in ([day.trials for day in days], [day.successes for day in days])
    )
    others_n, others = n.sum(axis=0) - n, hits.sum(axis=0) - hits
    rate = (others + 0.5) / (others_n + 1)
    known = others_n > 0
    wanted = np.where(known, n * rate, 0.0)
    spread = np.where(known, n * rate * (1 - rate) * (1 + n / np.maximum(others_n, 1.0)), 0.0).sum(axis=1)
    came, expected = np.where(known, hits, 0.0).sum(axis=1), wanted.sum(axis=1)
    far = np.abs(came - expected) / np.sqrt(np.maximum(spread, 1e-9))
    much = np.abs(came - expected) > MUCH * expected
    odd = np.flatnonzero((far > FAR) & much)
    if odd.size:
        day = int(odd[np.argmax(far[odd])])
        origin = days[day].origin
        yield (
            f'"{origin}" is unlike the other days: {came[day]:,.0f} successes, where the same options had about '
            f"{expected[day]:,.0f} on other days. Find out whether its counts are complete; if not, correct them or "
            f"take them out: spectralbai study void {shlex.quote(name)} --id {shlex.quote(origin)}"
        )
