"""The optimal allocation: how to share pulls among arms to find the best one soonest, with proved bounds."""

from spectralbai.allocation.bound import lower_bound, samples_needed
from spectralbai.allocation.result import Allocation
from spectralbai.allocation.solve import SOLVERS, Solver, solve_allocation

__all__ = ["SOLVERS", "Allocation", "Solver", "lower_bound", "samples_needed", "solve_allocation"]
