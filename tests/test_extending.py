"""The skeletons of docs/extending.md do what they say, as they stand there, and pass the contracts of their kinds."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import typer
import typer.main

from spectralbai import Graph, Problem, cli, simulate
from spectralbai.policy import Policy
from tests.contracts.commands import Command, CommandContract
from tests.contracts.geometries import GeometryContract
from tests.contracts.noise_models import NoiseContract
from tests.contracts.sampling_rules import SamplingRuleContract
from tests.contracts.solvers import SolverContract
from tests.contracts.stopping_rules import StoppingRuleContract
from tests.contracts.storages import Opened, StorageContract

ROOT = Path(__file__).parent.parent
SECTIONS = re.findall(
    r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", (ROOT / "docs/extending.md").read_text("utf-8"), re.M | re.S
)


def skeleton(heading: str) -> Any:
    """Returns the module that the code of a section is."""
    (code,) = (code for title, code in SECTIONS if title == heading)
    name = f"skeleton_{heading.replace(' ', '_').lower()}"
    if name not in sys.modules:
        module = ModuleType(name)
        sys.modules[name] = module
        exec(compile(code, f"docs/extending.md, {heading}", "exec", dont_inherit=True), module.__dict__)
    return sys.modules[name]


def test_every_kind_has_one_skeleton() -> None:
    assert [title for title, _ in SECTIONS] == [
        "A stopping rule",
        "A sampling rule",
        "A noise model",
        "A geometry",
        "A solver of the allocation",
        "A storage",
        "An event",
        "A command",
    ]


@pytest.mark.parametrize("rule", [skeleton("A stopping rule").Lead()])
class TestStoppingRule(StoppingRuleContract):
    pass


@pytest.mark.parametrize("sampling", [skeleton("A sampling rule").LeaderHalf()])
class TestSamplingRule(SamplingRuleContract):
    pass


@pytest.mark.parametrize("noise", [skeleton("A noise model").PlusOrMinus(0.5)])
class TestNoise(NoiseContract):
    pass


@pytest.mark.parametrize("graph", [skeleton("A geometry").Star(5)])
class TestGeometry(GeometryContract):
    pass


@pytest.mark.parametrize("solver", [skeleton("A solver of the allocation").solver])
class TestSolver(SolverContract):
    pass


class TestStorage(StorageContract):
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Opened:
        address = f"sqlite:///{tmp_path / 'studies.db'}"
        return lambda create=False: skeleton("A storage").Hasty(address, create=create)

    def test_it_does_not_wait_for_the_disk(self, opened: Opened) -> None:
        place = opened(create=True)
        with place.writing() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 0
        place.close()


@pytest.mark.parametrize("command", [Command(("smoothness",), refused=("none.json",), answered=("instance.json",))])
class TestCommand(CommandContract):
    @pytest.fixture(autouse=True)
    def added(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The command line with the command, besides those that are there."""
        more = typer.Typer(cls=cli.Commands, add_completion=False, rich_markup_mode=None)
        more.registered_commands = [*cli.app.registered_commands]
        more.command()(skeleton("A command").smoothness)
        monkeypatch.setattr(cli, "app", more)

    def test_it_prints_the_smoothness(self, command: Command, run: Callable[..., Any]) -> None:
        assert run("smoothness", "instance.json").stdout == "S(mu) = 0.01\n"


def test_half_of_the_pulls_go_to_the_leader() -> None:
    policy = Policy(
        Problem(Graph.from_edges(3, [(1, 2)]), 0.01), 0.1, sampling=skeleton("A sampling rule").LeaderHalf()
    )
    run = simulate.run(policy, np.array([2.0, 0.5, 0.6]), seed=0)
    assert (run.status, run.arm) == ("decided", 0)
    assert run.counts[0] == pytest.approx(run.counts.sum() / 2, abs=0.1 * run.counts.sum())
