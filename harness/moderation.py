"""What the shapes of an op lend each other: certainty about their variances (empirical Bayes), and one family test.

Owns the borrowing and its guard; must not know a verdict word. Arrays are (S, ...): shapes first.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

Array = npt.NDArray[np.float64]

#: Fewer shapes than this cannot tell what their common variance is.
MIN_SHAPES = 10
#: Log ratios nearer than this are one value: constant samples differ by rounding in the last bit.
EXACT = 1e-12
#: Rotations of the family test: its p value is known to 0.7 points near 5 %.
ROTATIONS = 999
NEWTON_STEPS = 50


def shrink(variance: Array, df: float, design: Array | float) -> tuple[Array, Array]:
    """Variances shrunken across shapes (Smyth 2004) and their total degrees of freedom.

    Two cautions beyond the textbook. The prior's certainty is taken one standard error lower than estimated; and the
    borrowed degrees of freedom are capped by the *effective* number of shapes, their number over `design`: a jolt that
    a process shares makes 42 shapes one. `variance` is (S,) or (S, R) for R data sets at once.
    """
    shapes = len(variance)
    floored = np.maximum(variance, 1e-5 * np.median(variance, axis=0))
    centred = np.log(floored) - special.digamma(df / 2) + math.log(df / 2)
    mean, spread = centred.mean(axis=0), centred.var(axis=0, ddof=1)
    error = np.sqrt(np.maximum(0.0, np.mean((centred - mean) ** 4, axis=0) - spread**2) / shapes)
    excess = spread - special.polygamma(1, df / 2) + error
    certain = excess <= 0
    prior_df = 2 * trigamma_inverse(np.where(certain, 1.0, excess))
    prior = np.exp(mean + np.where(certain, 0.0, special.digamma(prior_df / 2) - np.log(prior_df / 2)))
    weight = np.where(certain, 1.0, prior_df / (prior_df + df))
    total = np.minimum(np.where(certain, math.inf, df + prior_df), df * shapes / design)
    return weight * prior + (1 - weight) * floored, np.maximum(df, total)


def design_effect(residuals: Array) -> float:
    """1 when the shapes move independently from round to round, their number when they move as one."""
    scale = np.sqrt(np.mean(residuals**2, axis=1))
    moving = residuals[scale > 0] / scale[scale > 0][:, None]
    return max(1.0, len(moving) * float(np.mean(moving.mean(axis=0) ** 2))) if len(moving) else 1.0


def family_p(deltas: Array, order: Array) -> float | None:
    """p value of "no shape of this op differs", from (S, N) round deltas; None where nothing was borrowed.

    Shrunken p values rest on an estimated prior: with few degrees of freedom up to 9 % of ops in which nothing
    differs have a shape below q = 5 % after Benjamini-Hochberg (N = 4). This test is exact for normal noise whatever
    the prior, the shapes' variances and their correlation, for it asks the very statistic: if nothing differs, the
    direction "B - A" is one of many in which the rounds could be contrasted (rotation tests, Langsrud 2005). The
    smallest adjusted p value is held against that of ROTATIONS random directions, all free of the slot effect. The
    random stream is a frozen one: the same files give the same verdict.
    """
    rounds = deltas.shape[1]
    slot = order / math.sqrt(rounds)
    along_ones = 1.0 - slot.sum() * slot
    if len(deltas) < MIN_SHAPES or rounds < 3 or np.sum(along_ones**2) < EXACT:
        return None
    drawn = np.random.RandomState(0).standard_normal((ROTATIONS, rounds))
    directions = np.vstack([along_ones, drawn - np.outer(drawn @ slot, slot)])
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    free = deltas - np.outer(deltas @ slot, slot)
    smallest = _smallest_adjusted(free, directions, rounds - 2.0)
    if smallest is None:
        return None
    return float(1 + np.sum(smallest[1:] <= smallest[0] * (1 + 1e-9))) / (ROTATIONS + 1)


def trigamma_inverse(value: Array) -> Array:
    """x > 0 with trigamma(x) = value, by Newton from below, where it cannot overshoot (Smyth 2004, appendix)."""
    found = 0.5 + 1.0 / np.clip(value, 1e-7, 1e7)
    for _ in range(NEWTON_STEPS):
        slope = special.polygamma(1, found)
        step = slope * (1 - slope / value) / special.polygamma(2, found)
        found = found + step
        if np.all(np.abs(step) <= 1e-10 * found):
            break
    return found


def _smallest_adjusted(free: Array, directions: Array, df: float) -> Array | None:
    """Per direction the smallest Benjamini-Hochberg p value over the shapes; None where most shapes are constant.

    One that cannot be as small as that of the first direction, the observed one, is a lower bound of it only.
    """
    along = free @ directions.T
    squares = np.maximum(np.sum(free**2, axis=1)[:, None] - along**2, 0.0)
    squares = np.where(squares < EXACT**2, 0.0, squares)
    if not np.median(squares[:, 0]) or not np.all(np.median(squares, axis=0)):
        return None
    variance, total = shrink(squares / df, df, _design_effects(free, directions, along, squares))
    t = -np.abs(along) / np.sqrt(variance)
    smallest: Array = 2 * special.stdtr(total, t.min(axis=0))
    observed = _adjusted(t[:, :1], total[:1])[0]
    # No p value is below the smallest raw one: a direction whose own is above the observed cannot come below it, and
    # where something differs that is nearly every one. Half of the time went into their other p values.
    near = smallest <= observed * (1 + 1e-6)
    smallest[near] = _adjusted(t[:, near], total[near])
    smallest[0] = observed
    return smallest


def _adjusted(t: Array, df: Array) -> Array:
    """Per column the smallest Benjamini-Hochberg p value of (S, D) statistics, each column on its own `df`."""
    ranks = np.arange(1, len(t) + 1)[:, None]
    p = 2 * special.stdtr(df, t)
    smallest: Array = (np.sort(p, axis=0) * len(t) / ranks).min(axis=0)
    return smallest


def _design_effects(free: Array, directions: Array, along: Array, squares: Array) -> Array:
    """`design_effect` of the residuals that each direction leaves."""
    rounds = free.shape[1]
    inverse = np.zeros_like(squares)
    np.divide(math.sqrt(rounds), np.sqrt(squares), out=inverse, where=squares > 0)
    moving = np.maximum(1, np.sum(squares > 0, axis=0))
    mean = (free.T @ inverse - directions.T * np.sum(along * inverse, axis=0)) / moving
    effects: Array = np.maximum(1.0, moving * np.sum(mean**2, axis=0) / rounds)
    return effects
