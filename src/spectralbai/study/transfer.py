"""Studies as files: a JSON document with everything about a study, to move or archive it, and a table of results."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from itertools import chain, pairwise
from typing import Any

from spectralbai.checks import check_arm, check_integer, check_number, check_words, is_line
from spectralbai.documents import plain
from spectralbai.errors import InvalidInput, about
from spectralbai.instance import Instance
from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import Exported, Join, Observation, Opening, Records, TicketRecord, Withdrawal
from spectralbai.study.ledger import insert_study
from spectralbai.study.replay import replay
from spectralbai.study.storage import Storage
from spectralbai.study.study import Study
from spectralbai.study.upkeep import OnCheck
from spectralbai.text.wording import as_time

FORMAT = "spectralbai-export/3"
FORMATS = tuple(f"spectralbai-export/{version}" for version in (1, 2, 3, 4))
"""Version 1 was written by 0.1.0 (without blocks), 2 by 0.2.0 (without counts). Studies that options have joined are
written in version 4, others in 3."""
TABLES: dict[str, type[Any]] = {
    "observations": Observation,
    "tickets": TicketRecord,
    "openings": Opening,
    "withdrawals": Withdrawal,
    "joins": Join,
}
"""The entries in each table of a document; the tables are the fields of `Records`."""
KEYS = ("format", "name", "created", "study", "versions", *TABLES)
SINCE = {"openings": 2, "tickets.block": 2, "withdrawals": 3, "tickets.failed": 3, "observations.block": 3, "joins": 4}
"""The first version with a table or a column, if it is not 1."""
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
        "format": FORMATS[-1] if records.joins else FORMAT,
        "name": study.name,
        "created": study.created,
        "study": study.definition.as_dict(),
        "versions": study.versions,
        **{key: _table(kind, getattr(records, key)) for key, kind in TABLES.items() if key != "joins" or records.joins},
    }


def _table(kind: type[Any], entries: tuple[Any, ...]) -> dict[str, Any]:
    """Returns entries of a kind as a table, JSON-ready."""
    columns = [field.name for field in fields(kind)]
    return {"columns": columns, "rows": [list(plain(each).values()) for each in entries]}


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
    new = read_export(document, name)
    try:
        state, checks = replay(new.definition, new.records, on_check)
    except InvalidInput as error:
        raise InvalidInput(f"$.openings: {error}; {REMEDY}") from None

    with Storage.given(storage, create=True) as place:
        with place.writing() as connection:
            insert_study(connection, new, state, checks)
        return Study.named(new.name, place, place is not storage)


def read_export(document: Any, name: str | None = None) -> Exported:
    """Returns what an exported document holds, checked; but whether its blocks follow from its results is not."""
    found = document.get("format") if isinstance(document, Mapping) else type(document).__name__
    if found not in FORMATS:
        raise InvalidInput(
            f"an exported study must have the format {FORMAT!r}, got {found!r}; a newer spectralbai may have written it"
        )
    version = FORMATS.index(found) + 1
    keys = [key for key in KEYS if SINCE.get(key, 1) <= version]
    missing = [key for key in keys if key not in document]
    if missing:
        raise InvalidInput(f"an exported study must hold {', '.join(keys)}, got no {missing[0]}; {REMEDY}")
    name = check_words("name", document["name"] if name is None else name, 100)
    definition = Definition.from_dict(document["study"])
    joins = _entries(document, version, "joins", definition)
    definition = definition.since(Instance.from_dict(each.before) for each in joins)
    for before, after in pairwise(definition.history):
        before.joined(after.instance)
    definition.policy.init()
    created = check_number("$.created", document["created"], "a time", low=0.0, strict=False)
    versions = document["versions"]
    if not isinstance(versions, Mapping) or not all(isinstance(each, str) for each in chain(*versions.items())):
        raise InvalidInput(f"$.versions must be an object of strings; {REMEDY}")
    tables = {key: _entries(document, version, key, definition) for key in TABLES if key != "joins"}
    records = Records(**tables, joins=joins)
    _check_records(records, definition.policy.in_blocks)
    return Exported(name, created, dict(versions), definition, records)


def _check_records(records: Records, in_blocks: bool) -> None:
    """Raises InvalidInput if tables contradict each other; `in_blocks` says whether pulls come in blocks."""
    told, asked, openings, withdrawn = records.observations, records.tickets, records.openings, records.withdrawals
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
    if openings and not in_blocks:
        raise InvalidInput(f"$.openings must be empty where pulls do not come in blocks; {REMEDY}")
    for number, ticket in enumerate(asked):
        slot = ticket.block is not None and ticket.block < len(openings) and ticket.arm in openings[ticket.block].arms
        if slot != in_blocks or (ticket.block is not None and not in_blocks):
            raise InvalidInput(f"$.tickets.rows[{number}] must be a slot of a block in $.openings; {REMEDY}")
    if len({each.arm for each in withdrawn}) < len(withdrawn):
        raise InvalidInput(f"$.withdrawals must have each arm once; {REMEDY}")


def _entries(document: Mapping[str, Any], version: int, key: str, definition: Definition) -> tuple[Any, ...]:
    """Returns the entries of a table of a document, none if its version has no such table."""
    if version < SINCE.get(key, 1):
        return ()
    kind, table = TABLES[key], document[key]
    columns = [each.name for each in fields(kind) if version >= SINCE.get(f"{key}.{each.name}", 1)]
    if not isinstance(table, Mapping) or table.get("columns") != columns or not isinstance(table.get("rows"), list):
        raise InvalidInput(f"$.{key} must have the columns {', '.join(columns)} and rows; {REMEDY}")
    entries = []
    for position, cells in enumerate(table["rows"]):
        path = f"$.{key}.rows[{position}]"
        if not isinstance(cells, list) or len(cells) != len(columns):
            raise InvalidInput(f"{path} must be a list of {len(columns)} cells; {REMEDY}")
        entries.append(kind(**_checked(path, key, dict(zip(columns, cells, strict=True)), definition)))
    return tuple(entries)


_count = partial(check_integer, low=0)
_time = partial(check_number, rule="a time", low=0.0, strict=False)
NUMBERS: dict[str, dict[str, Callable[[str, Any], float]]] = {
    "observations": {"told": _time, "block": _count},
    "tickets": {"issued": _time, "expires": _time, "abandoned": _time, "block": _count},
    "openings": {"number": _count, "results": _count, "opened": _time},
    "withdrawals": {"results": _count, "opened": _count, "withdrawn": _time},
    "joins": {"results": _count, "opened": _count, "withdrawn": _count, "joined": _time},
}
"""The columns of each table that hold numbers, other than arms and outcomes."""


def _checked(path: str, key: str, row: dict[str, Any], definition: Definition) -> dict[str, Any]:
    """Returns a row of a table with its cells checked."""
    n_arms = definition.instance.problem.n_arms
    if "arm" in row:
        check_arm(f"{path}.arm", row["arm"], n_arms)
    for name, check in NUMBERS[key].items():
        if row.get(name) is not None or name not in ("abandoned", "block"):
            row[name] = check(f"{path}.{name}", row[name])
    if key == "observations":
        with about(path):
            row["outcome"] = definition.check_outcome(row["outcome"])
        if (row["ticket"] is None) == (row["origin"] is None):
            raise InvalidInput(f"{path} must have a ticket or an origin; {REMEDY}")
        if row["origin"] is not None:
            check_words("origin", row["origin"], 200)
        elif not isinstance(row["ticket"], str):
            raise InvalidInput(f"{path}.ticket must be a string, got {row['ticket']!r}; {REMEDY}")
    elif key == "tickets":
        if not is_line(row["id"], 16) or not row["id"]:
            raise InvalidInput(f"{path}.id must be up to 16 characters, got {str(row['id'])[:40]!r}; {REMEDY}")
        check_words("worker", row["worker"], 100, blank=True)
        if row.get("failed") is not None:
            check_words("failed", row["failed"], 200, blank=True)
    elif key == "openings":
        if not isinstance(row["arms"], list) or not row["arms"]:
            raise InvalidInput(f"{path}.arms must be a list of arms; {REMEDY}")
        row["arms"] = tuple(check_arm(f"{path}.arms", arm, n_arms) for arm in row["arms"])
    elif key == "joins":
        if not isinstance(row["blocks"], list):
            raise InvalidInput(f"{path}.blocks must be a list of numbers; {REMEDY}")
        row["blocks"] = tuple(check_integer(f"{path}.blocks", each, 0) for each in row["blocks"])
    return row
