"""Documents about a study, and how they look: where it stands, its record, its page.

They are made from what is written down (`journal`), and know nothing of databases.
"""

from spectralbai.report.by_category import CategoryStatus
from spectralbai.report.report import Report
from spectralbai.report.status import ArmStatus, Status, status_of

__all__ = ["ArmStatus", "CategoryStatus", "Report", "Status", "status_of"]
