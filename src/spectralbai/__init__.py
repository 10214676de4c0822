"""Best-arm identification on a similarity graph: find the best of K related options with the fewest noisy trials.

Names are loaded when they are first used, so that importing the package and starting the command line are fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.4.0"

__all__ = [
    "Allocation",
    "Alternative",
    "Busy",
    "Client",
    "Conflict",
    "Damaged",
    "Graph",
    "Instance",
    "InvalidInput",
    "Items",
    "NotFound",
    "Problem",
    "SpectralBAIError",
    "SpectralRace",
    "SpectralTaS",
    "StorageError",
    "Studies",
    "Study",
    "Table",
    "__version__",
    "closest_alternative",
    "estimate",
    "instances",
    "lower_bound",
    "pick",
    "plan",
    "plan_items",
    "simulate",
    "solve_allocation",
]

if TYPE_CHECKING:
    from spectralbai import instances, simulate
    from spectralbai.allocation import Allocation, lower_bound, solve_allocation
    from spectralbai.client import Client
    from spectralbai.errors import Busy, Conflict, Damaged, InvalidInput, NotFound, SpectralBAIError, StorageError
    from spectralbai.estimation import estimate
    from spectralbai.graph import Graph
    from spectralbai.instance import Instance
    from spectralbai.items import Items
    from spectralbai.picking import pick
    from spectralbai.planning import plan, plan_items
    from spectralbai.policy import SpectralRace, SpectralTaS
    from spectralbai.problem import Problem
    from spectralbai.responder import Alternative, closest_alternative
    from spectralbai.study import Studies, Study
    from spectralbai.tables import Table
else:  # hidden from type checkers, which would otherwise accept any name
    _HOMES = {
        "allocation": ("Allocation", "lower_bound", "solve_allocation"),
        "client": ("Client",),
        "errors": ("Busy", "Conflict", "Damaged", "InvalidInput", "NotFound", "SpectralBAIError", "StorageError"),
        "estimation": ("estimate",),
        "graph": ("Graph",),
        "instance": ("Instance",),
        "instances": ("instances",),
        "items": ("Items",),
        "responder": ("Alternative", "closest_alternative"),
        "picking": ("pick",),
        "planning": ("plan", "plan_items"),
        "policy": ("SpectralRace", "SpectralTaS"),
        "problem": ("Problem",),
        "simulate": ("simulate",),
        "study": ("Studies", "Study"),
        "tables": ("Table",),
    }

    def __getattr__(name: str) -> object:
        from importlib import import_module

        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{home}")
        value = module if name == home else getattr(module, name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return __all__
