"""The record of a study: what was asked, what is known, how it came about. As JSON, or as one page with its pictures
inside."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralbai.html import SCRIPT, paged, pairs, paragraph, table
from spectralbai.instance import Instance
from spectralbai.problem import Problem
from spectralbai.software import software
from spectralbai.study.by_category import lacking_of, most_lacking
from spectralbai.study.definition import Definition
from spectralbai.study.pictures import STARS, pictures_of_many
from spectralbai.study.records import MOST_NAMED, Check, Records, Snapshot, as_time, in_words
from spectralbai.study.status import MANY_ARMS, Status, categories_in, status_of
from spectralbai.study.tables import Table, arms_of, categories_of, comparisons_of

if TYPE_CHECKING:
    from spectralbai.study.status import ArmStatus
    from spectralbai.study.study import Study

FORMAT = "spectralbai-report/2"


@dataclass(frozen=True, eq=False)
class Report:
    """Everything one would attach to a decision.

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
    """When the first and the last result were told."""
    workers: dict[str, int]
    """Results by worker."""
    origins: dict[str, int]
    """Results told without a ticket, by origin."""
    tickets: dict[str, int]
    """Tickets given, told and given back."""
    checks: tuple[Check, ...]
    reference: str
    """Where the stopping rule comes from."""
    created_with: dict[str, str]
    made_with: dict[str, str]

    @classmethod
    def of(cls, study: Study, at: Snapshot, records: Records, control: int | None) -> Report:
        """Returns the report of a study at an instant, its arms compared with the arm `control`."""
        from spectralbai.stopping import RULES

        worker_of = {ticket.id: ticket.worker for ticket in records.tickets}
        told = records.observations
        return cls(
            study.definition,
            status_of(study, at, control),
            study.created,
            told[0].told if told else None,
            told[-1].told if told else None,
            dict(Counter(worker_of[each.ticket] for each in told if each.ticket is not None)),
            dict(Counter(each.origin for each in told if each.origin is not None)),
            {
                "given": len(records.tickets),
                "told": sum(each.ticket is not None for each in told),
                "abandoned": sum(each.abandoned is not None for each in records.tickets),
                "pending": len(at.pending),
            },
            at.checks,
            RULES[study.definition.stopping].reference,
            study.versions,
            software("SQLAlchemy"),
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
            "status": self.status.as_dict(),
            "checks": [self._check(check) for check in self.checks],
            "created_with": self.created_with,
            "made_with": self.made_with,
        }

    def as_html(self) -> str:
        """Returns one page that needs nothing else. All that users typed is escaped; there is no script in it, unless
        there are many arms, whose table then turns its pages by one."""
        status = self.status
        return PAGE.format(
            title=escape(status.name),
            state=status.state,
            answer=escape(" ".join((status.answer, *status.advice))),
            categories=self._categories(),
            arms=self._rows(arms_of) + paragraph(self._about_arms()),
            compared="" if status.control is None else self._compared(status.control),
            pictures="".join(_figure(png, caption) for png, caption in self._pictures()),
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
            script=SCRIPT if self._many else "",
        )

    @property
    def _many(self) -> bool:
        """Whether tables show a page of arms at a time."""
        return len(self.status.arms) > MANY_ARMS

    def _check(self, check: Check) -> dict[str, Any]:
        """Returns a check, JSON-ready; where there are categories, with a number for each of them in place of one for
        each arm."""
        graph = categories_in(self.definition)
        if graph is None or check.candidates is None or check.lacking is None:
            return dict(vars(check))
        left = np.bincount(graph.of_arm[list(check.candidates)], minlength=graph.n_components)
        most = most_lacking(np.array([check.lacking]), graph.of_arm)[0]
        return {
            "samples": check.samples,
            "arm": check.arm,
            "statistic": check.statistic,
            "threshold": check.threshold,
            "by_category": {
                name: {"candidates": number, "lacking": lacks}
                for name, number, lacks in zip(graph.categories, left.tolist(), most.tolist(), strict=True)
            },
        }

    def _definition(self) -> dict[str, Any]:
        """Returns the definition; without what its tables show of every one of many arms."""
        document = self.definition.as_dict()
        if self._many:
            instance = document["instance"]
            for name in ("labels", "categories"):
                if isinstance(instance.get(name), list):
                    instance[name] = f"{len(instance[name]):,}, in the table of arms"
        return document

    def _categories(self) -> str:
        if self.status.categories is None:
            return ""
        content = categories_of(self.status)
        shown = table(*content) if len(content.rows) <= MANY_ARMS else paged(*content)
        words = "* has the arm recommended. " if self.status.best is not None else ""
        if self.status.candidates:
            words += "May be best: how many of its arms. "
        words += "Its best: of those that may be best, the arm of the best estimate; estimate and interval are of it."
        if self.status.candidates:
            words += " Least account: of the arm in it that is furthest from being out."
        return "<h2>Categories</h2>\n" + shown + paragraph(words)

    def _rows(self, made: Callable[[Status, Sequence[ArmStatus]], Table]) -> str:
        """Returns a table of the arms."""
        status = self.status
        if not self._many:
            return table(*made(status, status.ranked))
        kinds = [arm.category for arm in status.listed if arm.category is not None]
        return paged(*made(status, status.listed), kinds, "category")

    def _about_arms(self) -> str:
        status = self.status
        words = ["The best estimate first."]
        if self._many and status.candidates:
            words = ["First the arm recommended, then those that may be best, then the others, by their estimates."]
        if status.best is not None:
            words.append(f"* is the answer{'' if status.state == 'decided' else ' as it would be now'}.")
        words.append(
            "An estimate differs from what its own results say on average where "
            + (
                "neighbours in the graph inform it."
                if status.categories is None
                else "others of its category inform it."
            )
        )
        words.append(self._about_intervals())
        return " ".join(words)

    def _compared(self, control: str) -> str:
        status = self.status
        words = self._about_intervals()
        if status.has_intervals:
            words = (
                f"A difference {'above' if status.goal == 'max' else 'below'} 0 is good. The limits follow from the "
                f"intervals of the means: all hold together, at all times at once, at a risk of {status.delta:g}. A "
                "lift is given where the mean of the control is above 0 for sure. Open: the limits are on both sides "
                "of 0. The answer does not rest on these limits, and may be decided all the same."
            )
        heading = f'Against the control "{control}"'
        return f"<h2>{escape(heading)}</h2>\n" + self._rows(comparisons_of) + paragraph(words)

    def _asked(self) -> Iterable[tuple[str, str]]:
        status, problem = self.status, self.definition.instance.problem
        yield (
            "question",
            f"which of {problem.n_arms:,} arms has the {'largest' if status.goal == 'max' else 'least'} mean outcome?",
        )
        yield "risk delta", f"{status.delta:g}"
        yield "tolerance", f"{problem.tolerance:g}"
        categories = status.categories
        yield (
            "graph",
            f"{in_words(problem.graph.n_edges, 'edge')}, {in_words(problem.graph.n_components, 'component')}"
            if categories is None
            else f"{len(categories):,} categor{'y' if len(categories) == 1 else 'ies'}, whose arms are alike",
        )
        yield "smoothness R", _smoothness(problem)
        yield "noise", problem.noise.described()
        yield (
            "stopping rule",
            f"{status.stopping} ({'risk proved' if status.proved else 'risk NOT proved'}; {self.reference})",
        )

    def _known(self) -> Iterable[tuple[str, str]]:
        status = self.status
        yield "state", status.state
        yield "best arm" + ("" if status.state == "decided" else " so far"), status.best or "-"
        yield (
            "results",
            f"{status.results:,}" + (f", of which {status.unweighed:,} not weighed yet" if status.unweighed else ""),
        )
        if status.candidates is not None and status.state != "inconsistent":
            few = len(status.candidates) <= MOST_NAMED
            yield "may be best", ", ".join(status.candidates) if few else f"{len(status.candidates):,} arms"
        if status.control is not None:
            yield f'against "{status.control}"', status.compared
        yield "evidence", status.evidence
        yield "do the data agree with R?", status.agreement
        if status.state == "running":
            unknown = "cannot be told yet, or arms look tied"
            yield "trials to come (forecast)", unknown if status.remaining is None else f"about {status.remaining:,.0f}"

    def _came(self) -> Iterable[tuple[str, str]]:
        yield "created", as_time(self.created)
        if self.status.joined:
            yield "arms", self.status.joined
        if self.first is not None and self.last is not None:
            yield "results told", f"{as_time(self.first)} to {as_time(self.last)}"
        yield "tickets", ", ".join(f"{count:,} {what}" for what, count in self.tickets.items())
        for worker, count in self.workers.items():
            yield f"worker {worker or '(unnamed)'}", in_words(count, "result")
        for origin, count in self.origins.items():
            yield f"without ticket: {origin}", in_words(count, "result")

    def _pictures(self) -> Iterable[tuple[bytes, str]]:
        """Yields (PNG, caption)."""
        from spectralbai import plot

        status, instance = self.status, self.definition.instance
        if not status.results:
            return
        if self._many:
            yield from pictures_of_many(status, self.definition, self.checks, self._about_intervals())
            return
        labels, ranked = instance.labels, status.ranked
        names = [arm.label for arm in ranked]
        likely = {*(status.candidates or ()), status.control}
        named = [row for row, name in enumerate(names) if name in likely]
        estimate, low, high, omega = (
            _floats(getattr(arm, name) for arm in ranked) for name in ("estimate", "low", "high", "omega")
        )
        if np.isfinite(estimate).all():
            leader = names[0] if status.best is None else status.best
            star = STARS[status.state]
            ax = plot.plot_estimates(
                names,
                estimate,
                low,
                high,
                names.index(leader),
                named=named,
                control=None if status.control is None else names.index(status.control),
                rates=status.rates,
                star_is=star,
            )
            base = "" if status.control is None else f' The dashed line is the control "{status.control}".'
            yield plot.as_png(ax), f"Estimated mean outcomes. {self._about_intervals()}{base}"
            place = {label: arm for arm, label in enumerate(labels)}
            means = np.empty(len(labels))
            means[[place[name] for name in names]] = estimate
            ax = plot.plot_graph(
                Instance(instance.problem, means, labels),
                [arm.results for arm in status.arms],
                best=place[leader],
                named=[place[names[row]] for row in named],
                area_is="share of the results",
                colour_is="estimated mean",
                star_is=star,
            )
            yield plot.as_png(ax), "The graph, coloured by the estimates."
        yield (
            plot.as_png(plot.plot_shares(names, [arm.results for arm in ranked], omega, named=named)),
            "How the trials were shared.",
        )
        raced = [check for check in self.checks if check.lacking is not None]
        if raced:
            tolerant = instance.problem.tolerance > 0
            lacking = lacking_of(raced, [arm.withdrawn for arm in status.arms], leaders=tolerant)
            best = None if status.best is None else labels.index(status.best)
            # With a tolerance an arm need not be out: to be beaten by whoever leads is enough.
            end = "beaten" if tolerant else "out"
            ax = plot.plot_race(
                [check.samples for check in raced],
                lacking,
                labels,
                status.delta,
                best,
                end_is=end,
            )
            caption = f"The race: an arm is {end} when the account against it reaches the line."
            if status.consistent is False:
                caption += " But the data contradict R, and nothing is claimed."
            yield plot.as_png(ax), caption
        elif self.checks:
            samples = [check.samples for check in self.checks]
            statistic, threshold = (
                _floats(getattr(check, name) for check in self.checks) for name in ("statistic", "threshold")
            )
            ax = plot.plot_evidence(samples, statistic, threshold, status.stopped_at, status.state == "decided")
            yield plot.as_png(ax), "Evidence over time."

    def _about_intervals(self) -> str:
        status = self.status
        if status.has_intervals:
            return f"All intervals hold, at all times at once, at a risk of {status.delta:g}."
        if status.consistent is False:
            return "The data contradict R, and nothing is claimed about the means."
        return (
            "There are no intervals yet: betting has them from the first result on, mixture once one arm leads."
            if status.proved
            else "This rule has no intervals."
        )


