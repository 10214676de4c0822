"""RaceSearchCV is GridSearchCV with fewer fits: what it makes is the same, and what it says is right."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import get_scorer, make_scorer, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    ParameterGrid,
    RepeatedStratifiedKFold,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import spectralbai as sb
from spectralbai.arrays import Matrix
from spectralbai.sklearn import RaceSearchCV
from spectralbai.sklearn.neighbours import neighbours
from spectralbai.sklearn.ranges import RANGES

SMOOTHING = {"var_smoothing": [1e-9, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 10.0]}


class Scripted(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Scores what the data say: a row of X is a fold, and its columns are the scores of the options there. The option
    -1 cannot be fitted."""

    def __init__(self, option: int = 0, level: float = 0.0) -> None:
        self.option = option
        self.level = level

    def fit(self, X: Matrix, y: Any = None) -> Scripted:
        if self.option < 0:
            raise ArithmeticError("this fit fails")
        self.fitted_ = True
        return self

    def score(self, X: Matrix, y: Any = None) -> float:
        return float(X[:, self.option].mean()) + self.level


def scripted(X: Matrix, **settings: Any) -> RaceSearchCV:
    """Returns a search among the columns of X, on its rows."""
    defaults = {"cv": LeaveOneOut(), "score_range": (0, 1), "refit": False, "random_state": 0}
    return RaceSearchCV(Scripted(), {"option": [*range(X.shape[1])]}, **{**defaults, **settings})


def table(n_folds: int = 200, seed: int = 0) -> Matrix:
    """Returns scores (n_folds, 12) in [0, 1]; the best option is number 7, and folds are easy or hard for all."""
    rng = np.random.default_rng(seed)
    means = 0.6 + 0.02 * np.arange(12)
    means[7] = 0.9
    scores = means + 0.03 * rng.standard_normal((n_folds, 1)) + 0.01 * rng.standard_normal((n_folds, 12))
    clipped: Matrix = np.clip(scores, 0, 1)
    return clipped


def of_splits(search: Any, kind: str = "test_score") -> Matrix:
    """Returns the scores on every fold, (n_candidates, n_folds)."""
    columns: Matrix = np.stack([search.cv_results_[f"split{fold}_{kind}"] for fold in range(search.n_splits_)], axis=1)
    return columns


@pytest.mark.parametrize(
    ("estimator", "grid", "more"),
    [
        (Ridge(), {"alpha": [0.1, 1.0]}, {"score_range": (-1, 1)}),
        (GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, {}),
        (make_pipeline(PCA(), Ridge()), {"ridge__alpha": [0.1, 1.0]}, {"score_range": (-1, 1)}),
    ],
)
def test_the_checks_of_scikit_learn_pass(estimator: Any, grid: Any, more: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they warn on purpose
        of_race, of_grid = (
            check_estimator(search, on_fail=None, on_skip=None)
            for search in (
                RaceSearchCV(estimator, grid, cv=2, error_score="raise", **more),
                GridSearchCV(estimator, grid, cv=2, error_score="raise"),
            )
        )
    assert [(check["check_name"], check["status"]) for check in of_race] == [
        (check["check_name"], check["status"]) for check in of_grid
    ]
    # The tests of scikit-learn list this one as failed by GridSearchCV.
    failed = {check["check_name"] for check in of_race if check["status"] == "failed"}
    assert failed <= {"check_supervised_y_2d"} and len(of_race) > 40


@pytest.mark.parametrize("tolerance", [0.0, 1e-9])
def test_without_tolerance_the_answer_is_that_of_grid_search(tolerance: float) -> None:
    X, y = load_iris(return_X_y=True)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)
    race = RaceSearchCV(GaussianNB(), SMOOTHING, cv=folds, tolerance=tolerance, return_train_score=True).fit(X, y)
    grid = GridSearchCV(GaussianNB(), SMOOTHING, cv=folds, return_train_score=True).fit(X, y)
    assert (race.best_index_, race.best_params_, race.best_score_) == (
        grid.best_index_,
        grid.best_params_,
        grid.best_score_,
    )
    assert [key for key in race.cv_results_ if key != "n_folds"] == [*grid.cv_results_]
    assert race.trials_ == race.cv_results_["n_folds"].sum() <= 160
    complete = race.cv_results_["n_folds"] == 20
    for key in (
        key for key in grid.cv_results_ if "time" not in key and not key.startswith(("split", "rank", "param"))
    ):
        assert np.array_equal(race.cv_results_[key][complete], grid.cv_results_[key][complete]), key
    for kind in ("test_score", "train_score"):
        made = ~np.isnan(of_splits(race, kind))
        assert np.array_equal(of_splits(race, kind)[made], of_splits(grid, kind)[made])
    assert race.cv_results_["params"] == grid.cv_results_["params"]
    mine, theirs = (search.cv_results_["param_var_smoothing"] for search in (race, grid))
    assert mine.dtype == theirs.dtype and mine.tolist() == theirs.tolist()
    assert np.array_equal(race.predict(X), grid.predict(X)) and race.score(X, y) == grid.score(X, y)


