"""Runs that end with their budget: the best arm is among the candidates, but for the risk."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

import spectralbai as sb

DELTA, RUNS = 0.2, 40
PAIRS = sb.Graph.from_edges(4, [(0, 1), (2, 3)])
INSTANCES = {
    "near ties": (sb.Problem(PAIRS, 0.02, 0.5), (0.5, 0.45, 0.48, 0.4), 100),
    "as rough as R allows": (sb.Problem(PAIRS, 0.1, 0.5), (0.9, 0.6, 0.5, 0.4), 60),
    "clicks": (sb.Problem.bounded(PAIRS, 0.01, binary=True), (0.2, 0.12, 0.15, 0.1), 200),
    "a tolerance": (sb.Problem(PAIRS, 0.1, 0.5, 0.1), (0.9, 0.7, 0.85, 0.8), 60),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_the_best_arm_is_among_the_candidates_of_a_run_cut_short(name: str) -> None:
    problem, mu, budget = INSTANCES[name]
    policy = sb.SpectralRace(problem, DELTA)
    runs = [sb.simulate.run(policy, mu, seed, max_samples=budget) for seed in range(RUNS)]
    left = [run.candidates for run in runs]
    missed = sum(0 not in candidates for candidates in left if candidates is not None)
    assert binomtest(missed, RUNS, DELTA, alternative="greater").pvalue > 0.01
    sizes = [len(candidates) for candidates in left if candidates is not None]
    assert np.mean(sizes) > 1, "most runs are cut short before their decision"
