"""Tables of outcomes: what is missing, clusters, and what pairing is worth."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectralbai import InvalidInput, NotFound, Table
from spectralbai.inputs.table import CsvTable, arms_from

SCORES = [[0.9, 0.5, 0.7, 0.5], [0.8, 0.4, math.nan, 0.2], [0.1, 0.2, 0.3, 0.4]]
TABLE = Table(SCORES, ["new", "old", "none"], ["q1", "q2", "q3", "q4"], ["x", "y", "x", "y"])


def test_missing_pairs_are_named() -> None:
    assert TABLE.missing == (("old", "q3"),)
    assert TABLE.described() == (
        '3 options on 4 items in 2 clusters; 1 of 12 pairs is missing: option "old", item "q3"'
    )
    two = Table([[1, None, 2], [None, 1, 2]])
    assert two.described() == '2 options on 3 items; 2 of 6 pairs are missing, the first: option "0", item "1"'
    assert np.isnan(TABLE.means[1]) and TABLE.means[0] == pytest.approx(0.65)


def test_a_complete_table_has_the_items_known_for_every_option() -> None:
    complete = TABLE.complete()
    np.testing.assert_array_equal(complete.outcomes, np.array(SCORES)[:, [0, 1, 3]])
    assert (complete.items, complete.clusters) == (("q1", "q2", "q4"), ("x", "y", "y"))
    assert complete.missing == () and complete.complete() is complete


def test_a_cluster_becomes_one_item_however_many_it_has() -> None:
    table = TABLE.complete().by_cluster()
    np.testing.assert_allclose(table.outcomes, [[0.9, 0.5], [0.8, 0.3], [0.1, 0.3]])
    assert (table.options, table.items, table.clusters) == (TABLE.options, ("x", "y"), None)


def test_pairing_compares_the_best_with_the_next() -> None:
    """The differences of the best two are .1, .1 and .3; their variances are those over items."""
    pairing = TABLE.pairing
    a, b, c = np.array(SCORES)[:, [0, 1, 3]]
    assert (pairing.best, pairing.runner_up, pairing.n_items) == ("new", "old", 3)
    assert pairing.ratio == pytest.approx(np.var([0.1, 0.1, 0.3]) / (np.var(a) + np.var(b)))
    correlations = np.corrcoef([a, b, c])
    assert pairing.correlation == pytest.approx(correlations[np.triu_indices(3, 1)].mean())


def test_options_that_never_vary_have_no_correlation() -> None:
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.random((2, 30)), np.full(30, 0.3)])
    assert Table(rows).pairing.correlation == pytest.approx(np.corrcoef(rows[0], rows[1])[0, 1])
    assert math.isnan(Table(rows[1:]).pairing.correlation)


def shared(share: float) -> Table:
    """Returns two options whose outcomes on an item have correlation `share` over many items."""
    rng = np.random.default_rng(1)
    return Table(rng.multivariate_normal([1, 0], [[1, share], [share, 1]], 4000).T)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (shared(0.9), "tried on the same items, options need up to 10 times fewer trials."),
        (shared(0.05), "it hardly matters whether options are tried on the same items."),
        (shared(-0.5), "better try options on different items."),
        (Table([[0.3, 0.9, 0.4], [0.1, 0.7, 0.2]]), "Their difference is the same on every item"),
        (Table([[1, 1], [0, 0]]), "Neither varies from item to item: one item tells them apart."),
    ],
)
def test_what_pairing_is_worth_is_said_in_words(table: Table, words: str) -> None:
    assert words in table.pairing.described()
    assert table.pairing.described().startswith('The best option is "0", the next "1".')


def test_outcomes_cannot_be_changed() -> None:
    given = np.zeros((2, 3))
    table = Table(given)
    given[0, 0] = 1.0
    assert table.outcomes[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        table.outcomes[0, 0] = 1.0


@pytest.mark.parametrize(
    ("given", "clue"),
    [
        ({"outcomes": [[1, 2], [3]]}, "`outcomes` must be a matrix of numbers"),
        ({"outcomes": [["1", "2"], ["3", "4"]]}, "`outcomes` must be a matrix of numbers"),
        ({"outcomes": [1, 2]}, "`outcomes` must have shape (n_options, n_items)"),
        ({"outcomes": [[1, 2]]}, "with at least two options and an item, got (1, 2)"),
        ({"outcomes": [[1, 2], [3, math.inf]]}, "`outcomes[1, 1]` must be finite, or nan where the pair is missing"),
        ({"options": ["a"]}, "`options` must hold one name for each row, got 1 for 2"),
        ({"options": ["a", "a"]}, "`options[1]` must be new, got 'a', already the name of row 0"),
        ({"items": ["q", "q", "r"]}, "`items[1]` must be new, got 'q', already the name of column 0"),
        ({"items": ["q", " ", "r"]}, "`items[1]` must be a string that is not blank"),
        ({"clusters": "xyz"}, "`clusters` must hold one name for each column"),
    ],
)
def test_what_is_no_table_is_refused(given: dict[str, Any], clue: str) -> None:
    with pytest.raises(InvalidInput) as error:
        Table(**{"outcomes": [[1, 2, 3], [4, 5, 6]], **given})
    assert clue in str(error.value)


def test_what_a_table_cannot_tell_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidInput, match='option "b" has the fewest, 1 of 3: leave it out'):
        Table([[1, 2, math.nan], [math.nan, math.nan, 3]], ["a", "b"]).complete()
    with pytest.raises(InvalidInput, match="the items of this table are in no clusters"):
        Table([[1, 2], [3, 4]]).by_cluster()
    with pytest.raises(InvalidInput, match='1 of 12 pairs is missing: option "old", item "q3"; use'):
        TABLE.by_cluster()
    with pytest.raises(InvalidInput, match="pairing needs two items with an outcome of every option, got 1"):
        _ = Table([[1, 2], [3, math.nan]]).pairing


def test_the_extract_of_real_accuracies_is_a_complete_table() -> None:
    examples = Path(__file__).parents[1] / "examples"
    names = {"option": "learner", "item": "split", "outcome": "accuracy", "cluster": "data set"}
    table = Table.from_csv(examples / "accuracies.csv", **names)
    assert table.described() == "20 options on 236 items in 62 clusters"
    assert table.outcomes.min() >= 0 and table.outcomes.max() <= 1
    assert table.pairing.ratio == pytest.approx(0.0078, abs=1e-4)
    assert all(item.startswith(f"{cluster}-") for item, cluster in zip(table.items, table.clusters or (), strict=True))
    learners = CsvTable.from_text((examples / "learners.csv").read_text("utf-8"))
    assert arms_from(learners) == table.options and len(set(learners.column("module"))) == 8
    licence = (examples / "accuracies_LICENSE.txt").read_text("utf-8")
    assert "MIT License" in licence and "Copyright (c) 2021 Felix Mohr" in licence


def test_errors_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("model,q1\na,1\nb,x\n", "utf-8")
    with pytest.raises(InvalidInput, match='scores.csv: line 3, column "q1": a number is needed, got "x"'):
        Table.from_csv(file)
    file.write_bytes(b"model,q1\na,1\n\xff,2\n")
    with pytest.raises(InvalidInput, match="scores.csv: line 3: not UTF-8 text; save the file as UTF-8"):
        Table.from_csv(file)
    with pytest.raises(NotFound, match="none.csv: there is no such file"):
        Table.from_csv(str(tmp_path / "none.csv"))
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        Table.from_csv(tmp_path)


def test_a_table_of_one_option_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "one.csv"
    file.write_text("option,item,outcome\na,q1,0.5\na,q2,0.25\n")
    with pytest.raises(InvalidInput, match='there is one option, "a"; a choice needs at least two'):
        Table.from_csv(file)
