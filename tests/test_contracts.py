"""Everything registered is tested by the contract of its kind (`tests/contracts/`); storages are in `tests/study/`."""

from __future__ import annotations

import pytest

from spectralbai.stopping import RULES
from tests.contracts.commands import COMMANDS, CommandContract
from tests.contracts.geometries import GEOMETRIES, GeometryContract
from tests.contracts.noise_models import NOISES, NoiseContract
from tests.contracts.policies import CASES, PolicyContract
from tests.contracts.sampling_rules import SAMPLING_RULES, SamplingRuleContract
from tests.contracts.solvers import EVERY_SOLVER, SolverContract
from tests.contracts.stopping_rules import StoppingRuleContract


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
class TestNoise(NoiseContract):
    pass


@pytest.mark.parametrize("graph", GEOMETRIES.values(), ids=GEOMETRIES)
class TestGeometries(GeometryContract):
    pass


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
class TestStoppingRules(StoppingRuleContract):
    pass


@pytest.mark.parametrize("sampling", SAMPLING_RULES.values(), ids=SAMPLING_RULES)
class TestSamplingRules(SamplingRuleContract):
    pass


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
class TestPolicies(PolicyContract):
    pass


@pytest.mark.parametrize("solver", EVERY_SOLVER.values(), ids=EVERY_SOLVER)
class TestSolvers(SolverContract):
    pass


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
class TestCommands(CommandContract):
    pass
