"""Power: what N rounds can see, and how many it takes. Student's t throughout; must not know shapes or verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from scipy import optimize, stats

CONFIDENCE = 0.95
POWER = 0.80
#: Below this no round count gives a claim worth its name: 4 rounds leave 2 degrees of freedom.
MIN_ROUNDS = 4
MAX_ROUNDS = 200


@lru_cache(maxsize=256)
def quantile(probability: float, df: float) -> float:
    """Student's t quantile; the shapes of an op share their degrees of freedom."""
    return float(stats.t.ppf(probability, df))


@lru_cache(maxsize=4096)
def detectable(df: float, level: float = 1 - CONFIDENCE, power: float = POWER) -> float:
    """Effect / standard error that a two-sided t test on `df` detects with `power`."""
    critical = quantile(1 - level / 2, df)

    def lacking(effect: float) -> float:
        return float(stats.nct.sf(critical, df, effect)) - power

    return float(optimize.brentq(lacking, 0.0, 4 * critical + 10))


def rounds_needed(sd: float, target: float, level: float = 1 - CONFIDENCE, borrowed: int = 0) -> int | None:
    """Smallest even number of balanced rounds that detects `target` with 80 % power; None above MAX_ROUNDS.

    `level` is the p value to get below, `borrowed` the degrees of freedom that other shapes lend.
    """

    def enough(rounds: int) -> bool:
        return detectable(rounds - 2 + borrowed, level) * sd / math.sqrt(rounds) <= target

    return _first_even(enough)


def rounds_equivalent(sd: float, room: float) -> int | None:
    """Smallest even number of balanced rounds whose 90 % interval is narrower than `room` either way."""

    def enough(rounds: int) -> bool:
        return quantile(CONFIDENCE, rounds - 2) * sd / math.sqrt(rounds) < room

    return _first_even(enough)


def _first_even(enough: Callable[[int], bool]) -> int | None:
    """The smallest even number of rounds, MIN_ROUNDS to MAX_ROUNDS, that is enough; more is enough too."""
    low, high = MIN_ROUNDS // 2, MAX_ROUNDS // 2
    if not enough(2 * high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(2 * middle) else (middle + 1, high)
    return 2 * low
