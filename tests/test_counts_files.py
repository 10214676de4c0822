"""Files of counts, as programs that measure traffic write them."""

from __future__ import annotations

import pytest

from spectralbai.errors import InvalidInput
from spectralbai.inputs.table import CsvTable, counts_from

COUNTED = {
    "Page,Visitors,Clicks\nplain,1200,30\n": (1200, 30),
    'variant,Impressions,conversions\nplain,"1,200",30\n': (1200, 30),
    "page;sessions;clicks\nplain;1.200;30\n": (1200, 30),
    "label,trials,visitors,successes\nplain,1 200,9,30\n": (1200, 30),
    "option,users,orders\nplain,12 345 678,0\n": (12345678, 0),
}
"""Usual headings and signs between thousands, with the trials and successes that are meant."""
NOT_COUNTED = {
    "page,visitors,sessions,clicks\nplain,12,10,3\n": 'the columns "visitors" and "sessions" could both be the trials',
    "page,visitors,clicks\nplain,1.200,30\n": '"1.200" may be a decimal number; write thousands without "."',
    "page;visitors;clicks\nplain;1,200;30\n": '"1,200" may be a decimal number; write thousands without ","',
    'page,visitors,clicks\nplain,"12,00",3\n': 'line 2, column "visitors": a number is needed, got "12,00"',
    "page,people,clicks\nplain,12,3\n": "counts need the columns label, trials, successes (or page, visitors, clicks",
}


@pytest.mark.parametrize("text", COUNTED)
def test_usual_headings_of_counts_and_signs_between_thousands_are_understood(text: str) -> None:
    assert counts_from(CsvTable.from_text(text), ["plain"]) == [("plain", *COUNTED[text])]


@pytest.mark.parametrize("text", NOT_COUNTED)
def test_counts_with_two_meanings_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as error:
        counts_from(CsvTable.from_text(text), ["plain"])
    assert NOT_COUNTED[text] in str(error.value)