@pytest.mark.parametrize("seed", range(5))
def test_the_fits_are_those_of_the_race_on_the_table(seed: int) -> None:
    X = table(seed=seed)
    search = scripted(X, random_state=seed, tolerance=0.02).fit(X)
    problem = sb.Problem.bounded(sb.Graph.from_edges(12, []), np.inf, tolerance=0.02, items=sb.Items.listed(X.shape[0]))
    order = np.random.RandomState(seed).randint(2**31 - 1)
    run = sb.simulate.replay(sb.SpectralRace(problem, 0.05), X.T, order)
    assert (search.trials_, search.best_index_, search.status_) == (run.tau, run.arm, "decided")
    assert search.cv_results_["n_folds"].tolist() == run.counts.tolist()
    scores, made = of_splits(search), ~np.isnan(of_splits(search))
    assert search.trials_ == made.sum() < X.size / 3
    assert np.array_equal(scores[made], X.T[made])
    assert search.cv_results_["mean_test_score"] == pytest.approx(np.nanmean(scores, axis=1), abs=1e-12)
    assert search.cv_results_["std_test_score"] == pytest.approx(np.nanstd(scores, axis=1), abs=1e-12)
    assert search.cv_results_["rank_test_score"][7] == 1 == (search.cv_results_["rank_test_score"] == 1).sum()
    assert search.verdict_.startswith("{'option': 7} is within 0.02 of the best of 12 candidates on these 200 folds")
    assert f"{search.trials_:,} of 2,400 fits" in search.verdict_


def test_seeds_fix_the_order_and_without_one_it_is_new() -> None:
    X = table()
    made = [~np.isnan(of_splits(scripted(X, random_state=seed).fit(X))) for seed in (1, 1, 2, None, None)]
    assert np.array_equal(made[0], made[1])
    for other in (made[2], made[4]):
        assert not np.array_equal(made[3], other)
    generator = np.random.RandomState(0)
    first, second = (~np.isnan(of_splits(scripted(X, random_state=generator).fit(X))) for _ in range(2))
    assert not np.array_equal(first, second)


def test_jobs_change_nothing() -> None:
    X = table(n_folds=100)
    alone = scripted(X).fit(X)
    for backend in ("loky", "threading"):
        with parallel_config(backend=backend):
            together = scripted(X, n_jobs=2).fit(X)
        assert np.array_equal(of_splits(alone), of_splits(together), equal_nan=True)
        assert alone.best_index_ == together.best_index_


def test_ranks_are_by_folds_and_then_by_means() -> None:
    X = table() * np.random.default_rng(5).uniform(0.1, 1, (200, 1))
    results = scripted(X, tolerance=0.02).fit(X).cv_results_
    by_rank = np.argsort(results["rank_test_score"], kind="stable")
    folds = results["n_folds"][by_rank]
    assert (np.diff(folds[1:]) <= 0).all() and np.unique(folds).size > 2
    same = np.flatnonzero(np.diff(folds[1:]) == 0) + 1
    means = results["mean_test_score"][by_rank]
    assert (np.diff(means) > 0).any(), "some have a better mean, over easier folds"
    assert same.size and (means[same] >= means[same + 1]).all()


