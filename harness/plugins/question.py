"""One call of do_bench: what it was asked, what a timer read, and the answer that upstream would make of such times."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

SUMMARIES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "mean": statistics.fmean,
    "min": min,
    "max": max,
}


@dataclass(frozen=True)
class Question:
    """What to time, upstream's way of timing it, and the arguments it was asked with."""

    call: Callable[[], Any]
    upstream: Callable[[], Any]
    arguments: Mapping[str, Any]

    @property
    def wants_many(self) -> bool:
        """True where the answer is no single number."""
        return self.arguments.get("quantiles") is not None or self.return_mode == "all"

    @property
    def return_mode(self) -> str:
        return str(self.arguments.get("return_mode", "mean"))

    @property
    def flushes(self) -> bool:
        """True where upstream clears the second-level cache before each call: do_bench does, do_bench_npu if asked."""
        return bool(self.arguments.get("clear_l2_cache", "active" not in self.arguments))

    @property
    def rep_ms(self) -> float:
        return float(self.arguments.get("rep", 100))

    @property
    def gradients(self) -> Sequence[Any]:
        return self.arguments.get("grad_to_none") or ()

    def answer(self, times: Sequence[float]) -> Any:
        """Quantiles, all times or one summary, as upstream's _summarize_statistics: quantiles go first."""
        quantiles = self.arguments.get("quantiles")
        if quantiles is not None:
            found = [quantile(times, part) for part in quantiles]
            return found[0] if len(found) == 1 else found
        return list(times) if self.return_mode == "all" else SUMMARIES[self.return_mode](times)


@dataclass(frozen=True)
class Reading:
    """One value a timer made, in ms (None with a reason). `variants` are the cache hashes of what it launched."""

    config: str
    value: float | None
    timer: Literal["compile", "direct", "cuda_graph"]
    l2: Literal["none", "warm", "flushed"]
    repeat: int
    reason: str
    variants: tuple[str, ...]


def quantile(times: Sequence[float], part: float) -> float:
    """The value that `part` (0 to 1) of the times lie below, linear between two of them."""
    ordered, place = sorted(times), part * (len(times) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below + (above - below) * (place - math.floor(place))


def impossible(times: Any) -> str:
    """The first of these times (one, or a list) that can be none, as a reason; "" where each is finite and above 0.

    Event clocks do run backwards (rocm-libraries #6379), and read 0 (triton #8948).
    """
    for time in times if isinstance(times, (list, tuple)) else (times,):
        if isinstance(time, (list, tuple)):
            found = impossible(time)
        else:
            found = "" if math.isfinite(time) and time > 0 else f"TIMER_INVALID: a time of {time!r} ms"
        if found:
            return found
    return ""


def unresolved(remainders: Sequence[float]) -> str:
    """Why remainders of flush-and-call less flush say nothing, as a reason; "" where all are above 0.

    One that is not is too little resolution for so short a call, and no clock that runs backwards.
    """
    if not all(map(math.isfinite, remainders)):
        return impossible(remainders)
    short = sum(time <= 0 for time in remainders)
    return f"TIMER_RESOLUTION: {short} of {len(remainders)} replays took no longer than their flushes" if short else ""
