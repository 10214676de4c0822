"""Simulated runs."""

from __future__ import annotations

import contextlib
import io
import math
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

from spectralbai import Graph, InvalidInput, Problem, SpectralRace, SpectralTaS, simulate

PAPER = Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01)
EASY = SpectralTaS(PAPER, 0.1, watching=(("gk16", 0.1),))
MU = np.array([1.9, 0.5, 0.6])


def same(one: simulate.Run, other: simulate.Run) -> bool:
    a, b = asdict(one), asdict(other)
    return bool((a.pop("counts") == b.pop("counts")).all()) and a == b


def test_one_seed_is_one_run_and_another_seed_another() -> None:
    first, again, other = (simulate.run(EASY, MU, seed) for seed in (1, 1, 2))
    assert same(first, again)
    assert not same(first, other)
    assert (first.status, first.arm, first.correct, first.seed) == ("decided", 0, True, 1)


def test_many_runs_on_an_executor_are_the_runs_one_after_another() -> None:
    seeds = [3, 4, 5, 6]
    serial = list(simulate.watch_many(EASY, MU, seeds))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        parallel = list(simulate.watch_many(EASY, MU, seeds, executor))
    assert [runs[0].seed for runs in parallel] == seeds
    for here, there in zip(serial, parallel, strict=True):
        assert len(here) == len(there) == 2
        assert all(same(one, other) for one, other in zip(here, there, strict=True))
    for runs in serial:
        assert runs[0].counts.sum() == max(run.tau for run in runs)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("shift", "unit"), [(5.0, 1.0), (0.0, 0.01), (1e6, 1.0), (0.0, 1e-6), (0.0, 1e6)])
def test_origin_and_units_of_the_outcomes_change_nothing(seed: int, shift: float, unit: float) -> None:
    here = simulate.watch(EASY, MU, seed)
    there = simulate.watch(
        replace(EASY, problem=Problem(PAPER.graph, PAPER.R * unit**2, sigma=unit)), unit * (MU + shift), seed
    )
    for one, other in zip(here, there, strict=True):
        assert (one.tau, one.arm, one.status) == (other.tau, other.arm, other.status)


def test_a_run_cut_short_says_so() -> None:
    run = simulate.run(SpectralTaS(PAPER, 0.1), [0.5, 0.5, 0.5], seed=0, max_samples=37)
    assert (run.status, run.tau) == ("truncated", 37)
    assert run.counts.sum() == 37


@pytest.mark.parametrize("noise", ["bernoulli", "uniform", 0.05, None])
def test_bounded_outcomes_are_decided(noise: Any) -> None:
    problem = Problem.bounded(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.05)
    run = simulate.run(SpectralTaS(problem, 0.1), [0.95, 0.1, 0.2], seed=1, noise=noise)
    assert (run.status, run.arm, run.proved) == ("decided", 0, True)


@pytest.mark.parametrize(
    ("problem", "mu", "noise", "message"),
    [
        (PAPER, [0.9, 0.5, 0.6], "bernoulli", "`noise` must be gaussian, with spread sigma, got 'bernoulli'"),
        (Problem.bounded(PAPER.graph, 0.01), [0.9, 0.5, 0.6], "gaussian", "`noise` must be bernoulli, uniform or"),
        (
            Problem.bounded(PAPER.graph, 0.01),
            [0.9, 0.5, 1.6],
            None,
            "`mu` must lie in [0, 1] as the outcomes do, got 1.6 at arm 2",
        ),
        (PAPER, [0.9, 0.5], None, "`mu` must have shape (n_arms,) = (3,)"),
        (PAPER, [0.9, 0.5, math.nan], None, "`mu` must be finite"),
    ],
)
def test_what_cannot_be_simulated_is_refused(problem: Problem, mu: list[float], noise: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        simulate.run(SpectralTaS(problem, 0.1), mu, 0, noise=noise)
    assert message in str(error.value)


# A wrong R: arms 1 and 2, joined, differ by .4 although R = .01 allows .1.
ROUGH = np.array([0.9, 0.4, 0.8])


def test_a_wrong_r_is_refuted_not_certified() -> None:
    """Mostly: a decision stands only where R was not in doubt, or where it holds at the roughness of the
    data."""
    runs = [simulate.run(SpectralRace(PAPER, 0.01), ROUGH, seed) for seed in range(40)]
    assert sum(run.status == "inconsistent" for run in runs) > 20
    assert all(run.correct for run in runs if run.status == "decided")
    for run in runs:
        assert run.tau == run.counts.sum()


def test_a_wrong_r_that_hides_the_best_arm_is_refuted() -> None:
    runs = [simulate.run(SpectralTaS(PAPER, 0.01), [1.4, 0.4, 1.5], seed) for seed in range(10)]
    assert [run.status for run in runs] == ["inconsistent"] * 10


def test_a_refutation_keeps_its_time_although_other_rules_go_on() -> None:
    alone = simulate.run(SpectralTaS(PAPER, 0.1), ROUGH, seed=0, max_samples=5000)
    together = simulate.watch(
        SpectralTaS(PAPER, 0.1, watching=(("paper-printed", 1e-6),)),
        ROUGH,
        seed=0,
        max_samples=5000,
    )
    assert alone.status == together[0].status == "inconsistent"
    assert alone.tau == together[0].tau < together[1].tau == 5000


RUNS = """
import spectralbai as sb
cliques, path = sb.instances.cliques(3, 5, seed=0), sb.instances.path(8, tolerance=0.1)
for instance in (cliques, path):
    for policy in (sb.SpectralRace(instance.problem, 0.05), sb.SpectralTaS(instance.problem, 0.05)):
        print([sb.simulate.run(policy, instance.mu, seed).tau for seed in range(3)])
"""


def test_the_rounding_of_the_machine_changes_no_run() -> None:
    """On these graphs many arms look exactly alike at first. OpenBLAS computes with other instructions, and rounds
    differently, if it is told that the processor is an old one; elsewhere the variable means nothing."""
    old = {**os.environ, "OPENBLAS_CORETYPE": "Prescott"}
    there = subprocess.run([sys.executable, "-c", RUNS], env=old, capture_output=True, text=True, check=True).stdout
    with contextlib.redirect_stdout(io.StringIO()) as here:
        exec(RUNS, {})
    assert there == here.getvalue()
