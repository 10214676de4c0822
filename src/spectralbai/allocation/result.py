"""The result of every allocation solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.documents import plain
from spectralbai.text import html
from spectralbai.text.decimals import percent

AllocationStatus = Literal["certified", "unfinished"]
KEYS = ("best", "omega", "characteristic_time", "lower", "upper", "gap", "status", "iterations", "solver")
"""What a document holds of an allocation."""
MOST_ROWS = 30
"""Number of arms that a notebook shows."""


@dataclass(frozen=True, eq=False)
class Allocation:
    """An allocation omega with proved bounds: lower <= f(omega) <= 1/T* <= upper, whatever the status.

    Examples:
        >>> import numpy as np
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(2, []), R=np.inf)
        >>> allocation = sb.solve_allocation(problem, [0.7, 0.2])
        >>> allocation.omega.round(3).tolist(), allocation.best
        ([0.5, 0.5], 0)
        >>> bool(allocation.lower <= 1 / 32 <= allocation.upper), allocation.gap < 1e-6
        (True, True)
    """

    omega: Vector
    """Proportions of pulls per arm: non-negative, summing to one."""
    best: int
    """The answer that omega proves: the best arm or, with a tolerance, the right answer that is easiest to prove."""
    lower: float
    """Certified lower bound of f(omega), and so of 1/T*."""
    upper: float
    """Certified upper bound of 1/T*."""
    iterations: int
    """Number of times that best responses were computed."""
    status: AllocationStatus
    """"certified": gap <= tol. "unfinished": the bounds are valid but further apart than asked."""
    solver: str
    """Name of the solver that found omega."""

    @property
    def gap(self) -> float:
        """Relative gap of the bounds, upper/lower - 1."""
        return self.upper / self.lower - 1 if self.lower > 0 else float("inf")

    @property
    def characteristic_time(self) -> float:
        """1/lower: omega needs at most this many samples per unit of log(1/delta), and T* is within `gap` of it."""
        return 1 / self.lower if self.lower > 0 else float("inf")

    def saving(self, without_graph: Allocation) -> float:
        """Returns 1 - T_R*/T_inf*, from the certified times; at least 0, since the graph never costs samples."""
        return max(0.0, 1 - without_graph.lower / self.lower) if self.lower > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Returns the allocation, JSON-ready."""
        document: dict[str, Any] = plain({key: getattr(self, key) for key in KEYS})
        return document

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: the certificate, and the arms with the largest shares."""
        facts = (
            ("best arm", str(self.best)),
            ("T*", f"{self.characteristic_time:,.6g} samples per unit of log(1/delta)"),
            ("certificate", f"{self.lower:.8g} <= 1/T* <= {self.upper:.8g}, {self.status}"),
            ("solver", self.solver),
        )
        largest = np.argsort(-self.omega, kind="stable")[:MOST_ROWS].tolist()
        shares = html.table(("arm", "share"), ((str(arm), percent(float(self.omega[arm]), 2)) for arm in largest))
        rest = self.omega.size - len(largest)
        more = f"{rest:,} more arms share {percent(1 - float(self.omega[largest].sum()), 2)}." if rest else ""
        return html.pairs(facts) + shares + (html.paragraph(more) if more else "")
