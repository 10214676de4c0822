"""Real tables of outcomes: twenty learners on data sets, and the settings of a support-vector machine on folds.

`python -m benchmarks.tables` prints their sizes and what pairing is worth; `--extract FOLDER` writes the extract that
is in examples/ instead. What takes long is kept in `CACHE`: the learners are fetched by pip (70 MB, once), the
support-vector machines are fitted (6,000 fits, some minutes, once).
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import spectralbai as sb
from spectralbai.arrays import Vector

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "spectralbai", "benchmarks")
LCDB = "lcdb==0.1.0 --hash=sha256:450ea69b249866298653f718d66a825e3d19a4024dd4ff140b89f2e04d4777ae"
"""The Learning Curve Database, MIT licence."""
TRAINING_ROWS = 1024
C = tuple(float(f"{10**power:.3g}") for power in np.arange(-1, 2, 0.5))
GAMMA = tuple(float(f"{10**power:.3g}") for power in np.arange(-5, -1.9, 1 / 3))
FOLDS, REPEATS = 10, 10


class Benchmark(NamedTuple):
    """A table, and which of its options are alike."""

    table: sb.Table
    graph: sb.Graph


def lcdb() -> Benchmark:
    """Returns the accuracy on test data of 20 learners fitted to 1,024 rows, on the 1,745 splits of 64 data sets that
    all of them finished; learners of one module of scikit-learn are a category, and clusters are data sets.

    An item is a data set with the seeds of its outer and inner split. Most of the 5,365 splits are left out because
    some learner failed or ran out of time on them.
    """
    file = CACHE / "lcdb-1024.csv"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        _fetch(file)
    table = sb.Table.from_csv(file, option="learner", outcome="score_test", cluster="data set").complete()
    assert table.outcomes.shape == (20, 1745) and len(set(table.clusters or ())) == 64
    return Benchmark(table, sb.Graph.from_categories([module_of(learner) for learner in table.options]))


def module_of(learner: str) -> str:
    """Returns the module of scikit-learn that a learner of the database is in."""
    return "sklearn.svm" if learner.startswith("SVC_") else learner.rpartition(".")[0]


def write_extract(folder: Path) -> None:
    """Writes accuracies.csv and learners.csv: those splits of `lcdb` that have one of the first four outer seeds, which
    choose the test data, and the first inner seed, 0. The rule does not look at outcomes."""
    table = lcdb().table
    seeds = [item.split(", ") for item in table.items]
    picked = [j for j, (_, outer, inner) in enumerate(seeds) if int(outer) < 4 and inner == "0"]
    names = [learner.rpartition(".")[2].removesuffix("Classifier") for learner in table.options]
    rows = [
        (name, f"{seeds[j][0]}-{seeds[j][1]}", f"{table.outcomes[a, j]:.4g}", seeds[j][0])
        for a, name in enumerate(names)
        for j in picked
    ]
    modules = [(name, module_of(learner)) for name, learner in zip(names, table.options, strict=True)]
    _write_csv(folder / "accuracies.csv", [("learner", "split", "accuracy", "data set"), *rows])
    _write_csv(folder / "learners.csv", [("learner", "module"), *modules])


def svm_digits(jobs: int = 2) -> Benchmark:
    """Returns the accuracy of 60 support-vector machines, C x gamma, on the digits of scikit-learn in 100 folds: ten
    stratified folds, ten times, which are the clusters. Settings next to each other in the grid are joined."""
    file = CACHE / "svm-digits.npy"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as executor:
            accuracy = np.stack([*executor.map(accuracy_on_folds, GAMMA)], axis=1)
        _write(file, accuracy.reshape(len(C) * len(GAMMA), FOLDS * REPEATS))
    options = [f"C = {c:g}, gamma = {gamma:g}" for c in C for gamma in GAMMA]
    items = [f"repetition {r}, fold {f}" for r in range(REPEATS) for f in range(FOLDS)]
    table = sb.Table(np.load(file), options, items, [f"repetition {r}" for r in range(REPEATS) for _ in range(FOLDS)])
    return Benchmark(table, sb.Graph.from_edges(table.n_options, grid_edges(len(C), len(GAMMA))))


def grid_edges(rows: int, columns: int) -> list[tuple[int, int]]:
    """Returns the pairs of neighbours in a grid that is numbered row by row."""
    number = np.arange(rows * columns).reshape(rows, columns)
    across = zip(number[:, :-1].ravel().tolist(), number[:, 1:].ravel().tolist(), strict=True)
    down = zip(number[:-1].ravel().tolist(), number[1:].ravel().tolist(), strict=True)
    return [*across, *down]


def accuracy_on_folds(gamma: float) -> Vector:
    """Returns the accuracy for one gamma: (values of C, folds). One kernel matrix serves every fold and every C."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import RepeatedStratifiedKFold
    from sklearn.svm import SVC

    x, y = load_digits(return_X_y=True)
    squares = (x**2).sum(axis=1)
    with threadpool_limits(1):
        kernel = np.exp(-gamma * (squares[:, None] + squares - 2 * x @ x.T))
    folds = [*RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=0).split(x, y)]
    accuracy = np.empty((len(C), len(folds)))
    for j, (train, test) in enumerate(folds):
        known, asked = kernel[np.ix_(train, train)], kernel[np.ix_(test, train)]
        for i, c in enumerate(C):
            accuracy[i, j] = SVC(C=c, kernel="precomputed").fit(known, y[train]).score(asked, y[test])
    return accuracy


