"""The definition of a study: its instance, risk, goal and limits, and their JSON form.

Everything is fixed when the study is created, except that more options may join and that it may be stopped.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.checks import (
    LARGEST_COUNT,
    check_arm,
    check_delta,
    check_integer,
    check_keys,
    check_number,
    check_time,
    check_words,
    did_you_mean,
)
from spectralbai.documents import check_format
from spectralbai.errors import InvalidInput, NotFound
from spectralbai.instance import Instance
from spectralbai.items import Items
from spectralbai.text.wording import MOST_NAMED, in_words

if TYPE_CHECKING:
    from spectralbai.policy import Policy, State

FORMAT = "spectralbai-study/4"

RULE = "betting"
"""The stopping rule that decides studies."""

SETTINGS = ("delta", "goal", "budget", "until", "failed_as", "stopped")
"""Fields that the JSON form holds as they are, in its order."""

SOMETIMES = ("control", "control_share", "lapse_as", "window")
"""Fields that the JSON form holds only if they are set."""

Goal = Literal["max", "min"]


class Known(NamedTuple):
    """The outcome of a pair that is known already."""

    outcome: float
    """In the user's units and sign."""
    origin: str
    """Where it comes from."""


def is_over(results: int, now: float, budget: int | None, until: float | None, stopped: float | None) -> bool:
    """Returns whether a study with these limits, and this many results now, is over."""
    if stopped is not None:
        return True
    return (budget is not None and results >= budget) or (until is not None and now >= until)


