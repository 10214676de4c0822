"""Slips of units are refused wherever a problem is made, and amounts are repeated in the user's unit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spectralbai as sb
from spectralbai.checks import check_amount
from spectralbai.errors import InvalidInput
from spectralbai.inputs.from_tables import Choices, instance_from
from spectralbai.inputs.table import CsvTable
from spectralbai.text.wording import difference_in_words

PATH = sb.Graph.from_edges(3, [(0, 1), (1, 2, 3.0)])
ARMS = CsvTable.from_text("page,size\na,1\nb,2\nc,4\n")


def choices(**more: Any) -> Choices:
    return Choices(**{"features": "size", "neighbors": 1, "binary": True, **more})


@pytest.mark.parametrize(("tolerance", "remedy"), [(1, "for 1 % give 0.01"), (5, "for 5 % give 0.05"), (300, "lower")])
def test_a_tolerance_that_makes_every_option_right_is_refused(tolerance: float, remedy: str) -> None:
    with pytest.raises(InvalidInput, match=f"every option is right, got {tolerance:g}; {remedy}"):
        sb.Problem.bounded(PATH, 0.1, tolerance=tolerance)
    sb.Problem.bounded(PATH, 0.1, 0, 301, tolerance=tolerance)
    sb.Problem(PATH, 0.1, tolerance=tolerance)


def test_an_R_that_no_outcomes_could_exceed_is_refused() -> None:
    most = sb.Problem.bounded(PATH, 4.0)
    assert most.smoothness([1, 0, 1]) == most.R == most.roughest[0]
    with pytest.raises(InvalidInput, match="`R` must be at most 4, .* got 4.01; lower it, or use math.inf"):
        sb.Problem.bounded(PATH, 4.01)
    sb.Problem.bounded(PATH, math.inf), sb.Problem(PATH, 4.01)
    apart = sb.Graph.from_edges(4, [(0, 1), (2, 3, 2.0)])
    sb.Problem.bounded(apart, [1, 2])
    with pytest.raises(InvalidInput, match="at most 1, .* got 2"):
        sb.Problem.bounded(apart, [2, 1])


def test_percent_are_understood_where_outcomes_lie_between_0_and_1() -> None:
    made = instance_from(choices(tolerance="0.5%", step=" 3 %"), ARMS)
    problem = made.instance.problem
    assert problem.tolerance == 0.005 and problem.R == pytest.approx(problem.graph.weights.sum() * 0.03**2)
    assert "differences below 0.5 percentage points do not matter" in made.remarks
    assert any("neighbours differ by at most 3 percentage points" in each for each in made.remarks)
    for ends, where in (((0.0, 10.0), "lie between 0 and 10"), (None, "have no range")):
        with pytest.raises(InvalidInput, match=f"`x` must be a number in the unit of the outcomes, which {where}"):
            check_amount("x", "5%", ends)
    for wrong in ("5 percent", "%", "", "1_0%", "0,5%"):
        with pytest.raises(InvalidInput, match="must be a number, got"):
            check_amount("x", wrong, (0.0, 1.0))


@pytest.mark.parametrize("way", [{}, {"features": None, "by": "kind"}])
def test_a_step_as_wide_as_the_range_is_refused(way: dict[str, Any]) -> None:
    table = CsvTable.from_text("page,size,kind\na,1,x\nb,2,x\nc,4,y\n")
    way = {**way, "neighbors": None} if way else {}
    with pytest.raises(InvalidInput, match="--step must be below 1, .* no options are alike, got 3; for 3 % give 3%"):
        instance_from(choices(**way, step=3), table)
    with pytest.raises(InvalidInput, match="--step must be below 8, .* got 8; lower it"):
        instance_from(choices(**way, step="8", binary=False, low=2.0, high=10.0), table)


def test_instance_files_may_say_percent() -> None:
    document = sb.Instance(sb.Problem.bounded(PATH, 0.1, binary=True)).as_dict()
    assert sb.Instance.from_dict({**document, "tolerance": "0.5%"}).problem.tolerance == 0.005
    with pytest.raises(InvalidInput, match="every option is right, got 5"):
        sb.Instance.from_dict({**document, "tolerance": "500%"})


def test_differences_are_repeated_in_the_unit_of_the_user() -> None:
    assert difference_in_words(0.003, (0.0, 1.0)) == "0.3 percentage points"
    assert difference_in_words(0.01, (0.0, 1.0)) == "1 percentage point"
    assert difference_in_words(0.003, (0.0, 2.0)) == difference_in_words(0.003, None) == "0.003"
    assert sb.Problem.bounded(PATH, 0.1).described_tolerance() == ""


def test_commands_take_percent_and_repeat_what_was_understood(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pages.csv").write_text("page,size\na,1\nb,2\nc,4\n")
    asked = ["instance", "--arms", "pages.csv", "--features", "size", "--binary"]
    refused = run(*asked, "--step", "3", "--tolerance", "0.5%")
    assert refused.code == 1 and "for 3 % give 3%" in refused.stderr
    made = run(*asked, "--step", "3%", "--tolerance", "0.5%")
    assert made.code == 0 and "differences below 0.5 percentage points do not matter" in made.stdout
    assert json.loads((tmp_path / "instance.json").read_text())["tolerance"] == 0.005
    created = run("study", "create", "pages", "instance.json")
    assert created.stdout == (
        'The study "pages" is ready; next: spectralbai study ask pages or, for a day\'s counts, spectralbai study '
        "shares pages\n"
    )
    assert created.stderr == "differences below 0.5 percentage points do not matter\n"
    plan = run("plan", "instance.json", "--quick", "--tolerance", "5%")
    assert ", tolerance 5 percentage points, delta = 0.05" in plan.stdout
    assert run("plan", "instance.json", "--quick", "--tolerance", "5").code == 1
