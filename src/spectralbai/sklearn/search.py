"""The search: candidates of a grid are the options, and folds are the list of items (theory, section 18)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.utils import check_random_state

from spectralbai.checks import check_number
from spectralbai.errors import InvalidInput
from spectralbai.graph import Graph
from spectralbai.items import Items
from spectralbai.policy import SpectralRace
from spectralbai.problem import Problem
from spectralbai.sklearn.fits import Fits, Folds
from spectralbai.sklearn.neighbours import neighbours
from spectralbai.sklearn.ranges import range_of
from spectralbai.threads import one_thread
from spectralbai.verdict import Verdict

ROUNDING = 1e-9
"""A score may be above its range by this part of the width."""


class RaceSearchCV(GridSearchCV):  # type: ignore[misc]  # scikit-learn has no types
    """A search over a grid, as GridSearchCV, that leaves out fits which the answer does not need.

    With probability 1 - delta over the order of the folds, which is drawn at random, the mean score of `best_params_`
    over all folds is within `tolerance` of that of the candidate that GridSearchCV would choose. Candidates are dropped
    as soon as the folds so far show that they can be, so there are never more fits than GridSearchCV makes. Little is
    saved with few folds, such as 50 at a tolerance of .01.

    Parameters and attributes are those of GridSearchCV, and in addition:

    - `tolerance`: by how much the mean score may fall short of the best one.
    - `delta`: the risk that it falls short by more.
    - `score_range`: the ends of the scores, if `scoring` does not tell them. Scores below the range count as its lower
      end in the race, and are in `cv_results_` as they are.
    - `similar` and `step`: names of parameters, and the largest difference between the mean scores of candidates that
      are neighbours in one of them. By default nothing is assumed of neighbours.
    - `random_state`: fixes the order of the folds; new for every `fit` if None. Fix it in tests only: parameters that
      were chosen after an earlier search in the same order are not judged fairly.
    - `trials_`: the number of fits made.
    - `status_`: "decided", or "inconsistent" if the scores contradict `step`; then nothing is promised.
    - `verdict_`: the result in one sentence.

    In `cv_results_` the scores of fits that were not made are NaN, means are over those that were made, and "n_folds"
    is their number. `rank_test_score` ranks by this number first, since means over different folds do not compare.
    With several scores, the race is about that which `refit` names.

    Examples:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import RepeatedStratifiedKFold
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from spectralbai.sklearn import RaceSearchCV
        >>> folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=20, random_state=0)
        >>> grid = {"var_smoothing": [1e-9, 0.01, 0.1, 1, 10]}
        >>> search = RaceSearchCV(GaussianNB(), grid, cv=folds, tolerance=0.05, random_state=0)
        >>> search = search.fit(*load_iris(return_X_y=True))
        >>> search.status_, search.best_params_, search.trials_ < 400
        ('decided', {'var_smoothing': 1e-09}, True)
    """

    n_splits_: int

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        tolerance: float = 0.01,
        delta: float = 0.05,
        score_range: tuple[float, float] | None = None,
        similar: Sequence[str] | None = None,
        step: float | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[[Mapping[str, Any]], int] = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.tolerance = tolerance
        self.delta = delta
        self.score_range = score_range
        self.similar = similar
        self.step = step
        self.random_state = random_state

    def _run_search(self, evaluate_candidates: Callable[..., dict[str, Any]], *, callback_ctx: Any) -> None:
        """Makes the fits that the race asks for, and leaves their table in the results that `fit` keeps."""
        grid = ParameterGrid(self.param_grid)
        n_folds = self.n_splits_
        candidates, folds = list(grid), Folds(self._checked_cv_orig, n_folds)
        if not candidates:
            raise InvalidInput("`param_grid` must hold at least one candidate, got none")
        low, high = range_of(self._decisive(), self.estimator, self.score_range)
        policy = None if len(candidates) == 1 else SpectralRace(self._problem(grid, low, high), self.delta)
        whole = callback_ctx.subcontext(task_name="race", max_subtasks=None).call_on_fit_task_begin(estimator=self)
        results: dict[str, Any] = {}

        def fitted(arms: Sequence[int], items: Sequence[int]) -> list[Mapping[str, Any]]:
            """Fits each of these candidates on each of these folds."""
            nonlocal results
            size = len(arms) * len(items)
            part = whole.subcontext(task_name="block", max_subtasks=size, sequential_subtasks=False)
            part.call_on_fit_task_begin(estimator=self)
            folds.chosen, self.n_splits_ = items, len(items)  # `evaluate_candidates` compares them
            try:
                results = evaluate_candidates([candidates[arm] for arm in arms], folds, callback_ctx=part)
            finally:
                self.n_splits_ = n_folds
            part.call_on_fit_task_end(estimator=self)
            return list(results["fits"][-size:])

        fits = Fits(len(candidates), n_folds, fitted, self.refit)
        if policy is None:
            fits.make(np.zeros(n_folds, dtype=np.intp), np.arange(n_folds))
            verdict = Verdict(stopped_at=n_folds)
        else:
            seed = None if self.random_state is None else check_random_state(self.random_state).randint(2**31 - 1)
            verdict = raced(policy, seed, fits, candidates)
        whole.call_on_fit_task_end(estimator=self)
        best = fits.best(verdict.arm)
        self.trials_, self.status_ = int(fits.made.sum()), verdict.state
        self.verdict_ = self._said(candidates[best], fits, verdict, best, low)
        if not verdict.decided:
            warnings.warn(self.verdict_, stacklevel=2)
        if self.verbose > 0:
            print(self.verdict_)
        # `fit` keeps the object that the last call of `evaluate_candidates` returned.
        results.clear()
        results |= fits.table(self._parameters(candidates), best)

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: list[Any], more_results: Any = None
    ) -> dict[str, Any]:
        """Returns the fits as they are: `_run_search` makes one table of them at the end."""
        return {"fits": out}

    def _parameters(self, candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Returns the columns of the parameters, as GridSearchCV writes them."""
        blank = dict.fromkeys(("fit_time", "score_time", "test_scores", "train_scores"), 0.0)
        columns = super()._format_results(candidates, 1, [blank] * len(candidates))
        return {name: column for name, column in columns.items() if name.startswith("param")}

    def _decisive(self) -> Any:
        """Returns the scorer that the race is about."""
        scoring = self.scoring
        if not isinstance(scoring, list | tuple | dict):
            return scoring
        if not isinstance(self.refit, str):  # scikit-learn has checked that it is one of them
            raise InvalidInput(
                f"`refit` must name the score that the race is about, one of {', '.join(map(str, scoring))}, got "
                f"{self.refit!r}"
            )
        return scoring[self.refit] if isinstance(scoring, dict) else self.refit

    def _problem(self, grid: ParameterGrid, low: float, high: float) -> Problem:
        """Returns what is assumed of the scores."""
        edges: list[tuple[int, int]] = []
        R = math.inf
        if self.similar is not None:
            edges = neighbours(grid, self.similar)
            rule = "the largest difference of the mean scores of neighbours, a positive number"
            R = len(edges) * check_number("step", self.step, rule, low=0.0, strict=True) ** 2
        elif self.step is not None:
            raise InvalidInput(
                f"`step` must be left out without `similar`, got {self.step!r}; or name parameters there"
            )
        graph, items = Graph.from_edges(len(grid), edges), Items.listed(self.n_splits_)
        return Problem.bounded(graph, R, low, high, tolerance=self.tolerance, items=items)

    def _said(self, params: Mapping[str, Any], fits: Fits, verdict: Verdict, best: int, low: float) -> str:
        """Returns the result in one sentence."""
        n_candidates, n_folds = fits.made.shape
        scores = fits.scores
        failed = int((np.isnan(scores) & fits.made).any(axis=1).sum())
        made = f"{fits.made.sum():,} of {fits.made.size:,} fits were made"
        if not verdict.decided:
            return f"the scores differ by more than `step` allows, so nothing is promised of {params}; {made}"
        risk = 2 * self.delta if failed else self.delta  # theory 12.15
        promise = (
            f"{params} is within {self.tolerance:g} of the best of {n_candidates} candidates on these {n_folds} folds, "
            f"at a risk of {risk:g}"
        )
        notes = [f"candidates left out because fits of them failed: {failed}"] if failed else []
        if (scores[best] < low).any():
            notes.append(f"scores of it below {low:g} count as {low:g}")
        return "; ".join([promise, made, *notes])


