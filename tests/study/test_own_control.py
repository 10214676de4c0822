"""Studies with a control of their own."""

from __future__ import annotations

import math
import random

import pytest

import spectralbai as sb
from spectralbai.study import export_study, import_study
from tests.study.storages import ON_SQLITE
from tests.study.test_durable_blocks import check_replay

RATES = {"current": 0.2, "blue": 0.45, "green": 0.38}
PAGES = sb.Instance(
    sb.Problem.bounded(sb.Graph.from_edges(3, []), math.inf, binary=True, tolerance=0.01), labels=list(RATES)
)


def visited(study: sb.Study, flip: bool, most: int = 100_000) -> None:
    """Lets visitors come until the study has decided; `flip` makes few clicks good."""
    chance = random.Random(1)
    while (tickets := study.ask(50)) and study.status().results < most:
        study.tell_many((each, float((chance.random() < RATES[each.label]) != flip)) for each in tickets)


@ON_SQLITE
@pytest.mark.parametrize("goal", ["max", "min"])
def test_a_study_says_first_by_how_much_the_winner_beats_the_control(storage: str, goal: str) -> None:
    chosen = {"goal": goal, "control": "current"}
    with sb.Study.create("pages", PAGES, 0.05, storage, **chosen) as study:  # type: ignore[arg-type]
        assert study.status().control == "current" and study.status().answer == "Nothing is told yet."
        visited(study, goal == "min")
        status = study.status()
        assert status.state == "decided" and status.best == "blue" and status.controlled
        assert status.answer.startswith('"blue" is better than the control "current" by ')
        against = next(arm.against for arm in status.arms if arm.label == "blue")
        assert against is not None and against.verdict(status.goal) == "better"
        assert against.difference_low is not None and against.difference_high is not None
        true = 0.25 if goal == "max" else -0.25
        assert against.difference_low < true < against.difference_high
        ratio = 0.45 / 0.2 - 1 if goal == "max" else 0.55 / 0.8 - 1
        assert against.lift_low is not None and against.lift_high is not None
        assert against.lift_low < ratio < against.lift_high
        other = study.status(control="green")
        assert not other.controlled and other.answer.startswith("Decided after")
        check_replay(study)
        with import_study(export_study(study), "copy", storage) as copy:
            assert copy.definition.control == "current"
            assert copy.status().arms == status.arms


@ON_SQLITE
def test_before_it_is_known_nothing_is_claimed(storage: str) -> None:
    with sb.Study.create("pages", PAGES, 0.05, storage, control="current", control_share=0.5) as study:
        visited(study, False, 100)
        assert study.status().answer.startswith('No option is known to be better than the control "current" yet.')
        assert study.shares()["current"] == pytest.approx(0.5)
        assert study.definition.as_dict()["control_share"] == 0.5


@ON_SQLITE
@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"control": "curent"}, 'did you mean "current"'),
        ({"control_share": 0.5}, "give `control` too, the label"),
        ({"control": "current", "control_share": 50}, "`control_share` must be a share between 0 and 1"),
    ],
)
def test_a_control_that_cannot_be_is_refused_and_nothing_is_written(
    storage: str, chosen: dict[str, object], message: str
) -> None:
    with pytest.raises(sb.SpectralBAIError, match=message):
        sb.Study.create("pages", PAGES, 0.05, storage, **chosen)  # type: ignore[arg-type]
    with pytest.raises(sb.NotFound):
        sb.Study.open("pages", storage)
