"""The report of a study: its question, what is known, and its history, as JSON or as one web page with pictures."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from spectralbai.documents import plain, software
from spectralbai.journal.definition import RULE, Definition
from spectralbai.journal.entries import Snapshot
from spectralbai.journal.records import Records
from spectralbai.problem import Problem
from spectralbai.report.by_category import categories_in, most_lacking
from spectralbai.report.from_snapshot import status_of
from spectralbai.report.page import PAGE, figure
from spectralbai.report.statement import Statement
from spectralbai.report.status import MANY_ARMS, ArmStatus, Status
from spectralbai.report.tables import TextTable, arms_of, categories_of, comparisons_of
from spectralbai.tables import Table
from spectralbai.text.html import paged, pairs, paragraph, script, table
from spectralbai.text.wording import MOST_NAMED, as_time, in_words
from spectralbai.verdict import Verdict

FORMAT = "spectralbai-report/3"


@dataclass(frozen=True, eq=False)
class Report:
    """The report of a study: everything that one would attach to a decision.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("report", sb.Instance(problem, labels=["old", "new"]))
        >>> report = study.report()
        >>> report.status.state, report.tickets["given"], report.as_html()[:15]
        ('running', 0, '<!DOCTYPE html>')
        >>> study.close()
    """

    definition: Definition
    status: Status
    created: float
    first: float | None
    last: float | None
    """Times when the first and the last result were told."""
    workers: dict[str, int]
    """Number of results of each worker."""
    origins: dict[str, int]
    """Number of results without a ticket, by origin."""
    tickets: dict[str, int]
    """Numbers of tickets handed out, told, given back, and pending."""
    by_hand: tuple[tuple[float, str, str], ...]
    """What somebody did by hand: when, the kind of the event, and who."""
    verdicts: tuple[Verdict, ...]
    """What the stopping rule said each time that a block closed."""
    outcomes: Table | None
    """Outcomes of options on items, or on some of many items; None if there are none."""
    reference: str
    """Where the stopping rule comes from."""
    created_with: dict[str, str]
    made_with: dict[str, str]

    @classmethod
    def of(
        cls,
        at: Snapshot,
        records: Records,
        versions: dict[str, str],
        control: int | None,
        said: Statement | None = None,
        outcomes: Table | None = None,
    ) -> Report:
        """Returns the report of a study at an instant; its arms are compared with the arm `control`, if given.

        `versions` are the versions of the software that created the study; `said` is as for `status_of`.
        """
        from spectralbai.stopping import RULES

        worker_of = {ticket.id: ticket.worker for ticket in records.tickets}
        told = records.observations
        return cls(
            definition=at.definition,
            status=status_of(at, control, said),
            created=at.created,
            first=told[0].told if told else None,
            last=told[-1].told if told else None,
            workers=dict(Counter(worker_of[each.ticket] for each in told if each.ticket is not None)),
            origins=dict(Counter(each.origin for each in told if each.origin is not None)),
            tickets={
                "given": len(records.tickets),
                "told": sum(each.ticket is not None for each in told),
                "abandoned": sum(each.abandoned is not None for each in records.tickets),
                "pending": len(at.pending),
            },
            by_hand=records.by_hand,
            verdicts=at.verdicts,
            outcomes=outcomes,
            reference=RULES[RULE].reference,
            created_with=versions,
            made_with=software("SQLAlchemy"),
        )

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready."""
        return {
            "format": FORMAT,
            "answer": self.status.answer,
            "study": self.definition.as_dict(),
            "reference": self.reference,
            "created": as_time(self.created),
            "first": None if self.first is None else as_time(self.first),
            "last": None if self.last is None else as_time(self.last),
            "workers": self.workers,
            "origins": self.origins,
            "tickets": self.tickets,
            "by_hand": [{"time": as_time(time), "what": what, "who": who} for time, what, who in self.by_hand],
            "status": self.status.as_dict(),
            "verdicts": [self._verdict(verdict) for verdict in self.verdicts],
            "created_with": self.created_with,
            "made_with": self.made_with,
        }

    def as_html(self) -> str:
        """Returns one HTML page that needs no other files. All text from users is escaped. The page has no script
        unless there are many arms; then a script turns the pages of their table."""
        status = self.status
        drawn: Iterable[tuple[bytes, str]] = ()
        if status.results:
            from spectralbai.report.pictures import pictures  # they need matplotlib

            drawn = pictures(status, self.definition, self.verdicts, self.outcomes)
        return PAGE.format(
            title=escape(status.name),
            state=status.state,
            answer=escape(" ".join((status.answer, *status.advice))),
            categories=self._categories(),
            arms=self._rows(arms_of) + paragraph(self._about_arms()),
            compared="" if status.control is None else self._compared(status.control),
            pictures="".join(figure(png, caption) for png, caption in drawn),
            known=pairs(self._known()),
            asked=pairs(self._asked()),
            came=pairs(self._came()),
            software=pairs(
                (name, f"{value} (report made with {self.made_with.get(name, '-')})")
                for name, value in self.created_with.items()
            ),
            definition=escape(json.dumps(self._definition(), indent=1, ensure_ascii=False)),
            whole="The study (JSON)" if self._many else "The study in full (JSON)",
            time=escape(status.time),
            script=script() if self._many else "",
        )

    @property
    def _many(self) -> bool:
        """Whether there are many arms, so that tables show some of them at a time."""
        return len(self.status.arms) > MANY_ARMS

    def _verdict(self, verdict: Verdict) -> dict[str, Any]:
        """Returns a verdict, JSON-ready; with categories, it has numbers for each category instead of each arm."""
        document: dict[str, Any] = plain(verdict)
        graph = categories_in(self.definition)
        if graph is not None:
            accounts, candidates = np.array([document.pop("lacking")]), document.pop("candidates")
            of_arm = graph.of_arm[: accounts.size]  # later arms, and perhaps categories, had not joined yet
            most = most_lacking(accounts, of_arm)[0]
            left = np.bincount(of_arm[candidates], minlength=most.size)
            document["by_category"] = {
                name: {"candidates": number, "lacking": lacks}
                for name, number, lacks in zip(graph.categories, left.tolist(), most.tolist(), strict=False)
            }
        return document

    def _definition(self) -> dict[str, Any]:
        """Returns the definition; with many arms, without their labels and categories, which are in the table."""
        document = self.definition.as_dict()
        if self._many:
            instance = document["instance"]
            for name in ("labels", "categories"):
                if isinstance(instance.get(name), list):
                    instance[name] = f"{len(instance[name]):,}, in the table of options"
        return document

    def _categories(self) -> str:
        if self.status.categories is None:
            return ""
        words = "* has the option recommended. " if self.status.best is not None else ""
        if self.status.candidates:
            words += "May be best: how many of its options may be the best. "
        words += (
            "Its best: the option with the best estimate of those that may be best; estimate and interval are of it."
        )
        if self.status.candidates:
            words += " Least account: the account against the option that is furthest from being out."
        return "<h2>Categories</h2>\n" + _shown(categories_of(self.status)) + paragraph(words)

    def _rows(self, made: Callable[[Status, Sequence[ArmStatus]], TextTable]) -> str:
        arms = self.status.listed if self._many else self.status.ranked
        return _shown(made(self.status, arms), [arm.category for arm in arms if arm.category is not None])

    def _about_arms(self) -> str:
        status = self.status
        words = ["The best estimate first."]
        if self._many and status.candidates:
            words = ["First the recommended option, then those that may be best, then the others, by their estimates."]
        if status.best is not None:
            words.append(f"* is the answer{'' if status.state == 'decided' else ' as it would be now'}.")
        words.append(
            "An estimate can differ from the average of the option's results, because it also uses the results of "
            + ("neighbours in the graph." if status.categories is None else "other options of its category.")
        )
        words.append(status.about_intervals)
        if any(arm.behind is not None for arm in status.arms):
            words.append(
                'Behind the best: how much better the option marked "*" is, by the estimates; the interval is from the '
                "items that both were tried on. These intervals hold, for all pairs and times at once, at a further "
                f"risk of {status.delta:g}."
            )
        return " ".join(words)

    def _compared(self, control: str) -> str:
        status = self.status
        words = status.about_intervals
        if status.has_intervals:
            source = "follow from the intervals of the means"
            if status.controlled or status.items is not None:
                source = "are from " + ("bets on them" if status.controlled else "the items that both were tried on")
            words = (
                f"A difference {'above' if status.goal == 'max' else 'below'} 0 is good. The limits {source}: all hold "
                f"together, at all times at once, at a risk of {status.delta:g}. A lift is given if the interval of "
                "the control is above 0. Open: the limits are on both sides of 0. The answer does not depend on these "
                "limits: a study can decide while comparisons are open."
            )
        heading = f'Against the control "{control}"'
        return f"<h2>{escape(heading)}</h2>\n" + self._rows(comparisons_of) + paragraph(words)

    def _asked(self) -> Iterable[tuple[str, str]]:
        status, problem = self.status, self.definition.instance.problem
        extreme = "largest" if status.goal == "max" else "least"
        yield "question", f"which of {problem.n_arms:,} options has the {extreme} mean outcome?"
        yield "risk delta", f"{status.delta:g}"
        yield "tolerance", f"{problem.tolerance:g}"
        graph = f"{in_words(problem.graph.n_edges, 'edge')}, {in_words(problem.graph.n_components, 'component')}"
        if (found := status.categories) is not None:
            graph = f"{len(found):,} categor{'y' if len(found) == 1 else 'ies'}, whose options are alike"
        yield "graph", graph
        yield "smoothness R", _smoothness(problem)
        yield "noise", problem.noise.described()
        if problem.items is not None:
            yield "items", problem.items.described()
        yield "stopping rule", f"{RULE} (risk proved; {self.reference})"

    def _known(self) -> Iterable[tuple[str, str]]:
        status = self.status
        yield "state", status.state
        yield "best option" + ("" if status.state == "decided" else " so far"), status.best or "-"
        waiting = f", {status.unprocessed:,} of them not yet processed" if status.unprocessed else ""
        yield "results", f"{status.results:,}{waiting}"
        if status.candidates is not None and status.state != "inconsistent":
            few = len(status.candidates) <= MOST_NAMED
            yield "may be best", ", ".join(status.candidates) if few else f"{len(status.candidates):,} options"
        if status.control is not None:
            yield f'against "{status.control}"', status.compared
        yield "evidence", status.evidence
        if status.items is not None:
            yield "items", status.items.described
        yield "do the data agree with R?", status.agreement
        if status.state == "running":
            unknown = "not known yet, or options look tied"
            yield "trials to come (forecast)", unknown if status.remaining is None else f"about {status.remaining:,.0f}"

    def _came(self) -> Iterable[tuple[str, str]]:
        for time, what, who in self.by_hand:
            yield what, f"{as_time(time)}, by {who}"
        if self.status.joined:
            yield "options", self.status.joined
        if self.first is not None and self.last is not None:
            yield "results told", f"{as_time(self.first)} to {as_time(self.last)}"
        yield "tickets", ", ".join(f"{count:,} {what}" for what, count in self.tickets.items())
        for worker, count in self.workers.items():
            yield f"worker {worker or '(unnamed)'}", in_words(count, "result")
        for origin, count in self.origins.items():
            yield f"without ticket: {origin}", in_words(count, "result")


def _shown(content: TextTable, kinds: Sequence[str] = ()) -> str:
    return table(*content) if len(content.rows) <= MANY_ARMS else paged(*content, kinds, "category")


def _smoothness(problem: Problem) -> str:
    if problem.unstructured and math.isinf(problem.radii.max()):
        return "inf: the graph is not used"
    return problem.described_R().removeprefix("R = ")