def raced(policy: SpectralRace, seed: int | None, fits: Fits, candidates: Sequence[Mapping[str, Any]]) -> Verdict:
    """Returns the verdict of the race after the fits that it asks for.

    What failed counts as the lowest score until the block closes, and then its candidate is withdrawn: GridSearchCV
    would not choose it either.
    """
    assert policy.problem.outcome_range is not None, "scores have a range"
    low, high = policy.problem.outcome_range
    failed: set[int] = set()
    state = policy.init(seed)
    while True:
        arms, items = policy.ask_items(state, policy.horizon(state))
        if not arms.size:
            return policy.verdict(state)
        fits.make(arms, items)
        scores = fits.scores[arms, items]
        above = np.flatnonzero(scores > high + ROUNDING * (high - low))
        if above.size:
            k = above[0]
            raise InvalidInput(
                f"`score_range` must contain all scores, got {scores[k]:g} above {high:g} for {candidates[arms[k]]} on "
                f"fold {items[k]}; raise its upper end"
            )
        lost = np.isnan(scores)
        failed |= set(arms[lost].tolist())
        if len(failed) == len(candidates):
            raise InvalidInput(
                "every candidate failed on some fold, so none is the best; error_score='raise' shows why"
            )
        with one_thread():
            state = policy.tell(state, arms, np.clip(np.where(lost, low, scores), low, high), items=items)
            for arm in sorted(failed.difference(state.withdrawn)):
                state = policy.withdraw(state, arm)
