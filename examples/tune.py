"""Which setting of a support vector machine reads handwritten digits best? Two worker processes find out, and stop by
themselves.

    python examples/tune.py [--seconds 30] [--tolerance 0.05]

A trial is one noisy score: the accuracy on 300 digits, after training on 150 others, both drawn at random. Settings
next to each other on the grid score alike: that is the graph. Needs scikit-learn and spectralbai[study,plot].
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from multiprocessing import get_context

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import spectralbai as sb

COST = (1.0, 3.0, 10.0, 30.0)
WIDTH = (0.003, 0.01, 0.03, 0.1, 0.3)
GRID = [(cost, width) for cost in COST for width in WIDTH]
SIGMA = [0.12 if cost * width < 0.02 else 0.06 for cost, width in GRID]
"""Standard deviation of one score, rounded up: pilots had 0.05 to 0.09 where the machine hardly learns, and 0.02 to
0.04 elsewhere."""
STEP = 0.5
"""Neighbours on the grid differ by at most this much; most by far less, so that R has room to spare."""


def instance(tolerance: float) -> sb.Instance:
    """Returns the grid as an instance: an edge between settings that are one step apart."""
    number = {setting: arm for arm, setting in enumerate(GRID)}
    edges = [(number[a, b], number[a, c]) for a in COST for b, c in itertools.pairwise(WIDTH)]
    edges += [(number[a, c], number[b, c]) for c in WIDTH for a, b in itertools.pairwise(COST)]
    graph = sb.Graph.from_edges(len(GRID), edges)
    problem = sb.Problem(graph, R=graph.n_edges * STEP**2, sigma=SIGMA, tolerance=tolerance)
    return sb.Instance(problem, labels=[f"C={cost:g} gamma={width:g}" for cost, width in GRID])


def work(name: str, storage: str, seed: int, seconds: float) -> None:
    """Asks, trains, tells, until the study has decided or time is up."""
    features, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    deadline = time.time() + seconds
    with sb.Study.open(name, storage) as study:
        while time.time() < deadline and (tickets := study.ask(2, worker=f"process {os.getpid()}", lease=60)):
            for ticket in tickets:
                cost, width = GRID[ticket.arm]
                split = train_test_split(
                    features / 16, digits, train_size=150, test_size=300, random_state=int(rng.integers(2**31))
                )
                score = SVC(C=cost, gamma=width).fit(split[0], split[2]).score(split[1], split[3])
                study.tell(ticket, float(score))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="stop the workers after so long, decided or not")
    parser.add_argument("--tolerance", type=float, default=0.05, help="a setting this close to the best is as good")
    parser.add_argument("--storage", help="sqlite:///FILE or postgresql://...; a temporary file if not given")
    parser.add_argument("--report", help="write the report to this HTML file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        storage = options.storage or f"sqlite:///{folder}/tuning.db"
        with sb.Study.create("digits", instance(options.tolerance), delta=0.05, storage=storage) as study:
            processes = [
                get_context("spawn").Process(target=work, args=("digits", storage, seed, options.seconds))
                for seed in (1, 2)
            ]
            for process in processes:
                process.start()
            for process in processes:
                process.join()
            report = study.report()
        print(report.status.answer)
        for arm in sorted(report.status.arms, key=lambda arm: -(arm.estimate or 0))[:5]:
            print(f"  {arm.label:18} {arm.results:4} trials, score {arm.estimate or 0:.3f}")
        print("results by worker:", ", ".join(map(str, report.workers.values())))
        if options.report:
            with open(options.report, "w", encoding="utf-8") as file:
                file.write(report.as_html())


if __name__ == "__main__":
    main()
