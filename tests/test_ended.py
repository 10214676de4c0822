"""Runs that end with their budget: the best arm is among the candidates with probability at least 1 - delta."""

from __future__ import annotations

import numpy as np
import pytest

from verification.coverage import chance
from verification.ended import DELTA, Kind, kinds, run

RUNS = 12
"""Of each instance; `make verify-risk` makes 300."""


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_the_best_arm_is_among_the_candidates_of_a_run_cut_short(kind: Kind) -> None:
    seen = [run(kind, seed) for seed in range(RUNS)]
    for failures in (sum(each.missed for each in seen), sum(each.outside for each in seen)):
        assert chance(failures, RUNS, DELTA) > 0.01
    assert np.mean([each.left > 1 for each in seen]) > 0.5, "most runs are cut short before their decision"
