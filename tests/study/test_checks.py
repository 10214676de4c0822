"""What is kept of each time that the stopping rule was read, and how much of it a status reads."""

from __future__ import annotations

import pytest

import spectralbai as sb
from spectralbai.report import status_of
from spectralbai.study import ledger
from tests.study.contract import SCORES, SIX, SLOW, drive


def test_of_many_checks_some_at_equal_steps_are_read(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "CHUNK", 2)
    with sb.Study.create("s", SLOW, 0.05, storage) as study:
        drive(study, 60)
        every = study.checks()
        assert every == study.snapshot().checks and len(every) > 6
        assert study.checks(len(every)) == every
        some = study.checks(3)
        assert some == (every[0], every[round((len(every) - 1) / 2)], every[-1])
        assert some[-1].lacking is not None
        with pytest.raises(sb.InvalidInput, match="`most` must be"):
            study.checks(0)


def test_a_status_reads_no_accounts_and_says_the_same(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with sb.Study.create("s", SCORES, 0.05, storage) as study:
        drive(study)
        study.join(SIX)
        drive(study)
        at = study.snapshot()
        read: list[str | None] = []
        whole = ledger._as_tuple
        monkeypatch.setattr(ledger, "_as_tuple", lambda text: read.append(text) or whole(text))  # type: ignore[func-returns-value]
        status = study.status()
        assert len(read) == len(set(read)) == len({check.candidates for check in at.checks})
        assert {arm.joined_at is None for arm in status.arms} == {True, False}
        assert any(arm.out_at is not None for arm in status.arms)
        assert status.arms == status_of(at).arms
