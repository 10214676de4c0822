"""Studies as files: the log as a JSON document, to move or archive a study, and a table of results."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from spectralbai.checks import check_words
from spectralbai.documents import check_format
from spectralbai.errors import InvalidInput
from spectralbai.journal.body import REMEDY
from spectralbai.journal.events import Entry, read_log
from spectralbai.journal.fold import OnCheck
from spectralbai.journal.replay import replay
from spectralbai.study.ledger import StoredState, insert_study
from spectralbai.study.storage import Storage
from spectralbai.study.study import Study
from spectralbai.text.wording import as_cell, as_time

FORMAT = "spectralbai-export/6"


def export_study(study: Study) -> dict[str, Any]:
    """Returns the log of a study, JSON-ready; `import_study` restores it. All else follows from the log.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.study
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("export", sb.Instance(problem, labels=["old", "new"]))
        >>> document = sb.study.export_study(study)
        >>> document["format"], document["name"], [event["kind"] for event in document["events"]]
        ('spectralbai-export/6', 'export', ['created', 'opened'])
        >>> study.close()
    """
    return {"format": FORMAT, "name": study.name, "events": [entry.as_dict() for entry in study.log()]}


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
    on = ("item",) if study.definition.has_items else ()
    writer.writerow(("number", "label", *on, "outcome", "told", "ticket", "worker", "origin"))
    for result in records.observations:
        source = result.ticket or "", worker_of.get(result.ticket or "", ""), result.origin or ""
        tried = labels[result.arm], *(study.definition.item_name(result.item) for _ in on)
        told = repr(result.outcome), as_time(result.told)
        writer.writerow((result.number, *map(as_cell, tried), *told, *map(as_cell, source)))
    return text.getvalue()


def import_study(
    document: Any, name: str | None = None, storage: str | Storage | None = None, on_check: OnCheck | None = None
) -> Study:
    """Returns the study of an exported document, written to a storage under its old name unless `name` gives another.

    The log is replayed, and compared with what it says about blocks and decisions, before anything is written.

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
    own, log = read_export(document)
    new = check_words("name", own if name is None else name, 100)
    try:
        fold = replay(log, on_check)
    except InvalidInput as error:
        raise InvalidInput(f"{error}; {REMEDY}") from None
    stored = StoredState.of(fold)
    with Storage.given(storage, create=True) as place:
        with place.writing() as connection:
            insert_study(connection, new, log, fold.definition, stored)
        return Study.named(new, place, place is not storage)


def read_export(document: Any) -> tuple[str, list[Entry]]:
    """Returns the name and the log in an exported document, with every event checked for itself."""
    found = document.get("format") if isinstance(document, Mapping) else type(document).__name__
    check_format("the format of an exported study", found, FORMAT, REMEDY)
    for key in ("name", "events"):
        if key not in document:
            raise InvalidInput(f"an exported study must hold {key}; {REMEDY}")
    events = document["events"]
    if not isinstance(events, list) or not events:
        raise InvalidInput(f"$.events must be a list of events; {REMEDY}")
    return document["name"], read_log(events)
