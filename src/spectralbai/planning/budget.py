"""What a given number of trials can find."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from spectralbai.checks import LARGEST_COUNT, check_delta, check_integer
from spectralbai.errors import InvalidInput
from spectralbai.instance import Instance
from spectralbai.planning.forecast import race
from spectralbai.planning.means import Means, Source
from spectralbai.policy import SpectralRace
from spectralbai.simulate import Run

PROBABILITIES = (0.8, 0.95)
HALVINGS = 8
"""Most tolerances tried: they start at the spread of the means, and each is half of the one before, until only the part
`HARDLY` of the runs decides."""
HARDLY = 0.05
REFINEMENTS = 2
"""How often the interval of tolerances in which a probability is reached is cut in two."""


@dataclass(frozen=True)
class Chance:
    """How often simulated runs with one tolerance decide within the budget."""

    tolerance: float
    runs: int
    decided: int

    @property
    def share(self) -> float:
        return self.decided / self.runs


@dataclass(frozen=True, eq=False)
class Budget:
    """What a number of trials can find."""

    instance: Instance
    trials: int
    delta: float
    source: Source
    curve: tuple[Chance, ...]
    """One entry per tolerance, in increasing order; the tolerance of the problem is among them."""
    candidates: tuple[int, ...]
    """How many candidates are left after all trials, for each run with the problem's tolerance that did not decide."""

    @property
    def given(self) -> Chance:
        """The chance at the tolerance of the problem."""
        return next(each for each in self.curve if each.tolerance == self.instance.problem.tolerance)

    def smallest_tolerance(self, probability: float) -> float | None:
        """Returns the smallest tolerance from which on all tried are decided with this probability, if there is one."""
        found = None
        for each in reversed(self.curve):
            if each.share < probability:
                break
            found = each.tolerance
        return found

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready."""
        return {
            "trials": self.trials,
            "delta": self.delta,
            "source": self.source,
            "instance": self.instance.as_dict(),
            "smallest_tolerance": {f"{p:g}": self.smallest_tolerance(p) for p in PROBABILITIES},
            "curve": [asdict(each) for each in self.curve],
            "candidates": list(self.candidates),
        }


def budget(
    instance: Instance,
    trials: int,
    delta: float = 0.05,
    *,
    arms: ArrayLike | None = None,
    outcomes: ArrayLike | None = None,
    runs: int = 40,
    seed: int = 0,
    executor: Executor | None = None,
    on_run: Callable[[int, int], object] | None = None,
    control: int | None = None,
) -> Budget:
    """Returns what `trials` trials can find at risk `delta`: for each tolerance, how often simulated races decide
    within them.

    The means are the same as in `plan`. With past observations (`arms` and their `outcomes`), each run uses different
    means that the observations make plausible. `runs` races are simulated at each tolerance; `on_run` is called with
    (done, most) after each. If there is a `control`, an arm, the races compare every arm with it.
    """
    delta, trials = check_delta(delta), check_integer("trials", trials, 1, LARGEST_COUNT)
    runs, seed = check_integer("runs", runs, 1), check_integer("seed", seed, 0)
    means = Means.of(instance, arms, outcomes, seed)
    spread = means.spread
    if instance.problem.outcome_range is not None:  # a tolerance as wide as the range is refused
        low, high = instance.problem.outcome_range
        spread = min(spread, (high - low) * (1 - 1e-9))
    if spread == 0:
        raise InvalidInput(
            "the means planned with are all equal: every option is a right answer, so no trials are needed"
        )
    most = (1 + HALVINGS + len(PROBABILITIES) * REFINEMENTS) * runs
    raced: dict[float, list[Run]] = {}
    done = 0

    if means.pilot is not None:
        means = replace(means, signals=means.pilot.plausible)

    def chance(tolerance: float) -> Chance:
        nonlocal done
        if tolerance not in raced:
            policy = SpectralRace(replace(instance.problem, tolerance=tolerance), delta, control=control)
            raced[tolerance] = []
            for each in race(policy, means, range(runs), seed, executor, trials):
                raced[tolerance].append(each)
                done += 1
                if on_run is not None:
                    on_run(done, max(most, done))
        return Chance(tolerance, runs, sum(each.status == "decided" for each in raced[tolerance]))

    own = instance.problem.tolerance
    chance(own)
    _try_tolerances(lambda tolerance: chance(tolerance).share, spread)
    if on_run is not None:
        on_run(done, done)
    left = tuple(
        instance.problem.n_arms if each.candidates is None else len(each.candidates)
        for each in raced[own]
        if each.status != "decided"
    )
    return Budget(instance, trials, delta, means.source, tuple(map(chance, sorted(raced))), left)


def _try_tolerances(share: Callable[[float], float], spread: float) -> None:
    """Calls `share`, the share of races decided at a tolerance, until it is known where each probability is reached."""
    tried = [spread]
    while share(tried[-1]) > HARDLY and len(tried) < HALVINGS:
        tried.append(tried[-1] / 2)
    for probability in PROBABILITIES:
        above = [each for each in tried if share(each) >= probability]
        if len(above) == len(tried) or not above:
            continue
        high = min(above)
        low = high / 2
        for _ in range(REFINEMENTS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if share(middle) >= probability else (middle, high)