def test_ties_over_all_folds_are_broken_as_in_grid_search() -> None:
    X = table(n_folds=20)[:, [0, 7, 7, 7]]
    for seed in range(5):
        search = scripted(X, tolerance=0.0, random_state=seed).fit(X)
        assert search.best_index_ == 1
        assert search.cv_results_["rank_test_score"].tolist()[:2] == [4, 1]


def test_candidates_that_fail_are_left_out() -> None:
    X = table()
    X[::20, 7] = np.nan  # as zeros they would not keep it from being the best
    search = scripted(X, tolerance=0.02).fit(X)
    assert search.best_index_ == 11
    assert np.isnan(search.cv_results_["mean_test_score"][7]) and search.cv_results_["rank_test_score"][7] == 12
    assert "at a risk of 0.1;" in search.verdict_
    assert search.verdict_.endswith("candidates left out because fits of them failed: 1")


def test_all_but_one_may_fail_but_not_all() -> None:
    X = table(n_folds=30)[:, [0, 1, 2]]
    X[3, 0] = X[4, 1] = np.nan
    assert scripted(X).fit(X).best_index_ == 2
    X[3] = np.nan
    with pytest.raises(sb.InvalidInput, match="every candidate failed on some fold"):
        scripted(X, tolerance=0.0).fit(X)


def test_fits_that_raise_are_failed_or_have_the_error_score_or_raise() -> None:
    X = table()
    settings = {"cv": LeaveOneOut(), "score_range": (0, 1), "refit": False, "random_state": 0, "tolerance": 0.02}
    for error_score, best in ((np.nan, 2), (0.5, 2), (0.95, 0)):
        with pytest.warns(FitFailedWarning):
            search = RaceSearchCV(Scripted(), {"option": [-1, 3, 7]}, error_score=error_score, **settings).fit(X)
        assert search.best_index_ == best
    with pytest.raises(ArithmeticError, match="this fit fails"):
        RaceSearchCV(Scripted(), {"option": [-1, 3, 7]}, error_score="raise", **settings).fit(X)
    with pytest.raises(ValueError, match="All the . fits failed"):
        RaceSearchCV(Scripted(), {"option": [-1, -1]}, **settings).fit(X)


def test_scores_below_the_range_count_as_its_lower_end() -> None:
    X = table()
    X[:, 0] -= 5
    search = scripted(X, tolerance=0.02).fit(X)
    assert search.best_index_ == 7 and "below" not in search.verdict_
    assert search.cv_results_["mean_test_score"][0] < -4
    X[::10, 7] = -0.1
    search = scripted(X, tolerance=0.02).fit(X)
    assert search.best_index_ == 11 or search.verdict_.endswith("scores of it below 0 count as 0")


def test_neighbours_are_a_graph() -> None:
    grid = ParameterGrid([{"C": [10, 1, 5], "kernel": ["a", "b"]}, {"C": [2, 3]}])
    pairs = {tuple(sorted((str(grid[a]), str(grid[b])))) for a, b in neighbours(grid, ["C"])}
    steps = [(1, 5, "a"), (5, 10, "a"), (1, 5, "b"), (5, 10, "b")]
    expected = {tuple(sorted(str({"kernel": kernel, "C": C}) for C in (low, high))) for low, high, kernel in steps}
    assert pairs == expected | {("{'C': 2}", "{'C': 3}")}
    both = neighbours(ParameterGrid({"a": [1, 2, 3], "b": [1.5, 0.5]}), ("a", "b"))
    assert sorted(map(sorted, both)) == [[0, 1], [0, 2], [1, 3], [2, 3], [2, 4], [3, 5], [4, 5]]


