"""Rules: from an estimate to a verdict word, for one series of rounds. The first rule that holds decides.

The one place where "significant", "large enough", "equivalent" and "unresolved" are weighed; `caliber explain` prints
the very same rules. Must not know cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from harness import statistics
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
    """One question of the decision, in words, and whether it holds; `verdict` and `reasons` count when it does."""

    question: str
    holds: bool
    verdict: Verdict
    reasons: tuple[Reason, ...]


def rules(case: Case) -> Iterator[Rule]:
    """Every rule in order. Absence of significance is never SAME: that takes an equivalence test within the margin."""
    found, limit = case.found, case.bar
    few = case.p is None or found.low is None
    yield Rule("too few rounds for any interval", few, Verdict.UNRESOLVED, (_too_few(found),))
    if few:
        return
    yield Rule("one order in all rounds", found.slot is None, Verdict.UNRESOLVED, (_one_order(found),))
    effect = Reason("EFFECT", f"{interval(found, case.p)}; {limit}")
    yield Rule("significant, and larger than the margin", case.significant and case.large, case.claim, (effect,))
    low, high = (percent(end or 0.0) for end in statistics.tost_interval(found))
    within = f"90 % CI [{low:+.2f}, {high:+.2f}] % within +-{percent(limit.margin):.2f} % ({limit.source})"
    same = Reason("EQUIVALENT", f"{interval(found, case.p)}; {within}")
    equivalent = statistics.equivalent(found, limit.margin)
    yield Rule("equivalent: the 90 % interval lies within the margin", equivalent, Verdict.SAME, (same,))
    below = (Reason("BELOW_MARGIN", effect.message), _equivalence(found, limit))
    yield Rule("significant, but no larger than the margin", case.significant, Verdict.UNRESOLVED, below)
    lacking = (Reason("FAMILY", f"{effect.message}; {_family(case)}"), _power(case))
    yield Rule("significant alone, but its op as a family is not", case.alone, Verdict.UNRESOLVED, lacking)
    flips = statistics.flips(case.deltas, limit.resolution)
    unstable = (_sign(found, limit), _power(case))
    yield Rule("rounds contradict each other in sign", flips, Verdict.SIGN_UNSTABLE, unstable)
    yield Rule("none of these", True, Verdict.UNRESOLVED, (effect, _power(case)))


def decide(
    found: Estimate, deltas: Array, p: float | None, limit: Bar, family_p: float | None = None
) -> tuple[Verdict, tuple[Reason, ...]]:
    """The verdict of one series: that of the first rule that holds."""
    decided = next(rule for rule in rules(Case(found, deltas, p, limit, family_p)) if rule.holds)
    return decided.verdict, decided.reasons


def interval(found: Estimate, p: float | None) -> str:
    """`B 3.1 % slower, 95 % CI [+2.80, +3.40] %, p 0.0001` as far as the rounds give it."""
    parts = [words(found.delta)]
    if found.low is not None and found.high is not None:
        parts.append(f"95 % CI [{percent(found.low):+.2f}, {percent(found.high):+.2f}] %")
    if found.p is not None:
        parts.append(f"p {found.p:.2g}" + (f" (adjusted {p:.2g})" if p is not None and p != found.p else ""))
    return ", ".join(parts)


def _too_few(found: Estimate) -> Reason:
    number = f"{found.rounds} round{'s' if found.rounds != 1 else ''}"
    text = f"{number} leave no degree of freedom for a verdict; at least {statistics.MIN_ROUNDS} are needed"
    return Reason("TOO_FEW_ROUNDS", f"{interval(found, None)}, but {text}")


def _one_order(found: Estimate) -> Reason:
    first = "A" if found.a_first else "B"
    text = f"{first} ran first in all {found.rounds} rounds: position and switch are one; let the other begin in half"
    return Reason("ORDER_CONFOUNDED", text)


def _family(case: Case) -> str:
    return f"family p {case.family_p or 0.0:.2g}, not below {case.bar.q:g}: without effects an op's shapes do this too"


def _sign(found: Estimate, limit: Bar) -> Reason:
    text = f"{words(found.delta)} on average, but only {found.same_sign} of {found.rounds} rounds have that sign"
    return Reason("DIRECTION_NOT_RESOLVED", f"{text}; {limit}")


def _equivalence(found: Estimate, limit: Bar) -> Reason:
    """Rounds that would show SAME, were the effect as seen."""
    room = limit.margin - abs(found.delta)
    rounds = statistics.rounds_equivalent(found.sd_used or 0.0, room) if room > 0 else None
    return Reason("POWER", f"to show it within the margin takes {_count(rounds)}, were it as large as seen")


def _power(case: Case) -> Reason:
    """What would resolve it: rounds for an effect as large as seen, or as the margin where that is larger.

    Worked out at the threshold that the series faces: with 42 shapes in the family that may be 0.001, not 0.05.
    """
    found, limit = case.found, case.bar
    target = max(abs(found.delta), limit.margin)
    level = _threshold(case)
    borrowed = max(0, int((found.df or 0.0) - (found.rounds - 2)))
    rounds = statistics.rounds_needed(found.sd_used or 0.0, target, level, borrowed) if target else None
    seen = f"{found.rounds} rounds see {percent(found.mde80 or 0.0):.2f} % with 80 % power"
    at = "" if level == limit.q else f" at this family's p < {level:g}"
    return Reason("POWER", f"{seen}; {percent(target):.2f} %{at} takes {_count(rounds)}")


def _threshold(case: Case) -> float:
    """The raw p value below which this series would have been significant: q, less what the adjustment took."""
    q, raw, adjusted = case.bar.q, case.found.p, case.p
    if not raw or not adjusted or adjusted <= raw:
        return q
    wanted = q * raw / adjusted
    return next((level for level in LEVELS if level <= wanted), LEVELS[-1])


def _count(rounds: int | None) -> str:
    return f"{rounds} rounds" if rounds and math.isfinite(rounds) else f"more than {statistics.MAX_ROUNDS} rounds"
