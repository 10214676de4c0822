"""Options that are taken out of a running study."""

from __future__ import annotations

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.study import export_study, import_study
from tests.study.storages import ON_SQLITE
from tests.study.test_durable_blocks import check_replay

MU = np.array([0.9, 0.1, 0.5, -0.4, -0.3])
LABELS = tuple("abcde")
INSTANCE = sb.Instance(sb.Problem(sb.Graph.from_edges(5, [(1, 2), (3, 4)]), 0.3, 0.5), MU, labels=LABELS)
BEST, SECOND = "a", "c"


def outcome(ticket: sb.study.Ticket, rng: np.random.Generator) -> float:
    return float(MU[ticket.arm] + 0.5 * rng.standard_normal())


def go_on(study: sb.Study, rng: np.random.Generator, most: int = 10**6) -> None:
    while most > 0 and (tickets := study.ask(5)):
        assert not {ticket.arm for ticket in tickets} & set(study.snapshot().state.withdrawn)
        study.tell_many((ticket, outcome(ticket, rng)) for ticket in tickets)
        most -= len(tickets)


@ON_SQLITE
def test_a_withdrawn_winner_reopens_the_study_and_the_best_of_the_others_is_found(storage: str) -> None:
    rng = np.random.default_rng(2)
    with sb.Study.create("winner", INSTANCE, 0.05, storage) as study:
        go_on(study, rng)
        assert (study.status().state, study.status().best) == ("decided", BEST)
        assert study.withdraw(BEST) is True and study.withdraw(BEST) is False
        status = study.status()
        assert status.state == "running" and status.best != BEST
        assert status.candidates is not None and len(status.candidates) == 4, "those its bets eliminated come back"
        check_replay(study)
        go_on(study, rng)
        status = study.status()
        assert (status.state, status.best) == ("decided", SECOND)
        assert "of the options not withdrawn" in status.answer and "is at most 0.1" in status.answer
        check_replay(study)
        with import_study(export_study(study), "copy", storage) as copy:
            assert copy.snapshot().state.as_dict() == study.snapshot().state.as_dict()
            assert copy.records() == study.records()


@ON_SQLITE
def test_an_open_block_that_holds_the_option_is_void_and_its_results_inform(storage: str) -> None:
    rng = np.random.default_rng(3)
    with sb.Study.create("void", INSTANCE, 1e-9, storage) as study:
        go_on(study, rng, 20)
        tickets = study.ask(100)
        study.tell(tickets[0], outcome(tickets[0], rng))
        gone = tickets[-1]
        before = study.snapshot().state.data.samples
        assert study.withdraw(gone.label) is True
        at = study.snapshot()
        assert all(gone.arm not in block.arms for block in at.state.blocks) and not at.pending
        assert at.state.received.samples == before + 1, "nothing told is lost"
        assert study.tell(tickets[1], 0.0) is True, "a late result is kept"
        check_replay(study)
        go_on(study, rng, 30)
        assert all(each.arm != gone.arm for each in study.records().tickets if each.issued > at.time)
        assert study.status().account(study.status().arms[gone.arm]) == "withdrawn"
        check_replay(study)


@ON_SQLITE
def test_a_block_that_waited_only_for_a_void_one_closes_and_the_study_goes_on(storage: str) -> None:
    rng = np.random.default_rng(3)
    with sb.Study.create("ahead", INSTANCE, 1e-9, storage) as study:
        go_on(study, rng, 20)
        first, ahead = study.ask(100), study.ask(100)
        gone = min({ticket.label for ticket in first} - {ticket.label for ticket in ahead})
        study.tell_many((ticket, outcome(ticket, rng)) for ticket in ahead)
        seen = study.snapshot().state.data.samples
        assert study.withdraw(gone) is True
        assert study.snapshot().state.data.samples == seen + len(ahead)
        assert study.verdicts()[-1].samples == study.status().results, "the rule was read when the block closed"
        check_replay(study)
        go_on(study, rng, 20)
        check_replay(study)


@ON_SQLITE
def test_two_closings_after_one_result_are_both_kept(storage: str) -> None:
    rng = np.random.default_rng(7)
    with sb.Study.create("twice", INSTANCE, 1e-9, storage) as study:
        go_on(study, rng, 20)
        first, void, ahead = study.ask(100), study.ask(100), study.ask(100)
        gone = min({ticket.label for ticket in void} - {ticket.label for ticket in ahead})
        study.tell_many((ticket, outcome(ticket, rng)) for ticket in (*ahead, *first))
        before = study.verdicts()
        assert study.withdraw(gone) is True  # the block ahead closes, after as many results as the first one did
        after = study.verdicts()
        assert after[:-1] == before and after[-1].samples == before[-1].samples and after[-1] != before[-1]
        check_replay(study)


def test_the_last_option_stays_and_unknown_ones_are_refused(storage: str) -> None:
    rng = np.random.default_rng(4)
    with sb.Study.create("last", INSTANCE, 1e-9, storage) as study:
        with pytest.raises(sb.InvalidInput, match='"nothing" is no label'):
            study.withdraw("nothing")
        go_on(study, rng, 30)
        for label in LABELS[:-1]:
            assert study.withdraw(label)
        with pytest.raises(sb.InvalidInput, match="the last one must stay"):
            study.withdraw(LABELS[-1])
        status = study.status()
        assert (status.state, status.best) == ("decided", LABELS[-1]), "one option is left"
        check_replay(study)


@ON_SQLITE
def test_withdrawals_work_with_a_tolerance(storage: str) -> None:
    rng = np.random.default_rng(5)
    tolerant = sb.Instance(sb.Problem(INSTANCE.problem.graph, INSTANCE.problem.R, 0.5, 0.1), labels=LABELS)
    with sb.Study.create("tolerant", tolerant, 0.05, storage) as study:
        go_on(study, rng)
        winner = study.status().best
        assert winner is not None and study.status().state == "decided"
        study.withdraw(winner)
        go_on(study, rng)
        assert study.status().state == "decided" and study.status().best != winner
        check_replay(study)
