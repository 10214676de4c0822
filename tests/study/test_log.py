"""The log of a study: exported and imported whole, refused when it cannot be, and open to new kinds of events."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import spectralbai as sb
from spectralbai.journal.events import KINDS, Event, TicketsAbandoned
from spectralbai.study import Failure, Ticket, export_study, import_study, list_studies
from tests.study.contract import CLICKS, LABELS, MEANS, SCORES, SLOW, drive
from tests.study.storages import ON_SQLITE
from tests.study.test_durable_blocks import check_replay

SIX_CLICKS = sb.Instance(
    sb.Problem.bounded(sb.Graph.from_edges(6, [(1, 2), (3, 4), (4, 5)]), R=0.01, binary=True),
    labels=(*LABELS, "coldest"),
)
MUTATIONS = 250
ITEMS = [f"question {number}" for number in range(60)]
TOLD = {"opened", "asked", "told", "closed", "abandoned", "withdrawn", "joined", "stopped", "created"}


def eventful(name: str, storage: str) -> sb.Study:
    """Returns a study in which everything happened that can."""
    study = sb.Study.create(name, CLICKS, 1e-9, storage)
    study.tell_counts({label: (8, round(8 * mean)) for label, mean in MEANS.items()}, "Monday")
    study.add(["plain", "cold"], [1.0, 0.0], "pilot")
    first, ahead = study.ask(100, "lab"), study.ask(100)
    assert {each.block for each in first} != {each.block for each in ahead}
    study.abandon(first[0])
    study.tell(first[1], Failure("the lamp broke"))
    study.tell_many([(ticket, 1.0) for ticket in (*ahead[:1], *first[2:])])
    study.tell_many([(ticket, 0.0) for ticket in study.ask(2)])
    assert study.withdraw("warm")
    study.tell_many([(ticket, 1.0) for ticket in study.ask(3)])
    study.join(SIX_CLICKS)
    for _ in range(3):
        study.tell_many([(ticket, float(ticket.arm == 0)) for ticket in study.ask(20)])
    study.ask(2)
    assert study.stop()
    return study


def eventful_on_items(name: str, storage: str) -> sb.Study:
    """Returns a study of options on items in which everything happened that can."""
    five, six = (
        replace(instance, problem=replace(instance.problem, items=sb.Items.listed(60)))
        for instance in (CLICKS, SIX_CLICKS)
    )
    study = sb.Study.create(name, five, 1e-9, storage, items=ITEMS, seed=4)

    def score(ticket: Ticket) -> float:
        return float((5 * ticket.arm + ITEMS.index(ticket.item or "")) % 7 < 4)

    pairs = [(label, item) for label in ("plain", "cold") for item in ITEMS[:30]]
    labels, items = zip(*pairs, strict=True)
    study.add_known(labels, items, [float(label == "plain") for label in labels], "last year")
    first, ahead = study.ask(100, "lab"), study.ask(100)
    assert {each.block for each in first} != {each.block for each in ahead}
    study.abandon(first[0])
    study.tell(first[1], Failure("the lamp broke"))
    study.tell_many([(ticket, score(ticket)) for ticket in (*ahead[:1], *first[2:])])
    study.tell_many([(ticket, score(ticket)) for ticket in study.ask(2)])
    assert study.withdraw("warm")
    study.tell_many([(ticket, score(ticket)) for ticket in study.ask(9)])
    study.join(six)
    for _ in range(3):
        study.tell_many([(ticket, score(ticket)) for ticket in study.ask(20)])
    study.ask(2)
    assert study.stop()
    return study


def corrected(name: str, storage: str) -> sb.Study:
    """Returns a study in which results were corrected and taken out."""
    study = sb.Study.create(name, CLICKS, 1e-9, storage)
    for day in ("Monday", "Tuesday"):
        study.tell_counts({label: (3, round(3 * mean)) for label, mean in MEANS.items()}, day)
    study.void("Monday", reason="a broken counter")
    tickets = study.ask(6)
    study.tell_many([(ticket, 1.0) for ticket in tickets])
    study.void(ticket=tickets[0])
    study.correct(tickets[1], 0.0)
    study.ask(2)
    assert study.stop()
    return study


Make = Callable[[str, str], sb.Study]
EVENTFUL: dict[str, tuple[Make, set[str]]] = {
    "plain": (eventful, TOLD | {"counted"}),
    "on items": (eventful_on_items, TOLD | {"known"}),
    "corrected": (corrected, {"created", "opened", "asked", "told", "counted", "closed", "voided", "stopped"}),
}


@pytest.fixture(scope="module", params=EVENTFUL)
def document(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An export of such a study, as a file would hold it; tests leave it as it is."""
    with EVENTFUL[request.param][0]("whole", f"sqlite:///{tmp_path_factory.mktemp('whole') / 's.db'}") as study:
        found: dict[str, Any] = json.loads(json.dumps(export_study(study)))
    return found


