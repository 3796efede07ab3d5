"""The margin: what an effect must clear, and why that much. The largest of the user's wish, the timer and an A/A floor.

Must not know cells or verdict words. Log ratios, but ms where a name says so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.pairing import Pairing
from harness.records import Judge, RowKey
from harness.statistics import percent

#: An effect must exceed this many timer ticks to be one.
TICKS = 2


@dataclass(frozen=True)
class Floor:
    """How far identical sides move, and where that was seen."""

    p95: float
    source: str


@dataclass(frozen=True)
class Bar:
    """What an effect must clear; log ratios but `q`."""

    margin: float
    resolution: float  # one tick of the timer
    q: float
    source: str = "judge.margin_pct"

    def __str__(self) -> str:
        return f"margin {percent(self.margin):.2f} % ({self.source})"


def bar(judge: Judge, resolution: float, floor: Floor | None = None) -> Bar:
    """The margin of practical relevance: the user's, two ticks of the timer, or the A/A floor where that is largest."""
    choices = [(math.log1p(judge.margin_pct / 100), "judge.margin_pct")]
    choices.append((TICKS * resolution, f"{TICKS} ticks of the timer"))
    if floor:
        choices.append((floor.p95, floor.source))
    margin, source = max(choices, key=lambda choice: choice[0])
    return Bar(margin, resolution, judge.q, source)


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


def _common_step(first: float, second: float, tolerance: float) -> float:
    """Greatest common divisor of two lengths known to within `tolerance`."""
    first, second = max(first, second), min(first, second)
    while second > tolerance:
        first, second = second, abs(math.remainder(first, second))
    return first if first > tolerance else 0.0
