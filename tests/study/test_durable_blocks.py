"""Blocks of pulls in a study: tickets are slots, blocks are opened ahead, and everything can be replayed."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sqlalchemy import event

import spectralbai as sb
from spectralbai.journal.events import BlockClosed, BlockOpened, Entry, StudyCreated, read_log
from spectralbai.journal.replay import replay
from spectralbai.study import export_study, import_study, list_studies
from spectralbai.study.ledger import Ledger
from tests.study.storages import ON_SQLITE
from tests.study.test_study import INSTANCE, LABELS, MU, drive


def check_replay(study: sb.Study) -> None:
    """What is written down makes the stored state, bit for bit, and what it says of the rules is what they say."""
    study.catch_up()
    folded = replay(study.log())
    folded.feed()
    assert not folded.closings
    assert folded.state.as_dict() == study.snapshot().state.as_dict()
    said = [entry.event.verdict for entry in study.log() if isinstance(entry.event, BlockClosed)]
    assert tuple(said) == study.verdicts()


def outcome(ticket: sb.study.Ticket, rng: np.random.Generator) -> float:
    return float(MU[ticket.arm] + 0.5 * rng.standard_normal())


@ON_SQLITE
def test_a_study_asked_one_by_one_or_in_batches_is_what_its_records_say(storage: str) -> None:
    with sb.Study.create("one", INSTANCE, 0.01, storage) as study:
        assert drive(study, 4, n=1) == sb.simulate.run(study.definition.policy, MU, 4).tau
        check_replay(study)
    with sb.Study.create("some", INSTANCE, 0.01, storage) as study:
        drive(study, 4, n=7)
        assert study.status().state == "decided"
        check_replay(study)


@ON_SQLITE
def test_tickets_are_the_slots_of_the_open_blocks_and_the_next_block_is_opened_only_when_all_are_out(
    storage: str,
) -> None:
    with sb.Study.create("slots", INSTANCE, 0.05, storage) as study:
        (first,) = study.records().openings
        tickets = study.ask(2)
        assert [ticket.arm for ticket in tickets] == list(first.arms[:2])
        tickets += study.ask(100)
        assert [ticket.arm for ticket in tickets] == list(first.arms) and {each.block for each in tickets} == {0}
        assert len(study.records().openings) == 1
        ahead = study.ask(100)
        assert {each.block for each in ahead} == {1} and len(study.records().openings) == 2
        assert Counter(each.arm for each in ahead) == Counter(study.records().openings[1].arms)
        rng = np.random.default_rng(0)
        study.tell_many((ticket, outcome(ticket, rng)) for ticket in ahead)
        assert study.snapshot().verdicts == (), "blocks close in order"
        study.tell_many((ticket, outcome(ticket, rng)) for ticket in tickets)
        assert study.snapshot().state.data.samples == len(tickets) + len(ahead), "then both are closed"
        assert len(study.snapshot().verdicts) == 2, "both blocks"
        check_replay(study)


@ON_SQLITE
def test_a_block_opened_ahead_is_planned_with_the_results_told_so_far(storage: str) -> None:
    rng = np.random.default_rng(1)
    with sb.Study.create("ahead", INSTANCE, 0.05, storage) as study:
        for _ in range(3):
            study.tell_many((ticket, outcome(ticket, rng)) for ticket in study.ask(100))
        *told, last = study.ask(100)
        study.tell_many((ticket, outcome(ticket, rng)) for ticket in told)
        (ahead,) = study.ask(1)
        opened = study.records().openings[-1]
        assert last.block is not None and ahead.block == opened.number == last.block + 1
        assert opened.results == study.status().results
        check_replay(study)


@ON_SQLITE
def test_a_lost_pull_is_handed_out_again_and_the_later_of_two_results_only_informs(storage: str) -> None:
    with sb.Study.create("lost", INSTANCE, 0.05, storage) as study:
        late, back, *others = study.ask(100)
        study.abandon(back)
        (again,) = study.ask(100)
        assert (again.block, again.arm) == (back.block, back.arm)
        rng = np.random.default_rng(1)
        study.tell_many((ticket, outcome(ticket, rng)) for ticket in [again, *others])
        assert study.tell(back, 50.0) is True, "accepted"
        assert study.snapshot().state.informing.counts[back.arm] == 1, "but it is no evidence"
        study.tell(late, outcome(late, rng))
        seen = study.snapshot().state
        assert seen.data.counts.sum() == len(others) + 3, "seen by the next block"
        assert not seen.informing.counts.any()
        check_replay(study)


def test_a_slot_whose_lease_ran_out_is_free_again(storage: str) -> None:
    with sb.Study.create("lease", INSTANCE, 0.05, storage) as study:
        gone = study.ask(100, lease=1e-9)
        again = study.ask(100)
        assert [(each.block, each.arm) for each in again] == [(each.block, each.arm) for each in gone]


@ON_SQLITE
def test_results_without_a_ticket_inform_and_never_decide(storage: str) -> None:
    with sb.Study.create("history", INSTANCE, 0.05, storage) as study:
        study.add(LABELS * 400, list(MU) * 400, "the past")
        status = study.status()
        assert (status.state, status.results, status.best) == ("running", 2000, None)
        assert all(arm.estimate == pytest.approx(MU[i], abs=0.01) for i, arm in enumerate(status.arms))
        rng = np.random.default_rng(2)
        study.tell_many((ticket, outcome(ticket, rng)) for ticket in study.ask(100))
        assert study.snapshot().state.data.samples > 2000, "the next block is planned on it"
        assert study.status().state == "running"
        check_replay(study)


@ON_SQLITE
def test_after_the_decision_open_blocks_still_test_R(storage: str) -> None:
    with sb.Study.create("doubt", INSTANCE, 0.05, storage) as study:
        # Neighbours that differ more than R says, so that there are bets against R; much more after the decision.
        before, after = np.array([1.3, 0.25, 0.6, 0.2, 0.2]), np.array([1.3, -3.0, 3.0, 0.2, 0.2])
        rng = np.random.default_rng(3)
        for _ in range(30):
            (ticket,) = study.ask(1)
            study.tell(ticket, float(before[ticket.arm] + 0.5 * rng.standard_normal()))
        held = [ticket for _ in range(80) for ticket in study.ask(1000)]
        for block in sorted({each.block for each in held if each.block is not None}):
            mu = after if study.definition.policy.verdict(study.snapshot().state).decided else before
            mine = [each for each in held if each.block == block]
            study.tell_many((each, float(mu[each.arm] + 0.5 * rng.standard_normal())) for each in mine)
        status = study.status()
        assert (status.state, status.best) == ("decided", "plain")
        assert study.ask() == []
        assert status.consistent is False and "But results told since contradict R" in status.answer
        assert (status.candidates, status.evidence) == (None, "nothing is claimed")
        assert {(arm.low, arm.out_at, status.account(arm)) for arm in status.arms} == {(None, None, "-")}
        assert [each.state for each in list_studies(storage)] == ["doubted"]
        assert study.definition.policy.verdict(study.snapshot().state).doubted
        check_replay(study)


def test_eight_workers_at_once_lose_nothing(storage: str) -> None:
    with sb.Study.create("eight", INSTANCE, 0.2, storage):
        pass

    def work(seed: int) -> int:
        told = 0
        rng = np.random.default_rng(seed)
        with sb.Study.open("eight", storage) as study:
            while tickets := study.ask(1 + seed % 3, worker=str(seed)):
                for ticket in tickets:
                    study.tell(ticket, outcome(ticket, rng))
                    told += 1
        return told

    with ThreadPoolExecutor(8) as pool:
        told = sum(pool.map(work, range(8)))
    with sb.Study.open("eight", storage) as study:
        status = study.status()
        assert (status.state, status.best, status.results) == ("decided", "plain", told)
        check_replay(study)


def test_a_block_that_another_computer_would_have_planned_otherwise_is_replayed_as_it_was() -> None:
    definition = sb.study.Definition(INSTANCE, 0.05)
    first = definition.policy.init().blocks[0]
    arms = (*map(int, first.arms[::-1]), 0)
    log = [StudyCreated(definition.as_dict(), {}), BlockOpened(0, 0, arms)]
    state = replay(Entry(revision, 0.0, event) for revision, event in enumerate(log, 1)).state
    assert tuple(state.blocks[0].arms) == arms and state.blocks[0].free.size == len(arms)


@ON_SQLITE
def test_an_export_with_blocks_is_restored_and_goes_on_alike(storage: str) -> None:
    with sb.Study.create("from", INSTANCE, 0.01, storage) as study:
        drive(study, 6, n=3, most=21)
        study.ask(40)
        document = export_study(study)
        with import_study(document, "to", storage) as copy:
            assert export_study(copy) == document | {"name": "to"}
            for each in (study, copy):
                held = each.snapshot().pending
                each.tell_many((ticket, float(MU[ticket.arm])) for ticket in held)
                drive(each, 9)
            assert copy.snapshot().state.as_dict() == study.snapshot().state.as_dict()
            check_replay(copy)


def test_openings_that_do_not_fit_are_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = f"sqlite:///{tmp_path_factory.mktemp('blocks') / 's.db'}"
    with sb.Study.create("whole", INSTANCE, 0.05, place) as study:
        drive(study, 1, n=3, most=12)
        document = export_study(study)

    def broken(kind: str, which: int, **values: object) -> dict[str, object]:
        places = [place for place, each in enumerate(document["events"]) if each["kind"] == kind]
        events = [dict(each) for each in document["events"]]
        events[places[which]].update(values)
        return document | {"events": events}

    (_, first, second), (asked, *_) = (
        [each for each in document["events"] if each["kind"] == kind][:3] for kind in ("opened", "asked")
    )
    id_, arm, block, _ = asked["tickets"][0]
    without = [each for each in document["events"] if each != second]
    for bad, message in (
        (broken("opened", 0, number=1), "is no slot of a block that is open"),
        (broken("opened", 1, results=10**6), "it cannot have happened after 1000000 results"),
        (broken("opened", 0, arms=[]), "block 0 needs pulls"),
        (broken("opened", 0, arms=[5]), "block 0 needs pulls of arms that were there then"),
        (broken("asked", 0, tickets=[[id_, arm, None, None]]), "`block` must be"),
        (broken("asked", 0, tickets=[[id_, arm, 99, None]]), "is no slot of a block that is open"),
        (broken("asked", 0, tickets=[[id_, arm, block, 0]]), "is no slot of a block that is open"),
        (broken("opened", 0, items=[0] * len(first["arms"])), "block 0 needs an item of the study for each pull"),
        (broken("closed", 0, block=7), "block 7 cannot have closed"),
        (broken("closed", 0, results=1), "cannot have"),
        (document | {"events": without}, "`revision` must be"),
        (
            document | {"events": [each | {"revision": n} for n, each in enumerate(without, 1)]},
            "slot|closed|not open",
        ),
    ):
        with pytest.raises(sb.InvalidInput, match=message):
            import_study(bad, "copy", place)
    assert first["number"] == 1 and [each.name for each in list_studies(place)] == ["whole"]


def test_a_kept_state_that_does_not_follow_from_its_log_is_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The comparison that other tests rest on can fail."""
    with sb.Study.create("wrong", INSTANCE, 0.05, f"sqlite:///{tmp_path_factory.mktemp('wrong') / 's.db'}") as study:
        drive(study, 1, n=3, most=12)
        document = export_study(study)
        told = next(each for each in document["events"] if each["kind"] == "told")
        told["results"][0][1] += 1e-9
        changed = replay(read_log(document["events"]))
        changed.feed()
        assert changed.state.as_dict() != study.snapshot().state.as_dict()


