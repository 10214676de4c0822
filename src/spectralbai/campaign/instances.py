"""What the tables [[instances]] of a campaign file say: instances from generators or files, or tables to replay."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from spectralbai.arrays import Matrix, Vector
from spectralbai.checks import check_keys, check_number, did_you_mean
from spectralbai.drift import Drift, drift_from_dict
from spectralbai.errors import InvalidInput, SpectralBAIError, about
from spectralbai.graph import Graph
from spectralbai.instance import Instance
from spectralbai.instances import KINDS
from spectralbai.items import Items
from spectralbai.noise import Drawing
from spectralbai.problem import Problem
from spectralbai.tables import Table
from spectralbai.tape import Tape

CHANGES = ("R", "R_by_component", "noise", "items", "drift")
"""Keys that change an instance, from a file or from a generator."""
TABLE = "table"
"""The kind of instances whose runs replay a table."""
TABLE_KEYS = ("file", "columns", "by_cluster", "categories", "low", "high", "binary", "tolerance")
COLUMNS = ("option", "item", "outcome", "cluster")


@dataclass(frozen=True, eq=False)
class NamedInstance:
    """An instance of a campaign."""

    name: str
    instance: Instance
    noise: Drawing | None = None
    """How outcomes are drawn, if there are several ways."""
    drift: Drift | None = None
    """How means change with time, if they do."""
    outcomes: Matrix | None = None
    """The table that runs replay, (n_arms, n_items); None if outcomes are drawn from the means."""

    @property
    def mu(self) -> Vector:
        assert self.instance.mu is not None  # checked when the campaign was read
        return self.instance.mu

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready."""
        noise = {} if self.noise is None else {"noise": self.noise}
        drift = {} if self.drift is None else {"drift": self.drift.as_dict()}
        outcomes = {} if self.outcomes is None else {"outcomes": self.outcomes.tolist()}
        return {"name": self.name, "instance": self.instance.as_dict(), **noise, **drift, **outcomes}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> NamedInstance:
        """Returns the instance that `as_dict` wrote."""
        outcomes = np.array(data["outcomes"], dtype=np.float64) if "outcomes" in data else None
        drift = drift_from_dict("drift", data["drift"]) if "drift" in data else None
        return cls(data["name"], Instance.from_dict(data["instance"]), data.get("noise"), drift, outcomes)


class Files(NamedTuple):
    """The functions that read what a campaign names."""

    instance: Callable[[str], Instance] | None
    table: Callable[..., Table] | None


def instances_from(place: str, table: dict[str, Any], files: Files) -> Iterator[NamedInstance]:
    """Yields the instance that a table [[instances]] describes, or one for each combination of its sweep."""
    sweep = table.pop("sweep", {})
    if not isinstance(sweep, dict) or not all(isinstance(values, list) and values for values in sweep.values()):
        raise InvalidInput(
            f"{place}: sweep must be keys with lists of values, such as {{ slack = [1.0, 2.0] }}, got {sweep!r}"
        )
    for key in sweep:
        if key in table or key in ("name", "kind", "file"):
            raise InvalidInput(
                f'{place}: sweep has the key "{key}", which the table gives already or which cannot vary; remove it'
            )
    for values in itertools.product(*sweep.values()):
        chosen = dict(zip(sweep, values, strict=True))
        one = _instance(place, {**table, **chosen}, files)
        suffix = "".join(f" {key}={value}" for key, value in chosen.items())
        yield replace(one, name=one.name + suffix)


def _instance(place: str, table: dict[str, Any], files: Files) -> NamedInstance:
    name, kind, R, radii, noise, items, given = (table.pop(key, None) for key in ("name", "kind", *CHANGES))
    outcomes = None
    try:
        if kind == TABLE:
            for key, value in (("noise", noise), ("drift", given)):
                if value is not None:
                    raise InvalidInput(f"{key} says how outcomes are drawn from means, and a table has them; remove it")
            if "categories" in table and R is None and radii is None:
                raise InvalidInput("categories need R, or R_by_component with one for each, or R = inf; add one")
            instance, outcomes = _from_table(table, items, files.table)
        elif "file" in table:
            if kind is not None:
                raise InvalidInput(f'kind and file are both given; keep one, or use kind = "{TABLE}"')
            check_keys("the table", table, ("file",), (), others=("name", *CHANGES))
            if files.instance is None:
                raise InvalidInput(f'file = "{table["file"]}" cannot be opened here; pass `read_instance`')
            instance = files.instance(_path(table))
        else:
            generator = KINDS[one_of("kind", kind, (*KINDS, TABLE))]
            parameters = inspect.signature(generator).parameters
            required = [key for key, parameter in parameters.items() if parameter.default is parameter.empty]
            check_keys("the table", table, parameters, required, others=("name", "kind", *CHANGES))
            instance = generator(**table)
        if R is not None:
            if radii is not None:
                raise InvalidInput("R and R_by_component are both given; keep one")
            radii = check_number("R", R, "a positive number or inf", low=0.0, strict=True, allow_inf=True)
        elif radii is not None and not isinstance(radii, list):
            raise InvalidInput(f"R_by_component must be a list of numbers, one per component, got {radii!r}")
        if radii is not None:
            instance = Instance(replace(instance.problem, R=radii), instance.mu, instance.labels)
        drift = None if given is None else drift_from_dict("drift", given)
        if outcomes is None:
            instance = _drawable(instance, items, noise, drift)
        assert instance.mu is not None
        instance.problem.best_arm(instance.mu)
    except SpectralBAIError as error:
        raise InvalidInput(f"{place}: {error}") from None
    return NamedInstance(name_of(place, name, table.get("file", kind)), instance, noise, drift, outcomes)


