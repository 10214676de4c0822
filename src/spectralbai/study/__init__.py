"""Live studies: ask, tell, survive, stop.

What needs a database is loaded when first used: the client of a service needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import Failure, Summary, Ticket
from spectralbai.report.by_category import CategoryStatus
from spectralbai.report.report import Report
from spectralbai.report.status import ArmStatus, Status

__all__ = [
    "ArmStatus",
    "CategoryStatus",
    "Definition",
    "Failure",
    "Report",
    "Status",
    "Studies",
    "Study",
    "Summary",
    "Ticket",
    "export_study",
    "import_study",
    "list_studies",
    "results_as_csv",
]

if TYPE_CHECKING:
    from spectralbai.study.studies import Studies
    from spectralbai.study.study import Study, list_studies
    from spectralbai.study.transfer import export_study, import_study, results_as_csv
else:  # hidden from type checkers, which would otherwise accept any name

    def __getattr__(name: str) -> object:
        from importlib import import_module

        home_of = {
            "Studies": "studies",
            "Study": "study",
            "list_studies": "study",
            "export_study": "transfer",
            "import_study": "transfer",
            "results_as_csv": "transfer",
        }
        if name not in home_of:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            import sqlalchemy  # noqa: F401
        except ModuleNotFoundError:
            from spectralbai.errors import SpectralBAIError

            raise SpectralBAIError(
                "studies need SQLAlchemy, which is not installed; run: pip install 'spectralbai[study]'"
            ) from None
        value = getattr(import_module(f"{__name__}.{home_of[name]}"), name)
        globals()[name] = value
        return value
