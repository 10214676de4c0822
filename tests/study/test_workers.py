"""Many workers on one study, undisturbed and killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import spectralbai as sb
from verification.study import kill
from verification.workers import INSTANCE, LISTED, check, check_pairs, start


def test_kills_at_random_instants_lose_nothing_and_change_no_decision(storage: str, tmp_path: Path) -> None:
    assert kill(storage, 3, seed=1, folder=tmp_path, delta=0.4) > 40  # at a large risk, to decide soon


def test_kills_on_a_list_of_items_lose_nothing_and_count_no_pair_twice(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    assert kill(url, 3, seed=1, folder=tmp_path, delta=0.9, instance=LISTED) > 40


def test_the_check_sees_a_pair_that_counts_twice(tmp_path: Path) -> None:
    url, told = f"sqlite:///{tmp_path / 's.db'}", tmp_path / "told"
    told.touch()
    with sb.Study.create("twice", LISTED, 0.05, url) as study:
        late = study.ask(1)[0]
        study.abandon(late)
        again = study.ask(1)[0]
        assert (again.arm, again.item) == (late.arm, late.item)
        study.tell_many([(again, 0.25), (late, 0.75)])
        assert check(url, "twice", told) == 2
        counted, records = study.snapshot().state, study.records()
    double = replace(counted, data=counted.data + counted.informing)
    with pytest.raises(SystemExit, match="a pair counts twice"):
        check_pairs("twice", records, double)


def test_eight_workers_lose_nothing_and_meet_no_lock(storage: str, tmp_path: Path) -> None:
    sb.Study.create("eight", INSTANCE, 1e-9, storage).close()  # no decision before they are done
    workers = [start(storage, "eight", seed, str(tmp_path / "told"), 15) for seed in range(8)]
    for worker in workers:
        worker.join(300)
    assert [worker.exitcode for worker in workers] == [0] * 8
    assert check(storage, "eight", tmp_path / "told") == len((tmp_path / "told").read_text().splitlines()) >= 120
    with sb.Study.open("eight", storage) as study:
        assert len(study.report().workers) == 8


@pytest.mark.parametrize(
    ("harm", "first"),
    [
        (
            "UPDATE spectralbai_observations SET outcome = 0.5 WHERE number = 1",
            "0.25",
        ),  # a result that is not what was acknowledged
        (
            "UPDATE spectralbai_observations SET outcome = 0.5 WHERE number = 1",
            "0.5",
        ),  # a state that is not that of the results
        ("UPDATE spectralbai_states SET state = replace(state, '\"best\": ', '\"best\": 1')", "0.25"),
    ],
)
def test_the_check_sees_what_it_is_for(harm: str, first: str, tmp_path: Path) -> None:
    url, told = f"sqlite:///{tmp_path / 's.db'}", tmp_path / "told"
    with sb.Study.create("x", INSTANCE, 0.05, url) as study:
        tickets = [ticket for _ in range(6) for ticket in study.ask(30)]
        study.tell_many((ticket, 0.25) for ticket in tickets)
        told.write_text("".join(f"{ticket.id} 0.25\n" for ticket in tickets))
        assert check(url, "x", told) == len(tickets)
        with study._upkeep.storage.writing() as connection:
            connection.exec_driver_sql(harm)
    told.write_text(told.read_text().replace("0.25", first, 1))
    with pytest.raises((SystemExit, sb.Damaged)):
        check(url, "x", told)
