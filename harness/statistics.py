"""Statistics of N = 3..10 paired rounds over many shapes: the round is the unit, never an iteration.

Owns every formula; must not know cells, files or verdict words. Log ratios throughout, y_B - y_A. None means "these
rounds cannot tell"; there is no NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from statistics import median

import numpy as np
from scipy import special, stats

from harness.moderation import EXACT, MIN_SHAPES, design_effect, shrink
from harness.moderation import Array as Array
from harness.power import CONFIDENCE, detectable, quantile

#: The one direction of every number caliber prints.
DIRECTION = "B vs A latency, - = B faster"


def percent(delta: float) -> float:
    """Log ratio -> per cent of A's latency."""
    return 100.0 * math.expm1(delta)


def words(delta: float) -> str:
    """`B 3.1 % slower`; two decimals below 1 %."""
    value = percent(delta)
    size = f"{abs(value):.1f}" if abs(value) >= 0.995 else f"{abs(value):.2f}"
    if float(size) == 0.0:
        return "B as fast as A"
    return f"B {size} % {'slower' if value > 0 else 'faster'}"


@dataclass(frozen=True)
class Fit:
    """d[s,k] = delta[s] + slot[s] * order[k] + residual, for S shapes over N rounds."""

    delta: Array  # (S,)
    slot: Array | None  # (S,); None when all rounds had one order: effect and position cannot be told apart
    residuals: Array  # (S, N)
    df: int
    leverage: float  # var(delta) / residual variance

    @cached_property
    def variance(self) -> Array | None:
        """(S,) residual variances; None without a degree of freedom. Constant samples give exactly 0."""
        if self.df < 1:
            return None
        residuals = np.where(np.abs(self.residuals) < EXACT, 0.0, self.residuals)
        result: Array = np.sum(residuals**2, axis=1) / self.df
        return result


@dataclass(frozen=True)
class Estimate:
    """One effect as these rounds show it. All but counts, p, df and k are log ratios."""

    rounds: int
    a_first: int  # rounds in which A ran first
    delta: float
    slot: float | None  # + = the side that runs second is slower
    sd: float | None  # of the round deltas after the slot term
    sd_used: float | None  # shrunken towards the other shapes of the op, where there are enough
    df: float | None
    se: float | None
    low: float | None  # 95 % confidence interval
    high: float | None
    p: float | None
    smallest: float  # round delta; [smallest, largest] is itself an interval for the median delta ...
    largest: float
    range_confidence: float  # ... with this confidence, whatever the distribution
    same_sign: int  # rounds whose delta has the sign of the estimate
    hodges_lehmann: float
    mde80: float | None  # effect that N such rounds detect with 80 % power


def fit(deltas: Array, order: Array) -> Fit:
    """Order-balanced means of (S, N) deltas; `order` (N,) is +1 where A ran first.

    With both orders present the least-squares solution is the mean of the two group means, balanced or not.
    """
    first, second = deltas[:, order > 0], deltas[:, order < 0]
    n1, n2 = first.shape[1], second.shape[1]
    if not n1 or not n2:
        delta = deltas.mean(axis=1)
        return Fit(delta, None, deltas - delta[:, None], n1 + n2 - 1, 1.0 / (n1 + n2))
    mean1, mean2 = first.mean(axis=1), second.mean(axis=1)
    delta, slot = (mean1 + mean2) / 2, (mean1 - mean2) / 2
    residuals = deltas - delta[:, None] - slot[:, None] * order[None, :]
    return Fit(delta, slot, residuals, n1 + n2 - 2, (1.0 / n1 + 1.0 / n2) / 4)


def moderate(model: Fit) -> tuple[Array | None, float]:
    """Variances shrunken across the shapes and their degrees of freedom (see moderation.shrink).

    Plain variances below MIN_SHAPES or where most shapes are constant.
    """
    variance, df = model.variance, float(model.df)
    if variance is None or len(variance) < MIN_SHAPES or np.median(variance) == 0.0:
        return variance, df
    shrunken, total = shrink(variance, df, design_effect(model.residuals))
    return shrunken, float(total)


