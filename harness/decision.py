"""Decision: what the rounds of an op say about each of its shapes, as one family, in time and in clock cycles.

Must not know cells; the rules that weigh one series are rules', the margins margin's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness import statistics
from harness.exact import Metrics
from harness.findings import Reason, ShapeVerdict, Verdict
from harness.margin import Bar, Floor, bar, resolutions
from harness.moderation import family_p
from harness.pairing import Pair, Pairing
from harness.records import Judge, RowKey
from harness.rules import decide, interval
from harness.statistics import Array, Estimate


@dataclass(frozen=True)
class Weighed:
    """Series judged as one family; `p` are adjusted within it, `family_p` None where none borrows from another."""

    found: tuple[Estimate, ...]
    p: tuple[float | None, ...]
    verdicts: tuple[Verdict, ...]
    reasons: tuple[tuple[Reason, ...], ...]
    family_p: float | None


def weigh(deltas: Array, orders: Sequence[int], limits: Sequence[Bar], ratios: Array | None = None) -> Weighed:
    """Judge (S, N) round deltas as one family of S series.

    `ratios`: (N,) log clock B - log clock A. A claim must hold in cycles too, else a clock, not the code, moved it.
    """
    order = np.array(orders, dtype=float)
    found = statistics.estimates(deltas, order)
    p_adjusted = statistics.adjusted([each.p for each in found])
    significant = sum(p is not None and p < limit.q for p, limit in zip(p_adjusted, limits, strict=True))
    family = family_p(deltas, order) if significant else None
    share = min(1.0, (significant + 1) / len(found))  # of q, by Benjamini-Hochberg, to join those that are significant
    decided = [
        decide(each, series, p, limit, family, limit.q * share)
        for each, series, p, limit in zip(found, deltas, p_adjusted, limits, strict=True)
    ]
    if ratios is not None and any(verdict.claims for verdict, _ in decided):
        decided = _clock_checked(decided, weigh(deltas + ratios, orders, limits))
    verdicts, reasons = zip(*decided, strict=True)
    return Weighed(tuple(found), tuple(p_adjusted), verdicts, reasons, family)


def judge_shapes(
    pairing: Pairing, judge: Judge, metrics: Metrics, floor: Floor | None = None, ratios: Array | None = None
) -> tuple[tuple[ShapeVerdict, ...], float | None]:
    """Every row key of the op: judged if it is paired in all rounds by one timer, else named with what it lacks.

    Also the family's p value, where it was asked.
    """
    whole = pairing.whole()
    judged, family = _judged(pairing, whole, judge, metrics, floor, ratios)
    by_key = dict(zip(whole, judged, strict=True))
    return tuple(by_key.get(key) or _unjudged(pairing, key, metrics) for key in pairing.keys), family


def matrix(pairing: Pairing, keys: Sequence[RowKey]) -> Array:
    """(S, N) round deltas of the keys that are paired in every round."""
    return np.array([[pair.delta for pair in pairing.pairs[key]] for key in keys], dtype=float)


def _clock_checked(
    decided: Sequence[tuple[Verdict, tuple[Reason, ...]]], cycles: Weighed
) -> list[tuple[Verdict, tuple[Reason, ...]]]:
    results = []
    for index, (verdict, reasons) in enumerate(decided):
        other = cycles.verdicts[index]
        if not verdict.claims or other is verdict:
            results.append((verdict, reasons))
            continue
        seen = interval(cycles.found[index], cycles.p[index])
        text = f"{verdict.value} in time but {other.value} in cycles ({seen})"
        results.append((Verdict.CLOCK_CONFOUNDED, (Reason("CLOCK", text), *reasons)))
    return results


def _judged(
    pairing: Pairing,
    keys: Sequence[RowKey],
    judge: Judge,
    metrics: Metrics,
    floor: Floor | None,
    ratios: Array | None,
) -> tuple[list[ShapeVerdict], float | None]:
    if not keys:
        return [], None
    limits = [bar(judge, resolution, floor) for resolution in resolutions(pairing, keys)]
    weighed = weigh(matrix(pairing, keys), pairing.orders, limits, ratios)
    results = [
        ShapeVerdict(
            key=key,
            verdict=weighed.verdicts[index],
            reasons=weighed.reasons[index],
            estimate=weighed.found[index],
            p_adjusted=weighed.p[index],
            margin=limits[index].margin,
            a_ms=_geomean([pair.a for pair in pairing.pairs[key]]),
            b_ms=_geomean([pair.b for pair in pairing.pairs[key]]),
            metrics=metrics.changes.get(key, ()),
            margin_source=limits[index].source,
        )
        for index, key in enumerate(keys)
    ]
    return results, weighed.family_p


def _unjudged(pairing: Pairing, key: RowKey, metrics: Metrics) -> ShapeVerdict:
    verdict, reason = _lack(pairing, key)
    changes = metrics.changes.get(key, ())
    return ShapeVerdict(key, verdict, (reason,), None, None, None, None, None, changes, "")


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


def _geomean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))
