"""What others add in a file of their own passes the contracts as they are, and works with everything else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.noise import Binary
from spectralbai.policy import Policy
from spectralbai.stopping import RULES
from tests.contracts import geometries, noise_models, policies, sampling_rules, stopping_rules
from tests.outsiders.betting_variant import HedgedBetting
from tests.outsiders.noise_model import Even
from tests.outsiders.sampling_rule import LeaderAndLeast
from tests.outsiders.toy_geometry import Ring

MU = [0.0, 0.1, 0.3, 0.8, 0.4, 0.1]
RING = Ring(6, weight=0.5)


@pytest.mark.parametrize("rule", [HedgedBetting()])
class TestBettingVariant(stopping_rules.StoppingRuleContract):
    pass


@pytest.mark.parametrize("noise", [Even(0.5)])
class TestNoiseModel(noise_models.NoiseContract):
    pass


@pytest.mark.parametrize("graph", [RING, Ring(3)], ids=["of six", "of three"])
class TestToyGeometry(geometries.GeometryContract):
    pass


@pytest.mark.parametrize("sampling", [LeaderAndLeast()])
class TestSamplingRule(sampling_rules.SamplingRuleContract):
    pass


@pytest.mark.parametrize(
    "case", [(Policy(policies.PAPER, 0.1, "gk16", sampling=LeaderAndLeast()), [0.9, 0.5, 0.6])], ids=["a leader"]
)
class TestPolicy(policies.PolicyContract):
    pass


@pytest.mark.parametrize("rule", ["betting", HedgedBetting()], ids=["betting", "hedged"])
def test_all_of_them_find_the_best_arm_together(rule: str | HedgedBetting) -> None:
    problem = sb.Problem(RING, 1.5 * RING.smoothness(MU), noise=Even(0.5))
    run = sb.simulate.run(Policy(problem, 0.05, rule, sampling=LeaderAndLeast()), MU, seed=0)
    assert (run.status, run.arm) == ("decided", 3)


def test_the_variant_races_on_categories_and_on_clicks() -> None:
    shop = sb.Graph.from_categories(["a", "a", "b", "b", "a"])
    clicks = np.array([0.2, 0.25, 0.8, 0.3, 0.2])
    problem = sb.Problem(shop, 2 * shop.roughness_by_component(clicks), noise=Binary(0.0, 1.0))
    run = sb.simulate.run(sb.SpectralRace(problem, 0.05, HedgedBetting()), clicks, seed=0)
    assert (run.status, run.arm) == ("decided", 2)


def test_half_of_every_stake_is_kept_back() -> None:
    """A block then takes no more than half of what is in bets, whatever comes out."""
    rule = HedgedBetting()
    arms = np.repeat(np.arange(4), 3)
    told = [(arms, np.array([3.0, 0.0, 0.3, 0.5])[arms]), (arms, np.array([-90.0, 90.0, 90.0, 90.0])[arms])]
    first, second = (moment.memory for moment in stopping_rules.follow(rule, stopping_rules.PROBLEM, told * 2)[2:])
    plain = stopping_rules.follow(RULES["betting"], stopping_rules.PROBLEM, told * 2)[-1].memory
    assert (second.arms.bets >= first.arms.bets - np.log(2) - 1e-9).all()
    assert (plain.arms.bets < second.arms.bets).any()


def test_a_study_is_kept_with_them_and_goes_on_after_it_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RULES, "betting", HedgedBetting(name="betting"))
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    problem = sb.Problem(RING, 1.5 * RING.smoothness(MU), noise=Even(0.5))
    sb.Study.create("hours", sb.Instance(problem), 0.05, storage).close()
    rng = np.random.default_rng(0)
    while True:
        with sb.Study.open("hours", storage) as study:
            tickets = study.ask(100)
            for ticket in tickets:
                study.tell(ticket, MU[ticket.arm] + rng.uniform(-0.5, 0.5))
            status = study.status()
            if not tickets:
                break
    assert status.state == "decided" and status.best == "3"
    with sb.Study.open("hours", storage) as study:
        kept = study.definition.instance.problem
        assert isinstance(kept.graph, Ring) and kept.noise == Even(0.5)
        assert isinstance(study.definition.policy, sb.SpectralRace), "a rule that bets races"
        json.dumps(study.report().as_dict(), allow_nan=False)
