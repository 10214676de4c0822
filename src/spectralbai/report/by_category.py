"""The arms of a study by category: the overview for studies with thousands of arms.

numpy is imported where it is used, because the client, which reads statuses, needs the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spectralbai.verdict import Verdict

if TYPE_CHECKING:
    from spectralbai.arrays import Indices, Matrix
    from spectralbai.graph import Categories
    from spectralbai.journal.definition import Definition
    from spectralbai.report.status import ArmStatus


@dataclass(frozen=True)
class CategoryStatus:
    """One category of a study. Unknown numbers are None.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_categories(["pans", "pans", "mugs"]), R=[0.01, 0.01])
        >>> with sb.Study.create("shop", sb.Instance(problem, labels=["wok", "skillet", "mug"])) as study:
        ...     print([(each.name, each.arms) for each in study.status().categories])
        [('pans', 2), ('mugs', 1)]
    """

    name: str
    arms: int
    """Number of arms."""
    results: int
    share: float
    """Share of all results."""
    pending: int
    candidates: int | None
    """How many of its arms are candidates; None if the study keeps no candidates."""
    best: str | None
    """Label of its best arm so far: the recommended arm if it is in this category, else the candidate with the best
    estimate or, if it has no candidates, the arm with the best estimate. None before there is an estimate."""
    estimate: float | None
    low: float | None
    high: float | None
    """Ends of the interval for the mean of that arm."""
    omega: float | None
    """Share of the category in future pulls."""
    rival: str | None
    """Label of the arm whose account lacks most, other than the recommended one; None if there is no such account."""
    lacking: float | None
    """What that account lacks, in nats; 0 once all arms of the category are beaten."""
    out_at: int | None
    """Number of results when the last of its arms was eliminated; None while it has a candidate."""
    withdrawn: int
    """Number of its arms that were withdrawn."""


def categories_in(definition: Definition) -> Categories | None:
    """Returns the categories of the arms of a study; None if it has none."""
    from spectralbai.graph import Categories

    graph = definition.instance.problem.graph
    return graph if isinstance(graph, Categories) else None


def summarised(
    listed: Iterable[ArmStatus], best: str | None, candidates: frozenset[str] | None
) -> list[CategoryStatus]:
    """Returns the categories in the order of their first arms in `listed`; those without candidates come last.

    `listed` has the best arm first; `best` is the label of the recommended arm.
    """
    members: dict[str, list[ArmStatus]] = {}
    for arm in listed:
        members.setdefault(arm.category or "", []).append(arm)
    found = [_summary(name, arms, best, candidates) for name, arms in members.items()]
    return sorted(found, key=lambda category: category.candidates == 0)  # a stable sort keeps the order in each part


def _summary(
    name: str, arms: Sequence[ArmStatus], best: str | None, candidates: frozenset[str] | None
) -> CategoryStatus:
    first = arms[0]
    rivals = [arm for arm in arms if arm.lacking is not None and arm.label != best and not arm.withdrawn]
    rival = max(rivals, key=lambda arm: arm.lacking or 0.0, default=None)
    shares = [arm.omega for arm in arms if arm.omega is not None]
    out = [arm.out_at for arm in arms if arm.out_at is not None]
    return CategoryStatus(
        name=name,
        arms=len(arms),
        results=sum(arm.results for arm in arms),
        share=sum(arm.share for arm in arms),
        pending=sum(arm.pending for arm in arms),
        candidates=None if candidates is None else sum(arm.label in candidates for arm in arms),
        best=None if first.estimate is None else first.label,
        estimate=first.estimate,
        low=first.low,
        high=first.high,
        omega=sum(shares) if shares else None,
        rival=None if rival is None else rival.label,
        lacking=None if rival is None else rival.lacking,
        out_at=max(out) if len(out) == len(arms) else None,
        withdrawn=sum(arm.withdrawn for arm in arms),
    )


def most_lacking(lacking: Matrix, of_arm: Indices) -> Matrix:
    """Returns the largest of `lacking` (times, arms) in each category, (times, categories); NaN without an account."""
    import numpy as np

    most = np.full((len(lacking), int(of_arm.max()) + 1), np.nan)
    np.fmax.at(most.T, of_arm, lacking.T)  # ignores NaN
    return most


def lacking_of(verdicts: Sequence[Verdict], withdrawn: Sequence[bool], leaders: bool) -> Matrix:
    """Returns what the account against each arm lacked at each time, (times, arms).

    It is NaN for withdrawn arms after they were out, for arms that had not joined yet and, if `leaders`, for the leader
    at that time.
    """
    import numpy as np

    lacking = np.full((len(verdicts), len(withdrawn)), np.nan)
    for row, verdict in zip(lacking, verdicts, strict=True):
        row[: len(verdict.lacking or ())] = verdict.lacking
    lacking[(lacking == 0) & np.array(withdrawn)] = np.nan
    if leaders:
        lacking[np.arange(len(verdicts)), [verdict.arm for verdict in verdicts]] = np.nan
    return lacking