@dataclass(frozen=True, eq=False)
class Definition:
    """The question of a study: which arm of `instance` has the largest (or least) mean outcome, at risk `delta`?

    The policy always maximises. If the goal is "min", it is told outcomes multiplied by -1. Everything that people see,
    and everything on disk except the policy's state, has the user's sign.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("definition", sb.Instance(problem, labels=["old", "new"]))
        >>> study.definition.delta, study.definition.goal, study.definition.instance.labels
        (0.05, 'max', ('old', 'new'))
        >>> study.close()
    """

    instance: Instance
    delta: float
    goal: Goal = "max"
    budget: int | None = None
    """Number of trials after which the study ends even without a decision, if there is a limit."""
    until: float | None = None
    """Time at which it ends, in seconds since 1970, if there is a limit."""
    failed_as: float | None = None
    """The outcome that a failed trial counts as; if None, it does not count, and is handed out again."""
    stopped: float | None = None
    """When somebody stopped the study, if somebody did."""
    items: tuple[str, ...] | None = None
    """The names of the items in the order in which they are tried, if trials have items; None if that are any."""
    control: str | None = None
    """The label of the option that others are compared with by bets of their own, if there is one."""
    control_share: float | None = None
    """The least part of the trials that the control gets; if None, what its comparison needs."""
    lapse_as: float | None = None
    """The outcome that a ticket counts as which is not told within `window`; if None, it is handed out again."""
    window: float | None = None
    """Seconds after which a ticket lapses; it takes the place of the lease."""
    known: Mapping[tuple[int, int], Known] = field(default_factory=dict)
    """Outcomes of pairs of an arm and an item that are not tried, as they are known already; not part of the JSON
    form."""
    before: Definition | None = None
    """The definition before options last joined, if any did; not part of the JSON form."""

    def __post_init__(self) -> None:
        if not isinstance(self.instance, Instance):
            raise InvalidInput(f"`instance` must be a spectralbai.Instance, got {type(self.instance).__name__}")
        object.__setattr__(self, "delta", check_delta(self.delta))
        for label in self.instance.labels:
            if not label.isprintable() or label != label.strip():
                raise InvalidInput(f"a label must be one line without blanks at its ends, got {label!r}; rename it")
        if self.items is not None:
            object.__setattr__(self, "items", check_items(self.items, self.instance.problem.items))
        if not isinstance(self.goal, str) or self.goal not in ("max", "min"):
            raise InvalidInput(f"`goal` must be max or min, got {self.goal!r}")
        if self.budget is not None:
            check_integer("budget", self.budget, 1, LARGEST_COUNT)
        for name in ("until", "stopped"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_time(name, getattr(self, name)))
        if self.control is not None:
            self.check_arm(self.control)
        if self.control_share is not None and self.control is None:
            raise InvalidInput("`control_share` is that of the control; give `control` too, the label of an option")
        if (self.lapse_as is None) != (self.window is None):
            raise InvalidInput("`lapse_as` and `window` go together: what a ticket counts as, and after how long")
        if self.lapse_as is not None:
            noise = self.instance.problem.noise
            object.__setattr__(self, "lapse_as", noise.check_outcome("lapse_as", self.lapse_as) + 0.0)
            check_number("window", self.window, "a positive number of seconds", low=0.0, strict=True)
        if self.failed_as is not None:
            noise = self.instance.problem.noise
            object.__setattr__(self, "failed_as", noise.check_outcome("failed_as", self.failed_as))

    @property
    def sign(self) -> float:
        """The factor by which outcomes are multiplied before the policy is told them."""
        return 1.0 if self.goal == "max" else -1.0

    @cached_property
    def policy(self) -> Policy:
        """The policy: a race."""
        # Imported here, because it loads compiled code that most calls of `tell` do not need.
        from spectralbai.policy import SpectralRace

        problem = self.instance.problem
        if self.goal == "min":
            problem = replace(problem, noise=problem.noise.negated())
        if self.before is not None:
            return self.before.policy.joined(problem)
        control = None if self.control is None else self.check_arm(self.control)
        return SpectralRace(problem, self.delta, RULE, control=control, control_share=self.control_share)

    def start(self) -> State:
        """Returns the state of the policy before any result. The items of a list are numbered in the order in which
        they are tried, which was drawn when the study was created."""
        items = self.instance.problem.items
        return self.policy.init(0, None if items is None or items.n is None else range(items.n))

    @property
    def has_items(self) -> bool:
        """Whether options are tried on items."""
        return self.instance.problem.items is not None

    def item_name(self, item: int | None) -> str | None:
        """Returns the name of an item; of items without names, the number in the order of drawing, from 1 on."""
        if item is None:
            return None
        return str(item + 1) if self.items is None else self.items[item]

    def check_item(self, name: Any) -> int:
        """Returns the number of the item with that name; raises NotFound if there is none."""
        item = self._item_of.get(name) if isinstance(name, str) else None
        if item is None:
            names = self.items or ()
            remedy = did_you_mean(str(name), names, f'one is "{names[0]}"' if names else "its items have no names")
            raise NotFound(f'"{name}" is no item of this study; {remedy}')
        return item

    @cached_property
    def _item_of(self) -> dict[str, int]:
        return {name: item for item, name in enumerate(self.items or ())}

    @cached_property
    def rule(self) -> str:
        """The stopping rule and its version."""
        from spectralbai.stopping import RULES  # compiled code, as above

        return f"{RULE}/{RULES[RULE].version}"

    @cached_property
    def history(self) -> tuple[Definition, ...]:
        """The definitions at first and after each join; the last is this one."""
        return (self,) if self.before is None else (*self.before.history, self)

    def of(self, state: State) -> Definition:
        """Returns the definition that the study had at the time of that state."""
        return self.history[len(state.joined)]

    def with_known(self, pairs: Sequence[tuple[int, int, float]], origin: str) -> Definition:
        """Returns the definition when more pairs (arm, item, outcome) are known; those known before do not change."""
        origin = check_words("origin", origin, 100)
        new: dict[tuple[int, int], Known] = {}
        for arm, item, outcome in pairs:
            check_arm("arm", arm, self.instance.problem.n_arms)
            if self.items is None or not 0 <= item < len(self.items):
                raise InvalidInput(f"`item` must be the number of an item with a name, got {item}")
            try:
                value = self.check_outcome(outcome)
            except InvalidInput as error:
                raise InvalidInput(f'"{self.instance.labels[arm]}" on "{self.items[item]}": {error}') from None
            if new.setdefault((arm, item), Known(value, origin)).outcome != value:
                raise InvalidInput(
                    f'"{self.instance.labels[arm]}" has two different outcomes on "{self.items[item]}", '
                    f"{new[arm, item].outcome!r} and {value!r}; keep one"
                )
        return replace(self, known={**new, **self.known})

    def joined(self, instance: Instance) -> Definition:
        """Returns the definition after options have joined; `instance` has all options, the present ones first."""
        if not isinstance(instance, Instance):
            raise InvalidInput(f"`instance` must be a spectralbai.Instance, got {type(instance).__name__}")
        known, given = self.instance.labels, instance.labels
        there = set(given)
        for place, label in enumerate(known):
            if label not in there:
                raise InvalidInput(
                    f'the instance must hold all options, and "{label}" is missing; to remove options, withdraw them'
                )
            if given[place] != label:
                raise InvalidInput(
                    f'the present options must come first and in their order, got "{given[place]}" where "{label}" is '
                    "now; put new ones at the end"
                )
        if len(given) == len(known):
            raise InvalidInput(f"the instance must hold new options after the {len(known)} present ones, got none")
        new = replace(self, instance=instance, before=self)
        _ = new.policy  # making it raises InvalidInput if the noise or the tolerance changed
        return new

    @property
    def changes(self) -> str:
        """What changed when options last joined, in words."""
        assert self.before is not None
        then, now = self.before.instance.problem, self.instance.problem
        new = self.instance.labels[then.n_arms :]
        words = [f"{in_words(len(new), 'option')} joined" + (f" ({', '.join(new)})" if len(new) <= MOST_NAMED else "")]
        for what in ("component", "edge"):
            counts = [getattr(each.graph, f"n_{what}s") for each in (then, now)]
            if counts[0] != counts[1]:
                words.append(f"{in_words(counts[0], what)} became {counts[1]:,}")
        if then.described_R() != now.described_R():
            words.append(f"{then.described_R()} became {now.described_R()[4:]}")
        return "; ".join(words)

    def over(self, results: int, now: float) -> bool:
        """Returns whether the study was stopped, or has reached its budget or its end, with this many results now."""
        return is_over(results, now, self.budget, self.until, self.stopped)

    def check_outcome(self, outcome: Any) -> float:
        """Returns an outcome as a number; raises InvalidInput if the instance does not allow it."""
        return self.instance.problem.noise.check_outcome("outcome", outcome) + 0.0  # never -0.0, which databases lose

    def check_arm(self, label: Any) -> int:
        """Returns the arm with that label; raises NotFound if there is none."""
        arm = self._arm_of.get(label) if isinstance(label, str) else None
        if arm is None:
            remedy = did_you_mean(str(label), self.instance.labels, f'the first is "{self.instance.labels[0]}"')
            raise NotFound(f'"{label}" is no label of an option of this study; {remedy}')
        return arm

    @cached_property
    def _arm_of(self) -> dict[str, int]:
        return {label: arm for arm, label in enumerate(self.instance.labels)}

    def rewards(self, outcomes: list[float]) -> Vector:
        """Returns outcomes in the form that the policy is told."""
        return self.sign * np.array(outcomes, dtype=np.float64)

    def as_dict(self) -> dict[str, Any]:
        """Returns the JSON form, spectralbai-study/4; items only where there are some with names, and a control only if
        there is one."""
        settings = {name: getattr(self, name) for name in SETTINGS}
        items = {} if self.items is None else {"items": list(self.items)}
        control = {name: getattr(self, name) for name in SOMETIMES if getattr(self, name) is not None}
        return {"format": FORMAT, **settings, "instance": self.instance.as_dict(), **items, **control}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Definition:
        """Returns the definition that `as_dict` wrote."""
        check_format("the format of a study", d.get("format") if isinstance(d, Mapping) else d, FORMAT)
        check_keys("a study", d, ("format", *SETTINGS, "instance", "items", *SOMETIMES), (*SETTINGS, "instance"))
        settings = {name: d[name] for name in SETTINGS} | {name: d.get(name) for name in SOMETIMES}
        return cls(Instance.from_dict(d["instance"]), **settings, items=d.get("items"))


def named_items(names: Any, items: Items | None) -> tuple[str, ...] | None:
    """Returns these names of items, checked; without names, the items are called 1, 2, and so on. None if there are no
    items, or if they are endless."""
    if names is None:
        if items is None or items.available is None:
            return None
        names = [str(number) for number in range(1, items.available + 1)]
    return check_items(names, items)


def check_items(names: Any, items: Items | None) -> tuple[str, ...]:
    """Returns the names of items as a tuple; raises InvalidInput if they are not those of these items."""
    if items is None or items.available is None:
        described = "has none" if items is None else "has fresh ones without end"
        raise InvalidInput(f"`items` must be names of the items of the problem, which {described}; see sb.Items")
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"`items` must be a list of names, got {reprlib.repr(names)}")
    if len(names) != items.available:
        raise InvalidInput(f"`items` must be {items.available:,} names, as the problem says, got {len(names):,}")
    first: dict[str, int] = {}
    for place, name in enumerate(names):
        if not name.isprintable() or name != name.strip() or not name:
            raise InvalidInput(f"the name of an item must be one line without blanks at its ends, got {name!r}")
        if first.setdefault(name, place) != place:
            raise InvalidInput(f'the item "{name}" is there twice; give each its own name')
    return tuple(names)
