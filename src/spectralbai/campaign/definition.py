"""What a campaign is: instances x policies x risks x runs, read from TOML and checked before any work."""

from __future__ import annotations

import inspect
import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from spectralbai.arrays import Vector
from spectralbai.checks import LARGEST_COUNT, check_delta, check_integer, check_keys, check_number, did_you_mean
from spectralbai.documents import check_format
from spectralbai.drift import Drift, drift_from_dict
from spectralbai.errors import InvalidInput, SpectralBAIError, about
from spectralbai.instance import Instance
from spectralbai.instances import KINDS
from spectralbai.noise import Drawing
from spectralbai.policy import POLICIES, Policy
from spectralbai.simulate import seed_of
from spectralbai.tape import tape_of

FORMAT = "spectralbai-campaign/2"
KEYS = ("format", "runs", "deltas", "seed", "max_samples", "instances", "policies")
REQUIRED = ("format", "runs", "deltas", "instances", "policies")
SETTINGS = ("stopping",)
MOST_RUNS = 1_000_000
REMEDY = "change it if the rest is as docs/campaigns.md says, or use the version it was written for"


@dataclass(frozen=True, eq=False)
class NamedInstance:
    """An instance of a campaign."""

    name: str
    instance: Instance
    noise: Drawing | None = None
    """How outcomes are drawn, if there are several ways."""
    drift: Drift | None = None
    """How means change with time, if they do."""

    @property
    def mu(self) -> Vector:
        assert self.instance.mu is not None  # checked when the campaign was read
        return self.instance.mu

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready."""
        noise = {} if self.noise is None else {"noise": self.noise}
        drift = {} if self.drift is None else {"drift": self.drift.as_dict()}
        return {"name": self.name, "instance": self.instance.as_dict(), **noise, **drift}


@dataclass(frozen=True)
class NamedPolicy:
    """A policy of a campaign: a kind in POLICIES and its settings."""

    name: str
    kind: str
    settings: dict[str, Any]

    def on(self, instance: Instance, deltas: tuple[float, ...]) -> Policy:
        """Returns the policy for an instance; one run reads all risks in `deltas`, unless pulls depend on the risk."""
        policy = POLICIES[_one_of("kind", self.kind, POLICIES)].on(instance, delta=deltas[0], **self.settings)
        if policy.uses_delta:
            return policy
        return replace(policy, watching=tuple((policy.stopping, delta) for delta in deltas[1:]))


class Trajectory(NamedTuple):
    """The cells that one simulated run belongs to: an instance, a policy, and the risks that are read on it."""

    instance: NamedInstance
    policy: NamedPolicy
    deltas: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Campaign:
    """Instances x policies x risks, each cell simulated `runs` times."""

    runs: int
    deltas: tuple[float, ...]
    instances: tuple[NamedInstance, ...]
    policies: tuple[NamedPolicy, ...]
    seed: int = 0
    max_samples: int = 1_000_000

    @classmethod
    def from_toml(cls, text: str, read_instance: Callable[[str], Instance] | None = None) -> Campaign:
        """Returns the campaign of a TOML document; without `read_instance`, which opens files, it may name none."""
        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also for numbers of thousands of digits, and deep nesting
            raise InvalidInput(f"not TOML: {error}") from None
        check_keys("the campaign", document, KEYS, REQUIRED)
        check_format("format", document["format"], FORMAT, REMEDY)
        runs = check_integer("runs", document["runs"], 1, MOST_RUNS)
        seed = check_integer("seed", document.get("seed", 0), 0)
        max_samples = check_integer("max_samples", document.get("max_samples", 1_000_000), 1, LARGEST_COUNT)
        deltas = document["deltas"]
        if not isinstance(deltas, list) or not deltas:
            raise InvalidInput(f"deltas must be a list of risks, such as [0.1, 0.01], got {deltas!r}")
        deltas = tuple(check_delta(delta) for delta in deltas)
        if len(set(deltas)) < len(deltas):
            raise InvalidInput(f"deltas must differ from each other, got {list(deltas)}; remove the repeats")
        instances = [
            each for place, table in _tables(document, "instances") for each in _instances(place, table, read_instance)
        ]
        policies = [_policy(place, table) for place, table in _tables(document, "policies")]
        for names in ([each.name for each in instances], [each.name for each in policies]):
            repeated = next((name for name in names if names.count(name) > 1), None)
            if repeated is not None:
                raise InvalidInput(f'name "{repeated}" is taken twice; give each its own: name = "..."')
        campaign = cls(runs, deltas, tuple(instances), tuple(policies), seed, max_samples)
        _ = campaign.trajectories  # builds every policy once, so that errors appear now and not during the runs
        return campaign

    @cached_property
    def trajectories(self) -> tuple[Trajectory, ...]:
        """The cells, grouped by the runs they share: all risks share a run if the pulls do not depend on the risk."""
        found: list[Trajectory] = []
        for instance, policy in itertools.product(self.instances, self.policies):
            with about(f'policy "{policy.name}" on instance "{instance.name}"'):
                built = policy.on(instance.instance, self.deltas)
            groups = [(delta,) for delta in self.deltas] if built.uses_delta else [self.deltas]
            found += [Trajectory(instance, policy, deltas) for deltas in groups]
        return tuple(found)

    def seed_of(self, run: int) -> int:
        """Returns the seed of the runs with this number, the same in all cells: they meet the same luck."""
        return seed_of(self.seed, run) >> 1  # 63 bits fit an SQL integer

    def as_dict(self) -> dict[str, Any]:
        """Returns everything that determines the results, JSON-ready."""
        return {
            "format": FORMAT,
            "runs": self.runs,
            "deltas": list(self.deltas),
            "seed": self.seed,
            "max_samples": self.max_samples,
            "instances": [each.as_dict() for each in self.instances],
            "policies": [dict(vars(each)) for each in self.policies],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Campaign:
        """Returns the campaign that `as_dict` wrote."""
        instances = tuple(
            NamedInstance(
                each["name"],
                Instance.from_dict(each["instance"]),
                each.get("noise"),
                drift_from_dict("drift", each["drift"]) if "drift" in each else None,
            )
            for each in data["instances"]
        )
        policies = tuple(NamedPolicy(**each) for each in data["policies"])
        return cls(data["runs"], tuple(data["deltas"]), instances, policies, data["seed"], data["max_samples"])


def _tables(document: Mapping[str, Any], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    tables = document[key]
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise InvalidInput(f"{key} must be tables, each under a line [[{key}]], got {tables!r}; add at least one")
    for position, table in enumerate(tables, 1):
        yield f"[[{key}]] number {position}", dict(table)


def _instances(
    place: str, table: dict[str, Any], read_instance: Callable[[str], Instance] | None
) -> Iterator[NamedInstance]:
    """Yields the instance of a table, or one for each combination of its sweep."""
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
        one = _instance(place, {**table, **chosen}, read_instance)
        suffix = "".join(f" {key}={value}" for key, value in chosen.items())
        yield replace(one, name=one.name + suffix)


CHANGES = ("R", "R_by_component", "noise", "drift")
"""Keys that change an instance, from a file or from a generator."""


def _instance(place: str, table: dict[str, Any], read_instance: Callable[[str], Instance] | None) -> NamedInstance:
    name, kind, file, R, radii, noise, given = (table.pop(key, None) for key in ("name", "kind", "file", *CHANGES))
    try:
        if file is not None:
            if kind is not None:
                raise InvalidInput("kind and file are both given; keep one")
            check_keys("the table", table, ("name", "file", *CHANGES), ())
            if not isinstance(file, str):
                raise InvalidInput(f"file must be a path in quotes, got {file!r}")
            if read_instance is None:
                raise InvalidInput(f'file = "{file}" cannot be opened here; pass `read_instance`')
            instance = read_instance(file)
        else:
            generator = KINDS[_one_of("kind", kind, KINDS)]
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
        if instance.mu is None:
            raise InvalidInput('"mu" is missing, the mean of each arm to simulate from; add it to the file')
        instance.problem.best_arm(instance.mu)
        drift = None if given is None else drift_from_dict("drift", given)
        tape_of(instance.problem.noise, instance.mu, 0, noise, drift)  # raises an error if outcomes cannot be drawn
    except SpectralBAIError as error:
        raise InvalidInput(f"{place}: {error}") from None
    return NamedInstance(_name(place, name, kind or str(file)), instance, noise, drift)


def _policy(place: str, table: dict[str, Any]) -> NamedPolicy:
    name, kind = table.pop("name", None), table.pop("kind", None)
    with about(place):
        _one_of("kind", kind, POLICIES)
        check_keys("the table", table, SETTINGS, (), others=("name", "kind"))
    return NamedPolicy(_name(place, name, kind), kind, table)


def _name(place: str, given: Any, otherwise: str) -> str:
    if given is not None and (not isinstance(given, str) or not given.strip()):
        raise InvalidInput(f"{place}: name must be a string that is not blank, got {given!r}")
    return given or otherwise


def _one_of(key: str, value: Any, known: Mapping[str, Any]) -> str:
    if not isinstance(value, str) or value not in known:
        remedy = did_you_mean(str(value), known, f"choose one of {', '.join(known)}, or import what defines it")
        raise InvalidInput(f"{key} is missing; {remedy}" if value is None else f'{key} "{value}" is unknown; {remedy}')
    return value
