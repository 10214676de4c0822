"""A search that is killed goes on; `make verify-kills` does it with the example of the README, forty times."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from verification.pick import Search, disturbed


def test_a_search_with_four_jobs_that_is_killed_twice_counts_every_pair_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    scores = np.clip(0.5 + 0.1 * rng.standard_normal((4, 60)) + np.array([[0.0], [0.02], [0.05], [0.1]]), 0, 1)
    search = Search.prepared(tmp_path, scores.round(3).tolist(), jobs=4, tolerance=0.01)
    ended, again, stdout = disturbed(search, random.Random(3), kills=2, within=(0.8, 1.5))
    assert "Decided after" in stdout and again <= 4 * ended
