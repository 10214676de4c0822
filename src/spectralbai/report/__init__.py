"""Documents about a study: its status, its report, and the web page of the report.

They are made from the records of the study (`journal`), and do not access databases. To read a status, the standard
library is enough, so what computes is in modules of its own: `report` and `from_snapshot`.
"""

from spectralbai.report.by_category import CategoryStatus
from spectralbai.report.status import ArmStatus, Status

__all__ = ["ArmStatus", "CategoryStatus", "Status"]
