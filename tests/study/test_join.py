"""Options that join a running study."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.report.from_snapshot import _eliminated
from spectralbai.stopping.accounts import Account, Accounts
from spectralbai.study import export_study, import_study, list_studies
from spectralbai.verdict import Verdict
from tests.study.storages import ON_SQLITE
from tests.study.test_durable_blocks import check_replay

MU = np.array([0.5, -0.1, 0.0, -0.6, -0.5, 1.1, 0.45])
LABELS = tuple("abcdefg")


def instance(graph: sb.Graph, R: float | list[float], tolerance: float = 0.0) -> sb.Instance:
    return sb.Instance(sb.Problem(graph, R, 0.5, tolerance), labels=LABELS[: graph.n_arms])


OLD = instance(sb.Graph.from_edges(5, [(0, 2), (3, 4)]), 0.3)
NEW = instance(sb.Graph.from_edges(7, [(0, 2), (3, 4)]), 0.3)
PAIRS = {
    "alone": (OLD, NEW),
    "dense": (
        instance(sb.Graph.from_edges(5, [(a, b) for a in range(5) for b in range(a)]), 5.0),
        instance(sb.Graph.from_edges(7, [(a, b) for a in range(7) for b in range(a)]), 18.0),
    ),
    "categories": (
        instance(sb.Graph.from_categories(list("aabbc")), [0.4, 0.4, 0.0]),
        instance(sb.Graph.from_categories(list("aabbcda")), [1.0, 0.4, 0.0, 0.0]),
    ),
    "tolerance": (
        instance(sb.Graph.from_edges(5, [(0, 2), (3, 4)]), 0.3, 0.1),
        instance(sb.Graph.from_edges(7, [(0, 2), (3, 4), (0, 6)]), 0.4, 0.1),
    ),
}


def outcome(ticket: sb.study.Ticket, rng: np.random.Generator) -> float:
    return float(MU[ticket.arm] + 0.5 * rng.standard_normal())


def go_on(study: sb.Study, rng: np.random.Generator, most: int = 10**6) -> None:
    while most > 0 and (tickets := study.ask(min(20, most))):
        assert not {ticket.arm for ticket in tickets} & set(study.snapshot().state.withdrawn)
        study.tell_many((ticket, outcome(ticket, rng)) for ticket in tickets)
        most -= len(tickets)


def check_copy(study: sb.Study, storage: str) -> None:
    """An export restores all of a study."""
    document = export_study(study)
    with import_study(document, "copy", storage) as copy:
        assert copy.snapshot().state.as_dict() == study.snapshot().state.as_dict()
        assert copy.records() == study.records() and export_study(copy)["events"] == document["events"]
        assert copy.definition.as_dict() == study.definition.as_dict()


@ON_SQLITE
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("kind", PAIRS)
def test_a_study_that_has_decided_races_on_with_options_that_join(storage: str, kind: str) -> None:
    rng = np.random.default_rng(2)
    old, new = PAIRS[kind]
    with sb.Study.create("more", old, 0.05, storage) as study:
        go_on(study, rng)
        assert study.status().state == "decided"
        results, out = study.status().results, {arm.label for arm in study.status().arms if arm.out_at is not None}
        assert "2 options joined (f, g)" in study.join(new)
        status = study.status()
        assert status.state == "running" and len(status.arms) == 7
        assert [arm.joined_at for arm in status.arms] == [None] * 5 + [results] * 2
        assert status.joined == f"f, g joined after {results} results"
        check_replay(study)
        go_on(study, rng)
        status = study.status()
        assert (status.state, status.best) == ("decided", "f") and "is at most 0.05" in status.answer
        assert out <= {arm.label for arm in status.arms if arm.out_at is not None and arm.out_at <= results}
        assert all(arm.out_at is None or arm.out_at > results for arm in status.arms[5:])
        check_replay(study)
        check_copy(study, storage)
        assert [(each.n_arms, each.best) for each in list_studies(storage)] == [(7, "f")] * 2
        page = study.report().as_html()
        assert f"f, g joined after {results} results" in page


@ON_SQLITE
def test_the_report_has_the_checks_by_category_that_were_before_a_join(storage: str) -> None:
    old, new = PAIRS["categories"]
    with sb.Study.create("categories", old, 0.05, storage) as study:
        go_on(study, np.random.default_rng(2))
        before = study.report().as_dict()["verdicts"]
        study.join(new)
        assert study.report().as_dict()["verdicts"] == before
        assert [*before[-1]["by_category"]] == ["a", "b", "c"]


def test_an_option_that_is_out_at_its_first_check_was_not_out_before_it_joined() -> None:
    first, second = Verdict(samples=10, candidates=(0,)), Verdict(samples=20, candidates=(0,))
    assert _eliminated((first, second), [None, None, 10]) == [None, 10, 20]


def test_trials_that_are_out_count_as_before_and_blocks_that_nobody_has_give_way(storage: str) -> None:
    rng = np.random.default_rng(3)
    with sb.Study.create("out", OLD, 1e-9, storage) as study:
        go_on(study, rng, 20)
        first, second = study.ask(100), study.ask(100)
        study.tell(first[0], outcome(first[0], rng))
        study.join(NEW)
        at = study.snapshot()
        assert [block.n_arms for block in at.state.blocks] == [5, 5] and len(at.pending) == len(first + second) - 1
        new = study.ask(100)
        assert {5, 6} <= {ticket.arm for ticket in new}, "the next trials are of the new options"
        study.tell_many((ticket, outcome(ticket, rng)) for ticket in new)
        check_replay(study)
        before = len(study.snapshot().verdicts)
        study.tell_many((ticket, outcome(ticket, rng)) for ticket in second + first[1:])
        at = study.snapshot()
        assert len(at.verdicts) > before and not at.state.informing.samples, "all of them were evidence"
        assert all(block.n_arms == 7 for block in at.state.blocks)
        check_replay(study)
        check_copy(study, storage)
    with sb.Study.create("idle", OLD, 1e-9, storage) as study:
        study.join(NEW)
        assert [block.n_arms for block in study.snapshot().state.blocks] == [7]
        go_on(study, rng, 20)
        check_replay(study)


@ON_SQLITE
def test_joins_and_withdrawals_in_turn_are_what_the_records_say(storage: str) -> None:
    rng = np.random.default_rng(4)
    with sb.Study.create("turns", OLD, 1e-3, storage) as study:
        go_on(study, rng, 15)
        study.ask(3)
        study.withdraw("d")
        study.join(instance(sb.Graph.from_edges(6, [(0, 2), (3, 4)]), 0.3))
        study.withdraw("a")
        study.join(NEW)
        check_replay(study)
        go_on(study, rng, 30)
        study.withdraw("f")
        check_replay(study)
        go_on(study, rng)
        status = study.status()
        assert status.state == "decided" and status.best == "g" and "is at most 0.002" in status.answer
        assert len(study.definition.history) == 3 and sum(entry.event.kind == "joined" for entry in study.log()) == 2
        check_replay(study)
        check_copy(study, storage)


def test_other_processes_learn_of_the_new_options(storage: str) -> None:
    rng = np.random.default_rng(5)
    with sb.Study.create("others", OLD, 0.05, storage) as study, sb.Study.open("others", storage) as other:
        go_on(study, rng, 10)
        other.status()
        study.join(NEW)
        assert other.add(["f"], [0.9], "pilot") == 1, "a new label is known"
        go_on(other, rng, 40)
        assert len(other.status().arms) == 7 and other.status("f").control == "f"
        with pytest.raises(sb.InvalidInput, match="must hold new options after the 7 present ones"):
            other.join(NEW)
        check_replay(other)


def test_of_many_who_join_the_same_options_one_does_while_others_ask_and_tell(storage: str) -> None:
    with sb.Study.create("race", OLD, 1e-6, storage) as study:
        go_on(study, np.random.default_rng(6), 10)

        def work(seed: int) -> int:
            with sb.Study.open("race", storage) as mine:
                if seed < 3:
                    go_on(mine, np.random.default_rng(seed), 40)
                    return 0
                try:
                    mine.join(NEW)
                except sb.InvalidInput as error:
                    assert "must hold new options" in str(error)
                    return 0
                return 1

        with ThreadPoolExecutor(5) as pool:
            assert sum(pool.map(work, range(6))) == 1
        seen = study.status()
        assert seen.results >= 130 or seen.state == "decided"
        check_replay(study)


@ON_SQLITE
def test_options_join_a_study_of_counts(storage: str) -> None:
    def pages(n_arms: int) -> sb.Instance:
        graph = sb.Graph.from_edges(n_arms, [(1, 2)])
        return sb.Instance(sb.Problem.bounded(graph, 0.01, binary=True), labels=LABELS[:n_arms])

    with sb.Study.create("days", pages(3), 0.05, storage, goal="min") as study:
        study.tell_counts({"a": (40, 30), "b": (40, 32), "c": (40, 31)}, "Monday")
        study.join(pages(4))
        assert study.shares()["d"] > 0.1
        check_replay(study)
        study.tell_counts({"a": (40, 30), "b": (40, 32), "c": (40, 31), "d": (40, 3)}, "Tuesday")
        study.tell_counts({"a": (40, 30), "d": (40, 3)}, "Wednesday")
        assert study.status().best == "d"
        check_replay(study)
        check_copy(study, storage)


@ON_SQLITE
def test_what_cannot_join_is_refused_and_changes_nothing(storage: str) -> None:
    problem = NEW.problem
    others = sb.Graph.from_edges(4, [])
    with sb.Study.create("strict", OLD, 0.05, storage) as study:
        before = export_study(study)
        for wrong, words in (
            (OLD, "must hold new options after the 5 present ones, got none"),
            (instance(others, 0.3), 'the instance must hold all options, and "e" is missing'),
            (sb.Instance(problem, labels=list("abcdfeg")), 'got "f" where "e" is now; put new ones at the end'),
            (sb.Instance(problem, labels=list("abcdEfg")), '"e" is missing'),
            (sb.Instance(problem, labels=["a", "b", "c", "d", "e", "f", " g"]), "a label must be one line"),
            (sb.Instance(replace(problem, tolerance=0.1), labels=LABELS), "`tolerance` must stay 0"),
            (sb.Instance(sb.Problem(problem.graph, 0.3, 0.4), labels=LABELS), "sigma must stay"),
            (sb.Instance(sb.Problem.bounded(problem.graph, 0.3), labels=LABELS), "the noise must stay"),
        ):
            with pytest.raises(sb.InvalidInput, match=words):
                study.join(wrong)
        with pytest.raises(sb.InvalidInput, match=r"must be a spectralbai\.Instance"):
            study.join(problem)  # type: ignore[arg-type]  # what a caller may try
        assert export_study(study) == before and before["format"] == "spectralbai-export/6"
    with sb.Study.create("spent", OLD, 1e-9, storage, budget=10) as study:
        go_on(study, np.random.default_rng(7))
        with pytest.raises(sb.InvalidInput, match='the study "spent" has ended'):
            study.join(NEW)
    rough = instance(sb.Graph.from_edges(5, [(0, 3), (1, 4)]), 1e-3)
    with sb.Study.create("rough", rough, 0.05, storage) as study:
        go_on(study, np.random.default_rng(8))
        assert study.status().state == "inconsistent"
        with pytest.raises(sb.InvalidInput, match="the data contradict the hypotheses"):
            study.join(instance(sb.Graph.from_edges(7, [(0, 3), (1, 4)]), 1e-3))


@ON_SQLITE
def test_a_broken_record_of_a_join_is_refused(storage: str) -> None:
    with sb.Study.create("broken", OLD, 1e-6, storage) as study:
        go_on(study, np.random.default_rng(9), 12)
        study.join(NEW)
        go_on(study, np.random.default_rng(9), 12)
        document = export_study(study)

    def with_join(**changes: object) -> dict[str, object]:
        events = [event | changes if event["kind"] == "joined" else event for event in document["events"]]
        return document | {"events": events}

    for wrong, words in (
        (with_join(results=3), "cannot"),
        (with_join(blocks="0"), "`blocks` must be a list"),
        (with_join(instance=OLD.as_dict()), "must hold new options"),
        (with_join(kind="stopped"), "arm|slot|cannot|something else"),
    ):
        with pytest.raises(sb.InvalidInput, match=words):
            import_study(wrong, "wrong", storage)


def test_hundreds_of_options_join_a_catalogue_of_a_thousand(tmp_path: Path) -> None:
    """Two new categories, the best option among them; the records say the same as the state."""
    rng, n_old = np.random.default_rng(4), 1000
    labels = [f"category {item // 100}" for item in range(1200)]
    mu = np.repeat(rng.uniform(0.2, 0.6, 12), 100) + 0.003 * rng.standard_normal(1200)
    mu[1150:] += 1.0
    graph = sb.Graph.from_categories(labels)
    R = 1.5 * graph.roughness_by_component(mu)
    names = tuple(f"option {item}" for item in range(1200))
    before = sb.Problem(sb.Graph.from_categories(labels[:n_old]), R[:10], 0.3)

    def accounts(study: sb.Study) -> Account:
        memory = study.snapshot().state.stopping["betting"]
        assert isinstance(memory, Accounts)
        return memory.arms

    def go_on(study: sb.Study, most: int) -> None:
        while most > 0 and (tickets := study.ask(50)):
            study.tell_many((ticket, float(rng.normal(mu[ticket.arm], 0.3))) for ticket in tickets)
            most -= len(tickets)

    with sb.Study.create(
        "x", sb.Instance(before, labels=names[:n_old]), 0.05, f"sqlite:///{tmp_path / 's.db'}"
    ) as study:
        go_on(study, 40)
        kept = accounts(study)
        study.join(sb.Instance(sb.Problem(graph, R, 0.3), labels=names))
        grown = accounts(study)
        assert (grown.cash[:n_old] == kept.cash).all() and not grown.cash[n_old:].any()
        go_on(study, 80)
        assert mu[study.snapshot().state.best] > 1.0
        check_replay(study)