def _smoothness(problem: Problem) -> str:
    if problem.unstructured and math.isinf(problem.radii.max()):
        return "inf: the graph is not used"
    return problem.described_R().removeprefix("R = ")


def _floats(values: Iterable[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _figure(png: bytes, caption: str) -> str:
    data = b64encode(png).decode()
    return (
        f'<figure><img alt="{escape(caption)}" '
        f'src="data:image/png;base64,{data}"><figcaption>{escape(caption)}</figcaption></figure>\n'
    )


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="spectralbai">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; margin-bottom: .5rem; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ddd; overflow-wrap: anywhere; }}
p, figcaption, .pairs {{ max-width: 50rem; overflow-wrap: anywhere; }}
.answer {{ max-width: none; padding: .8rem 1rem; border-left: .4rem solid #0072B2; background: #f2f7fb;
font-size: 1.1rem; overflow-wrap: anywhere; }}
.answer.decided {{ border-color: #009E73; background: #eff8f5; }}
.answer.inconsistent {{ border-color: #D55E00; background: #fdf3ec; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .2rem .8rem .2rem 0; vertical-align: top; }}
th {{ font-weight: 600; }}
.pairs th {{ min-width: 6rem; max-width: 14rem; }}
.numbers {{ font-size: .9rem; }}
.numbers th, .numbers td {{ border-bottom: 1px solid #eee; white-space: nowrap; }}
.numbers thead th {{ position: sticky; top: 0; background: white; }}
.numbers th:first-child, .numbers td:first-child {{ position: sticky; left: 0; background: white; white-space: normal;
min-width: 7rem; max-width: min(28rem, 40vw); overflow-wrap: anywhere; }}
.numbers th:first-child {{ z-index: 1; }}
.box {{ max-height: 40rem; }}
.paged .box {{ max-height: none; }}
.controls {{ display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center; margin: .8rem 0; }}
.controls[hidden] {{ display: none; }}
.controls label {{ display: flex; gap: .5rem; align-items: center; min-width: 0; max-width: 100%; }}
.controls input, .controls select, .controls button {{ font: inherit; padding: .3rem .6rem; min-width: 0; }}
.controls select {{ max-width: 16rem; }}
.where {{ color: #666; font-size: .9rem; font-variant-numeric: tabular-nums; }}
.box + p, .paged + p, figcaption, footer {{ color: #666; font-size: .9rem; }}
.pictures {{ display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-start; }}
figure {{ margin: 1rem 0; flex: 1 1 30rem; max-width: 36rem; min-width: 0; }}
img {{ max-width: 100%; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; background: #f7f7f7; padding: .8rem; }}
@media print {{ body {{ margin: 0; max-width: none; }} .box {{ max-height: none; }} .controls {{ display: none; }} }}
@media print {{ figure, tr {{ break-inside: avoid; }} }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="answer {state}">{answer}</p>
{categories}<h2>Arms</h2>
{arms}
{compared}
<div class="pictures">
{pictures}</div>
<h2>What is known</h2>
{known}
<h2>What was asked</h2>
{asked}
<h2>How it came about</h2>
{came}
<h2>Software</h2>
{software}
<details><summary>{whole}</summary><pre>{definition}</pre></details>
<footer>spectralbai, {time}</footer>
{script}</body>
</html>
"""
