"""What a status says in sentences: the answer, the evidence, and advice."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from spectralbai.report.comparison import Comparison
from spectralbai.text.decimals import Decimals
from spectralbai.text.wording import MOST_NAMED, R_in_words, difference_in_words, in_full, in_words

if TYPE_CHECKING:
    from spectralbai.report.status import ArmStatus, Status

MANY_SEALED = 50
"""So many results that wait for trials of an earlier block, and a tenth of all, bring advice."""
MANY_LAPSED = 10
"""So many tickets without a result may be a sign that only successes are told."""
MANY_FAILURES = 3
"""After this many failed trials of an option, people are advised to withdraw it."""


def answer_of(status: Status) -> str:
    """Returns what the study says, in a sentence or two."""
    by_state = {"inconsistent": _contradicted, "decided": _decided, "ended": _ended, "running": _running}
    return by_state[status.state](status)


def against_control(status: Status) -> str:
    """Returns how the recommended option, or else the best of the others, compares with the study's own control; empty
    if it has none, or if nothing is known."""
    better = [arm for arm in status.ranked if arm.against is not None and arm.against.verdict(status.goal) == "better"]
    shown = next((arm for arm in better if arm.label == status.best), None) or next(iter(better), None)
    known = any(arm.against is not None and arm.against.difference is not None for arm in status.arms)
    if not status.controlled or status.consistent is False or not known:
        return ""
    if shown is None or shown.against is None:
        ended = "" if status.state == "running" else " It cannot be told with these results."
        return f'No option is known to be better than the control "{status.control}" yet.{ended}'
    gap = shown.against
    number = Decimals.of([(gap.difference, gap.difference_low, gap.difference_high)], "points" if status.rates else "")
    by = number.interval(*sorted((abs(gap.difference_low or 0.0), abs(gap.difference_high or 0.0))))
    if gap.difference_low is None or gap.difference_high is None:
        by = f"at least {number(abs(gap.difference_low or gap.difference_high or 0.0))}"
    lift = ""
    if gap.lift is not None:
        percent = Decimals.of([(gap.lift, gap.lift_low, gap.lift_high)], "%", signed=True)
        lift = f", a lift of {percent.interval(gap.lift_low, gap.lift_high)}"
    others = f"; so {'is' if len(better) == 2 else 'are'} {in_words(len(better) - 1, 'other option')}"
    return (
        f'"{shown.label}" is better than the control "{status.control}" by {by}'
        f"{' percentage points' if status.rates else ''}{lift}{others if len(better) > 1 else ''}; the probability "
        f"that any such statement is wrong is at most {status.delta:g}."
    )


def _contradicted(status: Status) -> str:
    after = in_words(status.verdict.stopped_at or 0, "result")
    if status.candidates == ():
        return (
            f"Every option is eliminated after {after}, which has probability at most {status.delta:g} if all "
            "hypotheses hold. Nothing is decided: perhaps outcomes change with time, or the noise is larger than "
            "promised. Find out why, and start a new study."
        )
    return (
        f"The data contradict {_smoothness(status)}. This was found after {after}; if R were right, it would happen "
        f"with probability at most {status.delta:g}. Nothing is decided: the means are rougher than promised. Start a "
        "new study with a larger R, or with R = inf; you can import these results there, to inform its plans."
    )


def _decided(status: Status) -> str:
    after = in_words(status.verdict.stopped_at or 0, "result")
    extreme = "largest" if status.goal == "max" else "least"
    of_left = " of the options not withdrawn" if status.risk > status.delta else ""
    near = difference_in_words(status.tolerance, (0.0, 1.0) if status.rates else None)
    within = f", or is within {near} of it" if status.tolerance else ""
    risk = f"The probability that this is wrong is at most {status.risk:g}."
    if status.consistent is False:
        risk += f" But results told since contradict {_smoothness(status)}, so this risk is no longer guaranteed."
    return f'Decided after {after}: "{status.best}" has the {extreme} mean outcome{of_left}{within}. {risk}'


def _running(status: Status) -> str:
    if not status.results:
        return "Nothing is told yet."
    after = f"Not decided after {in_words(status.results, 'result')}"
    if status.best is None:
        waits = "they are being processed." if status.unprocessed else "the first trials are not complete yet."
        return f"{after}: {waits}"
    if status.candidates is not None:
        after += f": {len(status.candidates):,} of {len(status.arms):,} options may be the best"
    now = f'{after}. The answer would be "{status.best}" now.'
    if status.computing:
        return f"{now} How many more trials are needed is being computed."
    if status.remaining is None:
        return now
    return f"{now} About {in_words(round(status.remaining), 'trial')} more at the present estimate."


def _ended(status: Status) -> str:
    by_budget = status.budget is not None and status.trials + status.void >= status.budget and not status.by_hand
    how = "Stopped by hand" if status.by_hand else "Ended"
    when = "with the budget" if by_budget else f"on {in_full(status.until or '')}"
    ended = f"{how} {when}, after {in_words(status.results, 'result')}, without a decision."
    if status.best is None:
        return f"{ended} There is no estimate to recommend an option by."
    left = "" if status.candidates is None else f" {_left(status, status.candidates)}"
    next_best = _next_best(status)
    if next_best is None:
        computing = " Its lead is being computed." if status.computing else ""
        return f'{ended}{left} Recommended: "{status.best}".{computing}'
    best = next(arm for arm in status.arms if arm.label == status.best)
    gap = Comparison.of(best.known, next_best.known)
    limits = (gap.difference, gap.difference_low, gap.difference_high)
    number = Decimals.of([limits], "points" if status.rates else "", signed=True)
    within = number.interval(gap.difference_low, gap.difference_high)
    unit = " points" if status.rates else ""
    led, which = "", "the next"
    # Estimates count every result told, and the recommendation those up to the last reading of the rule.
    if gap.difference is not None and (gap.difference < 0 if status.goal == "max" else gap.difference > 0):
        led, which = ", which led at the last check", "ahead by the results told since"
    return (
        f'{ended}{left} Recommended: "{status.best}"{led}; its mean minus that of "{next_best.label}", {which}, is '
        f"about {number(gap.difference)}{unit}" + (f" ({within})." if within else ".")
    )


def _next_best(status: Status) -> ArmStatus | None:
    """Returns the arm with the best estimate of those that may be the best, other than the recommended one."""
    may_be = [arm.label for arm in status.arms] if status.candidates is None else status.candidates
    rivals = {*may_be} - {status.best}
    found = (arm for arm in status.ranked if arm.label in rivals and arm.estimate is not None and not arm.withdrawn)
    return next(found, None)


def _left(status: Status, candidates: tuple[str, ...]) -> str:
    names = ", ".join(f'"{label}"' for label in candidates) if len(candidates) <= MOST_NAMED else "see below"
    return (
        f"{len(candidates):,} of {len(status.arms):,} options may be the best ({names}); the probability that none of "
        f"them is, is at most {status.risk:g}."
    )


def _smoothness(status: Status) -> str:
    """Returns R in words, as in "the data contradict R = 0.1"."""
    several = status.R if isinstance(status.R, float) else [R for R in status.R or () if R > 0]
    return f"R = {R_in_words(several)}"


def advice_of(status: Status) -> Iterator[str]:
    """Yields advice: on means that drift, trials that hold up many results, a limit that is too small, options whose
    trials fail."""
    if status.drifting:
        yield (
            "Results of different times differ by more than noise. The decision compares options tried at the same "
            "time, so its risk holds as long as the best option stays best; but estimates are averages over time, of "
            "which the intervals say nothing certain."
        )
    yield from status.checks
    hits, tried = (sum(arm.hits or 0 for arm in status.arms), sum(arm.results for arm in status.arms))
    if status.rates and status.lapsed >= MANY_LAPSED and status.lapsed > tried / 2 and hits > 0.9 * tried:
        yield (
            f"Nearly all results are 1, and {in_words(status.lapsed, 'ticket')} ran out without one: perhaps only "
            "clicks are told. Tell 0 for visitors who did not click, or create the study with --lapse-as 0 --window "
            "TIME; otherwise the rates say nothing."
        )
    if status.corrected:
        names = ", ".join(dict.fromkeys(f'"{each}"' for each in status.corrected[-MOST_NAMED:]))
        yield (
            f"Results were corrected or taken out ({names}). The risk holds if that was done without regard to how "
            "options compare; the log keeps what was told before."
        )
    if status.state != "running":
        return
    if status.pending and status.sealed >= max(MANY_SEALED, status.results / 10):
        # Tickets of one block, the oldest of those out: nothing is decided before they are told or given back.
        first = min(ticket.block or 0 for ticket in status.pending)
        late = [ticket for ticket in status.pending if ticket.block == first]
        yield (
            f"{status.sealed:,} results wait for {in_words(len(late), 'trial')} that "
            f'{"is" if len(late) == 1 else "are"} still out, such as ticket {late[0].id} of "{late[0].label}": tell '
            "its result or, if it is lost, give it back: spectralbai study abandon "
            f"{shlex.quote(status.name)} {late[0].id}"
        )
    if status.room is not None and status.remaining is not None and status.remaining > status.room:
        which = f"the time until {in_full(status.until)}" if status.until else ""
        if status.budget is not None and status.room >= status.budget - status.trials:
            which = f"the budget of {status.budget:,} trials"
        yield (
            f"At the present pace {which} is not enough: about {in_words(round(status.remaining), 'trial')} more are "
            f"needed, and {round(status.room):,} are left."
        )
    failing = [arm for arm in status.arms if arm.failures >= MANY_FAILURES and not arm.withdrawn]
    for arm in failing[:MOST_NAMED]:
        yield (
            f'{arm.failures} trials of "{arm.label}" failed; if it cannot be tried, withdraw it: '
            f"spectralbai study withdraw {shlex.quote(status.name)} {shlex.quote(arm.label)}"
        )
    if len(failing) > MOST_NAMED:
        yield f"So did trials of {in_words(len(failing) - MOST_NAMED, 'other option')}."


def evidence_of(status: Status) -> str:
    """Returns what is proved and what is missing, in words."""
    if status.consistent is False:
        return "nothing is claimed"
    if not math.isfinite(status.verdict.statistic):
        return "no option can be better by more than the tolerance"
    if status.candidates is None:
        return "nothing is proved yet"
    withdrawn = sum(arm.withdrawn for arm in status.arms)
    out = f"{len(status.arms) - len(status.candidates) - withdrawn:,} of {len(status.arms):,} options are out"
    if withdrawn:
        out += f", {withdrawn:,} withdrawn"
    beaten = sum(status.account(arm) == "beaten" for arm in status.arms)
    if beaten:
        out += f", {beaten:,} more beaten"
    rivals = [arm for arm in status.arms if arm.lacking is not None and arm.lacking > 0]
    if status.state != "running" or not rivals:
        return out
    last = max(rivals, key=lambda arm: arm.lacking or 0.0)
    return f'{out}; the account against "{last.label}" lacks most: it holds {status.account(last)}'
