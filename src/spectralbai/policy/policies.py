"""The policies by name. Each consists of a sampling rule and a default stopping rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from spectralbai.allocation import solve_allocation
from spectralbai.arrays import Vector
from spectralbai.checks import check_share
from spectralbai.errors import InvalidInput
from spectralbai.instance import Instance
from spectralbai.policy.policy import Policy
from spectralbai.policy.printed import PrintedTaS
from spectralbai.problem import Problem
from spectralbai.sampling import (
    FixedAllocation,
    GraphEliminationSampling,
    ItemRacing,
    LUCBSampling,
    OptimalTracking,
    Racing,
    SamplingRule,
    TopTwoSampling,
    UniformSampling,
)
from spectralbai.stopping import StoppingRule


@dataclass(frozen=True, eq=False)
class SpectralTaS(Policy):
    """SpectralTaS [KG20, Algorithm 1]: tracks omega*(mu_tilde), the optimal allocation of the constrained estimate.

    Examples:
        >>> import spectralbai as sb
        >>> policy = sb.SpectralTaS(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01), delta=0.1, stopping="gk16")
        >>> run = sb.simulate.run(policy, mu=[3.0, 0.5, 0.6], seed=0)
        >>> run.status, run.arm, run.rule
        ('decided', 0, 'gk16')
    """

    sampling: SamplingRule[Any] = field(default=OptimalTracking(), kw_only=True)

    @classmethod
    def as_printed(cls, problem: Problem, delta: float = 0.01, iterations: int = 300) -> PrintedTaS:
        """Returns the algorithm to the letter of the paper, with so many steps of mirror ascent at every pull; nothing
        is corrected, and its risk is not proved (theory, section 11)."""
        return PrintedTaS(problem, delta, iterations=iterations)


@dataclass(frozen=True, eq=False)
class SpectralRace(Policy):
    """The race: aims every block of pulls at the arms that are not yet eliminated.

    The pulls depend on delta, so a run is for one risk and one rule, and `watching` is not allowed.

    Examples:
        >>> import numpy as np
        >>> import spectralbai as sb
        >>> policy = sb.SpectralRace(sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=0.01), delta=0.05)
        >>> state = policy.init()
        >>> while (arms := policy.ask(state, 10)).size:
        ...     state = policy.tell(state, arms, np.array([3.0, 0.5, 0.6])[arms])
        >>> policy.verdict(state).decided, policy.verdict(state).arm
        (True, 0)
    """

    sampling: SamplingRule[Any] = field(default=Racing(), kw_only=True)
    control_share: float | None = field(default=None, kw_only=True)
    """The least part of the pulls that the control gets; if None, so much that its comparison with the leader is not
    what the race waits for."""

    def __post_init__(self) -> None:
        if self.control_share is not None:
            check_share("control_share", self.control_share, "a share between 0 and 1, such as 0.1")
            if self.control is None:
                raise InvalidInput("`control_share` is that of the control; give `control` too")
        if self.sampling == Racing() and self.control is not None:
            object.__setattr__(self, "sampling", Racing(self.control, self.control_share))
        if self.sampling == Racing() and isinstance(self.problem, Problem) and self.problem.items is not None:
            object.__setattr__(self, "sampling", ItemRacing())
        super().__post_init__()
        if self.watching:
            raise InvalidInput(
                f"`watching` must be empty for a race, whose pulls depend on delta, got {self.watching!r}; run one "
                "policy for each, or use SpectralTaS"
            )
        if not self.in_blocks:
            raise InvalidInput(
                f"`stopping` must be betting for a race, whose pulls follow from it, got {self.rules[0][0]}"
            )


@dataclass(frozen=True, eq=False)
class Race(SpectralRace):
    """The race without a graph: the same as SpectralRace with R = inf."""

    ignores_graph: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class TrackAndStop(SpectralTaS):
    """Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence, with the default stopping
    rule: the same as SpectralTaS with R = inf."""

    ignores_graph: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class OracleSampling(Policy):
    """Tracks the optimal allocation of the true means from the start; the stopping rule does not know them.

    Compare other policies with it to see how many trials they lose because they do not know the means.
    """

    mu: Vector = field(kw_only=True)
    """The true means."""
    sampling: SamplingRule[Any] = field(init=False)

    def __post_init__(self) -> None:
        # Means that are rougher than R are refused here, before anything else is computed.
        omega = solve_allocation(self.problem, self.mu, tol=1e-3).omega
        object.__setattr__(self, "sampling", FixedAllocation(omega))
        super().__post_init__()

    @classmethod
    def on(cls, instance: Instance, **settings: Any) -> Self:
        if instance.mu is None:
            raise InvalidInput("`mu` must be given for the oracle to sample by, got an instance without means")
        return cls(instance.problem, mu=instance.mu, **settings)


@dataclass(frozen=True, eq=False)
class Uniform(Policy):
    """Pulls every arm equally often; only the stopping rule uses the graph."""

    sampling: SamplingRule[Any] = field(default=UniformSampling(), kw_only=True)


@dataclass(frozen=True, eq=False)
class TopTwo(Policy):
    """T3C, which ignores the graph."""

    ignores_graph: ClassVar[bool] = True

    sampling: SamplingRule[Any] = field(default=TopTwoSampling(), kw_only=True)


@dataclass(frozen=True, eq=False)
class LUCB(Policy):
    """LUCB, which ignores the graph, with the intervals of theory 8.1, so that its risk is proved."""

    ignores_graph: ClassVar[bool] = True

    stopping: str | StoppingRule[Any] = "intervals"
    sampling: SamplingRule[Any] = field(default=LUCBSampling(), kw_only=True)


@dataclass(frozen=True, eq=False)
class GraphElimination(Policy):
    """Elimination on the graph after GRUB (Thaker et al., 2022), with the intervals of theory 8.3, so that its risk is
    proved."""

    stopping: str | StoppingRule[Any] = "graph-intervals"
    sampling: SamplingRule[Any] = field(default=GraphEliminationSampling(), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, _ in self.rules:
            if name != "graph-intervals":
                raise InvalidInput(
                    "`stopping` must be graph-intervals for graph-elimination, whose pulls follow from that rule, got "
                    f"{name!r}"
                )


POLICIES: dict[str, type[Policy]] = {
    "spectral-race": SpectralRace,
    "spectral-tas": SpectralTaS,
    "spectral-tas-printed": PrintedTaS,
    "race": Race,
    "oracle": OracleSampling,
    "uniform": Uniform,
    "track-and-stop": TrackAndStop,
    "top-two": TopTwo,
    "lucb": LUCB,
    "graph-elimination": GraphElimination,
}
"""The policies by name."""