def _drawable(instance: Instance, items: Any, noise: Drawing | None, drift: Drift | None) -> Instance:
    """Returns the instance, on fresh items if `items` says so; raises InvalidInput if no outcomes can be drawn."""
    given = instance.problem.items if items is None else items
    if given not in (None, "fresh", Items.fresh()):
        got = given.described() if isinstance(given, Items) else repr(given)
        raise InvalidInput(
            f'items must be "fresh" where outcomes are drawn from means, got {got}; a list needs its outcomes, as '
            f'kind = "{TABLE}"'
        )
    if instance.mu is None:
        raise InvalidInput('"mu" is missing, the mean of each arm to simulate from; add it to the file')
    if items is not None:
        instance = Instance(replace(instance.problem, items=Items.fresh()), instance.mu, instance.labels)
    assert instance.mu is not None
    Tape.of(instance.problem, instance.mu, 0, noise, drift)  # raises an error if outcomes cannot be drawn
    return instance


def _from_table(
    table: Mapping[str, Any], items: Any, read_table: Callable[..., Table] | None
) -> tuple[Instance, Matrix]:
    """Returns the instance of a table of outcomes, without a bound on R, and its outcomes."""
    check_keys("the table", table, TABLE_KEYS, ("file",), others=("name", "kind", *CHANGES))
    if items not in (None, "fresh", "listed"):
        raise InvalidInput(
            f'items must be "fresh" or "listed", got {items!r}; leave it out if every trial stands for itself'
        )
    columns, by_cluster = table.get("columns", {}), table.get("by_cluster", False)
    if not isinstance(columns, dict) or not all(isinstance(column, str) for column in columns.values()):
        example = '{ option = "model", item = "question", outcome = "score" }'
        raise InvalidInput(f"columns must be names of columns, such as {example}, got {columns!r}")
    check_keys("columns", columns, COLUMNS, ())
    if not isinstance(by_cluster, bool):
        raise InvalidInput(f"by_cluster must be true or false, got {by_cluster!r}")
    file = _path(table)
    if read_table is None:
        raise InvalidInput(f'file = "{file}" cannot be opened here; pass `read_table`')
    known = read_table(file, **columns)
    with about(file):
        if known.missing:
            raise InvalidInput(f"{known.described()}; complete the file, or leave these items out of it")
        if by_cluster:
            known = known.by_cluster()
    categories = table.get("categories")
    if categories is not None and (not isinstance(categories, list) or len(categories) != known.n_options):
        raise InvalidInput(
            f"categories must be a list of {known.n_options} names, one for each option in the order of the file, got "
            f"{categories!r}"
        )
    graph = Graph.from_edges(known.n_options, []) if categories is None else Graph.from_categories(categories)
    chosen = {key: table[key] for key in ("low", "high", "binary", "tolerance") if key in table}
    on = {None: None, "fresh": Items.fresh(), "listed": Items.listed(known.n_items)}[items]
    problem = Problem.bounded(graph, math.inf, items=on, **chosen)
    for option, outcomes in zip(known.options, known.outcomes, strict=True):
        with about(f'{file}, option "{option}"'):
            problem.noise.check_outcomes("outcomes", outcomes)
    return Instance(problem, known.means, known.options), known.outcomes


def _path(table: Mapping[str, Any]) -> str:
    file = table["file"]
    if not isinstance(file, str):
        raise InvalidInput(f"file must be a path in quotes, got {file!r}")
    return file


def name_of(place: str, given: Any, otherwise: str) -> str:
    if given is not None and (not isinstance(given, str) or not given.strip()):
        raise InvalidInput(f"{place}: name must be a string that is not blank, got {given!r}")
    return given or otherwise


def one_of(key: str, value: Any, known: Iterable[str]) -> str:
    known = tuple(known)
    if not isinstance(value, str) or value not in known:
        remedy = did_you_mean(str(value), known, f"choose one of {', '.join(known)}, or import what defines it")
        raise InvalidInput(f"{key} is missing; {remedy}" if value is None else f'{key} "{value}" is unknown; {remedy}')
    return value
