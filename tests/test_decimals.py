"""Numbers of a column, and tables as HTML."""

from __future__ import annotations

import pytest

from spectralbai.text import html
from spectralbai.text.decimals import Decimals, percent


@pytest.mark.parametrize(
    ("rows", "written"),
    [
        ([(0.63, 0.529, 0.731), (0.1, -0.0962, 0.4769)], ["0.63", "0.10"]),  # half-width 0.101
        ([(1e6 + 0.9, 1e6 + 0.8, 1e6 + 1.0), (1e6, None, None)], ["1,000,000.90", "1,000,000.00"]),
        ([(12345.6, 12000.0, 12700.0), (None, None, None)], ["12,346", "-"]),
        ([(0.5, None, None), (0.25, None, None)], ["0.500", "0.250"]),  # no interval: three digits of the spread
        ([(0.5, None, None)], ["0.500"]),
        ([(-0.001, -0.2, 0.198), (0.0, -0.3, 0.3)], ["0.00", "0.00"]),  # never -0.00
        ([(1.25e-20, 1.2e-20, 1.3e-20)], ["1.250e-20"]),
        ([(0.0, None, None)], ["0.00"]),
        ([], []),
    ],
)
def test_all_numbers_of_a_column_have_the_decimals_of_the_narrowest_interval(
    rows: list[tuple[float | None, float | None, float | None]], written: list[str]
) -> None:
    number = Decimals.of(rows)
    assert [number(estimate) for estimate, _, _ in rows] == written


def test_shares_and_differences_have_their_units_and_signs() -> None:
    rows = [(0.0269, 0.02, 0.034)]
    assert Decimals.of(rows, "%")(0.0269) == "2.69 %"
    assert Decimals.of(rows, "points", signed=True)(0.0269) == "+2.69"
    assert Decimals.of(rows, "%").interval(0.02, None) == "2.00 % to -"
    assert Decimals.of(rows).interval(None, None) == ""
    assert (percent(0.25), percent(1 / 3, 2)) == ("25.0 %", "33.33 %")


def test_tables_escape_whatever_comes_in() -> None:
    nasty = "<script>&\"'"
    for content in (html.table((nasty, nasty), [(nasty, nasty)]), html.pairs([(nasty, nasty)]), html.paragraph(nasty)):
        assert "<script" not in content and "&lt;script&gt;&amp;&quot;&#x27;" in content
