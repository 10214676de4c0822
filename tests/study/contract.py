"""What every study does, wherever it is: in a database of either kind, or behind a service.

Who joins gives the fixture `studies`: an object with the methods of `Studies`. Studies whose options are tried on items
do the same, except where a result must say on which item (`ItemStudyContract`).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import pytest

import spectralbai as sb
from spectralbai.study import Failure, Ticket, export_study

LABELS = ("plain", "warm", "warmer", "cold", "colder")
GRAPH = sb.Graph.from_edges(5, [(1, 2), (3, 4)])
SCORES = sb.Instance(sb.Problem(GRAPH, R=0.01, sigma=0.05), labels=LABELS)
CLICKS = sb.Instance(sb.Problem.bounded(GRAPH, R=0.01, binary=True), labels=LABELS)
SLOW = sb.Instance(sb.Problem(GRAPH, R=0.01, sigma=1.0), labels=LABELS)
"""So noisy that a few results decide nothing."""
MEANS = dict(zip(LABELS, (0.9, 0.5, 0.51, 0.2, 0.2), strict=True))
SIX, SIX_SLOW = (
    sb.Instance(
        sb.Problem(sb.Graph.from_edges(6, [(1, 2), (3, 4), (4, 5)]), R=0.01, sigma=sigma), labels=(*LABELS, "coldest")
    )
    for sigma in (0.05, 1.0)
)


def drive(study: Any, most: int = 10_000) -> int:
    """Asks for five at a time and tells the mean of each arm; returns the number of results."""
    told = 0
    while told < most and (tickets := study.ask(5)):
        study.tell_many((ticket, MEANS.get(ticket.label, 0.1)) for ticket in tickets)
        told += len(tickets)
    return told


class TrialContract:
    """The tests of trials and of what is said of them; see `StudyContract` and `ItemStudyContract`."""

    def test_a_study_asks_until_it_has_decided(self, studies: Any) -> None:
        study = studies.create("honest", SCORES, 0.05)
        told = drive(study)
        status = study.status()
        assert (status.state, status.best, status.results) == ("decided", "plain", told)
        assert study.ask() == []
        assert status.answer.startswith(f"Decided after {told} results: ")
        assert sum(arm.results for arm in status.arms) == told
        assert study.shares() == {label: float(label == "plain") for label in LABELS}

    def test_a_ticket_says_what_to_try(self, studies: Any) -> None:
        study = studies.create("tickets", SCORES, 0.05)
        tickets = study.ask(3, worker="lab 3", lease=60)
        assert 1 <= len(tickets) <= 3
        for ticket in tickets:
            assert (LABELS[ticket.arm], ticket.worker) == (ticket.label, "lab 3")
            assert abs(ticket.expires - ticket.issued - 60) <= 1
        assert {each.id for each in study.status().pending} == {each.id for each in tickets}
        assert {each.id for each in study.pending()} == {each.id for each in tickets}

    def test_an_ask_that_is_repeated_gets_the_same_tickets(self, studies: Any) -> None:
        study = studies.create("twice", SCORES, 0.05)
        first = study.ask(4, key="a")
        assert [each.id for each in study.ask(4, key="a")] == [each.id for each in first]
        assert [each.id for each in study.ask(1, key="a")] == [first[0].id]
        other = study.ask(4, key="b")
        assert not {each.id for each in other} & {each.id for each in first}
        study.tell(first[0], 0.5)
        assert [each.id for each in study.ask(4, key="a")] == [each.id for each in first]
        assert len(study.records().tickets) == len(first) + len(other)

    def test_a_result_counts_once_however_often_it_is_told(self, studies: Any) -> None:
        study = studies.create("once", SCORES, 0.05)
        ticket = study.ask()[0]
        assert study.tell(ticket, 0.25) is True
        assert study.tell(ticket, 0.25) is False
        assert study.tell(ticket.id, 0.25) is False
        with pytest.raises(
            sb.Conflict, match=f'"{ticket.id}" has the outcome 0.25 already, got 0.5; results are never'
        ):
            study.tell(ticket, 0.5)
        assert [each.outcome for each in study.records().observations] == [0.25]

    def test_the_newest_results_come_first(self, studies: Any) -> None:
        study = studies.create("newest", SCORES, 0.05)
        (ticket,) = study.ask(1, "lab 3")
        study.tell(ticket, 0.25)
        study.add(["plain", "cold"], [0.9, 0.2], "pilot")
        found = study.recent(2)
        assert [(each.number, each.label, each.origin) for each in found] == [
            (3, "cold", "pilot"),
            (2, "plain", "pilot"),
        ]
        (first,) = study.recent(before=2)
        assert (first.ticket, first.worker, first.outcome) == (ticket.id, "lab 3", 0.25)
        assert abs(first.told - time.time()) < 60

    def test_many_results_are_told_all_or_none(self, studies: Any) -> None:
        study = studies.create("all", SCORES, 0.05)
        a, b = study.ask(2)
        for bad in ([(a, 0.1), ("unknown", 0.2)], [(a, 0.1), (a, 0.2)], [(a, 0.1), (b, math.nan)], [(a, "much")]):
            with pytest.raises(sb.InvalidInput):
                study.tell_many(bad)
            assert study.records().observations == ()
        assert study.tell_many([(a, 0.1), (b, 0.2), (a, 0.1)]) == 2
        assert study.tell_many([]) == 0
        with pytest.raises(sb.InvalidInput, match="`results` must be pairs of a ticket and an outcome"):
            study.tell_many([5])

    def test_a_failed_trial_is_handed_out_again(self, studies: Any) -> None:
        study = studies.create("failed", SCORES, 0.05)
        ticket = study.ask()[0]
        assert study.tell(ticket, Failure("the lamp broke")) is True
        assert study.tell_many([(ticket, None)]) == 1
        arm = next(arm for arm in study.status().arms if arm.label == ticket.label)
        assert (arm.failures, arm.results) == (1, 0)
        assert study.tell(ticket, 0.5) is True

    def test_a_ticket_given_back_is_no_longer_pending(self, studies: Any) -> None:
        study = studies.create("back", SCORES, 0.05)
        a, b = study.ask(2)
        study.abandon(a)
        study.abandon(a.id)
        assert [each.id for each in study.pending()] == [b.id]
        with pytest.raises(sb.NotFound, match='"unknown" is no ticket of the study "back"'):
            study.abandon("unknown")
        study.tell(b, 0.5)
        with pytest.raises(sb.Conflict, match="has its result already and cannot be given back"):
            study.abandon(b)

    def test_counts_under_one_id_count_once(self, studies: Any) -> None:
        study = studies.create("clicks", CLICKS, 0.05)
        day = {label: (20, round(20 * mean)) for label, mean in MEANS.items()}
        assert study.tell_counts(day, "monday") == 100
        assert study.tell_counts([(label, *pair) for label, pair in day.items()], "monday") == 0
        with pytest.raises(sb.Conflict, match='results of the origin "monday" are recorded already, and differ'):
            study.tell_counts({"plain": (1, 1)}, "monday")
        with pytest.raises(sb.InvalidInput):
            study.tell_counts({"plain": (1, 2)}, "tuesday")
        assert study.tell_counts({"plain": (3, 1)}, "before", past=True) == 3
        assert study.status().results == 103
        assert abs(sum(study.shares().values()) - 1) < 1e-9

    def test_past_results_of_an_origin_count_once(self, studies: Any) -> None:
        study = studies.create("past", SCORES, 0.05)
        assert study.add(["plain", "cold"], [0.9, 0.2], "pilot") == 2
        assert study.add(["plain", "cold"], [0.9, 0.2], "pilot") == 0
        with pytest.raises(sb.Conflict, match='results of the origin "pilot" are recorded already, and differ'):
            study.add(["plain"], [0.1], "pilot")
        with pytest.raises(sb.InvalidInput, match="`labels` and `outcomes` must be two lists of one length"):
            study.add(["plain"], [], "other")

    def test_results_that_are_in_the_study_already_are_refused(self, studies: Any) -> None:
        study = studies.create("again", SCORES, 0.05)
        study.add(["plain"], [0.9], "pilot")
        (ticket,) = study.ask(1)
        for named in ({"tickets": ["0" * 16, ticket.id]}, {"origins": ["", "pilot"]}):
            with pytest.raises(sb.Conflict, match='these results are in the study "again" already'):
                study.add(["plain"], [0.9], "other", **named)
        elsewhere = {"tickets": ["0" * 16, "", "x" * 99, "a\x00"], "origins": ["other", "third", "\x00"]}
        assert study.add(["plain"], [0.9], "other", **elsewhere) == 1

    def test_an_arm_withdrawn_is_never_the_answer(self, studies: Any) -> None:
        study = studies.create("withdrawn", SCORES, 0.05)
        drive(study)
        assert study.status().best == "plain"
        assert study.withdraw("plain") is True
        assert study.withdraw("plain") is False
        drive(study, 30)
        assert study.status().best != "plain"
        assert study.status().risk == 0.1
        with pytest.raises(sb.NotFound, match='"plan" is no label of an option of this study; did you mean "plain"'):
            study.withdraw("plan")

    def test_options_join(self, studies: Any) -> None:
        study = studies.create("grows", SCORES, 0.05)
        drive(study, 20)
        assert study.join(SIX).startswith("1 option joined (coldest)")
        status = study.status()
        assert (status.arms[-1].label, status.arms[-1].joined_at) == ("coldest", status.results)
        assert study.definition.instance.labels == SIX.labels
        with pytest.raises(sb.InvalidInput, match="the instance must hold new options after the 6 present ones"):
            study.join(SIX)
        drive(study)
        assert study.status().best == "plain"

    def test_a_study_that_is_stopped_hands_out_nothing_more(self, studies: Any) -> None:
        study = studies.create("stopped", SLOW, 0.05)
        drive(study, 10)
        out = study.ask(2)
        assert study.stop() is True
        assert study.stop() is False
        assert study.ask() == []
        status = study.status()
        assert status.state == "ended"
        assert "without a decision" in status.answer
        assert study.tell(out[0], MEANS[out[0].label]) is True
        again = studies.open("stopped")
        assert again.ask() == []
        assert [each.state for each in studies.list()] == ["ended"]
        with pytest.raises(sb.Conflict, match='the study "stopped" has ended, and nothing could be tried'):
            study.join(SIX_SLOW)

    def test_a_status_compares_with_the_control(self, studies: Any) -> None:
        study = studies.create("compared", SCORES, 0.05)
        drive(study)
        status = study.status(control="cold")
        by_label = {arm.label: arm for arm in status.arms}
        assert (status.control, by_label["cold"].against) == ("cold", None)
        assert by_label["plain"].against.verdict("max") == "better"
        with pytest.raises(sb.NotFound, match='"colt" is no label of an option of this study; did you mean "cold"'):
            study.status(control="colt")

    def test_a_report_has_everything(self, studies: Any) -> None:
        study = studies.create("report", SCORES, 0.05)
        drive(study)
        report = study.report()
        assert report.as_dict()["answer"] == study.status().answer
        assert report.as_html().startswith("<!")
        assert report.status.best == "plain"

    def test_a_budget_and_a_time_are_limits(self, studies: Any) -> None:
        study = studies.create("few", SCORES, 0.05, budget=3)
        assert drive(study) == 3
        assert study.status().state == "ended"
        with pytest.raises(sb.InvalidInput, match="`until` must be in the future"):
            studies.create("late", SCORES, 0.05, until=time.time() - 10)


class StudyContract(TrialContract):
    """The tests; a class that is collected derives from it."""

    def test_keys_of_one_study_are_nothing_to_another(self, studies: Any) -> None:
        one, two = (studies.create(name, SCORES, 0.05) for name in ("one", "two"))
        assert one.ask(key="a")[0].id != two.ask(key="a")[0].id

    def test_a_study_that_has_decided_cannot_be_stopped(self, studies: Any) -> None:
        study = studies.create("done", SCORES, 0.05)
        drive(study)
        assert study.stop() is False
        assert (study.status().state, study.definition.until) == ("decided", None)

    def test_a_name_that_is_taken_is_refused(self, studies: Any) -> None:
        studies.create("taken", SCORES, 0.05)
        with pytest.raises(
            sb.Conflict, match='there is a study "taken" already; choose another name, or go on with it'
        ):
            studies.create("taken", SCORES, 0.05)

    def test_names_may_hold_any_sign(self, studies: Any) -> None:
        names = ["a/b", "50%", "%2F", "x?y=1#z", "ü 你好", "a&b+c", "."]
        for name in names:
            study = studies.create(name, SCORES, 0.05)
            assert study.tell(study.ask()[0], 0.5) is True
            status = studies.open(name).status()
            assert (status.name, status.results) == (name, 1)
        assert sorted(each.name for each in studies.list()) == sorted(names)

    def test_what_is_deleted_is_gone(self, studies: Any) -> None:
        study = studies.create("gone", SCORES, 0.05)
        ticket = study.ask()[0]
        again = studies.open("gone")
        study.delete()
        assert studies.list() == []
        for call in (again.ask, again.status, lambda: again.tell(ticket, 0.5), lambda: studies.open("gone")):
            with pytest.raises(sb.NotFound):
                call()
        studies.create("gone", SCORES, 0.05)
        studies.delete("gone")
        with pytest.raises(sb.NotFound):
            studies.delete("gone")

    def test_wrong_input_is_refused_in_a_sentence(self, studies: Any) -> None:
        refused: tuple[tuple[dict[str, Any], str], ...] = (
            ({"delta": 2.0}, "`delta` must"),
            ({"goal": "most"}, "`goal` must be max or min, got 'most'"),
            ({"budget": 0}, "`budget` must"),
            ({"failed_as": "much"}, "`failed_as` must"),
            ({"name": "two\nlines"}, "`name` must be one line of 1 to 100 printable characters"),
            ({"name": ""}, "`name` must be one line of 1 to 100 printable characters"),
            ({"instance": None}, "`instance` must be a spectralbai.Instance, got NoneType"),
        )
        for change, words in refused:
            with pytest.raises(sb.InvalidInput, match=words):
                studies.create(**{"name": "wrong", "instance": SCORES, **change})
            assert studies.list() == [], change

    def test_wrong_asks_are_refused_in_a_sentence(self, studies: Any) -> None:
        study = studies.create("asks", SCORES, 0.05)
        for arguments, words in (
            ((0,), "`n` must"),
            ((10_001,), "`n` must be at most 10000, got 10001; ask again for more"),
            ((1, "a\nb"), "`worker` must be one line"),
            ((1, "", -1.0), "`lease` must be a positive number of seconds"),
        ):
            with pytest.raises(sb.InvalidInput, match=words):
                study.ask(*arguments)
        with pytest.raises(sb.InvalidInput, match="`ticket` must be a ticket that ask gave, or its id, got '5'"):
            study.tell(5, 0.5)
        assert study.pending() == ()


TABLE = [[float((5 * arm + 3 * item) % 11 < 9 - 2 * arm) for item in range(40)] for arm in range(5)]
"""Outcomes of the five options on 40 items."""
ITEMS = [f"question {number}" for number in range(40)]


def on_items(instance: sb.Instance, items: sb.Items) -> sb.Instance:
    """Returns the instance with options that are tried on items."""
    return replace(instance, problem=replace(instance.problem, items=items))


def score(ticket: Ticket) -> float:
    """The outcome of a pair in the table."""
    return TABLE[ticket.arm % 5][ITEMS.index(ticket.item or "")]


def answered(study: Any, most: int = 1000) -> list[tuple[str, str]]:
    """Asks and tells from the table until nothing is handed out; returns the pairs that were."""
    pairs: list[tuple[str, str]] = []
    while len(pairs) < most and (tickets := study.ask(min(7, most - len(pairs)))):
        study.tell_many((ticket, score(ticket)) for ticket in tickets)
        pairs += [(ticket.label, ticket.item) for ticket in tickets]
    return pairs


class OnItems:
    """Studies whose options are tried on fresh items, whatever instance they are created from."""

    def __init__(self, studies: Any) -> None:
        self._studies = studies

    def create(self, name: str, instance: Any, *arguments: Any, **settings: Any) -> Any:
        if isinstance(instance, sb.Instance) and instance.problem.items is None:
            instance = on_items(instance, sb.Items.fresh())
        study = self._studies.create(name, instance, *arguments, **settings)
        join = study.join
        study.join = lambda more: join(on_items(more, sb.Items.fresh()))
        return study

    def __getattr__(self, name: str) -> Any:
        return getattr(self._studies, name)


class ItemStudyContract(TrialContract):
    """The same for studies with items; who joins gives `studies` as `OnItems`."""

    LISTED = on_items(CLICKS, sb.Items.listed(40))

    def test_the_newest_results_come_first(self, studies: Any) -> None:
        study = studies.create("newest", SCORES, 0.05)
        for outcome in (0.25, 0.5):
            (ticket,) = study.ask(1, "lab 3")
            study.tell(ticket, outcome)
        second, first = study.recent(2)
        assert [(each.number, each.outcome, each.worker) for each in (first, second)] == [
            (1, 0.25, "lab 3"),
            (2, 0.5, "lab 3"),
        ]
        assert (second.ticket, second.label, second.item) == (ticket.id, ticket.label, ticket.item)
        assert study.recent(before=2) == [first]

    def test_counts_under_one_id_count_once(self, studies: Any) -> None:
        """Counts do not say on which items options were tried."""
        study = studies.create("clicks", CLICKS, 0.05)
        for past in (False, True):
            with pytest.raises(sb.InvalidInput, match='the study "clicks" are tried on items, and results must say on'):
                study.tell_counts({label: (20, 10) for label in LABELS}, "monday", past)
        with pytest.raises(sb.InvalidInput, match="are tried on items"):
            study.shares()

    def test_past_results_of_an_origin_count_once(self, studies: Any) -> None:
        study = studies.create("past", SCORES, 0.05)
        with pytest.raises(sb.InvalidInput, match="use Study.add_known for pairs of an option and an item"):
            study.add(["plain", "cold"], [0.9, 0.2], "pilot")
        with pytest.raises(sb.InvalidInput, match='the study "past" has no items with names, so no pairs can be known'):
            study.add_known(["plain"], ["1"], [0.5], "pilot")

    def test_results_that_are_in_the_study_already_are_refused(self, studies: Any) -> None:
        """A pair that is known is never recorded twice."""
        study = studies.create("again", self.LISTED, 0.05, items=ITEMS)
        pairs = answered(study, 5)
        labels, items = zip(*pairs, strict=True)
        outcomes = [TABLE[LABELS.index(label)][ITEMS.index(item)] for label, item in pairs]
        assert study.add_known(labels, items, outcomes, "this study") == 5, "noted, and of no effect"
        assert study.add_known(labels, items, outcomes, "this study") == 0
        assert len(set(answered(study)) & set(pairs)) == 0
        assert study.status().results == len(study.records().observations)

    def test_a_study_asks_until_it_has_decided(self, studies: Any) -> None:
        study = studies.create("honest", self.LISTED, 0.05, items=ITEMS)
        pairs = answered(study)
        status = study.status()
        assert (status.state, status.best, status.results) == ("decided", "plain", len(pairs))
        assert len(set(pairs)) == len(pairs), "a pair was handed out twice"
        assert study.ask() == []
        assert status.items.available == 40 and status.items.listed
        assert {each.item for each in study.recent(500)} == {item for _, item in pairs}

    def test_the_order_of_items_is_new_for_every_study_unless_a_seed_fixes_it(self, studies: Any) -> None:
        seeds = {"a": None, "b": None, "c": 5, "d": 5}
        orders = [studies.create(name, self.LISTED, items=ITEMS, seed=seeds[name]).definition.items for name in seeds]
        assert all(sorted(order) == sorted(ITEMS) for order in orders)
        assert orders[2] == orders[3] and len(set(orders)) == 3
        assert sorted(studies.create("numbers", self.LISTED).definition.items, key=int)[:2] == ["1", "2"]

    def test_pairs_that_are_known_are_not_handed_out(self, studies: Any) -> None:
        study = studies.create("known", self.LISTED, 0.05, items=ITEMS, seed=1)
        known = [(label, item) for label in LABELS[:2] for item in ITEMS[:30]]
        labels, items = zip(*known, strict=True)
        outcomes = [TABLE[LABELS.index(label)][ITEMS.index(item)] for label, item in known]
        assert study.add_known(labels, items, outcomes, "last year") == 60
        assert study.add_known(labels, items, outcomes, "last year") == 0
        pairs = answered(study)
        assert not set(pairs) & set(known)
        status = study.status()
        assert (status.state, status.best) == ("decided", "plain")
        used = [each for each in study.recent(1000) if each.worker == "last year"]
        there = [(each.label, each.item) for each in study.recent(1000)]
        assert len(there) == len(set(there)), "a pair is there twice"
        assert used, "no pair that was known had its turn"
        assert status.results == len(there) == len(pairs) + len(used), (status.results, there, pairs)

    def test_wrong_pairs_are_refused_and_nothing_is_recorded(self, studies: Any) -> None:
        study = studies.create("wrong pairs", self.LISTED, 0.05, items=ITEMS)
        for pairs, words in (
            ([("plane", ITEMS[0], 1.0)], '"plane" is no label of an option of this study; did you mean "plain"'),
            ([("plain", "question 77", 1.0)], '"question 77" is no item of this study; did you mean "question 7"'),
            ([("plain", ITEMS[0], 0.5)], '"plain" on "question 0": `outcome` must be 0 or 1'),
            ([("plain", ITEMS[0], 1.0), ("plain", ITEMS[0], 0.0)], '"plain" has two different outcomes on "question'),
            ([], "`labels`, `items` and `outcomes` must be three lists of one length, at least 1"),
        ):
            with pytest.raises((sb.InvalidInput, sb.NotFound), match=words):
                study.add_known(*([each[column] for each in pairs] for column in range(3)), "last year")
        assert [entry["kind"] for entry in events_of(study)].count("known") == 0

    def test_wrong_items_are_refused_before_anything_is_written(self, studies: Any) -> None:
        for items, words in (
            (ITEMS[1:], "`items` must be 40 names, as the problem says, got 39"),
            ([*ITEMS[1:], ITEMS[1]], 'the item "question 1" is there twice'),
            ([*ITEMS[1:], "two\nlines"], "the name of an item must be one line"),
            ([*ITEMS[1:], 7], "`items` must be a list of names"),
            ("x" * 40, "`items` must be a list of names"),
        ):
            with pytest.raises(sb.InvalidInput, match=words):
                studies.create("wrong", self.LISTED, items=items)
        with pytest.raises(sb.InvalidInput, match="which has fresh ones without end"):
            studies.create("wrong", CLICKS, items=ITEMS)
        assert studies.list() == []

    def test_a_pair_that_failed_is_handed_out_again(self, studies: Any) -> None:
        study = studies.create("failing", self.LISTED, 0.05, items=ITEMS)
        ticket = study.ask()[0]
        study.tell(ticket, Failure("no answer"))
        (again,) = study.ask()
        assert (again.label, again.item) == (ticket.label, ticket.item) and again.id != ticket.id
        worth = studies.create("worth", self.LISTED, 0.05, items=ITEMS, failed_as=0.0)
        ticket = worth.ask()[0]
        worth.tell(ticket, None)
        (first,) = worth.recent()
        assert (first.item, first.outcome) == (ticket.item, 0.0)

    def test_an_option_withdrawn_needs_no_more_items_and_one_that_joins_catches_up(self, studies: Any) -> None:
        study = studies.create("changes", self.LISTED, 0.05, items=ITEMS, seed=2)
        answered(study, 40)
        out = study.ask(20)
        assert study.withdraw("plain") is True
        assert not {each.label for each in study.pending()} & {"plain"}
        study.tell_many((each, score(each)) for each in out)
        assert "plain" not in {label for label, _ in answered(study, 20)}
        six = on_items(
            sb.Instance(
                sb.Problem.bounded(sb.Graph.from_edges(6, [(1, 2), (3, 4)]), R=0.01, binary=True),
                labels=(*LABELS, "coldest"),
            ),
            sb.Items.listed(40),
        )
        type(study).join(study, six)
        pairs = answered(study)
        assert len({item for label, item in pairs if label == "coldest"}) > 1
        status = study.status()
        assert status.state == "decided" and status.best not in (None, "plain")
        assert len(set(pairs)) == len(pairs)

    def test_the_table_has_the_outcomes_of_pairs_and_names_those_that_are_missing(self, studies: Any) -> None:
        study = studies.create("table", self.LISTED, 0.05, items=ITEMS)
        with pytest.raises(sb.InvalidInput, match='the study "table" has no table: no outcome on an item is told yet'):
            study.table()
        pairs = answered(study, 12)
        table = study.table()
        assert table.options == LABELS
        assert list(table.items) == [item for item in study.definition.items if item in {item for _, item in pairs}]
        for arm, label in enumerate(LABELS):
            for place, item in enumerate(table.items):
                if (label, item) in pairs:
                    assert table.outcomes[arm, place] == TABLE[arm][ITEMS.index(item)]
        assert len(table.missing) == table.outcomes.size - 12
        assert not set(table.missing) & set(pairs)

    def test_of_two_results_of_a_pair_the_first_counts(self, studies: Any) -> None:
        study = studies.create("second", self.LISTED, 0.05, items=ITEMS)
        (late,) = study.ask(1)
        study.abandon(late)
        (again,) = study.ask(1)
        assert (again.label, again.item) == (late.label, late.item)
        assert study.tell_many([(again, 1.0), (late, 0.0)]) == 2
        table = study.table()
        assert table.outcomes[again.arm, 0] == 1.0 and len(table.missing) == 4
        assert study.status().results == 2, "both are there"
        pairs = answered(study)
        assert len(pairs) == len(set(pairs)) and (late.label, late.item) not in pairs
        assert study.table().outcomes[again.arm, 0] == 1.0

    def test_a_budget_of_pairs_is_a_limit(self, studies: Any) -> None:
        study = studies.create("little", self.LISTED, 0.05, items=ITEMS, budget=21)
        assert len(answered(study)) == 21
        status = study.status()
        assert status.state == "ended" and status.items.missing > 0

    def test_what_was_known_is_not_of_the_budget(self, studies: Any) -> None:
        study = studies.create("budget", self.LISTED, 0.05, items=ITEMS, budget=12)
        labels, items = LABELS[:3] * 40, [item for item in ITEMS for _ in range(3)]
        outcomes = [TABLE[LABELS.index(label)][ITEMS.index(item)] for label, item in zip(labels, items, strict=True)]
        assert study.add_known(labels, items, outcomes, "last year") == 120
        assert len(answered(study)) == 12
        status = study.status()
        assert (status.state, status.trials) == ("ended", 12)
        assert status.items.known == status.results - 12 > 12
        assert f"{status.items.known} outcomes were known without a trial" in status.items.described
        assert status.answer.startswith(f"Ended with the budget, after {status.results} results")
        assert [each.state for each in studies.list()] == ["ended"]


def events_of(study: Any) -> Any:
    """The events of a study, as an export has them."""
    export = study.export if hasattr(study, "export") else lambda: export_study(study)
    return export()["events"]
