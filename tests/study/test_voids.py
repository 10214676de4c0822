"""Results that were wrong are taken out or corrected, and what they led to is undone."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.policy import State
from spectralbai.study import export_study, import_study, results_as_csv
from tests.study.storages import ON_SQLITE

RATES = {"a": 0.25, "b": 0.05, "c": 0.07, "d": 0.06}
PAGES = sb.Instance(
    sb.Problem.bounded(sb.Graph.from_edges(4, [(1, 2), (2, 3)]), 0.002, binary=True), labels=list(RATES)
)


def day(seed: int, n: int = 100, rates: dict[str, float] | None = None) -> dict[str, tuple[int, int]]:
    """Clicks of n visitors of each page."""
    rng = np.random.default_rng(seed)
    return {label: (n, int(rng.binomial(n, rate))) for label, rate in (rates or RATES).items()}


def learnt(state: State) -> tuple[Any, Any]:
    """What bets have brought, and what they were made on."""
    return [each.as_dict() for each in state.stopping.values()], state.data.as_dict()


def check_import(study: sb.Study, storage: str) -> None:
    """A copy made from the log has the same state."""
    with import_study(export_study(study), f"{study.name} again", storage) as copy:
        copy.catch_up()
        assert copy.snapshot().state.as_dict() == study.snapshot().state.as_dict()
        assert results_as_csv(copy).splitlines()[1:] == results_as_csv(study).splitlines()[1:]
        copy.delete()


@ON_SQLITE
def test_without_its_last_day_a_study_knows_what_it_knew_before(storage: str) -> None:
    with sb.Study.create("days", PAGES, 1e-9, storage) as study:
        for seed in range(3):
            study.tell_counts(day(seed), f"day {seed}")
        before = study.snapshot().state
        study.tell_counts(day(9, rates=dict.fromkeys(RATES, 0.9)), "wrong")
        assert learnt(study.snapshot().state) != learnt(before)
        words = study.void("wrong", only_say=True)
        assert words.startswith('400 results of "wrong" are taken out.')
        assert learnt(study.snapshot().state) != learnt(before), "nothing was changed"
        assert study.void("wrong", reason="a broken counter") == words
        after = study.snapshot().state
        assert learnt(after) == learnt(before) and (after.samples, after.void) == (1600, 400)
        assert sum(arm.results for arm in study.status().arms) == study.status().results == 1200
        assert len(study.recent(2000)) == 1200, "they are no results any more"
        assert sum(len(entry.as_dict()["results"]) for entry in study.log() if entry.event.kind == "told") == 1600
        check_import(study, storage)
        with pytest.raises(sb.NotFound, match='no results of "wrong"'):
            study.void("wrong")
        assert study.tell_counts(day(3), "wrong") == 400, "the name is free again"
        check_import(study, storage)


@ON_SQLITE
def test_an_option_that_only_a_wrong_day_eliminated_comes_back_and_is_the_answer(storage: str) -> None:
    with sb.Study.create("days", PAGES, 0.05, storage) as study:
        study.tell_counts(day(0, 30), "Monday")
        study.tell_counts(day(1, 100, {"a": 0.01, "b": 0.4, "c": 0.38, "d": 0.37}), "Tuesday")
        assert study.status().best != "a" and "a" not in (study.status().candidates or "a")
        words = study.void("Tuesday")
        assert "May be the best again: " in words and "a" in words.partition("again: ")[2].partition(".")[0]
        assert study.status().state == "running" and "a" in (study.status().candidates or ())
        assert any("taken out" in each and "risk" in each for each in study.status().advice)
        check_import(study, storage)
        for seed in range(5, 12):
            study.tell_counts(day(seed, 60), f"day {seed}")
        assert study.status().state == "decided" and study.status().best == "a"
        check_import(study, storage)


@ON_SQLITE
def test_an_earlier_day_is_corrected_in_its_place_in_the_log(storage: str) -> None:
    with sb.Study.create("days", PAGES, 1e-9, storage) as study:
        for seed in range(4):
            study.tell_counts(day(seed), f"day {seed}")
        right = {**day(1), "c": (90, 8)}
        said = study.correct_counts(right, "day 1", only_say=True)
        assert said == study.correct_counts(right, "day 1") and "are told in their place" in said
        assert study.correct_counts(right, "day 1") == 'The counts of "day 1" are already so.'
        clicks = {arm.label: (arm.results, arm.hits) for arm in study.status().arms}
        total = [day(0), right, day(2), day(3)]
        assert clicks == {label: tuple(sum(each[label][i] for each in total) for i in (0, 1)) for label in RATES}
        check_import(study, storage)


def test_a_ticket_is_corrected_or_taken_out(storage: str) -> None:
    with (
        sb.Study.create("tickets", PAGES, 1e-9, storage) as study,
        sb.Study.create("right", PAGES, 1e-9, storage) as right,
    ):
        first, same = study.ask(200), right.ask(200)
        assert [each.arm for each in first] == [each.arm for each in same]
        outcomes = [float(k % 5 == 0) for k in range(len(first))]
        right.tell_many(zip(same, outcomes, strict=True))
        study.tell_many(zip(first, [1 - outcomes[0], *outcomes[1:]], strict=True))
        assert learnt(study.snapshot().state) != learnt(right.snapshot().state)
        assert study.correct(first[0], outcomes[0]).startswith(f'1 result of "{first[0].id}" is corrected.')
        assert learnt(study.snapshot().state) == learnt(right.snapshot().state)
        assert next(each.outcome for each in study.recent(500) if each.ticket == first[0].id) == outcomes[0]
        check_import(study, storage)
        assert "is taken out" in study.void(ticket=first[1])
        assert study.status().results == len(first) - 1
        assert study.snapshot().state.data.counts.sum() == len(first) - 1
        check_import(study, storage)
        later = study.ask(50)
        study.tell_many((each, 0.0) for each in later)
        check_import(study, storage)


def test_the_commands_say_what_changes_before_they_do_it(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with sb.Study.create("pages", PAGES, 1e-9) as study:
        study.tell_counts(day(0), "Monday")
        refused = run("study", "void", "pages", "--id", "Monday")
        assert refused.code == 1 and "Nothing was changed; repeat with --yes" in refused.stderr
        assert study.status().results == 400
        (tmp_path / "right.csv").write_text("page,visitors,clicks\na,100,20\nb,100,5\n")
        done = run("study", "correct", "pages", "--id", "Monday", "right.csv", "--yes")
        assert done.code == 0 and '200 trials of "Monday" are told in their place' in done.stdout
        assert study.status().results == 200
        tickets = study.ask(20)
        study.tell_many((each, 0.0) for each in tickets)
        assert run("study", "correct", "pages", tickets[0].id, "1", "--yes").code == 0
        assert run("study", "void", "pages", tickets[1].id, "--yes").code == 0
        checked = run("study", "check", "pages")
        assert checked.code == 0, checked.stderr
        assert run("study", "void", "pages", "--id", "Monday", "--yes").code == 0
        assert study.status().results == len(tickets) - 1
        assert run("study", "correct", "pages", "x").code == 1


@ON_SQLITE
def test_a_result_of_an_open_block_is_taken_out_with_its_slot(storage: str) -> None:
    with sb.Study.create("open", PAGES, 1e-9, storage) as study:
        tickets = study.ask(200)
        study.tell_many((each, 0.0) for each in tickets[:-1])
        study.void(ticket=tickets[0])
        assert study.snapshot().state.blocks[0].arms.size == len(tickets) - 1
        assert study.snapshot().state.data.samples == 0
        study.tell(tickets[-1], 1.0)
        assert study.snapshot().state.data.samples == len(tickets) - 1
        check_import(study, storage)


@ON_SQLITE
def test_a_contradicted_study_goes_on_after_a_correction(storage: str) -> None:
    rough = {"a": 0.25, "b": 0.05, "c": 0.95, "d": 0.06}
    with sb.Study.create("rough", PAGES, 0.05, storage) as study:
        study.tell_counts(day(0, 20), "Monday")
        study.tell_counts(day(1, 60, rough), "Tuesday")
        assert study.status().state == "inconsistent"
        assert "the study goes on" in study.void("Tuesday")
        assert study.status().state == "running"
        study.tell_counts(day(2, 20), "Wednesday")
        check_import(study, storage)


@ON_SQLITE
def test_results_that_only_inform_are_taken_out_too_and_withdrawals_stay(storage: str) -> None:
    with sb.Study.create("past", PAGES, 1e-9, storage) as study:
        study.tell_counts(day(0, 50), "2025", past=True)
        study.tell_counts(day(1, 50), "Monday")
        study.withdraw("d")
        study.tell_counts({label: row for label, row in day(2, 50).items() if label != "d"}, "Tuesday")
        study.void("2025")
        state = study.snapshot().state
        assert state.data.samples + state.informing.samples == 350 and state.withdrawn == (3,)
        check_import(study, storage)


@ON_SQLITE
def test_what_cannot_be_corrected_is_refused_and_changes_nothing(storage: str) -> None:
    with sb.Study.create("refused", PAGES, 0.05, storage) as study:
        ticket = study.ask()[0]
        study.add(["a"], [1.0], "May")
        before = study.revision
        cases: list[tuple[Any, str]] = [
            (lambda: study.void(), "`id` or `ticket` is needed"),
            (lambda: study.void("May", ticket=ticket), "`id` or `ticket` is needed"),
            (lambda: study.void("June"), 'no results of "June"'),
            (lambda: study.void(ticket=ticket), "is no ticket with a result"),
            (lambda: study.correct(ticket, 1), "is no ticket with a result"),
            (lambda: study.correct(ticket, 0.5), "must be 0 or 1"),
            (lambda: study.correct_counts({"a": (1, 2)}, "May"), "2 successes in 1 trials"),
            (lambda: study.void("May", reason="two\nlines"), "`reason` must be one line"),
        ]
        for call, message in cases:
            with pytest.raises(sb.SpectralBAIError, match=message):
                call()
        assert study.revision == before


def test_corrections_keep_the_risk_if_they_are_made_blindly_and_not_if_they_are_chosen_by_what_they_do() -> None:
    """Two tied options: how often one of them is out at delta = 0.2, if a day of four is left out."""
    problem = sb.Problem.bounded(sb.Graph.from_edges(2, []), math.inf, binary=True, tolerance=0.0)
    policy, blind, chosen, runs = sb.SpectralRace(problem, 0.2), 0, 0, 10
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        days, decided = rng.binomial(40, 0.5, (4, 2)), []
        for out in range(4):
            state = policy.init()
            for hits, others in np.delete(days, out, axis=0).tolist():
                outcomes = np.concatenate([np.arange(40) < hits, np.arange(40) < others]).astype(float)
                order = rng.permutation(80)
                state = policy.tell(state, np.repeat([0, 1], 40)[order], outcomes[order])
            decided.append(policy.verdict(state).decided)
        blind, chosen = blind + decided[seed % 4], chosen + any(decided)
    assert blind <= 6, "more than 0.2 of 10 runs, with a chance of 0.001"
    assert chosen > blind
