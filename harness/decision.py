"""Decision: from an estimate to a verdict word, for one series of rounds and for every shape of an op.

The one place where "significant", "large enough for this timer", "equivalent" and "unresolved" are weighed. Must not
know cells.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness import statistics
from harness.exact import Metrics
from harness.findings import Reason, ShapeVerdict, Verdict
from harness.pairing import Pair, Pairing
from harness.records import Judge, RowKey
from harness.statistics import Array, Estimate, percent, words

#: An effect must exceed this many timer ticks to be one.
TICKS = 2


@dataclass(frozen=True)
class Bar:
    """What an effect must clear; log ratios but `q`."""

    margin: float
    resolution: float  # one tick of the timer
    q: float


def bar(judge: Judge, resolution: float) -> Bar:
    """The margin of practical relevance: the user's, or two ticks of the timer where those are larger."""
    return Bar(max(math.log1p(judge.margin_pct / 100), TICKS * resolution), resolution, judge.q)


def decide(found: Estimate, deltas: Array, p: float | None, limit: Bar) -> tuple[Verdict, tuple[Reason, ...]]:
    """The verdict of one series; `p` is the p value to hold against q, adjusted where there is a family.

    Absence of significance is never SAME: that takes an equivalence test within the margin.
    """
    if p is None or found.low is None or found.high is None:
        return Verdict.UNRESOLVED, (_too_few(found),)
    if found.slot is None:
        return Verdict.UNRESOLVED, (_one_order(found),)
    significant = p < limit.q and (found.low > 0 or found.high < 0)
    effect = Reason("EFFECT", interval(found, p))
    if significant and abs(found.delta) > limit.margin:
        return (Verdict.SLOWER if found.delta > 0 else Verdict.FASTER), (effect,)
    if statistics.equivalent(found, limit.margin):
        return Verdict.SAME, (Reason("EQUIVALENT", f"{interval(found, p)}; within +-{percent(limit.margin):.2f} %"),)
    if significant:
        return Verdict.UNRESOLVED, (Reason("BELOW_MARGIN", f"{effect.message}; margin {percent(limit.margin):.2f} %"),)
    if statistics.flips(deltas, limit.resolution):
        return Verdict.SIGN_UNSTABLE, (_sign(found), _power(found, limit))
    return Verdict.UNRESOLVED, (effect, _power(found, limit))


def interval(found: Estimate, p: float | None) -> str:
    """`B 3.1 % slower, 95 % CI [+2.80, +3.40] %, p 0.0001` as far as the rounds give it."""
    parts = [words(found.delta)]
    if found.low is not None and found.high is not None:
        parts.append(f"95 % CI [{percent(found.low):+.2f}, {percent(found.high):+.2f}] %")
    if found.p is not None:
        parts.append(f"p {found.p:.2g}" + (f" (adjusted {p:.2g})" if p is not None and p != found.p else ""))
    return ", ".join(parts)


def judge_shapes(pairing: Pairing, judge: Judge, metrics: Metrics) -> tuple[ShapeVerdict, ...]:
    """Every row key of the op: judged if it is paired in all rounds by one timer, else named with what it lacks."""
    whole = pairing.whole()
    judged = dict(zip(whole, _judged(pairing, whole, judge, metrics), strict=True))
    return tuple(judged.get(key) or _unjudged(pairing, key, metrics) for key in pairing.keys)


def matrix(pairing: Pairing, keys: Sequence[RowKey]) -> Array:
    """(S, N) round deltas of the keys that are paired in every round."""
    return np.array([[pair.delta for pair in pairing.pairs[key]] for key in keys], dtype=float)


def resolutions(pairing: Pairing, keys: Sequence[RowKey]) -> list[float]:
    """One timer tick over the latency, per key; the tick is pooled over all keys that one timer timed."""
    samples: dict[str, list[list[float]]] = defaultdict(list)
    for key in keys:
        own = pairing.pairs[key]
        samples[own[0].timer] += [[pair.a for pair in own], [pair.b for pair in own]]
    ticks = {timer: timer_quantum(values) for timer, values in samples.items()}
    return [max(ticks[pair.timer] / min(pair.a, pair.b) for pair in pairing.pairs[key]) for key in keys]


def timer_quantum(samples: Iterable[Sequence[float]]) -> float:
    """Step (ms) of the grid that the values of every sample lie on, 0.0 when they lie on none.

    Read off the data: event timers tick in 32 ns to 1.024 us, the vendors do not say, and 1.024 us is 11 % of 9 us.
    """
    ordered = [sorted(sample) for sample in samples if len(sample)]
    tolerance = 1e-6 * max((sample[-1] for sample in ordered), default=0.0)  # float32 event times
    step = 0.0
    for sample in ordered:
        for low, high in pairwise(sample):
            step = _common_step(high - low, step, tolerance)
            if 0.0 < step < 20 * tolerance:
                return 0.0
    return step


