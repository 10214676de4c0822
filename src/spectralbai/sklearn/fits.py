"""The fits that a search makes, and their table."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from spectralbai.arrays import Indices, Mask, Matrix, Vector
from spectralbai.errors import InvalidInput

Fitted = Callable[[Sequence[int], Sequence[int]], list[Mapping[str, Any]]]
"""Fits some candidates on some folds, and returns what scikit-learn says of each fit, candidate by candidate."""
TIMES = ("fit_time", "score_time")


class Folds:
    """A splitter that splits once, and hands out the folds that are wanted next."""

    def __init__(self, splitter: Any, n_folds: int) -> None:
        self._splitter, self._n_folds = splitter, n_folds
        self._folds: list[Any] = []
        self.chosen: Sequence[int] = ()

    def split(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        """Returns the rows of each chosen fold, for training and for the test."""
        if not self._folds:
            self._folds = list(self._splitter.split(X, y, **params))
            if len(self._folds) != self._n_folds:
                raise InvalidInput(
                    f"`cv` must make as many folds as its get_n_splits says, {self._n_folds}, got {len(self._folds)}"
                )
        return [self._folds[fold] for fold in self.chosen]


class Fits:
    """The fits made: times and scores, each a matrix (n_candidates, n_folds) with NaN where no fit was made."""

    def __init__(self, n_candidates: int, n_folds: int, fitted: Fitted, refit: Any) -> None:
        """`fitted` makes fits; `refit` names the score that the race is about, if there are several."""
        self.made: Mask = np.zeros((n_candidates, n_folds), dtype=bool)
        self.columns: dict[str, Matrix] = {}
        self._fitted, self._refit = fitted, refit

    def make(self, arms: Indices, items: Indices) -> None:
        """Makes the fits of these candidates on these folds, pair by pair."""
        for those, chosen in rectangles(arms.tolist(), items.tolist()):
            for pair, fit in zip(product(those, chosen), self._fitted(those, chosen), strict=True):
                self.made[pair] = True
                for name, value in entries(fit):
                    self.columns.setdefault(name, np.full(self.made.shape, np.nan))[pair] = value

    @property
    def metric(self) -> str:
        """The name of the column of scores that the race is about."""
        names = [name.removeprefix("test_") for name in self.columns if name.startswith("test_")]
        name = "score" if names == ["score"] else self._refit
        if name not in names:
            raise InvalidInput(
                f"`refit` must name the score that the race is about, one of {', '.join(names)}, got {self._refit!r}"
            )
        return f"test_{name}"

    @property
    def scores(self) -> Matrix:
        """The scores that the race is about."""
        return self.columns[self.metric]

    def mean(self, values: Matrix) -> Vector:
        """Returns the means over the fits made, (n_candidates,); NaN without a fit, or if one of them failed."""
        with np.errstate(invalid="ignore"):
            means: Vector = np.where(self.made, values, 0.0).sum(axis=1) / self.made.sum(axis=1)
        return means

    def best(self, arm: int) -> int:
        """Returns the candidate that the race chose; if its mean over all folds is known, the first of those with the
        best such mean, as GridSearchCV does."""
        if not self.made[arm].all():
            return arm
        means = self.mean(self.scores)
        return int(np.argmax(np.where(self.made.all(axis=1) & ~np.isnan(means), means, -np.inf)))

    def table(self, parameters: Mapping[str, Any], best: int) -> dict[str, Any]:
        """Returns `cv_results_`, in which the candidate `best` has the first rank."""
        table: dict[str, Any] = {}
        for name in TIMES:
            table |= self._summary(name)
        table |= {**parameters, "n_folds": self.made.sum(axis=1)}
        for name in [name for name in self.columns if name not in TIMES]:
            table |= {f"split{fold}_{name}": column for fold, column in enumerate(self.columns[name].T)}
            table |= self._summary(name)
            if name.startswith("test_"):
                table[f"rank_{name}"] = self._ranks(table[f"mean_{name}"], best if name == self.metric else None)
        return table

    def _summary(self, name: str) -> dict[str, Vector]:
        """Returns the mean and the standard deviation of a column for each candidate."""
        values = self.columns[name]
        mean = self.mean(values)
        return {f"mean_{name}": mean, f"std_{name}": np.sqrt(self.mean((values - mean[:, None]) ** 2))}

    def _ranks(self, means: Vector, best: int | None) -> Indices:
        """Returns the ranks of candidates, from 1: by the number of their folds, then by their means."""
        keys = [
            (arm != best, math.isnan(mean), -n, 0.0 if math.isnan(mean) else -mean)
            for arm, (n, mean) in enumerate(zip(self.made.sum(axis=1).tolist(), means.tolist(), strict=True))
        ]
        ordered = sorted(keys)
        return np.array([1 + bisect_left(ordered, key) for key in keys], dtype=np.int32)


def entries(fit: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yields the names and values of what scikit-learn says about a fit."""
    yield from ((name, fit[name]) for name in TIMES)
    test, train = (fit.get(f"{kind}_scores", {}) for kind in ("test", "train"))
    if not isinstance(test, Mapping):
        test, train = {"score": test}, {"score": train} if "train_scores" in fit else {}
    for name, value in test.items():
        yield f"test_{name}", value
        if name in train:
            yield f"train_{name}", train[name]


def rectangles(arms: Iterable[int], items: Iterable[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yields pairs of arms and items as lists of arms, each with the items that all of them are to be tried on."""
    of_arm: dict[int, list[int]] = {}
    for arm, item in zip(arms, items, strict=True):
        of_arm.setdefault(arm, []).append(item)
    with_items: dict[tuple[int, ...], list[int]] = {}
    for arm in sorted(of_arm):
        with_items.setdefault(tuple(of_arm[arm]), []).append(arm)
    yield from ((those, list(items)) for items, those in with_items.items())
