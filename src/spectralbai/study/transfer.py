"""Studies as files: a JSON document that holds all of one, to move or to keep, and its results as a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import astuple, fields
from typing import Any

from spectralbai.checks import check_arm, check_number
from spectralbai.errors import InvalidInput
from spectralbai.study.definition import Definition
from spectralbai.study.ledger import Ledger, insert_study
from spectralbai.study.records import Observation, TicketRecord, as_time
from spectralbai.study.storage import Storage
from spectralbai.study.study import OnCheck, Study, check_words

FORMAT = "spectralbai-export/1"
KEYS = ("format", "name", "created", "study", "versions", "observations", "tickets")
REMEDY = "export the study again"


def export_study(study: Study) -> dict[str, Any]:
    """Returns all of a study, JSON-ready; `import_study` restores it. The state is left out: the results say it all."""
    records = study.records()
    return {
        "format": FORMAT,
        "name": study.name,
        "created": study.created,
        "study": study.definition.as_dict(),
        "versions": study.versions,
        "observations": {
            "columns": _columns(Observation),
            "rows": [list(astuple(each)) for each in records.observations],
        },
        "tickets": {"columns": _columns(TicketRecord), "rows": [list(astuple(each)) for each in records.tickets]},
    }


def results_as_csv(study: Study) -> str:
    """Returns the results of a study as a table for people and spreadsheets."""
    records, labels = study.records(), study.definition.instance.labels
    worker_of = {ticket.id: ticket.worker for ticket in records.tickets}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("number", "label", "outcome", "told", "ticket", "worker", "origin"))
    for number, each in enumerate(records.observations, 1):
        worker = worker_of.get(each.ticket or "", "")
        writer.writerow(
            (
                number,
                labels[each.arm],
                repr(each.outcome),
                as_time(each.told),
                each.ticket or "",
                worker,
                each.origin or "",
            )
        )
    return text.getvalue()


def import_study(
    document: Any, name: str | None = None, storage: str | None = None, on_check: OnCheck | None = None
) -> Study:
    """Returns the study of an exported document, written to a storage under its own name or another.

    Everything is checked before anything is written. The state is made anew from the results.
    """
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, Mapping) else type(document).__name__
        raise InvalidInput(
            f"an exported study must have the format {FORMAT!r}, got {found!r}; a newer spectralbai may have written it"
        )
    missing = [key for key in KEYS if key not in document]
    if missing:
        raise InvalidInput(f"an exported study must hold {', '.join(KEYS)}, got no {missing[0]}; {REMEDY}")
    name = check_words("name", document["name"] if name is None else name, 100)
    definition = Definition.from_dict(document["study"])
    definition.policy.init()
    created = check_number("$.created", document["created"], "a time", low=0.0, strict=False)
    versions = document["versions"]
    if not isinstance(versions, Mapping) or not all(
        isinstance(each, str) for pair in versions.items() for each in pair
    ):
        raise InvalidInput(f"$.versions must be an object of strings; {REMEDY}")
    asked = [_ticket(path, row, definition) for path, row in _rows(document, "tickets", TicketRecord)]
    told = [_observation(path, row, definition) for path, row in _rows(document, "observations", Observation)]
    arm_of = {ticket["id"]: ticket["arm"] for ticket in asked}
    if len(arm_of) < len(asked):
        raise InvalidInput(f"$.tickets must have an id of its own for each ticket; {REMEDY}")
    told_for = [each["ticket"] for each in told if each["ticket"] is not None]
    if len(set(told_for)) < len(told_for):
        raise InvalidInput(f"$.observations must have at most one result for each ticket; {REMEDY}")
    for number, each in enumerate(told):
        if each["ticket"] is not None and arm_of.get(each["ticket"]) != each["arm"]:
            raise InvalidInput(
                f"$.observations.rows[{number}] must be of the arm of its ticket {each['ticket']!r}; {REMEDY}"
            )

    place = Storage(storage, create=True)
    with place.closed_on_error():
        with place.writing() as connection:
            Ledger(connection, insert_study(connection, name, created, definition, dict(versions))).restore(asked, told)
        study = Study.named(name, place)
        study.catch_up(on_check)
        return study


def _columns(kind: type[Observation] | type[TicketRecord]) -> list[str]:
    return [field.name for field in fields(kind)]


def _rows(
    document: Mapping[str, Any], key: str, kind: type[Observation] | type[TicketRecord]
) -> list[tuple[str, dict[str, Any]]]:
    table = document[key]
    columns = _columns(kind)
    if not isinstance(table, Mapping) or table.get("columns") != columns or not isinstance(table.get("rows"), list):
        raise InvalidInput(f"$.{key} must have the columns {', '.join(columns)} and rows; {REMEDY}")
    rows = []
    for position, row in enumerate(table["rows"]):
        path = f"$.{key}.rows[{position}]"
        if not isinstance(row, list) or len(row) != len(columns):
            raise InvalidInput(f"{path} must be a list of {len(columns)} cells; {REMEDY}")
        rows.append((path, dict(zip(columns, row, strict=True))))
    return rows


def _ticket(path: str, row: dict[str, Any], definition: Definition) -> dict[str, Any]:
    check_arm(f"{path}.arm", row["arm"], definition.instance.problem.n_arms)
    if not isinstance(row["id"], str) or not 1 <= len(row["id"]) <= 16 or not row["id"].isprintable():
        raise InvalidInput(f"{path}.id must be up to 16 characters, got {str(row['id'])[:40]!r}; {REMEDY}")
    check_words("worker", row["worker"], 100, blank=True)
    for key in ("issued", "expires", *(("abandoned",) if row["abandoned"] is not None else ())):
        row[key] = check_number(f"{path}.{key}", row[key], "a time", low=0.0, strict=False)
    return row


def _observation(path: str, row: dict[str, Any], definition: Definition) -> dict[str, Any]:
    check_arm(f"{path}.arm", row["arm"], definition.instance.problem.n_arms)
    try:
        row["outcome"] = definition.check_outcome(row["outcome"])
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    row["told"] = check_number(f"{path}.told", row["told"], "a time", low=0.0, strict=False)
    if (row["ticket"] is None) == (row["origin"] is None):
        raise InvalidInput(f"{path} must have a ticket or an origin; {REMEDY}")
    if row["origin"] is not None:
        check_words("origin", row["origin"], 200)
    elif not isinstance(row["ticket"], str):
        raise InvalidInput(f"{path}.ticket must be a string, got {row['ticket']!r}; {REMEDY}")
    return row
