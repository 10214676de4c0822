"""Live studies: they hand out trials, record results in a database, and say when to stop."""

try:
    import sqlalchemy as _sqlalchemy  # noqa: F401
except ModuleNotFoundError:
    from spectralbai.errors import SpectralBAIError

    raise SpectralBAIError(
        "studies need SQLAlchemy, which is not installed; run: pip install 'spectralbai[study]'"
    ) from None

from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import Failure, Summary, Ticket
from spectralbai.report import ArmStatus, CategoryStatus, Status
from spectralbai.report.by_items import ItemsStatus
from spectralbai.report.report import Report
from spectralbai.study.backup import backup, restore
from spectralbai.study.check import Check
from spectralbai.study.pairs import table_as_csv
from spectralbai.study.studies import Studies, list_studies
from spectralbai.study.study import Study
from spectralbai.study.transfer import export_study, import_study, results_as_csv

__all__ = [
    "ArmStatus",
    "CategoryStatus",
    "Check",
    "Definition",
    "Failure",
    "ItemsStatus",
    "Report",
    "Status",
    "Studies",
    "Study",
    "Summary",
    "Ticket",
    "backup",
    "export_study",
    "import_study",
    "list_studies",
    "restore",
    "results_as_csv",
    "table_as_csv",
]