@pytest.mark.parametrize(("make", "kinds"), EVENTFUL.values(), ids=EVENTFUL)
def test_an_export_of_an_import_is_the_export(make: Make, kinds: set[str], storage: str, tmp_path: Path) -> None:
    with make("whole", storage) as study:
        if "voided" not in kinds:  # it follows records, which say nothing of what was taken out
            check_replay(study)
        before = json.loads(json.dumps(export_study(study)))
        assert {each["kind"] for each in before["events"]} == kinds
        for place in (storage, f"sqlite:///{tmp_path / 'other.db'}"):
            with import_study(before, "copy", place) as again:
                assert export_study(again) == before | {"name": "copy"}
                assert again.records() == study.records() and again.verdicts() == study.verdicts()
                assert again.snapshot().state.as_dict() == study.snapshot().state.as_dict()
                assert (again.status().state, again.ask()) == ("ended", [])
                if "voided" not in kinds:
                    check_replay(again)


ODD: tuple[Any, ...] = (None, -1, 0, 3, 1.5, float("nan"), float("inf"), 1e308, 10**30, "", "x", True, [], {}, [[]])


def test_every_kind_of_event_is_tried() -> None:
    assert set().union(*(kinds for _, kinds in EVENTFUL.values())) == set(KINDS)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns where in a document there are values, deepest included."""
    keys: Any = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [path] * bool(path) + [found for key in keys for found in places_in(value[key], (*path, key))]


def mutated(document: dict[str, Any], seed: int) -> dict[str, Any]:
    """Returns the document with one thing wrong, or at least different."""
    rng = random.Random(seed)
    new: dict[str, Any] = copy.deepcopy(document)
    events = new["events"]
    place, way = rng.randrange(len(events)), seed % 5
    if way == 0:
        del events[place]
    elif way == 1:
        events.insert(place, copy.deepcopy(events[rng.randrange(len(events))]))
    elif way == 2:
        other = rng.randrange(len(events))
        events[place], events[other] = events[other], events[place]
    else:
        kind = rng.choice(sorted({each["kind"] for each in events}))
        event = rng.choice([each for each in events if each["kind"] == kind])
        *path, last = rng.choice(places_in(event))
        for key in path:
            event = event[key]
        if way == 3 or not isinstance(event[last], int | float):
            event[last] = rng.choice(ODD)
        else:
            event[last] += rng.choice([-1, 1])
        if rng.random() < 0.1:
            del event[last]
        return new
    for revision, event in enumerate(events, 1):
        event["revision"] = revision
    return new


def test_a_log_that_was_tampered_with_is_refused_or_is_one_that_holds(document: dict[str, Any], tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 's.db'}"
    names = ["whole"]
    import_study(document, None, storage).close()
    failed = []
    for seed in range(MUTATIONS):
        try:
            with import_study(mutated(document, seed), f"copy {seed}", storage) as study:
                names.append(study.name)
                check_replay(study)
                json.dumps(export_study(study), allow_nan=False)
        except sb.InvalidInput as error:
            if "\n" in str(error) or len(str(error)) > 500:
                failed.append((seed, str(error)[:200]))
        except Exception as error:
            failed.append((seed, f"{type(error).__name__}: {str(error)[:150]}"))
        if sorted(each.name for each in list_studies(storage)) != sorted(names):
            failed.append((seed, "half written"))
    assert failed == []
    assert 10 < len(names) < MUTATIONS / 2, "most are refused, and those that do no harm are not"


def test_a_ticket_that_is_handed_out_twice_is_refused(document: dict[str, Any], tmp_path: Path) -> None:
    new = copy.deepcopy(document)
    place, event = next((i, each) for i, each in enumerate(new["events"]) if each["kind"] == "asked")
    event["tickets"].append(event["tickets"][0])
    with pytest.raises(sb.InvalidInput, match=rf"\$.events\[{place}\], asked: the ticket .* was handed out already"):
        import_study(new, None, f"sqlite:///{tmp_path / 's.db'}")


def decided(storage: str) -> dict[str, Any]:
    with sb.Study.create("decided", SCORES, 0.05, storage) as study:
        drive(study)
        found: dict[str, Any] = json.loads(json.dumps(export_study(study)))
    return found


def closings(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in document["events"] if each["kind"] == "closed"]


@ON_SQLITE
def test_a_decision_of_an_earlier_version_of_the_rule_stands(storage: str) -> None:
    document = decided(storage)
    last = closings(document)[-1]
    assert last["verdict"]["stopped_at"] == last["results"] and last["rule"] == "betting/1"
    for event in closings(document):
        event["rule"] = "betting/0"
    last["verdict"]["arm"], last["verdict"]["candidates"] = 1, [1]
    with import_study(document, "copy", storage) as study:
        assert (study.status().state, study.status().best, study.ask()) == ("decided", "warm", [])
        assert (study.verdicts()[-1].arm, study.verdicts()[-1].candidates) == (1, (1,))
        assert export_study(study) == document | {"name": "copy"}
        check_replay(study)
    last["rule"] = "betting/1"
    with pytest.raises(sb.InvalidInput, match="the rules said something else than is written down"):
        import_study(document, "changed", storage)


@ON_SQLITE
def test_a_decision_earlier_than_the_rule_of_now_would_say_stands(storage: str) -> None:
    with sb.Study.create("slow", SLOW, 0.05, storage) as study:
        drive(study, 30)
        document = json.loads(json.dumps(export_study(study)))
    last = closings(document)[-1]
    cut = document["events"].index(last) + 1
    early = document | {"events": document["events"][:cut]}
    last["verdict"] |= {"stopped_at": last["results"], "candidates": [0], "arm": 0}
    with pytest.raises(sb.InvalidInput, match="the rules said something else than is written down"):
        import_study(early, "early", storage)
    for event in closings(document):
        event["rule"] = "betting/0"
    with import_study(early, "early", storage) as study:
        status = study.status()
        assert (status.state, status.best, status.verdict.stopped_at) == ("decided", "plain", last["results"])
        assert study.ask() == []
        check_replay(study)


@dataclass(frozen=True)
class Note(Event):
    """Somebody wrote something down."""

    kind = "note"

    text: str


def test_a_new_kind_of_event_is_a_class_and_a_line(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "note", Note)
    with sb.Study.create("noted", SLOW, 0.05, storage) as study, sb.Study.open("noted", storage) as other:
        drive(study, 10)
        before = study.revision
        assert study.record(Note("the lamp was changed")) == before + 1 == study.revision == other.revision
        drive(other, 10)
        (entry,) = (entry for entry in other.log() if entry.event.kind == "note")
        assert (entry.revision, entry.event) == (before + 1, Note("the lamp was changed"))
        check_replay(study)
        with pytest.raises(sb.InvalidInput, match='of the kind "abandoned" changes the study; it needs its own method'):
            study.record(TicketsAbandoned(()))
        document = json.loads(json.dumps(export_study(study)))
        with import_study(document, "copy", storage) as again:
            assert export_study(again) == document | {"name": "copy"}
            check_replay(again)
    monkeypatch.delitem(KINDS, "note")
    with pytest.raises(sb.InvalidInput, match="`kind` must be one of created, .*, got 'note'"):
        import_study(document, "unknown", storage)


def test_a_clock_that_goes_backwards_does_not_undo_a_stop(storage: str) -> None:
    now = [2e9]
    with sb.Studies(storage, clock=lambda: now[0]) as studies:
        study = studies.create("stopped", SLOW, 0.05, until=3e9)
        drive(study, 10)
        assert study.stop() is True
        now[0] = 1.5e9
        assert (study.ask(), study.status().state, study.stop()) == ([], "ended", False)
        again = studies.open("stopped")
        assert (again.ask(), again.status().state, again.definition.stopped) == ([], "ended", 2e9)
        assert [each.state for each in studies.list()] == ["ended"]


def test_who_has_a_study_with_a_huge_budget_open_notices_a_stop(storage: str) -> None:
    with (
        sb.Study.create("huge", SLOW, 0.05, storage, budget=10**14) as study,
        sb.Study.open("huge", storage) as other,
    ):
        drive(study, 10)
        assert len(other.ask()) == 1
        assert study.stop() is True
        assert (other.ask(), other.status().state, other.definition.budget) == ([], "ended", 10**14)


def test_every_change_raises_the_revision_and_nothing_else_does(storage: str) -> None:
    with sb.Study.create("changes", CLICKS, 1e-9, storage) as study, sb.Study.open("changes", storage) as other:
        held: list[Any] = []
        day = {label: (4, 1) for label in LABELS}

        def failed() -> bool:
            return study.tell(held[1], Failure("the lamp broke"))

        changes: tuple[tuple[str, Callable[[], Any], bool], ...] = (
            ("counts", lambda: study.tell_counts(day, "Monday"), True),
            ("add", lambda: study.add(["plain"], [1.0], "pilot"), True),
            ("ask", lambda: held.extend(study.ask(3)), False),
            ("tell", lambda: study.tell(held[0], 1.0), True),
            ("failed", failed, True),
            ("abandon", lambda: study.abandon(held[2]), True),
            ("withdraw", lambda: study.withdraw("warm"), True),
            ("join", lambda: study.join(SIX_CLICKS), False),
            ("stop", study.stop, True),
        )
        for what, change, repeatable in changes:
            before = study.revision
            change()
            after = study.revision
            assert after > before and other.revision == after and len(study.log()) == after, what
            if repeatable:
                change()
            for read in (study.status, study.report, study.log, study.verdicts, study.pending, study.recent):
                read()
            export_study(study)
            assert study.revision == after, f"the same {what} again, and reading, change nothing"
        check_replay(study)
