"""Studies as files: a JSON document with everything about a study, to move or archive it, and a table of results."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from itertools import chain, pairwise
from typing import Any, NamedTuple

from spectralbai.checks import check_arm, check_integer, check_number, check_words, is_line
from spectralbai.documents import plain
from spectralbai.errors import InvalidInput, about
from spectralbai.instance import Instance
from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import Join, Observation, Opening, Records, TicketRecord, Withdrawal
from spectralbai.study.ledger import insert_study
from spectralbai.study.replay import replay
from spectralbai.study.storage import Storage
from spectralbai.study.study import Study
from spectralbai.study.upkeep import OnCheck
from spectralbai.wording import as_time

FORMAT = "spectralbai-export/3"
FORMAT_1, FORMAT_2 = "spectralbai-export/1", "spectralbai-export/2"
"""Written by versions 0.1.0 (without blocks) and 0.2.0 (without counts)."""
FORMAT_4 = "spectralbai-export/4"
"""For studies that options have joined; other studies are written in format 3."""
KEYS = ("format", "name", "created", "study", "versions", "observations", "tickets", "openings", "withdrawals")
REMEDY = "export the study again"


def export_study(study: Study) -> dict[str, Any]:
    """Returns everything about a study, JSON-ready; `import_study` restores it. The state is left out, because it
    follows from blocks and results.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.study
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("export", sb.Instance(problem, labels=["old", "new"]))
        >>> document = sb.study.export_study(study)
        >>> document["format"], document["name"]
        ('spectralbai-export/3', 'export')
        >>> study.close()
    """
    records = study.records()
    return {
        "format": FORMAT_4 if records.joins else FORMAT,
        "name": study.name,
        "created": study.created,
        "study": study.definition.as_dict(),
        "versions": study.versions,
        "observations": _table(Observation, records.observations),
        "tickets": _table(TicketRecord, records.tickets),
        "openings": _table(Opening, records.openings),
        "withdrawals": _table(Withdrawal, records.withdrawals),
        **({"joins": _table(Join, records.joins)} if records.joins else {}),
    }


def results_as_csv(study: Study) -> str:
    """Returns the results of a study as a table for people and spreadsheets.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.study
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("table", sb.Instance(problem, labels=["old", "new"]))
        >>> study.add(["old", "new"], [0.5, 0.7], origin="last year")
        2
        >>> print(sb.study.results_as_csv(study).splitlines()[0])
        number,label,outcome,told,ticket,worker,origin
        >>> study.close()
    """
    records, labels = study.records(), study.definition.instance.labels
    worker_of = {ticket.id: ticket.worker for ticket in records.tickets}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("number", "label", "outcome", "told", "ticket", "worker", "origin"))
    for number, each in enumerate(records.observations, 1):
        source = each.ticket or "", worker_of.get(each.ticket or "", ""), each.origin or ""
        writer.writerow((number, labels[each.arm], repr(each.outcome), as_time(each.told), *source))
    return text.getvalue()


class Exported(NamedTuple):
    """An exported document, read and checked."""

    name: str
    created: float
    versions: dict[str, str]
    definition: Definition
    records: Records


def import_study(
    document: Any, name: str | None = None, storage: str | Storage | None = None, on_check: OnCheck | None = None
) -> Study:
    """Returns the study of an exported document, written to a storage under its old name unless `name` gives another.

    Everything is checked, and the state is computed from blocks and results, before anything is written.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.study
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("import", sb.Instance(problem, labels=["old", "new"]))
        >>> document = sb.study.export_study(study)
        >>> study.close()
        >>> with sb.study.import_study(document, "copy") as copy:
        ...     print(copy.name, copy.status().results)
        copy 0
    """
    read = read_export(document, name)
    try:
        state, checks = replay(read.definition, read.records, on_check)
    except InvalidInput as error:
        raise InvalidInput(f"$.openings: {error}; {REMEDY}") from None

    with Storage.given(storage, create=True) as place:
        with place.writing() as connection:
            insert_study(
                connection, read.name, read.created, read.definition, read.versions, read.records, state, checks
            )
        return Study.named(read.name, place, place is not storage)


def read_export(document: Any, name: str | None = None) -> Exported:
    """Returns what an exported document holds, checked; but whether its blocks follow from its results is not."""
    if not isinstance(document, Mapping) or document.get("format") not in (FORMAT_4, FORMAT, FORMAT_2, FORMAT_1):
        found = document.get("format") if isinstance(document, Mapping) else type(document).__name__
        raise InvalidInput(
            f"an exported study must have the format {FORMAT!r}, got {found!r}; a newer spectralbai may have written it"
        )
    keys = {FORMAT_1: KEYS[:-2], FORMAT_2: KEYS[:-1], FORMAT: KEYS, FORMAT_4: (*KEYS, "joins")}[document["format"]]
    missing = [key for key in keys if key not in document]
    if missing:
        raise InvalidInput(f"an exported study must hold {', '.join(keys)}, got no {missing[0]}; {REMEDY}")
    name = check_words("name", document["name"] if name is None else name, 100)
    definition = Definition.from_dict(document["study"])
    joins = [_join(path, row) for path, row in _rows(document, "joins", Join)]
    definition = definition.since(Instance.from_dict(each.before) for each in joins)
    for before, after in pairwise(definition.history):
        before.joined(after.instance)
    definition.policy.init()
    created = check_number("$.created", document["created"], "a time", low=0.0, strict=False)
    versions = document["versions"]
    if not isinstance(versions, Mapping) or not all(isinstance(each, str) for each in chain(*versions.items())):
        raise InvalidInput(f"$.versions must be an object of strings; {REMEDY}")
    records = replace(_records(document, definition), joins=tuple(joins))
    return Exported(name, created, dict(versions), definition, records)


def _records(document: Mapping[str, Any], definition: Definition) -> Records:
    """Returns the tables of a document; raises InvalidInput if they are inconsistent."""
    asked = [_ticket(path, row, definition) for path, row in _rows(document, "tickets", TicketRecord)]
    told = [_observation(path, row, definition) for path, row in _rows(document, "observations", Observation)]
    openings = [_opening(path, row, definition) for path, row in _rows(document, "openings", Opening)]
    withdrawn = [_withdrawal(path, row, definition) for path, row in _rows(document, "withdrawals", Withdrawal)]
    by_id = {ticket.id: ticket for ticket in asked}
    if len(by_id) < len(asked):
        raise InvalidInput(f"$.tickets must have a different id for each ticket; {REMEDY}")
    told_for = [each.ticket for each in told if each.ticket is not None]
    if len(set(told_for)) < len(told_for):
        raise InvalidInput(f"$.observations must have at most one result for each ticket; {REMEDY}")
    for number, each in enumerate(told):
        if each.ticket is not None and (each.ticket not in by_id or by_id[each.ticket].arm != each.arm):
            raise InvalidInput(
                f"$.observations.rows[{number}] must be of the arm of its ticket {each.ticket!r}; {REMEDY}"
            )
        if each.block is not None and (each.block >= len(openings) or each.ticket is not None):
            raise InvalidInput(f"$.observations.rows[{number}] must be of a block in $.openings; {REMEDY}")
    for number, opening in enumerate(openings):
        before = openings[number - 1].results if number else 0
        if opening.number != number or not before <= opening.results <= len(told):
            raise InvalidInput(f"$.openings.rows[{number}] must follow the blocks and results before it; {REMEDY}")
    in_blocks = definition.policy.in_blocks
    if openings and not in_blocks:
        raise InvalidInput(f"$.openings must be empty where pulls do not come in blocks; {REMEDY}")
    for number, ticket in enumerate(asked):
        slot = ticket.block is not None and ticket.block < len(openings) and ticket.arm in openings[ticket.block].arms
        if slot != in_blocks or (ticket.block is not None and not in_blocks):
            raise InvalidInput(f"$.tickets.rows[{number}] must be a slot of a block in $.openings; {REMEDY}")
    if len({each.arm for each in withdrawn}) < len(withdrawn):
        raise InvalidInput(f"$.withdrawals must have each arm once; {REMEDY}")
    return Records(tuple(told), tuple(asked), tuple(openings), tuple(withdrawn))


Kind = type[Observation] | type[TicketRecord] | type[Opening] | type[Withdrawal] | type[Join]


def _table(kind: Kind, entries: Iterable[object]) -> dict[str, Any]:
    """Returns entries of a kind as a table, JSON-ready."""
    return {"columns": _columns(kind), "rows": [list(plain(each).values()) for each in entries]}


def _columns(kind: Kind) -> list[str]:
    return [field.name for field in fields(kind)]


def _rows(document: Mapping[str, Any], key: str, kind: Kind) -> list[tuple[str, dict[str, Any]]]:
    format_ = document["format"]
    since = {Opening: FORMAT_2, Withdrawal: FORMAT, Join: FORMAT_4}.get(kind, FORMAT_1)
    if format_ < since:  # the names of formats end in a number, so this compares the numbers
        return []
    since_3 = {"failed"} | ({"block"} if kind is Observation else set())
    since_2 = {"block"}
    missing = {FORMAT_2: since_3, FORMAT_1: since_3 | since_2}.get(format_, set())
    columns = [column for column in _columns(kind) if column not in missing]
    table = document[key]
    if not isinstance(table, Mapping) or table.get("columns") != columns or not isinstance(table.get("rows"), list):
        raise InvalidInput(f"$.{key} must have the columns {', '.join(columns)} and rows; {REMEDY}")
    rows = []
    for position, row in enumerate(table["rows"]):
        path = f"$.{key}.rows[{position}]"
        if not isinstance(row, list) or len(row) != len(columns):
            raise InvalidInput(f"{path} must be a list of {len(columns)} cells; {REMEDY}")
        rows.append((path, dict(zip(columns, row, strict=True))))
    return rows


def _ticket(path: str, row: dict[str, Any], definition: Definition) -> TicketRecord:
    check_arm(f"{path}.arm", row["arm"], definition.instance.problem.n_arms)
    if not is_line(row["id"], 16) or not row["id"]:
        raise InvalidInput(f"{path}.id must be up to 16 characters, got {str(row['id'])[:40]!r}; {REMEDY}")
    check_words("worker", row["worker"], 100, blank=True)
    for key in ("issued", "expires", *(("abandoned",) if row["abandoned"] is not None else ())):
        row[key] = check_number(f"{path}.{key}", row[key], "a time", low=0.0, strict=False)
    if row.get("block") is not None:
        check_integer(f"{path}.block", row["block"], 0)
    if row.get("failed") is not None:
        check_words("failed", row["failed"], 200, blank=True)
    return TicketRecord(**row)


def _withdrawal(path: str, row: dict[str, Any], definition: Definition) -> Withdrawal:
    check_arm(f"{path}.arm", row["arm"], definition.instance.problem.n_arms)
    for key in ("results", "opened"):
        check_integer(f"{path}.{key}", row[key], 0)
    row["withdrawn"] = check_number(f"{path}.withdrawn", row["withdrawn"], "a time", low=0.0, strict=False)
    return Withdrawal(**row)


def _join(path: str, row: dict[str, Any]) -> Join:
    for key in ("results", "opened", "withdrawn"):
        check_integer(f"{path}.{key}", row[key], 0)
    row["joined"] = check_number(f"{path}.joined", row["joined"], "a time", low=0.0, strict=False)
    if not isinstance(row["blocks"], list):
        raise InvalidInput(f"{path}.blocks must be a list of numbers; {REMEDY}")
    row["blocks"] = tuple(check_integer(f"{path}.blocks", each, 0) for each in row["blocks"])
    return Join(**row)


def _opening(path: str, row: dict[str, Any], definition: Definition) -> Opening:
    for key in ("number", "results"):
        check_integer(f"{path}.{key}", row[key], 0)
    row["opened"] = check_number(f"{path}.opened", row["opened"], "a time", low=0.0, strict=False)
    if not isinstance(row["arms"], list) or not row["arms"]:
        raise InvalidInput(f"{path}.arms must be a list of arms; {REMEDY}")
    n_arms = definition.instance.problem.n_arms
    row["arms"] = tuple(check_arm(f"{path}.arms", arm, n_arms) for arm in row["arms"])
    return Opening(**row)


def _observation(path: str, row: dict[str, Any], definition: Definition) -> Observation:
    check_arm(f"{path}.arm", row["arm"], definition.instance.problem.n_arms)
    with about(path):
        row["outcome"] = definition.check_outcome(row["outcome"])
    row["told"] = check_number(f"{path}.told", row["told"], "a time", low=0.0, strict=False)
    if row.get("block") is not None:
        check_integer(f"{path}.block", row["block"], 0)
    if (row["ticket"] is None) == (row["origin"] is None):
        raise InvalidInput(f"{path} must have a ticket or an origin; {REMEDY}")
    if row["origin"] is not None:
        check_words("origin", row["origin"], 200)
    elif not isinstance(row["ticket"], str):
        raise InvalidInput(f"{path}.ticket must be a string, got {row['ticket']!r}; {REMEDY}")
    return Observation(**row)