def estimates(deltas: Array, order: Array) -> list[Estimate]:
    """One estimate per shape of (S, N) deltas, moderated across the shapes (claims: see moderation.family_p)."""
    model = fit(deltas, order)
    variance, df = moderate(model)
    return [_estimate(model, index, deltas[index], order, variance, df) for index in range(len(deltas))]


def estimate(deltas: Sequence[float] | Array, order: Sequence[int] | Array) -> Estimate:
    """The estimate of one series of N round deltas."""
    return estimates(np.asarray(deltas, dtype=float)[None, :], np.asarray(order, dtype=float))[0]


def equivalent(found: Estimate, margin: float) -> bool:
    """Two one-sided tests: the 90 % interval lies within +-margin. Never true for want of evidence."""
    low, high = tost_interval(found)
    return low is not None and high is not None and max(-low, high) < margin


def tost_interval(found: Estimate) -> tuple[float | None, float | None]:
    """The 90 % confidence interval, which two one-sided tests at 5 % hold against the margin."""
    if found.se is None or found.df is None:
        return None, None
    half = quantile(CONFIDENCE, found.df) * found.se
    return found.delta - half, found.delta + half


def adjusted(values: Sequence[float | None]) -> list[float | None]:
    """Benjamini-Hochberg over the p values that exist; None stays None."""
    known = [value for value in values if value is not None]
    results = iter(stats.false_discovery_control(known) if known else ())
    return [None if value is None else float(next(results)) for value in values]


def flips(deltas: Sequence[float] | Array, resolution: float) -> bool:
    """Do rounds contradict each other in sign by more than the timer's `resolution` (a log ratio)?"""
    return max(deltas) > resolution and min(deltas) < -resolution


def side_noise(levels: Array, order: Array, rounds: Array) -> float | None:
    """sd of one side's (N,) log latencies after slot and linear round trend: drift and position are not noise."""
    design = np.column_stack([np.ones_like(levels), order, rounds - rounds.mean()])
    solution, _, rank, _ = np.linalg.lstsq(design, levels, rcond=None)
    df = len(levels) - int(rank)
    residuals = levels - design @ solution
    return _clean(math.sqrt(float(residuals @ residuals) / df)) if df > 0 else None


def _estimate(model: Fit, index: int, deltas: Array, order: Array, variance: Array | None, df: float) -> Estimate:
    rounds = len(deltas)
    delta = _clean(float(model.delta[index]))
    own = model.variance
    used = None if variance is None else math.sqrt(float(variance[index]))
    se = None if used is None else used * math.sqrt(model.leverage)
    half = None if se is None else quantile((1 + CONFIDENCE) / 2, df) * se
    series = deltas.tolist()
    return Estimate(
        rounds=rounds,
        a_first=int(np.sum(order > 0)),
        delta=delta,
        slot=None if model.slot is None else _clean(float(model.slot[index])),
        sd=None if own is None else math.sqrt(float(own[index])),
        sd_used=used,
        df=None if se is None else df,
        se=se,
        low=None if half is None else delta - half,
        high=None if half is None else delta + half,
        p=None if se is None else _p_value(delta, se, df),
        smallest=min(series),
        largest=max(series),
        range_confidence=1 - 2.0 ** (1 - rounds),
        same_sign=sum(_sign(each) == _sign(delta) for each in series),
        hodges_lehmann=median((one + other) / 2 for one, other in combinations_with_replacement(series, 2)),
        mde80=None if se is None else detectable(df) * se,
    )


def _p_value(delta: float, se: float, df: float) -> float:
    if se == 0.0:  # constant samples are exact: any difference is real, none is none
        return 0.0 if delta else 1.0
    return float(2 * special.stdtr(df, -abs(delta) / se))  # stats.t.sf checks its arguments for 60 us


def _sign(value: float) -> int:
    return 0 if abs(value) < EXACT else 1 if value > 0 else -1


def _clean(value: float) -> float:
    return 0.0 if abs(value) < EXACT else value
