"""What others do with options and items, for a given number of trials: who they choose, and how often that is wrong.

Every method gets outcomes of shape (n_options, n_items), an order of the items, and a number of trials, and returns a
`Choice`. Options are tried on the first items of the order, so that all methods but Optuna's compare options on the
same items. `python -m benchmarks.rivals_items [--orders N]` prints their error rates on the tables of
`benchmarks.tables`.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table as Printed

from benchmarks.tables import lcdb, svm_digits
from spectralbai.arrays import Indices, Matrix

TRIALS = {"learners": (1000, 1700, 2250), "support-vector machines": (600, 1500, 3000)}
TOLERANCES = {"learners": (0.01, 0.02), "support-vector machines": (0.001, 0.005)}


class Choice(NamedTuple):
    """What a method says in the end."""

    option: int
    trials: int
    """Trials used: at most as many as were given, or the whole table if that is less."""


Rival = Callable[[Matrix, Indices, int], Choice]


def full_table(outcomes: Matrix, order: Indices, trials: int) -> Choice:
    """Returns the best option of the whole table, whatever number of trials is given."""
    return Choice(int(outcomes.mean(axis=1).argmax()), outcomes.size)


def same_items(outcomes: Matrix, order: Indices, trials: int) -> Choice:
    """Returns the option with the best mean after all are tried on equally many items, the same for all."""
    n_options, n_items = outcomes.shape
    size = min(trials // n_options, n_items)
    return Choice(int(outcomes[:, order[:size]].mean(axis=1).argmax()), size * n_options)


def successive_halving(outcomes: Matrix, order: Indices, trials: int) -> Choice:
    """Returns the last option after rounds of equally many trials, each of which drops the worse half [KKS13].

    Options are compared by their means over all items so far, as with Hyperband, rather than those of the round.
    """
    n_options, n_items = outcomes.shape
    rounds = math.ceil(math.log2(n_options))
    left, size, used = np.arange(n_options), 0, 0
    for _ in range(rounds):
        more = min(trials // (rounds * len(left)), n_items - size)
        size, used = size + more, used + more * len(left)
        left = _best(outcomes, order[:size], left, math.ceil(len(left) / 2))
    return Choice(int(left[0]), used)


def successive_rejects(outcomes: Matrix, order: Indices, trials: int) -> Choice:
    """Returns the last option after K - 1 phases, each of which drops the worst [ABM10], on common items.

    In phase k options are tried until they have n_k = ceil((n - K) / (logbar K (K + 1 - k))) items, with logbar K =
    1/2 + sum_{i=2}^K 1/i.
    """
    n_options, n_items = outcomes.shape
    logbar = 0.5 + sum(1 / i for i in range(2, n_options + 1))
    left, size, used = np.arange(n_options), 0, 0
    for phase in range(1, n_options):
        wanted = math.ceil((trials - n_options) / (logbar * (n_options + 1 - phase)))
        more = min(wanted, n_items) - size
        size, used = size + more, used + more * len(left)
        left = _best(outcomes, order[:size], left, len(left) - 1)
    return Choice(int(left[0]), used)


def _best(outcomes: Matrix, items: Indices, left: Indices, count: int) -> Indices:
    """Returns so many of the options that are left, those with the best means over these items."""
    means = outcomes[np.ix_(left, items)].mean(axis=1)
    best: Indices = left[np.argsort(-means, kind="stable")[:count]]
    return best


def wilcoxon_pruner(outcomes: Matrix, order: Indices, trials: int) -> Choice:
    """Returns the best trial of an Optuna study with WilcoxonPruner, used as its documentation says.

    Options come in a random order, without repetition. Each is tried on all items, in an order of its own, until
    `should_prune`, and its value is the mean of its outcomes so far. Where trials run out, the study ends.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    n_options, n_items = outcomes.shape
    rng = np.random.default_rng(order)
    sampler = optuna.samplers.GridSampler({"option": range(n_options)}, seed=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        pruner = optuna.pruners.WilcoxonPruner()
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    used = 0

    def objective(trial: optuna.Trial) -> float:
        nonlocal used
        option = trial.suggest_int("option", 0, n_options - 1)
        results: list[float] = []
        for item in rng.permutation(n_items).tolist():
            results.append(float(outcomes[option, item]))
            used += 1
            trial.report(results[-1], item)
            if used == trials:
                study.stop()
                break
            if trial.should_prune():
                break
        return sum(results) / len(results)

    study.optimize(objective, n_trials=n_options)
    return Choice(int(study.best_params["option"]), used)


RIVALS: Mapping[str, Rival] = {
    "whole table": full_table,
    "all options on the same items": same_items,
    "successive halving": successive_halving,
    "paired successive rejects": successive_rejects,
    "Optuna, WilcoxonPruner": wilcoxon_pruner,
}


def is_wrong(outcomes: Matrix, option: int, tolerance: float) -> bool:
    """Returns whether the mean of an option over the table is more than the tolerance below the largest."""
    means = outcomes.mean(axis=1)
    return bool(means[option] < means.max() - tolerance - 1e-12)


def choices(outcomes: Matrix, trials: int, seed: int) -> dict[str, Choice]:
    """Returns what every rival chooses on one order of the items; `trials` are enough to halve the options."""
    assert trials >= len(outcomes) * math.ceil(math.log2(len(outcomes)))
    order = np.random.default_rng(seed).permutation(outcomes.shape[1])
    return {name: rival(outcomes, order, trials) for name, rival in RIVALS.items()}


def main() -> None:
    """Prints how often each rival is wrong, for some numbers of trials."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=40)
    orders = parser.parse_args().orders
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        for name, (table, _) in {"learners": lcdb(), "support-vector machines": svm_digits()}.items():
            columns = [f"wrong by more than {tolerance:g}" for tolerance in TOLERANCES[name]]
            printed = Printed("method", "trials given", "used", *columns, title=f"{name}, {orders} orders")
            for trials in TRIALS[name]:
                made = [*executor.map(partial(choices, table.outcomes, trials), range(orders))]
                for rival in RIVALS:
                    of_rival = [each[rival] for each in made]
                    rates = [
                        np.mean([is_wrong(table.outcomes, choice.option, tolerance) for choice in of_rival])
                        for tolerance in TOLERANCES[name]
                    ]
                    used = np.mean([choice.trials for choice in of_rival])
                    printed.add_row(rival, f"{trials:,}", f"{used:,.0f}", *(f"{rate:.3f}" for rate in rates))
            Console().print(printed)


if __name__ == "__main__":
    main()
