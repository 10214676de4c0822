"""Outcomes of options on items as CSV text: both forms, and what is refused with its place."""

from __future__ import annotations

import numpy as np
import pytest

from spectralbai import InvalidInput
from spectralbai.inputs.outcomes import outcomes_from
from spectralbai.inputs.table import CsvTable

LONG = "item,option,outcome,cluster\nq1,a,0.5,x\nq2,a,0.25,y\nq3,a,1,x\nq2,b,0,y\nq1,b,,x\nq3,b,2,x\n"
WIDE = "model,q1,q2,q3\na,0.5,0.25,1\nb,,0,2\n"
NAMES = {"option": "option", "item": "item", "outcome": "outcome"}


@pytest.mark.parametrize("text", [LONG, WIDE, WIDE.replace(",", ";").replace(".", ",")])
def test_both_forms_hold_the_same_outcomes(text: str) -> None:
    outcomes, options, items, clusters = outcomes_from(CsvTable.from_text(text))
    np.testing.assert_array_equal(outcomes, [[0.5, 0.25, 1], [np.nan, 0, 2]])
    assert (options, items) == (("a", "b"), ("q1", "q2", "q3"))
    assert clusters == (("x", "y", "x") if text == LONG else None)


def test_columns_of_the_long_form_may_have_other_names() -> None:
    table = CsvTable.from_text("model,question,score,topic\na,q1,1,x\nb,q1,0,x\n")
    names = {"option": "model", "item": "question", "outcome": "score"}
    assert outcomes_from(table, **names).clusters is None
    assert outcomes_from(table, **names, cluster="topic").clusters == ("x",)
    assert outcomes_from(table, **names).outcomes.tolist() == [[1.0], [0.0]]


def test_a_pair_without_a_row_is_missing() -> None:
    table = CsvTable.from_text("option,item,outcome\na,q1,1\nb,q2,0\n")
    np.testing.assert_array_equal(outcomes_from(table).outcomes, [[1, np.nan], [np.nan, 0]])


BAD: list[tuple[str, dict[str, str], str]] = [
    (LONG.replace("q3,b", "q2,b"), {}, 'line 7: option "b" already has an outcome on item "q2", on line 5; remove one'),
    (
        LONG.replace(",1,", ",good,"),
        {},
        'line 4, column "outcome": a number is needed, got "good"; leave the cell empty',
    ),
    (LONG.replace(",1,", ",nan,"), {}, 'line 4, column "outcome": a finite number up to 1e+100 is needed, got "nan"'),
    (LONG.replace("q3,b", ",b"), {}, 'line 7, column "item": the cell is empty'),
    (LONG.replace("2,x", "2,y"), {}, 'line 7, column "cluster": item "q3" is in cluster "y", but in "x" on line 4'),
    (LONG.replace("b,2,x", "b,2,"), {}, 'line 7, column "cluster": the cell is empty'),
    (LONG.replace("b,", "a,"), {}, 'line 5: option "a" already has an outcome on item "q2", on line 3'),
    (LONG.replace("outcome", "outcom"), {}, 'there is no column "outcome"; did you mean "outcom"?'),
    (LONG, {"outcome": "score"}, 'there is no column "score"; the columns are item, option, outcome, cluster'),
    (LONG, {"cluster": "document"}, 'there is no column "document"'),
    (WIDE, NAMES, 'there is no column "option"'),
    (WIDE.replace("b,", "a,"), {}, 'line 3, column "model": the label "a" is taken by line 2'),
    (WIDE.replace("q3", "q2"), {}, 'the column "q2" is there twice'),
    (WIDE.replace("q2", ""), {}, "column 3 has no name; name the item"),
    (WIDE.replace("0.25", "NA"), {}, 'line 2, column "q2": a number is needed, got "NA"; leave the cell empty'),
    (WIDE.replace("b,,0,2\n", ""), {}, "there is one option"),
    ("model\na\nb\n", {}, 'there is one column, "model"; add a column for each item'),
]


@pytest.mark.parametrize(("text", "names", "clue"), BAD)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, names: dict[str, str], clue: str) -> None:
    with pytest.raises(InvalidInput) as error:
        outcomes_from(CsvTable.from_text(text), **names)
    assert clue in str(error.value)


def test_a_table_larger_than_the_memory_is_refused() -> None:
    rows = "".join(f"o{n},q{n},1\n" for n in range(3))
    table = CsvTable.from_text("option,item,outcome\n" + rows)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(InvalidInput, match="a table of 3 options and 3 items"):
        patch.setattr("spectralbai.checks._memory", lambda: 100)
        outcomes_from(table)
