"""`pick`: the best of some options on some items, in one call."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from spectralbai.checks import check_integer
from spectralbai.errors import InvalidInput
from spectralbai.graph import Graph
from spectralbai.journal.definition import Goal
from spectralbai.picking.carry_out import carry_out, check_known, pairs_of
from spectralbai.picking.entries import CLUSTER, Entries
from spectralbai.picking.question import Question
from spectralbai.picking.result import Pick
from spectralbai.picking.trials import OURS, Progress
from spectralbai.tables import Table


def pick(
    options: Sequence[Any] | Mapping[str, Any],
    items: Sequence[Any] | Mapping[str, Any],
    score: Callable[[Any, Any], float],
    *,
    low: float,
    high: float,
    tolerance: float = 0.0,
    delta: float = 0.05,
    goal: Goal = "max",
    fresh: bool = False,
    clusters: Sequence[str] | None = None,
    graph: Graph | None = None,
    R: float = math.inf,
    known: Table | None = None,
    budget: int | None = None,
    failed_as: float | None = None,
    retries: int = 0,
    jobs: int = 1,
    executor: Executor | None = None,
    storage: str | None = None,
    name: str = OURS,
    seed: int | None = None,
    on_progress: Callable[[Progress], object] = lambda progress: None,
) -> Pick:
    """Returns the option with the best mean outcome on the items, or one within `tolerance` of it, at risk `delta`.

    `options` and `items` are lists, whose labels are their entries as strings, or dicts of labels and entries.
    `score(option, item)` returns the outcome of a trial, between `low` and `high`. The items are all that count, or
    with `fresh` a random sample of those that do; then `clusters`, a name for each item, says which of them are not
    independent. `graph` and `R` say which options are alike, and how much they may differ.

    Up to `jobs` trials are under way at once, in threads or in an `executor`. One that raises an exception, or returns
    no number, is repeated `retries` times; then it counts as the outcome `failed_as` or, if that is None, its option is
    held back: out of the answer, and named. `known` has outcomes that need not be tried. After `budget` trials the
    search ends, decided or not.

    With a `storage`, all of this is a study under a `name`: after a crash, the same call goes on with it. `on_progress`
    is called about twice a second; `print` will do. `seed` fixes the order of the items, which is for examples and
    tests only: options may have been tuned on the items that come first.

    Examples:
        >>> import spectralbai as sb
        >>> texts = {f"text {n}": f"{'the cat and the dog ' * (n % 5)}or a bird" for n in range(200)}
        >>> def score(word, text):
        ...     return min(text.count(word), 3)
        >>> best = sb.pick(["the", "dog", "bird"], texts, score, low=0, high=3, tolerance=0.1, seed=1)
        >>> best.option, best.decided, best.trials < 200
        ('the', True, True)
    """
    listed = Entries.of("item", items)
    question = Question(
        options=Entries.of("option", options),
        items=listed if clusters is None else listed.with_column(CLUSTER, clusters),
        low=low,
        high=high,
        tolerance=tolerance,
        delta=delta,
        goal=goal,
        fresh=fresh,
        budget=budget,
        failed_as=failed_as,
        graph=graph,
        R=R,
    )
    if not callable(score):
        raise InvalidInput(f"`score` must be a function of an option and an item, got {type(score).__name__}")
    pairs = {} if known is None else pairs_of(known)
    jobs, retries = check_integer("jobs", jobs, 1), check_integer("retries", retries, 0)
    check_known(question, pairs)
    with _place(storage) as place, _running(executor, jobs) as pool, question.study(name, place, seed) as study:
        return carry_out(
            question,
            study,
            getattr(score, "__qualname__", type(score).__name__),
            lambda option, item: pool.submit(score, option.value, item.value),
            pairs,
            jobs=jobs,
            retries=retries,
            on_progress=on_progress,
        )


@contextmanager
def _place(storage: str | None) -> Iterator[str]:
    """Yields the address of a storage: the given one, or one that is deleted at the end."""
    if storage is not None:
        yield storage
        return
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/pick.db"


@contextmanager
def _running(executor: Executor | None, jobs: int) -> Iterator[Executor]:
    """Yields the given executor, or threads that end with the block."""
    if executor is not None:
        if not isinstance(executor, Executor):
            raise InvalidInput(f"`executor` must be a concurrent.futures.Executor, got {type(executor).__name__}")
        yield executor
        return
    threads = ThreadPoolExecutor(jobs)
    try:
        yield threads
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