def _judged(pairing: Pairing, keys: Sequence[RowKey], judge: Judge, metrics: Metrics) -> list[ShapeVerdict]:
    if not keys:
        return []
    deltas = matrix(pairing, keys)
    found = statistics.estimates(deltas, np.array(pairing.orders, dtype=float))
    p_adjusted = statistics.adjusted([each.p for each in found])
    limits = [bar(judge, resolution) for resolution in resolutions(pairing, keys)]
    results = []
    for key, series, each, p, limit in zip(keys, deltas, found, p_adjusted, limits, strict=True):
        verdict, reasons = decide(each, series, p, limit)
        own = pairing.pairs[key]
        results.append(
            ShapeVerdict(
                key=key,
                verdict=verdict,
                reasons=reasons,
                estimate=each,
                p_adjusted=p,
                margin=limit.margin,
                a_ms=_geomean([pair.a for pair in own]),
                b_ms=_geomean([pair.b for pair in own]),
                metrics=metrics.changes.get(key, ()),
            )
        )
    return results


def _unjudged(pairing: Pairing, key: RowKey, metrics: Metrics) -> ShapeVerdict:
    verdict, reason = _lack(pairing, key)
    return ShapeVerdict(key, verdict, (reason,), None, None, None, None, None, metrics.changes.get(key, ()))


def _lack(pairing: Pairing, key: RowKey) -> tuple[Verdict, Reason]:
    """What keeps a key from a number, the gravest first."""
    ledger = pairing.ledger
    paired: tuple[Pair, ...] = pairing.pairs.get(key, ())
    for mixed in (item for item in ledger.mixed if item.key == key):
        text = f"round {mixed.round}: A by {mixed.a}, B by {mixed.b}"
        return Verdict.MIXED_TIMER, Reason("TIMER_DIFFERS", text)
    timers = {pair.timer: pair.round for pair in paired}
    if len(timers) > 1:
        text = "; ".join(f"{timer} (round {number})" for timer, number in timers.items())
        return Verdict.MIXED_TIMER, Reason("TIMER_VARIES", f"between rounds: {text}")
    count = f"{len(paired)} of {len(pairing.rounds)} rounds paired"
    for invalid in (item for item in ledger.invalid if item.key == key):
        text = f"{count}; round {invalid.round} {invalid.side}: {invalid.reason}"
        return Verdict.INCOMPLETE, Reason("ROW_INVALID", text)
    orphan = next((item for item in ledger.orphans if item.key == key), None)
    text = f"; round {orphan.round}: {orphan.reason}" if orphan else ""
    return Verdict.INCOMPLETE, Reason("ROW_UNPAIRED", count + text)


def _too_few(found: Estimate) -> Reason:
    number = f"{found.rounds} round{'s' if found.rounds != 1 else ''}"
    text = f"{number} leave no degree of freedom for a verdict; at least {statistics.MIN_ROUNDS} are needed"
    return Reason("TOO_FEW_ROUNDS", f"{interval(found, None)}, but {text}")


def _one_order(found: Estimate) -> Reason:
    first = "A" if found.a_first else "B"
    return Reason("ORDER_CONFOUNDED", f"{first} ran first in all {found.rounds} rounds: position and switch are one")


def _sign(found: Estimate) -> Reason:
    text = f"{words(found.delta)} on average, but only {found.same_sign} of {found.rounds} rounds have that sign"
    return Reason("DIRECTION_NOT_RESOLVED", text)


def _power(found: Estimate, limit: Bar) -> Reason:
    """What would resolve it: rounds for an effect as large as seen, or as the margin where that is larger."""
    target = max(abs(found.delta), limit.margin)
    rounds = statistics.rounds_needed(found.sd_used or 0.0, target) if target else None
    needed = f"{rounds} rounds" if rounds else f"more than {statistics.MAX_ROUNDS} rounds"
    seen = percent(found.mde80 or 0.0)
    return Reason(
        "POWER", f"{found.rounds} rounds see {seen:.2f} % with 80 % power; {percent(target):.2f} % takes {needed}"
    )


def _common_step(first: float, second: float, tolerance: float) -> float:
    """Greatest common divisor of two lengths known to within `tolerance`."""
    first, second = max(first, second), min(first, second)
    while second > tolerance:
        first, second = second, abs(math.remainder(first, second))
    return first if first > tolerance else 0.0


def _geomean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))
