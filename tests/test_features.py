"""Features of options: how columns are read, that each counts the same, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from spectralbai import Graph, InvalidInput
from spectralbai.graph import usual_neighbors
from spectralbai.inputs.features import features_from
from spectralbai.inputs.table import CsvTable

TABLE = CsvTable.from_text(
    "drug;mg;since;colour;vegan\n"
    "a;1,5;2026-01-01;red;yes\n"
    "b;2,5;2026-01-11;blue;no\n"
    "c;7;2026-01-31T12:00;red;No\n"
    "d;4;2026-02-01;green;TRUE\n"
)


def test_columns_are_read_as_numbers_dates_truth_or_categories() -> None:
    mg, since, colour, vegan = features_from(TABLE, ["mg", "since", "colour", "vegan"])
    assert (mg.reading, since.reading, vegan.reading) == ("numbers", "dates, in days", "yes or no")
    assert colour.reading == "3 categories: blue, green, red"
    for feature, plain in ((mg, [1.5, 2.5, 7, 4]), (since, [0, 10, 30.5, 31]), (vegan, [1, 0, 0, 1])):
        expected = (np.array(plain) - np.mean(plain)) / np.std(plain)
        np.testing.assert_allclose(feature.values[:, 0], expected)
    distance = np.linalg.norm(colour.values[:, None] - colour.values[None], axis=2)
    assert distance[0, 2] == 0 and distance[0, 1] == distance[0, 3] == distance[1, 3] > 0


def test_every_feature_counts_the_same() -> None:
    for feature in features_from(TABLE, ["mg", "since", "colour", "vegan"]):
        difference = feature.values[:, None] - feature.values[None]
        assert (difference**2).sum(axis=2).mean() == pytest.approx(2), feature.name
    words = features_from(CsvTable.from_text("x,y\na,on\nb,off\nc,on\n"), ["y"])[0].values
    truth = features_from(CsvTable.from_text("x,y\na,yes\nb,no\nc,yes\n"), ["y"])[0].values
    np.testing.assert_allclose(np.linalg.norm(words[0] - words[1]), abs(truth[0] - truth[1])[0])


def test_features_of_any_size_are_standardised_each_by_its_own() -> None:
    table = CsvTable.from_text("x,a,b\np,1e-9,1000000000001\nq,2e-9,1000000000002\nr,4e-9,1000000000004\n")
    a, b = features_from(table, ["a", "b"])
    np.testing.assert_allclose(a.values, b.values, rtol=1e-6)


@pytest.mark.parametrize(
    ("cells", "clue"),
    [
        (("1", "2", "three"), 'line 4, column "y": a number is needed, got "three"'),
        (("1", "", "3"), 'line 3, column "y": the cell is empty'),
        (("1", "nan", "3"), 'line 3, column "y": a finite number'),
        (("2026-01-01", "2026-13-01", "2026-01-03"), 'line 3, column "y": a date such as 2026-03-31 is needed'),
        (("7", "7", "7"), 'the column "y" is the same for every option'),
        (("red", "red", "red"), 'the column "y" is the same for every option'),
        (("no", "no", "no"), 'the column "y" is the same for every option'),
        (("red", "green", "blue"), "is different for every option"),
    ],
)
def test_a_column_that_cannot_be_used_is_refused_with_its_place(cells: tuple[str, ...], clue: str) -> None:
    table = CsvTable.from_text("x,y\n" + "".join(f"{label},{cell}\n" for label, cell in zip("abc", cells, strict=True)))
    with pytest.raises(InvalidInput) as error:
        features_from(table, ["y"])
    assert clue in str(error.value)


def test_the_labels_are_no_feature() -> None:
    with pytest.raises(InvalidInput, match='the column "drug" holds the labels'):
        features_from(TABLE, ["drug"])
    with pytest.raises(InvalidInput, match='the column "mg" holds the labels'):
        features_from(TABLE, ["mg"], "mg")


def test_few_options_have_few_neighbours() -> None:
    assert [usual_neighbors(n) for n in (2, 3, 4, 7, 8, 12, 16, 32, 10**6)] == [1, 1, 2, 2, 3, 3, 4, 5, 5]
    for n in range(2, 13):
        points = np.random.default_rng(n).random((n, 2))
        edges = Graph.from_features(points).n_edges
        assert edges == Graph.from_features(points, usual_neighbors(n)).n_edges
        assert n < 5 or edges < 0.75 * n * (n - 1) / 2
