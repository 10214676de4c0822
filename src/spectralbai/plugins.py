"""Modules of others that register rules, policies, noise and the like: imported by name, here and in worker processes.

Installed packages name theirs as entry points of the group `spectralbai`; others are named by --import, or by `load`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType

from spectralbai.errors import InvalidInput

GROUP = "spectralbai"
"""The group of entry points; each is a module, or a function without arguments that is called once."""

_imported: list[str] = []
_lock = threading.RLock()


def load(modules: Iterable[str] = ()) -> None:
    """Imports these modules, after the entry points of installed packages; each only once in a process.

    Modules are found in the current directory too, as with `python -m`. Worker processes of campaigns import the same
    modules.
    """
    with _lock:
        _enter()
        for name in modules:
            if name not in _imported:
                _import(name)
                _imported.append(name)


def loaded() -> tuple[str, ...]:
    """Returns the names of the modules that were given to `load`, for workers to import too."""
    return tuple(_imported)


@cache
def _enter() -> None:
    """Imports what installed packages name as entry points."""
    for entry in entry_points(group=GROUP):
        with _sentences(f'the entry point "{entry.name} = {entry.value}" of an installed package'):
            entered = entry.load()
            if not isinstance(entered, ModuleType):
                entered()


def _import(name: str) -> None:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    with _sentences(f'the module "{name}"'):
        try:
            import_module(name)
            return
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # it is there, but imports another that is not
    remedy = "give the name of a file without .py, or install its package"
    raise InvalidInput(f'there is no module "{name}", neither in {here} nor installed; {remedy}')


@contextmanager
def _sentences(what: str) -> Iterator[None]:
    """Turns every error that code of others raises when it is imported into one sentence."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"{what} cannot be imported ({type(error).__name__}: {error}); repair it, or leave it out"
        ) from error
