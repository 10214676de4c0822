"""The rivals that benchmarks show beside races on items do what their papers and documentation say."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rivals_items import (
    Choice,
    Rival,
    full_table,
    is_wrong,
    same_items,
    successive_halving,
    successive_rejects,
    wilcoxon_pruner,
)
from benchmarks.tables import grid_edges

ORDER = np.random.default_rng(0).permutation(50)


def table(late: int = 50) -> np.ndarray:
    """Returns four options on fifty items: option 2 is always best, but option 0 from the `late`-th item tried on."""
    outcomes = np.repeat([[0.1], [0.2], [0.5], [0.3]], 50, axis=1)
    outcomes[0, ORDER[late:]] = 50.0
    return outcomes


@pytest.mark.parametrize(
    ("rival", "trials", "used"),
    [
        (same_items, 79, 19 * 4),
        (successive_halving, 80, 10 * 4 + 20 * 2),
        (successive_rejects, 100, 16 * 4 + 5 * 3 + 10 * 2),
        (full_table, 80, 200),
        (same_items, 1000, 200),
        (successive_halving, 1000, 200),
        (successive_rejects, 1000, 200),
    ],
)
def test_a_rival_uses_the_trials_of_its_schedule(rival: Rival, trials: int, used: int) -> None:
    assert rival(table(), ORDER, trials) == Choice(2, used)


def test_halving_an_odd_number_of_options_keeps_the_larger_half() -> None:
    outcomes = np.vstack([table(), np.full(50, 0.4)])
    assert successive_halving(outcomes, ORDER, 120) == Choice(2, 8 * 5 + 13 * 3 + 20 * 2)


@pytest.mark.parametrize(("rival", "size"), [(same_items, 20), (successive_halving, 10), (successive_rejects, 16)])
def test_a_rival_compares_options_on_the_first_items_of_the_order(rival: Rival, size: int) -> None:
    """Option 0 is dropped first unless it has become better by then."""
    assert rival(table(size), ORDER, 100 if rival is successive_rejects else 80).option == 2
    assert rival(table(size - 1), ORDER, 100 if rival is successive_rejects else 80).option == 0


def test_the_pruner_of_optuna_spends_little_on_bad_options() -> None:
    pytest.importorskip("optuna")
    outcomes = table() + 0.2 * np.random.default_rng(1).random(50)
    choice = wilcoxon_pruner(outcomes, ORDER, 1000)
    assert choice.option == 2 and 50 < choice.trials < 200
    assert wilcoxon_pruner(outcomes, ORDER, 30).trials == 30
    assert wilcoxon_pruner(outcomes, ORDER, 1000) == choice


def test_an_answer_is_wrong_if_it_is_worse_by_more_than_the_tolerance() -> None:
    outcomes = table()
    assert not is_wrong(outcomes, 3, 0.2) and is_wrong(outcomes, 3, 0.19) and is_wrong(outcomes, 1, 0.2)


def test_the_edges_of_a_grid_join_neighbours() -> None:
    assert sorted(grid_edges(2, 3)) == [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]
