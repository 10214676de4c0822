"""Documents about a study: its status, its report, and the web page of the report.

They are made from the records of the study (`journal`), and do not access databases.
"""

from spectralbai.report.by_category import CategoryStatus
from spectralbai.report.from_snapshot import status_of
from spectralbai.report.report import Report
from spectralbai.report.status import ArmStatus, Status

__all__ = ["ArmStatus", "CategoryStatus", "Report", "Status", "status_of"]