def test_a_state_whose_commit_failed_is_not_gone_on_with(storage: str) -> None:
    """Ctrl-C, a full disk or a lost connection while a block is closed: the results stay, the state is as before."""
    with sb.Study.create("failed", INSTANCE, 0.05, storage) as study:
        drive(study, 2, most=10)
        broken = [True]

        def fail(connection: object) -> None:
            if broken and Ledger(connection, study._upkeep.id).standing().missing not in (0, None):  # type: ignore[arg-type]
                broken.clear()
                raise KeyboardInterrupt

        rng = np.random.default_rng(0)
        with pytest.raises(KeyboardInterrupt):
            for _ in range(20):
                (ticket,) = study.ask(1)
                value = outcome(ticket, rng)
                with study._upkeep.reading() as ledger:
                    last = ledger.standing().missing == 1
                if last:
                    told = study.snapshot().state.samples + 1
                    event.listen(study._upkeep.storage._engine, "commit", fail)
                study.tell(ticket, value)
        event.remove(study._upkeep.storage._engine, "commit", fail)
        with study._upkeep.reading() as ledger:
            standing = ledger.standing()
        assert study._upkeep.basis.revision == standing.folded
        assert standing.results == told, "what was told is there"
        assert standing.claimed > 0
        with study._upkeep.writing() as ledger:
            ledger.update(claimed=0.0)  # as after ten seconds
        check_replay(study)


@ON_SQLITE
def test_results_that_close_no_block_do_not_rewrite_the_state(storage: str) -> None:
    with sb.Study.create("slow", INSTANCE, 0.05, storage) as study:
        rng = np.random.default_rng(0)
        straggler, *tickets = [ticket for _ in range(12) for ticket in study.ask(100)]
        with study._upkeep.reading() as ledger:
            before = ledger.standing().folded
        for ticket in tickets:
            study.tell(ticket, outcome(ticket, rng))
        study.add(LABELS * 10, list(MU) * 10, "the past")
        with study._upkeep.reading() as ledger:
            assert ledger.standing().folded == before and len(tickets) > 20
        study.tell(straggler, outcome(straggler, rng))
        with study._upkeep.reading() as ledger:
            assert ledger.standing().folded > before
        assert study.snapshot().state.data.samples > len(tickets)
        check_replay(study)
