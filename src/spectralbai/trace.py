"""Traces: a simulated run step by step, to see what a policy does and when it knows what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.arrays import Indices, Mask, Matrix, Vector, check_vector
from spectralbai.checks import LARGEST_COUNT, check_integer
from spectralbai.estimation import estimate
from spectralbai.noise import Drawing
from spectralbai.policy import Policy, State, Verdict
from spectralbai.tape import Tape
from spectralbai.threads import one_thread


@dataclass(frozen=True, eq=False)
class Trace:
    """A simulated run: every array has a row per pull, for the time right after its result, and matrices a column per
    arm. Of several stopping rules, the values are those of the first.

    Examples:
        >>> import spectralbai as sb
        >>> policy = sb.SpectralTaS(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01), delta=0.1, stopping="gk16")
        >>> trace = sb.simulate.trace(policy, mu=[3.0, 0.5, 0.6], seed=1)
        >>> trace.arms[:4].tolist(), trace.counts[3].tolist(), trace.wealth is None, trace.verdict.decided
        ([0, 1, 2, 1], [1.0, 2.0, 1.0], True, True)
    """

    rule: str
    delta: float
    verdict: Verdict
    """What the rule said at the end."""
    arms: Indices
    """The arm pulled."""
    outcomes: Vector
    counts: Matrix
    """Pulls of each arm so far."""
    estimates: Matrix
    """The smooth means closest to the results seen; NaN until every component has one."""
    statistic: Vector
    """Evidence against the challenger that is closest to winning, when the rule was last read."""
    threshold: Vector
    """What the statistic must exceed; inf before the first reading."""
    wealth: Matrix | None
    """What the account against each arm has made of 1, at most 1/delta, where the arm is beaten; None for rules without
    accounts, and if the rule was never read."""
    candidates: Mask | None
    """Which arms may still be best; None for rules that do not eliminate arms, and if the rule was never read."""

    def columns(self) -> dict[str, Any]:
        """Returns a list of numbers for each column of a table, as in `pandas.DataFrame(trace.columns())`; a matrix has
        a column per arm, such as "counts 0".

        Examples:
            >>> import spectralbai as sb
            >>> policy = sb.SpectralRace(sb.Problem(sb.Graph.from_edges(2, []), R=1.0), delta=0.05)
            >>> columns = sb.simulate.trace(policy, mu=[3.0, 0.0], seed=1).columns()
            >>> columns["arms"][:2], columns["counts 1"][:2], columns["candidates 1"][-1]
            ([0, 1], [0.0, 1.0], False)
        """
        columns: dict[str, Any] = {"step": list(range(1, self.arms.size + 1))}
        for name in ("arms", "outcomes", "statistic", "threshold", "counts", "estimates", "wealth", "candidates"):
            values = getattr(self, name)
            if values is not None:
                own = {name: values} if values.ndim == 1 else {f"{name} {arm}": row for arm, row in enumerate(values.T)}
                columns |= {key: each.tolist() for key, each in own.items()}
        return columns


def trace(
    policy: Policy, mu: ArrayLike, seed: int, max_samples: int = 1_000_000, noise: Drawing | None = None
) -> Trace:
    """Returns the run of `simulate.run` with the same arguments, step by step. It takes memory in proportion to the
    pulls times the arms.

    Examples:
        >>> import spectralbai as sb
        >>> policy = sb.SpectralRace(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01), delta=0.05)
        >>> trace = sb.simulate.trace(policy, mu=[3.0, 0.5, 0.6], seed=1)
        >>> trace.arms.size == sb.simulate.run(policy, mu=[3.0, 0.5, 0.6], seed=1).tau
        True
        >>> trace.candidates[0].tolist(), trace.candidates[-1].tolist()
        ([True, True, True], [True, False, False])
    """
    problem, (rule, delta) = policy.problem, policy.rules[0]
    mu = check_vector("mu", mu, problem.n_arms)
    max_samples = check_integer("max_samples", max_samples, 1, LARGEST_COUNT)
    tape = Tape.of(problem, mu, seed, noise)
    choices = np.random.default_rng((seed, 1))  # as in `simulate.watch`
    pulled: list[Indices] = []
    outcomes: list[Vector] = []
    estimates: list[Vector] = []
    verdicts: list[Verdict] = []
    with one_thread():
        state = policy.init(None if problem.items is None else seed)
        known = np.full(problem.n_arms, np.nan)
        while state.samples < max_samples:
            arms, blocks, items = policy.next_trials(state, max_samples - state.samples, choices)
            if not arms.size:
                break
            pulled.append(arms)
            outcomes.append(tape.read(arms, blocks, items))
            on_items = [None] * arms.size if items is None else items.tolist()
            for arm, outcome, item in zip(arms.tolist(), outcomes[-1].tolist(), on_items, strict=True):
                before, state = state, policy.tell(state, arm, outcome, items=item)
                if state.data is not before.data:
                    known = _estimate(policy, state)
                estimates.append(known)
                verdicts.append(policy.verdict(state))
    every = np.concatenate(pulled)
    last, n_arms = verdicts[-1], problem.n_arms
    everyone = np.arange(n_arms)
    return Trace(
        rule=rule,
        delta=delta,
        verdict=last,
        arms=every,
        outcomes=np.concatenate(outcomes),
        counts=np.cumsum(everyone == every[:, None], axis=0, dtype=np.float64),
        estimates=np.array(estimates),
        statistic=np.array([verdict.statistic for verdict in verdicts]),
        threshold=np.array([verdict.threshold for verdict in verdicts]),
        wealth=None if last.lacking is None else np.array([_wealth(verdict, n_arms, delta) for verdict in verdicts]),
        candidates=None
        if last.candidates is None
        else np.array([_candidates(verdict, n_arms) for verdict in verdicts]),
    )


def _estimate(policy: Policy, state: State) -> Vector:
    if not policy.has_estimate(state):
        return np.full(state.n_arms, np.nan)
    return estimate(policy.problem, state.data.counts, state.data.means) + state.origin


def _wealth(verdict: Verdict, n_arms: int, delta: float) -> Vector:
    """Returns the wealth of the account against each arm; 1 before the first reading."""
    if verdict.lacking is None:
        return np.ones(n_arms)
    wealth: Vector = np.exp(-np.maximum(verdict.lacking, 0.0)) / delta
    return wealth


def _candidates(verdict: Verdict, n_arms: int) -> Mask:
    """Returns which arms may still be best; all before the first reading."""
    left = np.ones(n_arms, dtype=bool)
    if verdict.candidates is not None:
        left[:] = False
        left[list(verdict.candidates)] = True
    return left
