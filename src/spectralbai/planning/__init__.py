"""Before the first trial: how many samples to expect, and what a given number of them can find."""

from spectralbai.planning.budget import Budget, Chance, budget
from spectralbai.planning.forecast import BATCH, Forecast
from spectralbai.planning.from_table import TablePlan, Way, plan_items
from spectralbai.planning.pilot import Pilot, Range
from spectralbai.planning.planned import Plan, Variation, plan

__all__ = [
    "BATCH",
    "Budget",
    "Chance",
    "Forecast",
    "Pilot",
    "Plan",
    "Range",
    "TablePlan",
    "Variation",
    "Way",
    "budget",
    "plan",
    "plan_items",
]
