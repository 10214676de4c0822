"""What a rule said is one type: in a state, from a policy, and as JSON."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest

from spectralbai import Graph, InvalidInput, Problem, SpectralRace, SpectralTaS, policy
from spectralbai.policy import State
from spectralbai.verdict import Verdict

MANY = 20_000
ALL = Verdict(
    arm=7,
    statistic=-math.inf,
    threshold=math.inf,
    samples=12,
    stopped_at=10,
    consistent=False,
    proved=True,
    candidates=tuple(range(5, MANY)),
    doubted=True,
    lacking=(0.0,) * 9000 + (0.1 + 0.2,) * 11_000,
)


@pytest.mark.parametrize("verdict", [ALL, Verdict(), replace(ALL, candidates=(3, 5), lacking=(1e-300, math.inf))])
def test_a_verdict_survives_json(verdict: Verdict) -> None:
    text = json.dumps(verdict.as_dict(), allow_nan=False)
    assert Verdict.from_dict(json.loads(text)) == verdict
    assert len(text) < 1000, "thousands of arms do not make it long"


def test_one_word_follows_from_the_fields() -> None:
    for stopped_at, consistent, state in ((None, True, "running"), (3, True, "decided"), (3, False, "inconsistent")):
        verdict = Verdict(stopped_at=stopped_at, consistent=consistent)
        assert verdict.state == state and verdict.decided == (state == "decided")
        assert verdict.settled == (stopped_at is not None)
        assert verdict.as_dict()["state"] == state and verdict.as_dict()["decided"] == verdict.decided


def test_another_format_is_refused_with_both_names() -> None:
    with pytest.raises(InvalidInput, match="the format 'spectralbai-verdict/2', got 'spectralbai-verdict/1'"):
        Verdict.from_dict(ALL.as_dict() | {"format": "spectralbai-verdict/1"})
    own = SpectralTaS(Problem(Graph.from_edges(2, []), 1.0))
    with pytest.raises(InvalidInput, match="the format 'spectralbai-state/7', got 'spectralbai-state/6'; write"):
        State.from_dict(own.init().as_dict() | {"format": "spectralbai-state/6"})


def test_a_state_remembers_when_its_rules_were_read_and_a_policy_says_what_came_since() -> None:
    own = SpectralTaS(Problem(Graph.from_edges(2, []), 1.0), 0.1, watching=(("gk16", 0.1),))
    assert [each.proved for each in own.init().verdicts] == [True, False]
    state = own.tell(own.init(), [0, 1], [1.0, 0.0])
    assert [each.samples for each in state.verdicts] == [2, 2]
    later = own.tell(state, own.ask(state, 3), [0.5, 0.6, 0.7])
    assert later.verdicts == state.verdicts, "the block is still open"
    assert own.verdict(later) == replace(state.verdicts[0], samples=5) and own.verdict(later, 1).samples == 5
    assert policy.Verdict is Verdict


def test_a_rule_stays_proved_while_arms_that_joined_have_no_result() -> None:
    before = SpectralRace(Problem(Graph.from_edges(2, []), 1.0), 0.1)
    state = before.tell(before.init(), [0, 1], [1.0, 0.0])
    after = before.joined(Problem(Graph.from_edges(3, []), 1.0))
    joined = after.join(state)
    assert not after.has_estimate(joined) and after.verdict(joined).proved


def test_clients_need_no_numpy_for_verdicts() -> None:
    code = "import sys, spectralbai.verdict; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
