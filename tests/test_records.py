"""Tables of options, edges and observations: what is read, and what is refused with its row and column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from spectralbai import InvalidInput
from spectralbai.inputs.table import CsvTable, arms_from, edges_from, observations_from
from spectralbai.noise import Bounded

ARMS = "dose,mg,age\nlow,5,1.5\nmid,10,2.5\nhigh,20,2\n"


@pytest.mark.parametrize(
    "text",
    [
        ARMS,
        "\ufeff" + ARMS,
        ARMS.replace("\n", "\r\n"),
        ARMS.replace(",", ";").replace(".", ","),
        ARMS.replace(",", ";"),
        ARMS.replace(",", "\t"),
        ARMS.replace(",", " , ") + "\n\n",
        ARMS.replace("low", '"low"').rstrip("\n"),
    ],
)
def test_the_same_table_is_read_from_every_form_of_csv(text: str) -> None:
    table = CsvTable.from_text(text)
    assert arms_from(table) == ("low", "mid", "high")
    np.testing.assert_array_equal(table.numbers("mg"), [5, 10, 20])
    np.testing.assert_array_equal(table.numbers("age"), [1.5, 2.5, 2])


def test_labels_may_hold_separators_in_quotes_and_stay_strings() -> None:
    table = CsvTable.from_text('name,x\n"a, b",1\n07,2\n7,3\n')
    assert arms_from(table) == ("a, b", "07", "7")
    assert arms_from(CsvTable.from_text("x,name\n1,a\n2,b\n"), label="name") == ("a", "b")


def test_lines_inside_quotes_and_odd_characters_are_kept() -> None:
    table = CsvTable.from_text('\n"na,me";x\n"New\nYork";1\n"A\u2028B";2\nC;3\n')
    assert table.columns == ("na,me", "x")
    assert table.column("na,me") == ["New\nYork", "A\u2028B", "C"]
    assert table.lines == (3, 5, 6)


def test_edges_name_arms_with_weights_or_without() -> None:
    table = CsvTable.from_text("a,b,w\nx,y,2\nz,y,0.5\n")
    assert edges_from(table) == (("x", "y", "z"), [(0, 1, 2.0), (1, 2, 0.5)])
    assert edges_from(CsvTable.from_text("a,b\nx,y\n"), ("y", "lone", "x")) == (("y", "lone", "x"), [(0, 2, 1.0)])


def test_observations_are_arms_and_outcomes() -> None:
    arms, outcomes = observations_from(CsvTable.from_text("label,outcome\nb,1\na,0.5\nb,-2\n"), ("a", "b"))
    assert arms.tolist() == [1, 0, 1] and outcomes.tolist() == [1, 0.5, -2]
    with pytest.raises(InvalidInput, match='line 3, column "y": an outcome must lie in .0, 1., got 7; correct it'):
        observations_from(CsvTable.from_text("label,y\nb,1\na,7\n"), ("a", "b"), Bounded(0.0, 1.0))


def read_arms(text: str) -> object:
    table = CsvTable.from_text(text)
    return arms_from(table), table.numbers("mg"), table.numbers("age")


def read_edges(text: str) -> object:
    return edges_from(CsvTable.from_text(text), ("x", "y", "zebra"))


def read_observations(text: str) -> object:
    return observations_from(CsvTable.from_text(text), ("low", "mid", "high"))


BAD: list[tuple[Callable[[str], object], str, str]] = [
    (read_arms, "", "the file is empty"),
    (read_arms, "\n \n", "the file is empty"),
    (read_arms, "dose,mg,age\n", "no row below the column names"),
    (read_arms, "dose,mg,mg\nlow,1,2\n", 'the column "mg" is there twice'),
    (read_arms, ARMS.replace("10", ""), 'line 3, column "mg": a number is needed, got an empty cell'),
    (read_arms, ARMS.replace("10", "ten"), 'line 3, column "mg": a number is needed, got "ten"'),
    (read_arms, ARMS.replace("10", "nan"), 'line 3, column "mg": a finite number up to 1e+100 is needed, got "nan"'),
    (read_arms, ARMS.replace("10", "1e999"), 'line 3, column "mg": a finite number'),
    (read_arms, ARMS.replace("mid", "low"), 'line 3, column "dose": the label "low" is taken by line 2'),
    (read_arms, ARMS.replace("mid", ""), 'line 3, column "dose": the cell is empty'),
    (read_arms, ARMS.replace("mid,10", "mid,10,7"), "line 3: 4 cells for 3 columns"),
    (read_arms, ARMS.replace("mid,10,", "mid,"), "line 3: 2 cells for 3 columns"),
    (read_arms, ARMS.replace("age", "aeg"), 'there is no column "age"; did you mean "aeg"?'),
    (read_arms, "dose,mg,age\nlow,1,2\n", "there is one option"),
    (read_arms, 'dose,mg,age\n"low,1,2\n', "not CSV"),
    (read_edges, "a\nx\n", "columns label, label"),
    (read_edges, "a,b\nx,q\n", 'line 2, column "b": "q" is no label of an option; add it to the options'),
    (read_edges, "a,b\nx,zebr\n", 'did you mean "zebra"?'),
    (read_edges, "a,b\nx,x\n", 'line 2 must join two different arms, got "x" and "x"'),
    (read_edges, "a,b\nx,y\ny,x\n", 'line 3 must be new, got "x" and "y" again, as in line 2'),
    (read_edges, "a,b,w\nx,y,-1\n", "`weight of line 2` must be a finite non-negative number"),
    (read_edges, "a,b,w\nx,y,heavy\n", 'line 2, column "w": a number is needed'),
    (read_arms, ARMS.replace("10", "1e200"), 'line 3, column "mg": a finite number up to 1e+100 is needed'),
    (read_arms, ARMS.replace("10", "1_0"), 'line 3, column "mg": a number is needed, got "1_0"'),
    (read_arms, ARMS.replace("low,5", '"low,5') + ARMS, "line 2: not CSV"),
    (read_observations, "label\nlow\n", "two columns label and outcome"),
    (
        read_observations,
        "label,outcome\nlwo,1\n",
        'line 2, column "label": "lwo" is no label of an option; did you mean "low"?',
    ),
    (read_observations, "label,outcome\nlow,good\n", 'line 2, column "outcome": a number is needed, got "good"'),
]


@pytest.mark.parametrize(("read", "text", "clue"), BAD)
def test_what_cannot_be_read_is_refused_with_its_place(read: Callable[[str], object], text: str, clue: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read(text)
    assert clue in str(error.value)
