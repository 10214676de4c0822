"""The status of a study: decision, evidence, estimates with intervals, forecast, tickets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from spectralbai.checks import did_you_mean
from spectralbai.documents import check_format, number, plain
from spectralbai.errors import NotFound
from spectralbai.journal.entries import Ticket
from spectralbai.report.by_category import CategoryStatus, summarised
from spectralbai.report.by_items import ItemsStatus
from spectralbai.report.comparison import Comparison, Mean
from spectralbai.report.sentences import advice_of, against_control, answer_of, evidence_of
from spectralbai.report.tables import arms_of, categories_of, comparisons_of
from spectralbai.text import html
from spectralbai.text.wording import MOST_NAMED, in_words
from spectralbai.verdict import Verdict

if TYPE_CHECKING:
    from spectralbai.journal.definition import Goal

FORMAT = "spectralbai-status/3"
MOST_ROWS = 30
"""Most arms, and most categories, that a notebook shows."""
MANY_ARMS = 100
"""With more arms than this, a terminal and a page do not show all at once."""
TOP = 20
"""How many arms are shown if there are many."""


@dataclass(frozen=True)
class ArmStatus:
    """One arm of a study. Unknown numbers are None.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("arms", sb.Instance(problem, labels=["old", "new"]))
        >>> study.tell_many((ticket, {"old": 1.0, "new": 3.0}[ticket.label]) for ticket in study.ask(2))
        1
        >>> [(arm.label, arm.results, arm.mean) for arm in study.status().arms]
        [('old', 1, 1.0), ('new', 0, None)]
        >>> study.close()
    """

    label: str
    results: int
    share: float
    """Share of all results."""
    pending: int
    mean: float | None
    """The plain average of its results; None before the first."""
    hits: int | None
    """If there are only two possible outcomes, how many of its results were the larger one; otherwise None."""
    estimate: float | None
    """Estimate of the mean outcome: the smooth means closest to all results."""
    low: float | None
    high: float | None
    """The intervals of all arms hold at all times at once with probability 1 - delta; see `policy.Estimates`."""
    omega: float | None
    """Its share of future pulls, as planned when rules were last read; None before the first reading, and once no more
    pulls are planned."""
    out_at: int | None
    """Number of results when it was eliminated. None for candidates, for rules that do not eliminate arms, and if the
    data contradict R."""
    lacking: float | None
    """What the account against it still lacks, in nats; 0 once it is beaten. None for rules without accounts, for the
    recommended arm, before the first reading, and if the data contradict R."""
    failures: int
    """Number of its trials that failed."""
    joined_at: int | None
    """Number of results when it joined; None for arms that were there from the beginning."""
    withdrawn: bool
    """Whether it was withdrawn: it is not tried any more, and never the answer."""
    against: Comparison | None
    """Its comparison with the control; None for the control itself, and if there is no control."""
    behind: tuple[float | None, float | None, float | None] | None
    """Where trials have items, how much better the recommended arm is, and the ends of an interval for that, from the
    items that both were tried on; these intervals have a risk of delta of their own, for all pairs and times at once.
    None for the recommended arm, where trials have no items, and if the data contradict R."""
    category: str | None
    """Its category; None in a study without categories."""

    @property
    def known(self) -> Mean:
        """The estimate of its mean outcome, with the ends of the interval."""
        return self.estimate, self.low, self.high

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> ArmStatus:
        """Returns the arm that `as_dict` wrote."""
        against = None if d["against"] is None else Comparison(**d["against"])
        behind = None if d["behind"] is None else tuple(d["behind"])
        return cls(**{**{field.name: d[field.name] for field in fields(cls)}, "against": against, "behind": behind})

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready."""
        return {**vars(self), "against": None if self.against is None else asdict(self.against)}


