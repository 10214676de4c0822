"""Documents about a study: its status, its report, and the web page of the report.

They are made from the records of the study (`journal`), and do not access databases. What computes is loaded when it is
first used: to read a status, the standard library is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralbai.report.by_category import CategoryStatus
from spectralbai.report.status import ArmStatus, Status

__all__ = ["ArmStatus", "CategoryStatus", "Report", "Status", "status_of"]

if TYPE_CHECKING:
    from spectralbai.report.from_snapshot import status_of
    from spectralbai.report.report import Report
else:

    def __getattr__(name: str) -> object:
        if name == "Report":
            from spectralbai.report.report import Report

            return Report
        if name == "status_of":
            from spectralbai.report.from_snapshot import status_of

            return status_of
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
