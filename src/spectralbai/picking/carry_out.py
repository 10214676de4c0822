"""The study of a question, brought to its end: what is known before, the trials, and the result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from spectralbai.errors import InvalidInput
from spectralbai.picking.question import Question
from spectralbai.picking.result import Pick
from spectralbai.picking.trials import Submit, Trials
from spectralbai.report import Status
from spectralbai.study import Study
from spectralbai.tables import Table

KNOWN = "known before"
"""What studies call the origin of outcomes that are not run."""

Pairs = Mapping[tuple[str, str], float]
"""Outcomes by labels of an option and an item."""


def carry_out(question: Question, study: Study, score: str, submit: Submit, known: Pairs, **settings: Any) -> Pick:
    """Returns the result of a question, whose study is brought to its end; `score` is what finds the outcomes, in
    words, and `settings` are those of `Trials`."""
    study.name_score(score)
    of_items = known_items(question, known)
    if of_items:
        labels, items = zip(*of_items, strict=True)
        study.add_known(labels, items, list(of_items.values()), KNOWN)
    options = {option.label: option for option in question.options}
    status = Trials(study, options, question.members, submit, known=known, **settings).run()
    return result_of(question, study, status)


def known_items(question: Question, known: Pairs) -> dict[tuple[str, str], float]:
    """Returns the known outcomes of the items of the study, each the mean over its members; the others are left out."""
    means = {}
    for option in question.options:
        for item, members in question.members.items():
            pairs = [(option.label, member.label) for member in members]
            if all(pair in known for pair in pairs):
                means[option.label, item] = math.fsum(known[pair] for pair in pairs) / len(pairs)
    return means


def check_known(question: Question, known: Pairs) -> None:
    """Raises InvalidInput if a known outcome cannot be one of this question."""
    noise = question.definition.instance.problem.noise
    for (option, item), outcome in known.items():
        noise.check_outcome(f'the outcome of "{option}" on "{item}"', outcome)


def pairs_of(table: Table) -> Pairs:
    """Returns the outcomes that a table has."""
    if not isinstance(table, Table):
        raise InvalidInput(f"`known` must be a spectralbai.Table of outcomes, got {type(table).__name__}")
    rows = zip(table.options, table.outcomes.tolist(), strict=True)
    return {(a, j): value for a, row in rows for j, value in zip(table.items, row, strict=True) if value == value}


def result_of(question: Question, study: Study, status: Status) -> Pick:
    """Returns the result of a study that has ended."""
    definition, records = study.definition, study.records()
    items = {name: at for at, name in enumerate(question.members)}
    outcomes = np.full((len(question.options), len(items)), np.nan)
    tickets = {ticket.id: ticket for ticket in records.tickets}
    trials = known = 0
    for result in records.observations:
        ticket = tickets[result.ticket or ""]
        if ticket.failed is not None and definition.failed_as is None:
            continue  # written off: the option was held back
        if ticket.worker == KNOWN:
            known += 1
        else:
            trials += 1
        at = result.arm, items[str(definition.item_name(result.item))]
        if np.isnan(outcomes[at]):
            outcomes[at] = result.outcome
    reasons = {ticket.arm: ticket.failed for ticket in records.tickets if ticket.failed is not None}
    withdrawn = {arm: each.label for arm, each in enumerate(status.arms) if each.withdrawn}
    values = {option.label: option.value for option in question.options}
    return Pick(
        option=status.best,
        value=None if status.best is None else values[status.best],
        trials=trials,
        known=known,
        pairs=question.pairs,
        table=Table(outcomes, question.options.labels, list(items)),
        held_back={label: reasons[arm] for arm, label in withdrawn.items() if arm in reasons},
        status=status,
        width=question.high - question.low,
    )