def _fetch(file: Path) -> None:
    """Fetches the database with pip, and keeps its rows of `TRAINING_ROWS`."""
    folder = file.parent
    wanted = folder / "lcdb.txt"
    wanted.write_text(LCDB + "\n", "utf-8")
    python = sys.executable
    if find_spec("pip") is None:  # `make` creates .venv without it
        python = getattr(sys, "_base_executable", python)
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:", "--require-hashes")
    subprocess.run([python, "-m", "pip", "download", *options, "--dest", folder, "-r", wanted], check=True)
    archive = folder / "lcdb-0.1.0.tar.gz"
    with tarfile.open(archive) as files:
        content = files.extractfile("lcdb-0.1.0/lcdb/database-accuracy.csv")
        assert content is not None
        with io.TextIOWrapper(content, "utf-8", newline="") as lines:
            rows = [*_rows(lines)]
    _write_csv(file, rows)
    archive.unlink()
    wanted.unlink()


def _rows(lines: Iterator[str]) -> Iterator[tuple[str, ...]]:
    yield "learner", "item", "score_test", "data set"
    for row in csv.DictReader(lines):
        if row["size_train"] == str(TRAINING_ROWS):
            item = f"{row['openmlid']}, {row['outer_seed']}, {row['inner_seed']}"
            yield row["learner"], item, row["score_test"], row["openmlid"]


def _write_csv(file: Path, rows: Iterable[tuple[str, ...]]) -> None:
    part = file.with_suffix(".part")
    with part.open("w", encoding="utf-8", newline="") as text:
        csv.writer(text, lineterminator="\n").writerows(rows)
    part.replace(file)


def _write(file: Path, values: Vector) -> None:
    part = file.with_suffix(".part.npy")
    np.save(part, values)
    part.replace(file)


def main() -> None:
    """Prints the size of every table, and what pairing is worth; or writes the extract."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extract", metavar="FOLDER", type=Path)
    folder = parser.parse_args().extract
    if folder is not None:
        write_extract(folder)
        return
    for name, (table, graph) in (("Learners", lcdb()), ("Support-vector machines", svm_digits())):
        print(f"{name}: {table.described()}, {graph.n_edges} edges")
        for kind, each in (("items", table), ("clusters as items", table.by_cluster())):
            lead = float(np.diff(np.sort(each.means))[-1])
            correlation = f"lead {lead:.4f}, mean correlation {each.pairing.correlation:.2f}"
            print(f"  {kind}: {each.pairing.described()} ({correlation})")


if __name__ == "__main__":
    main()
