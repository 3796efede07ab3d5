"""Rules: from an estimate to a verdict word, for one series of rounds. The first rule that holds decides.

The one place where "significant", "large enough", "equivalent" and "unresolved" are weighed; `caliber explain` prints
the very same rules. Must not know cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness import power, statistics
from harness.findings import Reason, Verdict
from harness.margin import Bar
from harness.statistics import Array, Estimate, percent, words

#: Thresholds at which the rounds needed are worked out: a family's threshold is rounded down to one of them.
LEVELS = tuple(step * 10.0**-power for power in range(1, 7) for step in (5, 2, 1))


@dataclass(frozen=True)
class Case:
    """One series to be judged. `p` is held against q, adjusted where there is a family; so is the family's own."""

    found: Estimate
    deltas: Array
    p: float | None
    bar: Bar
    family_p: float | None = None  # None: the series borrows no certainty from others
    threshold: float | None = None  # raw p value to get below, where that is less than q

    @property
    def alone(self) -> bool:
        """Significant by its own adjusted p value."""
        found = self.found
        excludes = found.low is not None and found.high is not None and (found.low > 0 or found.high < 0)
        return self.p is not None and self.p < self.bar.q and excludes

    @property
    def significant(self) -> bool:
        """The same, and so is the family whose certainty it borrows."""
        return self.alone and (self.family_p is None or self.family_p < self.bar.q)

    @property
    def large(self) -> bool:
        return abs(self.found.delta) > self.bar.margin

    @property
    def claim(self) -> Verdict:
        return Verdict.SLOWER if self.found.delta > 0 else Verdict.FASTER


@dataclass(frozen=True)
class Rule:
    """One question of the decision, in words, and whether it holds; `verdict` and `why` count when it does."""

    question: str
    holds: bool
    verdict: Verdict
    why: Callable[[Case], tuple[Reason, ...]]


def rules(case: Case) -> Iterator[Rule]:
    """Every rule in order. Absence of significance is never SAME: that takes an equivalence test within the margin."""
    found, limit, unresolved = case.found, case.bar, Verdict.UNRESOLVED
    few = case.p is None or found.low is None
    yield Rule("too few rounds for any interval", few, unresolved, _too_few)
    if few:
        return
    yield Rule("one order in all rounds", found.slot is None, unresolved, _one_order)
    yield Rule("significant, and larger than the margin", case.significant and case.large, case.claim, _effect)
    equivalent = statistics.equivalent(found, limit.margin)
    yield Rule("equivalent: the 90 % interval lies within the margin", equivalent, Verdict.SAME, _equivalent)
    yield Rule("significant, but no larger than the margin", case.significant, unresolved, _below)
    yield Rule("significant alone, but its op as a family is not", case.alone, unresolved, _family)
    flips = statistics.flips(case.deltas, limit.resolution)
    yield Rule("rounds contradict each other in sign", flips, Verdict.SIGN_UNSTABLE, _unstable)
    yield Rule("none of these", True, unresolved, lambda own: (*_effect(own), _power(own)))


def decide(
    found: Estimate,
    deltas: Array,
    p: float | None,
    limit: Bar,
    family_p: float | None = None,
    threshold: float | None = None,
) -> tuple[Verdict, tuple[Reason, ...]]:
    """The verdict of one series: that of the first rule that holds."""
    case = Case(found, deltas, p, limit, family_p, threshold)
    decided = next(rule for rule in rules(case) if rule.holds)
    return decided.verdict, decided.why(case)


def interval(found: Estimate, p: float | None) -> str:
    """`B 3.1 % slower, 95 % CI [+2.80, +3.40] %, p 0.0001` as far as the rounds give it."""
    parts = [words(found.delta)]
    if found.low is not None and found.high is not None:
        parts.append(f"95 % CI [{percent(found.low):+.2f}, {percent(found.high):+.2f}] %")
    if found.p is not None:
        parts.append(f"p {found.p:.2g}" + (f" (adjusted {p:.2g})" if p is not None and p != found.p else ""))
    return ", ".join(parts)


def _too_few(case: Case) -> tuple[Reason, ...]:
    found = case.found
    number = f"{found.rounds} round{'s' if found.rounds != 1 else ''}"
    text = f"{number} leave no degree of freedom for a verdict; at least {power.MIN_ROUNDS} are needed"
    return (Reason("TOO_FEW_ROUNDS", f"{interval(found, None)}, but {text}"),)


def _one_order(case: Case) -> tuple[Reason, ...]:
    first, rounds = "A" if case.found.a_first else "B", case.found.rounds
    text = f"{first} ran first in all {rounds} rounds: position and switch are one; let the other begin in half"
    return (Reason("ORDER_CONFOUNDED", text),)


def _effect(case: Case) -> tuple[Reason, ...]:
    return (Reason("EFFECT", f"{interval(case.found, case.p)}; {case.bar}"),)


def _equivalent(case: Case) -> tuple[Reason, ...]:
    low, high = (percent(end or 0.0) for end in statistics.tost_interval(case.found))
    margin = f"+-{percent(case.bar.margin):.2f} % ({case.bar.source})"
    text = f"{interval(case.found, case.p)}; 90 % CI [{low:+.2f}, {high:+.2f}] % within {margin}"
    return (Reason("EQUIVALENT", text),)


def _below(case: Case) -> tuple[Reason, ...]:
    """And the rounds that would show SAME, were the effect as seen."""
    room = case.bar.margin - abs(case.found.delta)
    rounds = power.rounds_equivalent(case.found.sd_used or 0.0, room) if room > 0 else None
    needed = Reason("POWER", f"to show it within the margin takes {_count(rounds)}, were it as large as seen")
    return Reason("BELOW_MARGIN", f"{interval(case.found, case.p)}; {case.bar}"), needed


def _family(case: Case) -> tuple[Reason, ...]:
    held = f"family p {case.family_p or 0.0:.2g}, not below {case.bar.q:g}: without effects an op's shapes do this too"
    return Reason("FAMILY", f"{interval(case.found, case.p)}; {case.bar}; {held}"), _power(case)


def _unstable(case: Case) -> tuple[Reason, ...]:
    found = case.found
    text = f"{words(found.delta)} on average, but only {found.same_sign} of {found.rounds} rounds have that sign"
    return Reason("DIRECTION_NOT_RESOLVED", f"{text}; {case.bar}"), _power(case)


def _power(case: Case) -> Reason:
    """What would resolve it: rounds for an effect as large as seen, or as the margin where that is larger.

    Worked out at the threshold that the series faces: among 42 shapes that may be 0.001, not 0.05.
    """
    found, limit = case.found, case.bar
    target = max(abs(found.delta), limit.margin)
    wanted = case.threshold or limit.q
    level = limit.q if wanted >= limit.q else next((each for each in LEVELS if each <= wanted), LEVELS[-1])
    borrowed = max(0, int((found.df or 0.0) - (found.rounds - 2)))
    rounds = power.rounds_needed(found.sd_used or 0.0, target, level, borrowed) if target else None
    wanted_effect = words(found.delta) if abs(found.delta) >= limit.margin else f"{percent(limit.margin):.2f} %"
    seen = f"{found.rounds} rounds see {percent(found.mde80 or 0.0):.2f} % with 80 % power"
    at = "" if level == limit.q else f" at p < {level:g}, as its family asks,"
    return Reason("POWER", f"{seen}; {wanted_effect}{at} takes {_count(rounds)}")


def _count(rounds: int | None) -> str:
    return f"{rounds} rounds" if rounds else f"more than {power.MAX_ROUNDS} rounds"