def test_neighbours_change_the_race_as_a_graph_does() -> None:
    X = np.clip(0.2 + 0.3 * np.random.default_rng(0).standard_normal((300, 40)), 0, 1)
    X[:, 39] += 0.3 * (1 - X[:, 39])
    grid = [{"option": [*range(39)]}, {"option": [39]}]
    settings = {"cv": LeaveOneOut(), "score_range": (0, 1), "refit": False, "random_state": 0, "tolerance": 0.02}
    search = RaceSearchCV(Scripted(), grid, similar=["option"], step=0.03, **settings).fit(X)
    graph = sb.Graph.from_edges(40, [(k, k + 1) for k in range(38)])
    problem = sb.Problem.bounded(graph, 38 * 0.03**2, tolerance=0.02, items=sb.Items.listed(300))
    run = sb.simulate.replay(sb.SpectralRace(problem, 0.05), X.T, np.random.RandomState(0).randint(2**31 - 1))
    assert (search.trials_, search.best_index_) == (run.tau, run.arm) == (run.tau, 39)
    assert search.trials_ != RaceSearchCV(Scripted(), grid, **settings).fit(X).trials_


def test_scores_that_contradict_the_step_are_reported() -> None:
    X = table(n_folds=300)[:, :4]
    X[:, 3] = 0.1
    with pytest.warns(UserWarning, match="differ by more than `step` allows"):
        search = scripted(X, similar=["option"], step=1e-3, tolerance=0.0).fit(X)
    assert search.status_ == "inconsistent" and search.best_index_ in range(4)


def test_several_scores_are_kept_and_refit_names_the_one_that_decides() -> None:
    X, y = load_iris(return_X_y=True)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)
    settings = {"cv": folds, "random_state": 0, "tolerance": 0.0}
    alone = RaceSearchCV(GaussianNB(), SMOOTHING, scoring="f1_macro", **settings).fit(X, y)

    def both(estimator: Any, X: Matrix, y: Any) -> Mapping[str, float]:
        return {name: get_scorer(name)(estimator, X, y) for name in ("accuracy", "f1_macro")}

    for scoring, ends in (
        (["accuracy", "f1_macro"], None),
        ({"accuracy": "accuracy", "f1_macro": "f1_macro"}, None),
        (both, (0, 1)),
    ):
        search = RaceSearchCV(GaussianNB(), SMOOTHING, scoring=scoring, refit="f1_macro", score_range=ends, **settings)
        search.fit(X, y)
        assert np.array_equal(of_splits(alone), of_splits(search, "test_f1_macro"), equal_nan=True)
        assert np.array_equal(np.isnan(of_splits(alone)), np.isnan(of_splits(search, "test_accuracy")))
        assert (search.best_index_, search.best_score_) == (alone.best_index_, alone.best_score_)
        assert search.cv_results_["rank_test_f1_macro"].tolist() == alone.cv_results_["rank_test_score"].tolist()
        assert search.multimetric_ and set(search.cv_results_) >= {"mean_test_accuracy", "rank_test_accuracy"}
    with pytest.raises(sb.InvalidInput, match="`refit` must name the score .* accuracy, f1_macro, got False"):
        RaceSearchCV(GaussianNB(), SMOOTHING, scoring=both, refit=False, score_range=(0, 1), **settings).fit(X, y)


def test_refit_may_be_left_out_or_choose_by_the_table() -> None:
    X = table()
    assert not hasattr(scripted(X).fit(X), "best_estimator_")
    search = scripted(X, refit=lambda results: int(np.argmin(results["n_folds"]))).fit(X)
    assert search.best_index_ == np.argmin(search.cv_results_["n_folds"]) != 7
    assert search.best_estimator_.option == search.best_index_


def test_one_candidate_is_tried_on_all_folds() -> None:
    X = table(n_folds=20)[:, :1]
    search = scripted(X).fit(X)
    assert (search.trials_, search.best_index_, search.status_) == (20, 0, "decided")
    assert search.best_score_ == pytest.approx(X.mean())


@pytest.mark.parametrize("name", sorted(RANGES))
def test_scorers_stay_in_the_range_that_is_known(name: str) -> None:
    rng = np.random.default_rng(0)
    scorer, (low, high) = get_scorer(name), RANGES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scores that are not defined where there is one class
        for n in (4, 10, 40):
            for _ in range(20):
                truth = rng.integers(2, size=(n, 3) if name.endswith("_samples") else n)
                truth[:2] = [[0], [1]] if truth.ndim == 2 else [0, 1]
                guess = truth if rng.random() < 0.2 else rng.integers(2, size=truth.shape)
                score = scorer._sign * scorer._score_func(truth, guess, **scorer._kwargs)
                assert np.isnan(score) or low - 1e-12 <= score <= high + 1e-12


