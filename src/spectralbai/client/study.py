"""A study of a service, with the same methods as `Study`."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from spectralbai.checks import is_line
from spectralbai.client.transport import Transport
from spectralbai.closing import Closing
from spectralbai.errors import InvalidInput
from spectralbai.journal.entries import CountRows, Failure, Outcome, Outcomes, Result, Ticket
from spectralbai.journal.events import read_log
from spectralbai.journal.records import Records
from spectralbai.report import Status

if TYPE_CHECKING:
    from spectralbai.instance import Instance
    from spectralbai.journal.definition import Definition
    from spectralbai.tables import Table

ALL_ARMS = 1_000_000
"""More than a service shows."""


class RemoteReport:
    """The report of a study of a service: `.as_dict()`, `.as_html()`, `.status`."""

    def __init__(self, document: dict[str, Any], page: str) -> None:
        self._document = document
        self._page = page

    @property
    def status(self) -> Status:
        """The status of the study when the report was made."""
        return Status.from_dict(self._document["status"])

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready."""
        return self._document

    def as_html(self) -> str:
        """Returns one HTML page that needs no other files; it is made right after the rest of the report."""
        return self._page


class RemoteStudy(Closing):
    """A study of a service, with the methods of `Study`; use `Client.create` or `Client.open`."""

    def __init__(self, transport: Transport, document: Mapping[str, Any]) -> None:
        self._transport = transport
        self.name: str = document["name"]
        self.created: float = document["created_seconds"]
        self.versions: dict[str, str] = document["versions"]
        """Versions of the software that created the study."""

    @classmethod
    def named(cls, transport: Transport, name: str) -> RemoteStudy:
        """Returns the study of that name."""
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"`name` must be one line of 1 to 100 printable characters, got {str(name)[:120]!r}")
        return cls(transport, transport.call("GET", f"/api/studies/{_quoted(name)}"))

    @property
    def definition(self) -> Definition:
        """The present definition of the study, read from the service; it needs numpy."""
        from spectralbai.journal.definition import Definition

        return Definition.from_dict(self._call("GET")["definition"])

    def ask(self, n: int = 1, worker: str = "", lease: float = 3600.0, *, key: str | None = None) -> list[Ticket]:
        """Returns tickets for the trials to do next, like `Study.ask`; if the request is repeated, it gets the same
        ones."""
        if key is not None and not (is_line(key, 200) and key.isascii() and key.strip()):
            raise InvalidInput(f"`key` must be one line of 1 to 200 ASCII characters, got {str(key)[:120]!r}")
        body = {"n": n, "worker": worker, "lease": lease}
        answer = self._call("POST", "/ask", body, key=secrets.token_hex(16) if key is None else key)
        return [Ticket.from_dict(each) for each in answer["tickets"]]

    def tell(self, ticket: Ticket | str, outcome: Outcome) -> bool:
        """Records the outcome of a ticket; returns whether it was new. If an answer was lost and the request repeated,
        the outcome counts as not new."""
        return self.tell_many([(ticket, outcome)]) == 1

    def tell_many(self, results: Outcomes) -> int:
        """Records outcomes of tickets, all or none; returns how many were new."""
        try:
            told = [_told(ticket, outcome) for ticket, outcome in results]
        except (TypeError, ValueError):
            raise InvalidInput("`results` must be pairs of a ticket and an outcome") from None
        return int(self._call("POST", "/tell", {"results": told})["recorded"])

    def add(
        self,
        labels: Sequence[str],
        outcomes: Sequence[float],
        origin: str,
        *,
        tickets: Iterable[str] = (),
        origins: Iterable[str] = (),
    ) -> int:
        """Records results that come without tickets, all or none; returns how many were new. See `Study.add`."""
        try:
            rows = [{"label": label, "outcome": each} for label, each in zip(labels, outcomes, strict=True)]
        except (TypeError, ValueError):
            rows = []
        named = {"tickets": list(tickets), "origins": list(origins)}
        return int(self._call("POST", "/results", {"origin": origin, "rows": rows, **named})["recorded"])

    def add_known(self, labels: Sequence[str], items: Sequence[str], outcomes: Sequence[float], origin: str) -> int:
        """Records outcomes of options on items that are known from elsewhere, all or none; returns how many were new.
        See `Study.add_known`."""
        try:
            pairs = zip(labels, items, outcomes, strict=True)
            rows = [{"label": label, "item": item, "outcome": each} for label, item, each in pairs]
        except (TypeError, ValueError):
            rows = []
        return int(self._call("POST", "/known", {"origin": origin, "rows": rows})["recorded"])

    def tell_counts(self, counts: CountRows, id: str, past: bool = False) -> int:
        """Records trials and successes per arm, all or none; returns how many trials were new. See
        `Study.tell_counts`."""
        try:
            rows = [(label, *pair) for label, pair in counts.items()] if isinstance(counts, Mapping) else [*counts]
            listed = [{"label": label, "trials": trials, "successes": hits} for label, trials, hits in rows]
        except (TypeError, ValueError):
            raise InvalidInput(
                "`counts` must be {label: (trials, successes)}, or rows of a label, trials and successes"
            ) from None
        return int(self._call("POST", "/counts", {"id": id, "past": past, "rows": listed})["recorded"])

    def shares(self) -> dict[str, float]:
        """Returns how to split the next traffic, as shares by label."""
        return {each["label"]: each["share"] for each in self._call("GET", "/shares")["shares"]}

    def abandon(self, *tickets: Ticket | str) -> None:
        """Gives tickets back, all or none."""
        self._call("POST", "/abandon", {"tickets": [_id(ticket) for ticket in tickets]})

    def withdraw(self, label: str) -> bool:
        """Takes an option out of the study; returns whether it was in."""
        return bool(self._call("POST", "/withdraw", {"label": label})["new"])

    def join(self, instance: Instance) -> str:
        """Adds options to the study; returns what changed, in words. See `Study.join`."""
        return str(self._call("POST", "/join", {"instance": document_of(instance)})["changes"])

    def stop(self) -> bool:
        """Ends the study by hand; returns whether it was running. See `Study.stop`."""
        return bool(self._call("POST", "/stop")["new"])

    def delete(self) -> None:
        """Deletes the study with all its tickets and results, for good."""
        self._call("DELETE")

    def status(self, control: str | None = None, patience: float | None = None) -> Status:
        """Returns the status of the study; every option is compared with the one labelled `control`, if given.

        If `patience` is given, what the service cannot compute in so many seconds is None; see `Study.status`.
        """
        query = {"control": control, "limit": ALL_ARMS, "order": "study", "patience": patience}
        return Status.from_dict(self._call("GET", "/status", query=query))

    def report(self, control: str | None = None) -> RemoteReport:
        """Returns the report of the study, for a page or JSON."""
        query = {"control": control}
        return RemoteReport(
            self._call("GET", "/report", query=query), self._call("GET", "/report.html", query=query, page=True)
        )

    def pending(self) -> tuple[Ticket, ...]:
        """Returns the pending tickets, oldest first."""
        return tuple(Ticket.from_dict(each) for each in self._call("GET", "/tickets")["tickets"])

    def recent(self, most: int = 100, before: int | None = None) -> list[Result]:
        """Returns the last results told, the newest first; or the last before the result of number `before`."""
        found = self._call("GET", "/results", query={"limit": most, "before": before})["results"]
        return [Result.from_dict(each) for each in found]

    def table(self) -> Table:
        """Returns the outcomes told so far of options on items, like `Study.table`; it needs numpy."""
        from spectralbai.inputs.outcomes import outcomes_from
        from spectralbai.inputs.table import CsvTable
        from spectralbai.tables import Table

        return Table(*outcomes_from(CsvTable.from_text(self._call("GET", "/table.csv", page=True))))

    def export(self) -> dict[str, Any]:
        """Returns everything about the study, JSON-ready; `Client.import_` and `import_study` restore it."""
        document: dict[str, Any] = self._call("GET", "/export")
        return document

    def records(self) -> Records:
        """Returns all results, tickets and blocks ever recorded, as of one instant."""
        return Records.of(read_log(self.export()["events"]))

    def close(self) -> None:
        """Closes the connection of this thread."""
        self._transport.close()

    def __repr__(self) -> str:
        return f"<RemoteStudy {self.name!r} at {self._transport.url}>"

    def _call(
        self,
        method: str,
        path: str = "",
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
        page: bool = False,
    ) -> Any:
        return self._transport.call(method, f"/api/studies/{_quoted(self.name)}{path}", body, query, key, page)


def document_of(instance: Instance) -> dict[str, Any]:
    """Returns the JSON form of an instance."""
    from spectralbai.instance import Instance  # it needs numpy, as whoever has an instance does

    if not isinstance(instance, Instance):
        raise InvalidInput(f"`instance` must be a spectralbai.Instance, got {type(instance).__name__}")
    return instance.as_dict()


def _quoted(name: str) -> str:
    return quote(name, safe="", errors="replace")


def _id(ticket: Any) -> Any:
    return ticket.id if isinstance(ticket, Ticket) else ticket


def _told(ticket: Any, outcome: Outcome) -> dict[str, Any]:
    if outcome is None or isinstance(outcome, Failure):
        return {"ticket": _id(ticket), "failed": "no outcome" if outcome is None else outcome.reason}
    return {"ticket": _id(ticket), "outcome": outcome}