@dataclass(frozen=True)
class Status:
    """A study at one instant.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("status", sb.Instance(problem, labels=["old", "new"]))
        >>> status = study.status()
        >>> status.state, status.results, status.best
        ('running', 0, None)
        >>> study.close()
    """

    name: str
    time: str
    state: Literal["running", "decided", "ended", "inconsistent"]
    """"ended": the budget is used up or the time is over, and nothing is decided. "inconsistent": the data contradict
    R, at risk delta; then nothing is decided."""
    goal: Goal
    delta: float
    R: float | tuple[float, ...] | None
    """One R for all components, or one for each; None if the graph is not used: R is infinite, or there is no edge."""
    tolerance: float
    best: str | None
    """Label of the recommended arm: the answer if the study has decided, otherwise what it would answer now; None
    before there is an estimate, and if the data contradict R."""
    results: int
    void: int
    """Number of results that were taken out because they were wrong; the budget counts them, and `results` does not."""
    corrected: tuple[str, ...]
    """What was corrected or taken out: origins, such as days, and tickets, in the order of the corrections."""
    lapsed: int
    """Number of tickets that ran out without a result, and were not given back."""
    checks: tuple[str, ...]
    """What is odd about counts, such as days: sentences that say what to do."""
    budget: int | None
    """Number of trials after which the study ends, if there is a limit."""
    until: str | None
    """Time at which the study ends, if there is a limit."""
    by_hand: bool
    """Whether somebody stopped it; `until` is then when."""
    room: float | None
    """How many trials can still be done: in the budget, or until the end at the pace so far; None without a limit."""
    unprocessed: int
    """Number of results told that are not yet processed, because a worker is still computing."""
    sealed: int
    """Number of results that wait until trials of an earlier block are told: rules do not look at them before."""
    verdict: Verdict
    """What the rule said; the accounts, `lacking`, are those of the arms."""
    consistent: bool | None
    """Whether the data agree with R so far, including those told after a decision; None if the rule does not test R, or
    not yet."""
    drifting: bool
    """Whether results of different blocks differ by more than noise, so that estimates are averages over time."""
    remaining: float | None
    """Forecast of the trials still needed, at the present estimate; None if it is too early or arms look tied."""
    items: ItemsStatus | None
    """How far the study is with its items; None if trials have none."""
    computing: bool
    """Whether the forecast, or also estimates and intervals, are missing because they are still being computed; only in
    a status that was asked for with `patience`."""
    rates: bool
    """Whether outcomes are 0 or 1, so that means are rates."""
    control: str | None
    """Label of the arm that the others are compared with, if any."""
    controlled: bool
    """Whether it is the study's own control: differences then have intervals from bets of their own."""
    arms: tuple[ArmStatus, ...]
    pending: tuple[Ticket, ...]

    @property
    def trials(self) -> int:
        """Number of results of trials: the budget is about these, not about outcomes known from elsewhere."""
        return self.results - (0 if self.items is None else self.items.known)

    @property
    def risk(self) -> float:
        """The proved bound on the probability of a wrong answer since arms last joined: delta, or 2 delta if arms were
        withdrawn (theory 12.15). It holds if joins do not depend on outcomes; withdrawals may depend on seen ones."""
        return min(2 * self.delta, 1.0) if any(arm.withdrawn for arm in self.arms) else self.delta

    @cached_property
    def candidates(self) -> tuple[str, ...] | None:
        """Labels of the arms that may still be best: with probability 1 - delta the best arm is among them at all times
        at once. None before the first reading, and if the data contradict R; empty if every arm was eliminated, which
        contradicts the hypotheses too."""
        left = self.verdict.candidates
        if left is None or (left and self.consistent is False):
            return None
        return tuple(self.arms[arm].label for arm in left)

    @property
    def answer(self) -> str:
        """What the study says, in a sentence or two: first how the best options compare with the study's control."""
        return " ".join(each for each in (against_control(self), answer_of(self)) if each)

    @property
    def advice(self) -> tuple[str, ...]:
        """Advice: on trials that hold up many results, a limit that is too small, options whose trials fail."""
        return tuple(advice_of(self))

    @property
    def evidence(self) -> str:
        """What is proved and what is missing, in words."""
        return evidence_of(self)

    @property
    def joined(self) -> str:
        """Which arms joined, and when, in words; empty if none did."""
        times: dict[int, list[str]] = {}
        for arm in self.arms:
            if arm.joined_at is not None:
                times.setdefault(arm.joined_at, []).append(arm.label)
        return "; ".join(
            (", ".join(labels) if len(labels) <= MOST_NAMED else f"{len(labels):,} options")
            + f" joined after {in_words(results, 'result')}"
            for results, labels in times.items()
        )

    def account(self, arm: ArmStatus) -> str:
        """Returns the state of the account against an arm, in words."""
        leads = arm.label == self.best and self.candidates is not None
        return self._account(arm.withdrawn, arm.out_at, arm.lacking, leads)

    def account_of(self, category: CategoryStatus) -> str:
        """Returns the state of the account that lacks most in a category, in words."""
        leads = category.best == self.best and bool(self.candidates)
        return self._account(category.withdrawn == category.arms, category.out_at, category.lacking, leads)

    def _account(self, withdrawn: bool, out_at: int | None, lacking: float | None, leads: bool) -> str:
        if withdrawn:
            return "withdrawn"
        if out_at is not None:
            return f"out at {out_at:,}"
        if lacking is None:
            return "leads" if leads else "-"
        return f"{math.exp(-lacking) / self.delta:.2g} of {1 / self.delta:.4g}" if lacking > 0 else "beaten"

    @property
    def agreement(self) -> str:
        """Whether the data agree with R, in words."""
        if self.consistent is not None:
            return "yes, so far" if self.consistent else "no: they contradict it"
        if self.R is None:
            return "not tested without a graph"
        if self.computing:
            return "being computed"
        return "not tested yet"

    def _place(self, arm: ArmStatus) -> float:
        """Returns what arms are sorted by, so that the best estimate is first and unknown ones are last."""
        return math.inf if arm.estimate is None else -arm.estimate if self.goal == "max" else arm.estimate

    @property
    def ranked(self) -> tuple[ArmStatus, ...]:
        """The arms, by their estimates, the best first; arms without an estimate come last, in their order."""
        return tuple(sorted(self.arms, key=self._place))

    @cached_property
    def listed(self) -> tuple[ArmStatus, ...]:
        """The arms in the order for long lists: the recommended one, then the other candidates, then the rest. In each
        part the best estimate comes first and, of equal estimates, the one with most results."""
        may_be = self._may_be_best

        def place(arm: ArmStatus) -> tuple[Any, ...]:
            left = may_be is None or arm.label in may_be
            return arm.label != self.best, not left, arm.withdrawn, self._place(arm), -arm.results

        return tuple(sorted(self.arms, key=place))

    @property
    def top(self) -> tuple[ArmStatus, ...]:
        """The arms shown at first: all, the best estimate first; of many, the first of `listed`, and the control."""
        if len(self.arms) <= MANY_ARMS:
            return self.ranked
        return self.listed[:TOP] + tuple(arm for arm in self.listed[TOP:] if arm.label == self.control)

    @cached_property
    def categories(self) -> tuple[CategoryStatus, ...] | None:
        """The categories, that of the recommended arm first, those without candidates last; None if there are none."""
        if self.arms[0].category is None:
            return None
        return tuple(summarised(self.listed, self.best, self._may_be_best))

    @property
    def _may_be_best(self) -> frozenset[str] | None:
        return None if self.candidates is None else frozenset(self.candidates)

    def select(self, category: str | None = None, search: str | None = None) -> tuple[ArmStatus, ...]:
        """Returns the arms of a category, or with a text in their labels (ignoring case), or both; as in `listed`."""
        if category is not None:
            if self.categories is None:
                raise NotFound(f'the study "{self.name}" has no categories; look for a part of a label instead')
            names = [each.name for each in self.categories]
            if category not in names:
                remedy = did_you_mean(category, names, "the status of the study lists its categories")
                raise NotFound(f'the study "{self.name}" has no category "{category}"; {remedy}')
        wanted = "" if search is None else search.casefold()
        return tuple(
            arm
            for arm in self.listed
            if (category is None or arm.category == category) and wanted in arm.label.casefold()
        )

    def about(self, shown: Sequence[ArmStatus]) -> str:
        """Returns a sentence that says which of all arms are shown."""
        of_all = f"{len(shown):,} of {len(self.arms):,} options"
        if len(self.arms) <= MANY_ARMS:
            return f"{of_all}, those with the best estimates."
        which = "the best estimates"
        if self.candidates:
            which = "the recommended one, those that may be best, then the others, by their estimates"
        return f"{of_all}: {which}{'' if self.control is None else '; and the control'}."

    @property
    def has_intervals(self) -> bool:
        """Whether there is an interval for some mean."""
        return any(arm.low is not None or arm.high is not None for arm in self.arms)

    @property
    def about_intervals(self) -> str:
        """What the intervals claim, or why there are none, in a sentence."""
        if self.computing and not self.has_intervals:
            return "The intervals are being computed."
        if self.has_intervals:
            return f"All intervals hold, at all times at once, at a risk of {self.delta:g}."
        if self.consistent is False:
            return "The data contradict R, and nothing is claimed about the means."
        return "There are no intervals yet: they begin with the first result."

    @property
    def compared(self) -> str:
        """How many arms are certainly better or worse than the control (at risk delta), in words."""
        if not self.has_intervals and not self.controlled:
            return "being computed" if self.computing else "not known without intervals"
        verdicts = [arm.against.verdict(self.goal) for arm in self.arms if arm.against is not None]
        counted = ", ".join(f"{verdicts.count(each):,} {each}" for each in ("better", "worse", "open"))
        return f"{counted} (all at once, at a risk of {self.delta:g})"

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        items = () if self.items is None else (self.items.described,)
        shown = [html.paragraph(each) for each in (self.answer, *self.advice, *items)]
        if self.categories is not None:
            table = categories_of(self)
            shown.append(html.table(table.headings, table.rows[:MOST_ROWS]))
            if len(table.rows) > MOST_ROWS:
                shown.append(html.paragraph(f"{MOST_ROWS} of {len(table.rows):,} categories."))
        arms = self.top[:MOST_ROWS]
        shown.append(html.table(*arms_of(self, arms)))
        if self.control is not None:
            shown.append(html.table(*comparisons_of(self, arms)))
        if len(arms) < len(self.arms):
            shown.append(html.paragraph(self.about(arms)))
        return "".join(shown)

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Status:
        """Returns the status that `as_dict` wrote with all arms; the times of its tickets are whole seconds."""
        check_format("the format of a status", d.get("format"), FORMAT, "install the version that the service has")
        R = d["R"]
        return cls(
            **{
                **{field.name: d[field.name] for field in fields(cls)},
                "R": tuple(map(number, R)) if isinstance(R, list) else R,
                "verdict": Verdict.from_dict(d["verdict"]),
                "corrected": tuple(d["corrected"]),
                "checks": tuple(d["checks"]),
                "items": None if d["items"] is None else ItemsStatus.from_dict(d["items"]),
                "arms": tuple(ArmStatus.from_dict(each) for each in d["arms"]),
                "pending": tuple(Ticket.from_dict(each) for each in d["pending"]),
            }
        )

    def as_dict(self, arms: Iterable[ArmStatus] | None = None) -> dict[str, Any]:
        """Returns everything, JSON-ready; if `arms` is given, only these arms, in the order of the study."""
        kept = None if arms is None else {arm.label for arm in arms}
        shown = [arm.as_dict() for arm in self.arms if kept is None or arm.label in kept]
        return {
            "format": FORMAT,
            "answer": self.answer,
            "advice": list(self.advice),
            "risk": self.risk,
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "R": plain(self.R),
            "verdict": self.verdict.as_dict(),
            "candidates": self.candidates,
            "categories": None if self.categories is None else [asdict(each) for each in self.categories],
            "items": None if self.items is None else {**asdict(self.items), "described": self.items.described},
            "arms": shown,
            "arms_not_shown": len(self.arms) - len(shown),
            "pending": [ticket.as_dict() for ticket in self.pending],
        }
