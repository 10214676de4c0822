"""What is kept of each time that the stopping rule was read, and how much of it a status reads."""

from __future__ import annotations

import pytest

import spectralbai as sb
from spectralbai import run_lengths
from spectralbai.policy import Estimates, Policy, State
from spectralbai.report.from_snapshot import status_of
from spectralbai.study import ledger
from tests.study.contract import SCORES, SIX, SLOW, drive


def test_of_many_checks_some_at_equal_steps_are_read(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "CHUNK", 2)
    with sb.Study.create("s", SLOW, 0.05, storage) as study:
        drive(study, 60)
        every = study.verdicts()
        assert every == study.snapshot().verdicts and len(every) > 6
        assert study.verdicts(len(every)) == every
        some = study.verdicts(3)
        assert some == (every[0], every[round((len(every) - 1) / 2)], every[-1])
        assert some[-1].lacking is not None
        with pytest.raises(sb.InvalidInput, match="`most` must be"):
            study.verdicts(0)


def test_a_status_reads_no_accounts_and_says_the_same(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with sb.Study.create("s", SCORES, 0.05, storage) as study:
        drive(study)
        study.join(SIX)
        drive(study)
        at = study.snapshot()
        read: list[str] = []
        whole = run_lengths.from_json
        monkeypatch.setattr(run_lengths, "from_json", lambda found: read.append(str(found)) or whole(found))  # type: ignore[func-returns-value]
        status = study.status()
        assert len(read) == len(at.verdicts) + len(at.joins), "candidates only"
        assert {arm.joined_at is None for arm in status.arms} == {True, False}
        assert any(arm.out_at is not None for arm in status.arms)
        assert status.arms == status_of(at).arms


def test_a_state_is_read_once_however_many_look_at_it(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    estimates = Policy.estimates

    def counted(self: Policy, state: State, watch: int = 0) -> Estimates:
        read.append(state.samples)
        return estimates(self, state, watch)

    monkeypatch.setattr(Policy, "estimates", counted)
    with sb.Study.create("s", SLOW, 0.05, storage) as study, sb.Study.create("t", SLOW, 0.05, storage) as other:
        n = drive(study, 30)
        drive(other, 30)
        first = study.status()
        assert first.arms == study.status().arms and read == [n]
        (ticket,) = study.ask(1)
        assert study.status("warm").pending == (ticket,) and read == [n], "tickets are no results"
        study.tell(ticket, 5.0)
        assert study.status().arms != first.arms and read == [n, n + 1]
        other.status()
        assert read == [n, n + 1, n], "another study, although it is about the same"
        study.withdraw("warm")
        assert study.status().arms[1].withdrawn and len(read) == 4