class Counted(KFold):  # type: ignore[misc]  # scikit-learn has no types
    """Folds that are new at every split, and how often there was one."""

    splits = 0

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Any]:
        self.splits += 1
        yield from super().split(X, y, groups)


def test_folds_are_split_once() -> None:
    X, y = load_iris(return_X_y=True)
    folds = Counted(n_splits=20, shuffle=True, random_state=np.random.RandomState(0))
    RaceSearchCV(GaussianNB(), SMOOTHING, cv=folds).fit(X, y)
    assert folds.splits == 1


class Wrong(KFold):  # type: ignore[misc]
    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return 7


IRIS = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tolerance": -0.1}, "`tolerance` must be a finite non-negative number, got -0.1"),
        ({"tolerance": "much"}, "`tolerance` must be a finite non-negative number, got 'much'; give a number"),
        ({"delta": 0}, "`delta` must be a risk between 0 and 1, such as 0.05, got 0"),
        ({"delta": 5}, "`delta` must be a risk between 0 and 1, such as 0.05, got 5"),
        ({"score_range": 1}, "`score_range` must be two numbers, such as (0, 1), got 1"),
        (
            {"score_range": (1, 0)},
            "`score_range[0]` must be below `score_range[1]` by a finite amount, got 1.0 and 0.0",
        ),
        ({"score_range": (0, "high")}, "`score_range[1]` must be a finite number, got 'high'; give a number"),
        ({"score_range": (0, 0.5)}, "`score_range` must contain all scores, got "),
        ({"scoring": "r2"}, "`score_range` must be given, since no range of r2 is known"),
        ({"scoring": "neg_log_loss"}, "`score_range` must be given, since no range of neg_log_loss is known"),
        ({"scoring": make_scorer(r2_score)}, "`score_range` must be given, since no range of this scorer is known"),
        ({"scoring": ["accuracy", "f1_macro"], "refit": False}, "`refit` must name the score that the race is about"),
        ({"scoring": {"r": "r2"}, "refit": "r"}, "`score_range` must be given, since no range of r2 is known"),
        ({"step": 0.1}, "`step` must be left out without `similar`, got 0.1; or name parameters there"),
        ({"similar": ["var_smoothing"]}, "`step` must be the largest difference of the mean scores of neighbours"),
        ({"similar": ["var_smoothing"], "step": 0}, "`step` must be the largest difference of the mean scores"),
        (
            {"similar": "var_smoothing", "step": 1},
            "`similar` must be a list of parameters of the grid, of var_smoothing",
        ),
        (
            {"similar": ["C"], "step": 1},
            "`similar` must be a list of parameters of the grid, of var_smoothing, got ['C']",
        ),
        (
            {"similar": ["priors"], "param_grid": {"priors": [None, [0.2, 0.3, 0.5]]}, "step": 1},
            "$.priors must be a number, since `similar` names it, got None; give a number",
        ),
        (
            {"similar": ["var_smoothing"], "param_grid": {"var_smoothing": [1.0], "priors": [None, None]}, "step": 1},
            "`similar` must name a parameter with several values, got ['var_smoothing']",
        ),
        ({"param_grid": []}, "`param_grid` must hold at least one candidate, got none"),
        ({"cv": Wrong()}, "`cv` must make as many folds as its get_n_splits says, 7, got 5"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(sb.InvalidInput) as error:
        RaceSearchCV(GaussianNB(), **{"param_grid": SMOOTHING, **settings}).fit(*IRIS)
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_nothing_is_fitted_where_the_range_is_not_known() -> None:
    class Never(Scripted):
        def fit(self, X: Matrix, y: Any = None) -> Scripted:
            raise AssertionError("a fit was made")

    with pytest.raises(sb.InvalidInput, match="no range of Never.score is known"):
        RaceSearchCV(Never(), {"option": [0, 1]}, error_score="raise").fit(table())


def test_it_is_an_estimator_as_others() -> None:
    X, y = IRIS
    search = RaceSearchCV(GaussianNB(), SMOOTHING, tolerance=0.03, random_state=0)
    copy = clone(search).set_params(delta=0.1, estimator__priors=[0.2, 0.3, 0.5])
    assert (copy.get_params()["tolerance"], copy.delta, copy.estimator.priors) == (0.03, 0.1, [0.2, 0.3, 0.5])
    search.fit(X, y)
    loaded = pickle.loads(pickle.dumps(search))
    assert loaded.verdict_ == search.verdict_ and np.array_equal(loaded.predict(X), search.predict(X))
    assert "RaceSearchCV" in search._repr_html_() and "GaussianNB" in search._repr_html_()
    assert cross_val_score(clone(search), X, y, cv=2).shape == (2,)
    inside = make_pipeline(PCA(n_components=2), clone(search)).fit(X, y)
    assert inside[-1].n_features_in_ == 2
    steps = RaceSearchCV(make_pipeline(PCA(), GaussianNB()), {"pca__n_components": [1, 2, 3]}, random_state=0).fit(X, y)
    assert steps.best_estimator_[0].n_components == steps.best_params_["pca__n_components"]


def test_groups_and_weights_arrive_as_in_grid_search() -> None:
    X, y = IRIS
    rng = np.random.default_rng(0)
    groups, weights = rng.integers(12, size=y.size), rng.random(y.size)
    for routed in (False, True):
        with config_context(enable_metadata_routing=routed):
            estimator, scoring = GaussianNB(), get_scorer("accuracy")
            if routed:
                estimator = estimator.set_fit_request(sample_weight=True)
                scoring = scoring.set_score_request(sample_weight=True)
            settings = {"cv": GroupKFold(n_splits=12), "scoring": scoring}
            race = RaceSearchCV(estimator, SMOOTHING, tolerance=0.0, score_range=(0, 1), **settings)
            race.fit(X, y, groups=groups, sample_weight=weights)
            grid = GridSearchCV(estimator, SMOOTHING, **settings).fit(X, y, groups=groups, sample_weight=weights)
        made = ~np.isnan(of_splits(race))
        assert made.sum() > 12 and np.array_equal(of_splits(race)[made], of_splits(grid)[made])
        assert race.best_index_ == grid.best_index_ and np.array_equal(race.predict_proba(X), grid.predict_proba(X))
    with pytest.raises(ValueError, match="groups"):
        race.fit(X, y)


def test_what_is_verbose_prints_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    X = table(n_folds=50)
    search = scripted(X, verbose=1).fit(X)
    assert capsys.readouterr().out.splitlines()[-1] == search.verdict_


@pytest.mark.parametrize("there", ["None", "types.SimpleNamespace(__version__='1.8.2')"])
def test_without_scikit_learn_one_sentence_says_how_to_get_it(there: str) -> None:
    code = f"""
import sys, types
sys.modules["sklearn"] = {there}
import spectralbai as sb
try:
    import spectralbai.sklearn
except sb.SpectralBAIError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "RaceSearchCV needs scikit-learn 1.9 or later, which is not installed; "
        "run: pip install 'spectralbai[sklearn]'\n"
    )


def test_folds_may_come_from_a_generator() -> None:
    X, y = IRIS
    search = RaceSearchCV(GaussianNB(), SMOOTHING, cv=KFold(12, shuffle=True, random_state=0).split(X, y)).fit(X, y)
    assert search.n_splits_ == 12 and search.trials_ > 12


class Counting:
    """A callback that counts the fits that it hears of."""

    def __init__(self) -> None:
        self.leaves = 0

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    def teardown(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_begin(self, estimator: Any, context: Any, **data: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any, **data: Any) -> bool:
        self.leaves += context.task_name == "candidate-split-evaluation"
        return False


def test_callbacks_hear_of_every_fit() -> None:
    counting = Counting()
    X = table(n_folds=50)
    search = scripted(X).set_callbacks(counting).fit(X)
    assert counting.leaves == search.trials_
