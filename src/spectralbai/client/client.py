"""The studies of a service, with the same methods as `Studies`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spectralbai.client.study import RemoteStudy, document_of
from spectralbai.client.transport import Transport
from spectralbai.closing import Closing
from spectralbai.journal.entries import Summary

if TYPE_CHECKING:
    from spectralbai.instance import Instance
    from spectralbai.journal.definition import Goal

TIMEOUT = 120.0
"""Seconds after which a request that is not answered is made again."""
PATIENCE = 60.0
"""Seconds for which requests are repeated while the service cannot be reached or is busy."""


class Client(Closing):
    """The studies of a service at an address, with the methods of `Studies`. Threads may share it.

    Every request may be repeated, and is where its answer was lost: nothing is done twice. Refusals are the exceptions
    that `Study` raises, with the same sentences.

    Examples:
        >>> import spectralbai as sb
        >>> client = sb.Client("http://127.0.0.1:8000", token="sbai_...")
        >>> def work(name: str) -> None:
        ...     study = client.open(name)
        ...     while tickets := study.ask(2, worker="lab 3"):  # none once it has decided
        ...         for ticket in tickets:
        ...             study.tell(ticket, float(input(f"outcome of {ticket.label}: ")))
        >>> client.url
        'http://127.0.0.1:8000'
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = TIMEOUT, patience: float = PATIENCE
    ) -> None:
        self._transport = Transport(url, token, timeout, patience)

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._transport.url

    def create(
        self,
        name: str,
        instance: Instance,
        delta: float = 0.05,
        goal: Goal = "max",
        *,
        budget: int | None = None,
        until: float | None = None,
        failed_as: float | None = None,
        items: Sequence[str] | None = None,
        seed: int | None = None,
        control: str | None = None,
        control_share: float | None = None,
        lapse_as: float | None = None,
        window: float | None = None,
    ) -> RemoteStudy:
        """Returns a new study; the arguments are explained at `Study.create`."""
        body = {
            "name": name,
            "instance": document_of(instance),
            "delta": delta,
            "goal": goal,
            "budget": budget,
            "until": until,
            "failed_as": failed_as,
            "items": items,
            "seed": seed,
            "control": control,
            "control_share": control_share,
            "lapse_as": lapse_as,
            "window": window,
        }
        return RemoteStudy(self._transport, self._transport.call("POST", "/api/studies", body))

    def open(self, name: str) -> RemoteStudy:
        """Returns the study of that name."""
        return RemoteStudy.named(self._transport, name)

    def list(self) -> list[Summary]:
        """Returns a summary of each study, oldest first."""
        found: list[Summary] = []
        after = None
        while True:
            page = self._transport.call("GET", "/api/studies", query={"after": after, "limit": 1000})
            found += [Summary(**each) for each in page["studies"]]
            after = page["next"]
            if after is None:
                return found

    def import_(self, document: Any, name: str | None = None) -> RemoteStudy:
        """Returns the study of an exported document, under its old name unless `name` gives another."""
        body = {"document": document, "name": name}
        return RemoteStudy(self._transport, self._transport.call("POST", "/api/imports", body))

    def delete(self, name: str) -> None:
        """Deletes a study with all its tickets and results, for good."""
        self.open(name).delete()

    def close(self) -> None:
        """Closes the connection of this thread."""
        self._transport.close()

    def __repr__(self) -> str:
        return f"<Client of {self.url}>"
