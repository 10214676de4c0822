"""Checks of counts: shares, missing options, odd days."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.arrays import Vector
from spectralbai.evidence.sample_ratio import mismatch
from spectralbai.report.data_checks import SPLIT_RISK, checked
from tests.study.storages import ON_SQLITE
from verification.coverage import least_rate

HALVES = np.array([0.5, 0.5])
LABELS = ("a", "b", "c")


def alarms(share: float, seed: int, days: int = 20, n: int = 1000) -> bool:
    """Whether a split asked to be even, but with this share, is found."""
    counts = np.random.default_rng(seed).multinomial(n, (share, 1 - share), days).astype(float)
    return mismatch((each, HALVES) for each in counts) >= -math.log(SPLIT_RISK)


def test_false_alarms_are_as_rare_as_promised_and_a_wrong_split_is_found() -> None:
    assert least_rate(sum(alarms(0.5, seed) for seed in range(1000)), 1000) <= SPLIT_RISK
    found = sum(alarms(0.475, seed) for seed in range(200))
    assert found >= 0.95 * 200, "with 20,000 visitors"


def test_the_wealth_of_one_day_is_the_bayes_factor_of_a_mixture_of_splits() -> None:
    asked, n = np.array([0.2, 0.3, 0.5]), 3
    total = sum(
        math.factorial(n)
        / (math.factorial(i) * math.factorial(j) * math.factorial(n - i - j))
        * 0.2**i
        * 0.3**j
        * 0.5 ** (n - i - j)
        * math.exp(wealth([(np.array([i, j, n - i - j], dtype=float), asked)]))
        for i in range(n + 1)
        for j in range(n + 1 - i)
    )
    assert total == pytest.approx(1.0), "fair: 1 on average, if the split is as asked"


def wealth(days: list[tuple[Vector, Vector]]) -> float:
    """The wealth after all days, which the peak hides if it is below 1: both are shifted by a fair coin."""
    from spectralbai.evidence import sample_ratio

    firm, logs = sample_ratio.FIRMNESS, []
    for kappa in firm:
        alpha = kappa * days[0][1]
        n = days[0][0]
        up = np.concatenate([np.log(alpha[k] + np.arange(n[k])) for k in range(n.size)])
        down = np.log(kappa + np.arange(n.sum()))
        logs.append(up.sum() - down.sum() - (n * np.log(days[0][1])).sum())
    found = float(np.logaddexp.reduce(logs)) - math.log(firm.size)
    assert mismatch(days) == pytest.approx(max(found, 0.0), abs=1e-9)
    return found


def test_shares_that_change_from_day_to_day_are_no_mismatch_and_a_constant_loss_is() -> None:
    rng = np.random.default_rng(3)
    plain: list[tuple[Vector, Vector]] = []
    lossy: list[tuple[Vector, Vector]] = []
    for _ in range(30):
        asked = rng.dirichlet([5, 5, 5])
        counts = rng.multinomial(2000, asked).astype(float)
        plain.append((counts, asked))
        lossy.append((counts - rng.binomial(counts.astype(int), [0.1, 0, 0]).astype(float), asked))
    assert mismatch(plain) < -math.log(SPLIT_RISK) < mismatch(lossy)


@ON_SQLITE
def test_the_status_says_what_is_odd_about_counts_and_what_to_do(storage: str) -> None:
    problem = sb.Problem.bounded(sb.Graph.from_edges(3, []), math.inf, binary=True, tolerance=0.001)
    with sb.Study.create("pages", sb.Instance(problem, labels=LABELS), 1e-9, storage) as study:
        rng = np.random.default_rng(0)

        def tell(name: str, factor: float = 1.0, **trials: int) -> None:
            split = study.shares()
            counts = {label: trials.get(label, round(900 * split[label])) for label in LABELS}
            study.tell_counts({label: (n, int(rng.binomial(n, 0.3 * factor))) for label, n in counts.items()}, name)

        for day in range(4):
            tell(f"day {day}")
        assert study.status().checks == ()
        tell("broken", 0.1)
        (odd,) = study.status().checks
        assert odd.startswith('"broken" is unlike the other days') and "study void pages --id broken" in odd
        assert odd in study.status().advice
        study.void("broken")
        assert study.status().checks == ()
        tell("partial", b=0)
        uneven, missing = study.status().checks
        assert uneven.startswith('Visitors are not split as asked: "b" got')
        assert missing.startswith('On "partial" there were no trials of "b"') and "withdraw pages b" in missing


def test_few_days_and_weekdays_are_not_odd() -> None:
    from spectralbai.journal.events import CountsTold

    def days(*rates: float) -> list[CountsTold]:
        return [CountsTold(str(k), (1000, 1000), (int(1000 * r), int(1100 * r))) for k, r in enumerate(rates)]

    assert list(checked("x", "ab", days(0.3, 0.3, 0.01))) == []
    assert list(checked("x", "ab", days(0.3, 0.32, 0.29, 0.25, 0.36))) == []
    assert len(list(checked("x", "ab", days(0.3, 0.32, 0.29, 0.25, 0.1)))) == 1
