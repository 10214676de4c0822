"""Campaigns: what a file says, and what is refused."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from spectralbai import Graph, Instance, InvalidInput, Problem, SpectralTaS, simulate
from spectralbai.campaign import Campaign, Results, run_campaign, summarise
from spectralbai.drift import Jump
from spectralbai.instances import KINDS, cliques, path
from spectralbai.policy import POLICIES, Policy, Uniform
from tests.campaign.campaigns import BAD_FILES, CLIQUES, HEAD, PATH, SMALL, TAS, parse, simulated


def test_a_campaign_is_instances_times_policies_times_risks() -> None:
    campaign = parse(SMALL)
    assert [each.name for each in campaign.instances] == ["cliques", "short path"]
    assert campaign.instances[0].instance.as_dict() == cliques(2, 3, best=1.5, seed=4).as_dict()
    assert campaign.instances[1].instance.as_dict() == path(3, lead=1.0).as_dict()
    cells = [(each.instance.name, each.policy.name, each.deltas) for each in campaign.trajectories]
    # LUCB pulls by delta, so each risk has runs of its own; the others share theirs.
    both = (0.2, 0.05)
    expected = [("spectral-tas", both), ("lucb", (0.2,)), ("lucb", (0.05,)), ("top-two", both)]
    assert cells == [(name, *cell) for name in ("cliques", "short path") for cell in expected]


def test_a_race_has_runs_of_its_own_for_every_risk_and_rules_go_by_name(tmp_path: Path) -> None:
    race = '[[policies]]\nkind = "spectral-race"\n[[policies]]\nkind = "race"\n'
    mixed = '[[policies]]\nname = "mixed"\nkind = "spectral-tas"\nstopping = "gk16"\n'
    text = HEAD.replace("runs = 3", "runs = 2") + PATH + race + mixed
    cells = [(each.policy.name, each.deltas) for each in parse(text).trajectories]
    both = [((0.2,)), ((0.05,))]
    assert cells == [(name, deltas) for name in ("spectral-race", "race") for deltas in both] + [("mixed", (0.2, 0.05))]
    rows = simulated(tmp_path / "race", text)
    rules = {row.policy: row.rule for row in rows}
    assert rules == {"spectral-race": "betting", "race": "betting", "mixed": "gk16"}
    assert len({row.seed for row in rows if row.run == 0}) == 1
    with pytest.raises(InvalidInput, match='policy "spectral-race" .* must be betting for a race'):
        parse(text.replace('kind = "spectral-race"', 'kind = "spectral-race"\nstopping = "gk16"'))


def test_each_component_may_have_an_R_and_several_of_them_be_swept() -> None:
    groups = HEAD + '[[instances]]\nkind = "cliques"\nn_cliques = 2\nsize = 3\nlone_best = false\n'
    one = parse(groups + "R_by_component = [0.5, inf]\n" + TAS)
    assert one.instances[0].instance.problem.radii.tolist() == [0.5, math.inf]
    swept = parse(groups + "sweep = { R_by_component = [[0.5, 1.0], [2.0, 3.0]] }\n" + TAS)
    assert [each.instance.problem.radii.tolist() for each in swept.instances] == [[0.5, 1.0], [2.0, 3.0]]
    for line, message in (
        ("R_by_component = 0.5", "R_by_component must be a list of numbers, one per component, got 0.5"),
        ("R_by_component = [0.5]", "one for each of the 2 components of the graph, got 1 numbers"),
        ("R = 1.0\nR_by_component = [0.5, 1.0]", "R and R_by_component are both given; keep one"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            parse(groups + line + "\n" + TAS)


def test_a_sweep_makes_an_instance_per_value_and_R_overrides() -> None:
    text = HEAD + '[[instances]]\nkind = "path"\nn_arms = 4\nsweep = { R = [0.5, inf], lead = [0.3, 0.6] }\n' + TAS
    campaign = parse(text)
    found = [(each.name, each.instance.problem.R, each.instance.as_dict()["mu"]) for each in campaign.instances]
    assert [name for name, _, _ in found] == [
        "path R=0.5 lead=0.3",
        "path R=0.5 lead=0.6",
        "path R=inf lead=0.3",
        "path R=inf lead=0.6",
    ]
    assert [R for _, R, _ in found] == [0.5, 0.5, math.inf, math.inf]
    assert found[0][2] == path(4, lead=0.3).as_dict()["mu"] == found[2][2]


def test_instance_files_are_read_beside_the_campaign() -> None:
    instance = Instance(Problem(Graph.from_edges(3, [(1, 2)]), 0.01), [0.9, 0.5, 0.6])
    asked: list[str] = []

    def read(name: str) -> Instance:
        asked.append(name)
        return instance

    campaign = Campaign.from_toml(HEAD + '[[instances]]\nfile = "a/b.json"\nR = 0.02\n' + TAS, read)
    assert asked == ["a/b.json"]
    assert campaign.instances[0].name == "a/b.json"
    assert campaign.instances[0].instance.problem.R == 0.02


def test_a_campaign_survives_its_json_form() -> None:
    campaign = parse(SMALL)
    again = Campaign.from_dict(json.loads(json.dumps(campaign.as_dict())))
    assert again.as_dict() == campaign.as_dict()
    assert campaign.seed_of(2) == again.seed_of(2)


def test_noise_says_how_outcomes_in_a_range_are_drawn(tmp_path: Path) -> None:
    scores = Instance(Problem.bounded(Graph.from_edges(3, [(1, 2)]), R=0.05), [0.95, 0.1, 0.2])
    text = HEAD + '[[instances]]\nfile = "scores.json"\nsweep = { noise = ["bernoulli", 0.02] }\n' + TAS
    campaign = Campaign.from_toml(text, lambda name: scores)
    assert [each.noise for each in campaign.instances] == ["bernoulli", 0.02]
    restored = Campaign.from_dict(json.loads(json.dumps(campaign.as_dict())))
    assert restored.as_dict() == campaign.as_dict() and restored.instances[1].noise == 0.02
    with Results.begin(tmp_path, text, campaign) as results:
        run_campaign(campaign, results)
        rows = list(results.rows())
        cells = summarise(results)
    assert all(cell.lower_bound == 0 and math.isnan(cell.ratio) for cell in cells)  # scores have no lower bound
    policy = {delta: SpectralTaS(scores.problem, delta) for delta in campaign.deltas}
    for noise in ("bernoulli", 0.02):
        of_noise = [row for row in rows if row.instance == f"scores.json noise={noise}"]
        assert len(of_noise) == 6
        for row in of_noise:
            assert row.tau == simulate.run(policy[row.delta], [0.95, 0.1, 0.2], row.seed, noise=noise).tau
    for bad in ("0.5", '"gaussian"', "[0.02]"):
        with pytest.raises(InvalidInput, match="number 1: `noise` must be"):
            Campaign.from_toml(HEAD + f'[[instances]]\nfile = "x"\nnoise = {bad}\n' + TAS, lambda name: scores)
    with pytest.raises(InvalidInput, match="number 1: `noise` must be gaussian"):
        parse(HEAD + CLIQUES + "noise = 0.02\n" + TAS)


def test_runs_of_one_number_share_a_seed_in_all_cells_and_other_runs_and_campaigns_have_others() -> None:
    campaign = parse(SMALL)
    seeds = {campaign.seed_of(run) for run in range(50)}
    assert len(seeds) == 50
    other = parse(SMALL.replace("runs = 3", "runs = 3\nseed = 1"))
    assert not seeds & {other.seed_of(run) for run in range(50)}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_campaign_is_refused_naming_the_place(case: str) -> None:
    text, clue = BAD_FILES[case]
    with pytest.raises(InvalidInput) as error:
        parse(text)
    assert clue in str(error.value)


def test_a_new_policy_and_a_new_instance_kind_are_one_line_each(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As CONTRIBUTING shows: a class in POLICIES and a function in KINDS are all that a campaign needs."""

    class Stubborn(Uniform):
        def _allocation(self, mu_tilde: np.ndarray, best: int) -> np.ndarray:
            allocation: np.ndarray = np.eye(mu_tilde.size)[0] * 0.5 + 0.5 / mu_tilde.size
            return allocation

    def twins(gap: float) -> Instance:
        return Instance(Problem(Graph.from_edges(2, []), math.inf), [gap, 0.0])

    assert issubclass(Stubborn, Policy)
    monkeypatch.setitem(POLICIES, "stubborn", Stubborn)
    monkeypatch.setitem(KINDS, "twins", twins)
    rows = simulated(
        tmp_path / "new", HEAD + '[[instances]]\nkind = "twins"\ngap = 3.0\n[[policies]]\nkind = "stubborn"\n'
    )
    assert [(row.policy, row.status, row.arm) for row in rows] == [("stubborn", "decided", 0)] * 6


def test_means_may_drift(tmp_path: Path) -> None:
    """The drift is part of the campaign, and its runs are those of `simulate` with the same drift."""
    drifting = PATH.rstrip("\n") + '\ndrift = { kind = "jump", height = 4.0, at = 20 }\n'
    text = HEAD.replace("runs = 3", "runs = 1") + drifting + TAS
    campaign = parse(text)
    assert campaign.instances[0].drift == Jump(4.0, at=20)
    again = Campaign.from_dict(json.loads(json.dumps(campaign.as_dict())))
    assert again.as_dict() == campaign.as_dict() != parse(text.replace(drifting, PATH)).as_dict()
    (row, *_), instance = simulated(tmp_path / "drift", text), campaign.instances[0]
    policy = campaign.policies[0].on(instance.instance, (row.delta,))
    assert row.tau == simulate.run(policy, instance.mu, row.seed, campaign.max_samples, drift=Jump(4.0, at=20)).tau
    with pytest.raises(InvalidInput, match='drift lacks the key "at"'):
        parse(text.replace(", at = 20", ""))
