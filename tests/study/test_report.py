"""Status and report: what people read."""

from __future__ import annotations

import base64
import dataclasses
import html.parser
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.report.tables import means_of
from tests.study.test_study import INSTANCE, LABELS, MU, drive, fill


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The storage of a study that has decided."""
    url = f"sqlite:///{tmp_path_factory.mktemp('report') / 's.db'}"
    with sb.Study.create("a study", INSTANCE, 0.05, url) as study:
        study.add(LABELS, MU.tolist(), origin="pilot")
        drive(study, 1, n=3)
    return url


def test_a_status_agrees_with_the_policy(decided: str) -> None:
    with sb.Study.open("a study", decided) as study:
        status, state, policy = study.status(), study.snapshot().state, study.definition.policy
    verdict, seen = policy.verdict(state), policy.estimates(state)
    assert status.verdict == dataclasses.replace(verdict, lacking=None)
    assert status.results == state.samples == sum(arm.results for arm in status.arms)
    assert (status.consistent, status.remaining) == (True, 0.0)
    assert np.array_equal(np.array([arm.estimate for arm in status.arms], float), seen.mean)
    ends = np.array([(arm.low, arm.high) for arm in status.arms], float)
    assert np.array_equal(ends, np.column_stack([seen.low, seen.high]))
    assert all(low <= mean <= high for (low, high), mean in zip(ends, MU, strict=True))
    assert json.loads(json.dumps(status.as_dict(), allow_nan=False))["best"] == "plain"


def test_a_new_study_knows_nothing_and_says_so(tmp_path: Path) -> None:
    with sb.Study.create("new", INSTANCE, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        status, report = study.status(), study.report()
    assert (status.state, status.results, status.remaining, status.verdict.threshold) == ("running", 0, None, math.inf)
    assert {(arm.estimate, arm.low, arm.high) for arm in status.arms} == {(None, None, None)}
    assert report.status.answer == "Nothing is told yet."
    assert "<img" not in report.as_html()
    json.dumps(report.as_dict(), allow_nan=False)


def test_too_few_results_for_an_estimate_name_no_best_arm(tmp_path: Path) -> None:
    with sb.Study.create("few", INSTANCE, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        study.add(["cold", "colder"], [5.0, 6.0], "pilot")
        status, page = study.status(), Page(study.report().as_html())
    assert status.best is None
    assert status.answer == "Not decided after 2 results: the first trials are not complete yet."
    assert page.tags.count("img") == 1  # shares; there are no estimates to show, and no rule was read


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("R", "results", "words"),
    [
        (0.01, 0, "not tested yet"),
        (0.01, 60, "yes, so far"),
        (math.inf, 60, "not tested without a graph"),
    ],
)
def test_whether_the_data_agree_with_R_is_said_only_where_it_is_tested(
    R: float, results: int, words: str, tmp_path: Path
) -> None:
    instance = sb.Instance(sb.Problem(INSTANCE.problem.graph, R, 0.5), None, LABELS)
    with sb.Study.create("x", instance, 1e-9, f"sqlite:///{tmp_path / 's.db'}") as study:
        fill(study, 1, most=results)
        assert study.status().agreement == words
        assert f"do the data agree with R?{words}" in Page(study.report().as_html()).text


def test_a_graph_without_edges_has_no_R_to_test(tmp_path: Path) -> None:
    loose = sb.Instance(sb.Problem(sb.Graph.from_edges(2, []), R=0.01))
    with sb.Study.create("x", loose, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        study.add(["0", "1"], [0.1, 0.2], "pilot")
        assert (study.status().R, study.status().agreement) == (None, "not tested without a graph")
        page = Page(study.report().as_html())
    assert page.tags.count("img") == 2, "estimates and shares"
    assert not {"graph", "neighbours", "smoothness"} & set(
        re.findall(r"\w+", page.text.partition("The study in full")[0])
    )


@pytest.mark.usefixtures("undrawn")
def test_an_R_for_each_component_is_shown_and_refuted_in_words(tmp_path: Path) -> None:
    graph = sb.Graph.from_edges(6, [(0, 1), (2, 3), (3, 4)])
    instance = sb.Instance(sb.Problem(graph, [0.01, 0.5, 0.0]))
    mu, rng = np.array([3.0, -3.0, 0.9, 0.9, 0.9, 0.0]), np.random.default_rng(0)
    with sb.Study.create("each", instance, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        assert (study.status().R, study.status().as_dict()["R"]) == ((0.01, 0.5, 0.0), [0.01, 0.5, 0.0])
        while tickets := study.ask(5):
            study.tell_many((each, mu[int(each.label)] + 0.5 * rng.standard_normal()) for each in tickets)
        status, page = study.status(), Page(study.report().as_html()).text
    assert status.state == "inconsistent"
    assert "The data contradict R = 0.01 to 0.5, one per component. This was found after" in status.answer
    assert "smoothness R0.01 to 0.5, one per component" in page


def test_a_report_is_made_outside_of_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code may have to be made first, and servers end transactions that say nothing for long."""
    with sb.Study.create("x", INSTANCE, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        pool = study._upkeep.storage._engine.pool
        seen: list[int] = []
        estimates = type(study.definition.policy).estimates

        def watched(*arguments: Any) -> Any:
            seen.append(pool.checkedout())  # type: ignore[attr-defined]
            return estimates(*arguments)

        monkeypatch.setattr(type(study.definition.policy), "estimates", watched)
        study.report()
        (ticket,) = study.ask()
        study.tell(ticket, 0.5)  # a status of the same state would need nothing new
        study.status()
    assert seen == [0, 0]


@pytest.mark.usefixtures("undrawn")
def test_numbers_far_from_zero_keep_the_digits_that_matter(tmp_path: Path) -> None:
    with sb.Study.create("x", INSTANCE, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        rng = np.random.default_rng(1)
        while tickets := study.ask(20):
            study.tell_many((ticket, float(1e6 + MU[ticket.arm] + 0.5 * rng.standard_normal())) for ticket in tickets)
        status, page = study.status(), Page(study.report().as_html())
    for arm in status.arms:
        assert arm.estimate is not None and arm.low is not None and arm.high is not None
        shown = [means_of(status)(value) for value in (arm.low, arm.estimate, arm.high)]
        assert [float(text.replace(",", "")) for text in shown] == pytest.approx(
            [arm.low, arm.estimate, arm.high], abs=0.01
        )
        assert f"{shown[1]}{shown[0]} to {shown[2]}" in page.text


@pytest.mark.usefixtures("undrawn")
def test_a_tolerance_so_large_that_every_arm_is_right_is_reported(tmp_path: Path) -> None:
    path = sb.Instance(sb.Problem(sb.Graph.from_edges(3, [(0, 1), (1, 2)]), R=0.01, tolerance=100.0))
    with sb.Study.create("x", path, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        (ticket,) = study.ask(10)
        study.tell(ticket, 0.1)
        status = study.status()
        assert (status.state, study.ask()) == ("decided", [])
        assert (status.verdict.statistic, status.evidence) == (
            math.inf,
            "no option can be better by more than the tolerance",
        )
        assert "or is within 100 of it" in status.answer
        json.dumps(study.report().as_dict(), allow_nan=False)
        assert "no option can be better by more than the tolerance" in Page(study.report().as_html()).text


def test_a_running_study_forecasts_the_rest(tmp_path: Path) -> None:
    with sb.Study.create("x", INSTANCE, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        fill(study, 1, most=50)
        half = study.status()
        rest = fill(study, 2)
    assert half.state == "running" and half.remaining is not None
    assert 0.2 * rest < half.remaining < 5 * rest


def test_the_report_holds_what_a_decision_record_needs(decided: str) -> None:
    with sb.Study.open("a study", decided) as study:
        report = study.report()
    document = report.as_dict()
    assert document["format"] == "spectralbai-report/3"
    assert document["study"]["instance"]["labels"] == list(LABELS)
    assert document["answer"].startswith(
        f'Decided after {report.status.verdict.stopped_at} results: "plain" has the largest mean outcome.'
    )
    assert "The probability that this is wrong is at most 0.05." in document["answer"]
    assert document["origins"] == {"pilot": 5}
    assert document["workers"] == {"": report.status.results - 5}
    assert document["created_with"].keys() >= {"python", "spectralbai", "numpy", "SQLAlchemy"}
    assert [check["samples"] for check in document["verdicts"]] == sorted(
        check["samples"] for check in document["verdicts"]
    )
    assert document["verdicts"][-1]["samples"] >= document["status"]["verdict"]["stopped_at"]


def test_a_status_says_who_may_be_best_and_who_is_out_since_when(decided: str) -> None:
    with sb.Study.open("a study", decided) as study:
        status, report = study.status(), study.report().as_dict()
    document = json.loads(json.dumps(status.as_dict(), allow_nan=False))
    assert document["candidates"] == ["plain"]
    assert report["status"]["candidates"] == ("plain",)
    left = set(range(len(LABELS)))
    for check in report["verdicts"]:  # as the rule saw it, reading by reading
        for arm in left - set(check["candidates"]):
            assert document["arms"][arm]["out_at"] == check["samples"]
        left &= set(check["candidates"])
    assert left == {0} and document["arms"][0]["out_at"] is None
    assert max(arm["out_at"] for arm in document["arms"][1:]) == status.verdict.stopped_at
    assert [arm["lacking"] for arm in document["arms"]] == [None, 0.0, 0.0, 0.0, 0.0]
    assert [status.account(arm) for arm in status.arms] == ["leads"] + [
        f"out at {arm.out_at:,}" for arm in status.arms[1:]
    ]
    assert status.evidence == "4 of 5 options are out"


def test_the_page_of_a_decided_race_shows_the_race_and_names_who_is_out_since_when(decided: str) -> None:
    with sb.Study.open("a study", decided) as study:
        report = study.report()
    content = report.as_html()
    page = Page(content)
    captions = re.findall("<figcaption>(.*?)</figcaption>", content)
    assert captions[-1] == "The race: an option is out when the account against it reaches the line."
    assert "Evidence over time." not in captions
    table = content[content.index('<table class="numbers">') :]
    headings = re.findall("<th[^>]*>(.*?)</th>", table[: table.index("</thead>")])
    rows = [re.findall("<td[^>]*>(.*?)</td>", row) for row in table.split("<tr>")[2 : 2 + len(LABELS)]]
    ranked = report.status.ranked
    assert headings[-1] == "account" and [row[0] for row in rows] == ["plain *", *(arm.label for arm in ranked[1:])]
    assert [row[-1] for row in rows] == ["leads"] + [f"out at {arm.out_at:,}" for arm in ranked[1:]]
    assert "may be bestplain" in page.text and "evidence4 of 5 options are out" in page.text


@pytest.mark.usefixtures("undrawn")
def test_a_race_under_way_says_which_account_lacks_most(tmp_path: Path) -> None:
    with sb.Study.create("x", INSTANCE, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        assert study.status().candidates is None  # before the first reading
        fill(study, 1, most=60)
        status, page = study.status(), Page(study.report().as_html())
    assert status.state == "running" and status.candidates is not None
    assert status.answer.startswith(
        f"Not decided after 60 results: {len(status.candidates)} of 5 options may be the best. "
        f'The answer would be "{status.best}" now. About '
    )
    rivals = [arm for arm in status.arms if arm.label != status.best and arm.out_at is None]
    last = max(rivals, key=lambda arm: arm.lacking or 0.0)
    assert last.lacking is not None and last.lacking > 0
    assert status.account(last) == f"{math.exp(-last.lacking) / 0.05:.2g} of 20"
    assert f'the account against "{last.label}" lacks most: it holds {status.account(last)}' in status.evidence
    assert "may be best" + ", ".join(status.candidates) in page.text and status.evidence in page.text


@pytest.mark.usefixtures("undrawn")
def test_betting_has_intervals_from_the_first_result_of_a_part_of_the_graph_on(tmp_path: Path) -> None:
    with sb.Study.create("x", INSTANCE, 0.05, f"sqlite:///{tmp_path / 's.db'}") as study:
        ticket = study.ask()[0]
        study.tell(ticket, 0.9)
        first = study.status()
        fill(study, 1, most=30)
        later, page = study.status(), Page(study.report().as_html())
    parts = INSTANCE.problem.components
    for arm, own in zip(first.arms, parts, strict=True):
        known = own == parts[ticket.arm]
        assert (arm.low is not None, arm.high is not None) == (known, known)
    for arm, mean in zip(later.arms, MU, strict=True):
        assert arm.low is not None and arm.high is not None and arm.low <= mean <= arm.high
    assert "All intervals hold, at all times at once, at a risk of 0.05" in page.text


class Page(html.parser.HTMLParser):
    """Collects the tags, the text and the sources of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_whole_and_needs_nothing_else(decided: str) -> None:
    with sb.Study.open("a study", decided) as study:
        content = study.report().as_html()
    page = Page(content)
    pictures = [base64.b64decode(link.removeprefix("data:image/png;base64,")) for link in page.links]
    assert len(pictures) == page.tags.count("img") == 4
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert "script" not in page.tags and "link" not in page.tags and not re.search(r"url\(|@import|https?:", content)
    for word in (*LABELS, "pilot", "risk proved", "All intervals hold, at all times at once, at a risk of 0.05"):
        assert word in page.text


def test_what_users_typed_is_escaped(tmp_path: Path) -> None:
    nasty = "<script>alert('x')</script>"
    labels = [f'{nasty}"{k} $a_1$ {{braces}} & %' for k in range(5)]
    with sb.Study.create(
        nasty, sb.Instance(INSTANCE.problem, None, labels), 0.05, f"sqlite:///{tmp_path / 's.db'}"
    ) as study:
        study.tell(study.ask(worker=f"<b>{nasty}")[0], 0.5)
        study.add(labels, [0.5, 0.2, 0.2, 0.1, 0.1], origin=f"<i>{nasty}")
        content = study.report().as_html()
    page = Page(content)
    assert not {"script", "b", "i"} & set(page.tags)
    assert page.text.count(nasty) > 5


def test_without_matplotlib_the_page_says_how_to_get_it(decided: str) -> None:
    code = f"""
import sys
sys.modules["matplotlib"] = None
import spectralbai as sb
try:
    sb.Study.open("a study", {decided!r}).report().as_html()
except sb.SpectralBAIError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "pictures need matplotlib, which is not installed; run: pip install 'spectralbai[plot]'\n"


def test_without_sqlalchemy_studies_say_how_to_get_it() -> None:
    code = "import sys; sys.modules['sqlalchemy'] = None; from spectralbai.cli import main; main(['study', 'list'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == "error: studies need SQLAlchemy, which is not installed; run: pip install 'spectralbai[study]'\n"
    )
