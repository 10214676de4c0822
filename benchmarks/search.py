"""RaceSearchCV beside GridSearchCV and HalvingGridSearchCV: fits made, wrong answers, time.

`python -m benchmarks.search [--orders N]`; rows are also printed to stderr as soon as they are known. Four data sets
that come with scikit-learn. GridSearchCV makes the table of all scores once, and the race is replayed on it in many
orders of the folds; a test shows that RaceSearchCV makes the fits of the replay. An answer is wrong if its mean over
all folds is below the best one by more than the tolerance.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from scipy.stats import beta, binom
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  # HalvingGridSearchCV can be imported then
from sklearn.linear_model import ElasticNet
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    ParameterGrid,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import spectralbai as sb
from benchmarks.items import DELTA, SURE, printed
from benchmarks.samples import said, standard_error
from spectralbai.arrays import Matrix, Vector
from spectralbai.sklearn import RaceSearchCV

TOLERANCES = (0.01, 0.03)
HALVING_FOLDS = 5
"""As many as HalvingGridSearchCV has unless told otherwise; all its fits together are then far fewer than the grid."""


@dataclass(frozen=True)
class Case:
    """A data set, a model, a grid, and the number of times that ten folds are repeated."""

    name: str
    load: Any
    model: Any
    grid: dict[str, list[Any]]
    repeats: int
    regression: bool = False

    @property
    def folds(self) -> Any:
        kind = RepeatedKFold if self.regression else RepeatedStratifiedKFold
        return kind(n_splits=10, n_repeats=self.repeats, random_state=0)


def powers(low: float, high: float, n: int) -> list[float]:
    return [float(f"{10**power:.3g}") for power in np.linspace(low, high, n)]


CASES = (
    Case(
        "wine, decision tree",
        load_wine,
        DecisionTreeClassifier(random_state=0),
        {
            "max_depth": [1, 2, 3, 4, 5, 8],
            "min_samples_leaf": [1, 2, 3, 5, 8, 12, 20, 30],
            "criterion": ["gini", "entropy"],
        },
        30,
    ),
    Case(
        "breast cancer, support vectors",
        load_breast_cancer,
        make_pipeline(StandardScaler(), SVC()),
        {"svc__C": powers(-2, 3, 8), "svc__gamma": powers(-4, 1, 8)},
        10,
    ),
    Case("digits, naive Bayes", load_digits, GaussianNB(), {"var_smoothing": powers(-9, 0.75, 40)}, 5),
    Case(
        "diabetes, elastic net (R2)",
        load_diabetes,
        ElasticNet(),
        {"alpha": powers(-4, 1, 20), "l1_ratio": [0.1, 0.3, 0.5, 0.7, 0.9]},
        20,
        regression=True,
    ),
)


@dataclass(frozen=True)
class Grid:
    """The scores of all candidates on all folds, and the time that GridSearchCV took for them."""

    scores: Matrix
    seconds: float


def whole(case: Case) -> Grid:
    """Returns what GridSearchCV finds."""
    X, y = case.load(return_X_y=True)
    start = time.perf_counter()
    search = GridSearchCV(case.model, case.grid, cv=case.folds, refit=False).fit(X, y)
    seconds = time.perf_counter() - start
    scores = np.stack([search.cv_results_[f"split{fold}_test_score"] for fold in range(search.n_splits_)], axis=1)
    return Grid(scores, seconds)


def wrong(means: Vector, answers: list[int], tolerance: float) -> int:
    """Returns how many answers are worse than the best by more than the tolerance."""
    return int((means[answers] < means.max() - tolerance).sum())


def limits(wrong: int, runs: int) -> str:
    """Returns the number of wrong answers, and the exact upper limit of their share at 95 %."""
    upper = 1.0 if wrong == runs else float(beta.isf(0.05, wrong + 1, runs - wrong))
    return f"{wrong} of {runs} (< {upper:.0%})"


def policy_on(grid: Grid, tolerance: float) -> sb.SpectralRace:
    n_candidates, n_folds = grid.scores.shape
    graph, items = sb.Graph.from_edges(n_candidates, []), sb.Items.listed(n_folds)
    return sb.SpectralRace(sb.Problem.bounded(graph, math.inf, tolerance=tolerance, items=items), DELTA)


def raced(case: Case, grid: Grid, tolerance: float, orders: int) -> list[str]:
    """Returns a row on the race, replayed in many orders."""
    n_candidates, n_folds = grid.scores.shape
    policy = policy_on(grid, tolerance)
    table = np.clip(grid.scores, 0, 1)
    runs = [sb.simulate.replay(policy, table, seed) for seed in range(orders)]
    trials = np.array([run.tau for run in runs])
    errors = wrong(grid.scores.mean(axis=1), [run.arm for run in runs], tolerance)
    assert all(run.status == "decided" for run in runs) and trials.max() <= table.size, case.name
    assert errors <= binom.isf(SURE, orders, DELTA), (case.name, errors)
    return [
        case.name,
        f"{n_candidates} x {n_folds}",
        f"{tolerance:g}",
        f"{n_folds * tolerance:g}",
        f"{trials.mean() / table.size:.0%} ({standard_error(trials) / table.size:.1%})",
        f"{trials.max() / table.size:.0%}",
        limits(errors, orders),
    ]


def timed(case: Case, grid: Grid, tolerance: float) -> list[str]:
    """Returns a row on one search, beside the whole grid."""
    X, y = case.load(return_X_y=True)
    settings = {"cv": case.folds, "refit": False, "random_state": 0, "score_range": (0, 1)}
    search = RaceSearchCV(case.model, case.grid, tolerance=tolerance, **settings)
    start = time.perf_counter()
    search.fit(X, y)
    seconds = time.perf_counter() - start
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    replay = sb.simulate.replay(policy_on(grid, tolerance), np.clip(grid.scores, 0, 1), seed)
    assert search.trials_ == replay.tau, "RaceSearchCV makes the fits of the replay"
    share = f"{search.trials_ / grid.scores.size:.0%}"
    return [
        case.name,
        f"{tolerance:g}",
        f"{grid.seconds:.0f}",
        f"{seconds:.0f}",
        f"{seconds / grid.seconds:.0%}",
        share,
    ]


def halved(case: Case, grid: Grid, orders: int) -> Iterator[list[str]]:
    """Yields rows on HalvingGridSearchCV, one for each tolerance."""
    X, y = case.load(return_X_y=True)
    candidates = list(ParameterGrid(case.grid))
    answers, fits, seconds = [], [], []
    for seed in range(orders):
        kind = KFold if case.regression else StratifiedKFold
        folds = kind(HALVING_FOLDS, shuffle=True, random_state=seed)
        search = HalvingGridSearchCV(case.model, case.grid, cv=folds, refit=False, random_state=seed)
        start = time.perf_counter()
        search.fit(X, y)
        seconds.append(time.perf_counter() - start)
        answers.append(candidates.index(search.best_params_))
        fits.append(sum(search.n_candidates_) * HALVING_FOLDS)
    means = grid.scores.mean(axis=1)
    for tolerance in TOLERANCES:
        errors = limits(wrong(means, answers, tolerance), orders)
        yield [
            case.name,
            f"{tolerance:g}",
            f"{np.mean(fits) / grid.scores.size:.0%}",
            errors,
            f"{np.mean(seconds):.1f}",
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=40, help="orders of the folds of each data set")
    orders = parser.parse_args().orders
    warnings.simplefilter("ignore")  # halving fits parts too small for R2 or for convergence, thousands of times
    races, times, halvings = [], [], []
    for case in CASES:
        grid = whole(case)
        races += [said(raced(case, grid, tolerance, orders)) for tolerance in TOLERANCES]
        times.append(said(timed(case, grid, TOLERANCES[0])))
        halvings += [said(row) for row in halved(case, grid, orders)]
    console = Console(width=140)
    of_races = ("data, model", "settings x folds", "tolerance", "folds x tolerance", "fits (s.e.)", "largest", "wrong")
    console.print(printed(f"RaceSearchCV, delta = {DELTA:g}", of_races, races))
    of_times = ("data, model", "tolerance", "GridSearchCV, s", "RaceSearchCV, s", "of it", "fits, of the grid")
    console.print(printed("One search, on one processor", of_times, times))
    of_halvings = ("data, model", "tolerance", "fits, of the grid, on fewer rows", "wrong", "seconds")
    console.print(printed(f"HalvingGridSearchCV, {HALVING_FOLDS} folds", of_halvings, halvings))


if __name__ == "__main__":
    main()
