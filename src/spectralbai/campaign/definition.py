"""What a campaign is: instances x policies x risks x runs, read from TOML and checked before any work."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from spectralbai.campaign.instances import Files, NamedInstance, instances_from, name_of, one_of
from spectralbai.checks import LARGEST_COUNT, check_delta, check_integer, check_keys
from spectralbai.documents import check_format
from spectralbai.errors import InvalidInput, about
from spectralbai.instance import Instance
from spectralbai.policy import POLICIES, Policy
from spectralbai.simulate import seed_of
from spectralbai.tables import Table

FORMAT = "spectralbai-campaign/2"
KEYS = ("format", "runs", "deltas", "seed", "max_samples", "instances", "policies")
REQUIRED = ("format", "runs", "deltas", "instances", "policies")
SETTINGS = ("stopping",)
MOST_RUNS = 1_000_000
REMEDY = "change it if the rest is as docs/campaigns.md says, or use the version it was written for"


@dataclass(frozen=True)
class NamedPolicy:
    """A policy of a campaign: a kind in POLICIES and its settings."""

    name: str
    kind: str
    settings: dict[str, Any]

    def on(self, instance: Instance, deltas: tuple[float, ...]) -> Policy:
        """Returns the policy for an instance; one run reads all risks in `deltas`, unless pulls depend on the risk."""
        policy = POLICIES[one_of("kind", self.kind, POLICIES)].on(instance, delta=deltas[0], **self.settings)
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
    def from_toml(
        cls,
        text: str,
        read_instance: Callable[[str], Instance] | None = None,
        read_table: Callable[..., Table] | None = None,
    ) -> Campaign:
        """Returns the campaign of a TOML document. It may name files if the functions that open them are given:
        `read_instance` takes the name of an instance file, `read_table` that of a CSV file and the names of columns, as
        `Table.from_csv`."""
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
        files = Files(read_instance, read_table)
        instances = [
            each for place, table in _tables(document, "instances") for each in instances_from(place, table, files)
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
        instances = tuple(map(NamedInstance.from_dict, data["instances"]))
        policies = tuple(NamedPolicy(**each) for each in data["policies"])
        return cls(data["runs"], tuple(data["deltas"]), instances, policies, data["seed"], data["max_samples"])


def _tables(document: Mapping[str, Any], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    tables = document[key]
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise InvalidInput(f"{key} must be tables, each under a line [[{key}]], got {tables!r}; add at least one")
    for position, table in enumerate(tables, 1):
        yield f"[[{key}]] number {position}", dict(table)


def _policy(place: str, table: dict[str, Any]) -> NamedPolicy:
    name, kind = table.pop("name", None), table.pop("kind", None)
    with about(place):
        one_of("kind", kind, POLICIES)
        check_keys("the table", table, SETTINGS, (), others=("name", "kind"))
    return NamedPolicy(name_of(place, name, kind), kind, table)
