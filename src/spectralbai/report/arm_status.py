"""One arm of a study, as a status shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from spectralbai.report.comparison import Comparison, Mean


@dataclass(frozen=True)
class ArmStatus:
    """One arm of a study. Unknown numbers are None.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("arms", sb.Instance(problem, labels=["old", "new"]))
        >>> study.tell_many((ticket, {"old": 1.0, "new": 3.0}[ticket.label]) for ticket in study.ask(2))
        1
        >>> [(arm.label, arm.results, arm.mean) for arm in study.status().arms]
        [('old', 1, 1.0), ('new', 0, None)]
        >>> study.close()
    """

    label: str
    results: int
    share: float
    """Share of all results."""
    pending: int
    mean: float | None
    """The plain average of its results; None before the first."""
    hits: int | None
    """If there are only two possible outcomes, how many of its results were the larger one; otherwise None."""
    estimate: float | None
    """Estimate of the mean outcome: the smooth means closest to all results."""
    low: float | None
    high: float | None
    """The intervals of all arms hold at all times at once with probability 1 - delta; see `policy.Estimates`."""
    omega: float | None
    """Its share of future pulls, as planned when rules were last read; None before the first reading, and once no more
    pulls are planned."""
    out_at: int | None
    """Number of results when it was eliminated. None for candidates, for rules that do not eliminate arms, and if the
    data contradict R."""
    lacking: float | None
    """What the account against it still lacks, in nats; 0 once it is beaten. None for rules without accounts, for the
    recommended arm, before the first reading, and if the data contradict R."""
    failures: int
    """Number of its trials that failed."""
    joined_at: int | None
    """Number of results when it joined; None for arms that were there from the beginning."""
    withdrawn: bool
    """Whether it was withdrawn: it is not tried any more, and never the answer."""
    against: Comparison | None
    """Its comparison with the control; None for the control itself, and if there is no control."""
    category: str | None
    """Its category; None in a study without categories."""

    @property
    def known(self) -> Mean:
        """The estimate of its mean outcome, with the ends of the interval."""
        return self.estimate, self.low, self.high

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> ArmStatus:
        """Returns the arm that `as_dict` wrote."""
        against = None if d["against"] is None else Comparison(**d["against"])
        return cls(**{**{field.name: d[field.name] for field in fields(cls)}, "against": against})

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready."""
        return {**vars(self), "against": None if self.against is None else asdict(self.against)}
