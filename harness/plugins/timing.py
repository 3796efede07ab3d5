"""pytest plugin: the planned timer in the place of triton.testing.do_bench, and the row that says what timed it.

The plan decides, this plugin obeys, the row says what happened. Tuners that benchmark through do_bench keep upstream's.
"""

from __future__ import annotations

import importlib
import inspect
import statistics
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from harness.plugins import compiling, graph, protocol, session
from harness.plugins.autotune import unwatched, watch
from harness.plugins.ending import pytest_runtest_logreport as pytest_runtest_logreport  # hooks of this plugin too
from harness.plugins.ending import pytest_sessionfinish as pytest_sessionfinish
from harness.plugins.protocol import Asking, Reading
from harness.plugins.variants import observer
from harness.records import Marker

#: Every benchmark function a provider may call: (module, attribute).
BENCHMARKS = (("triton.testing", "do_bench"), ("triton.backends.ascend.testing", "do_bench_npu"))
SUMMARIES: Mapping[str, Callable[[list[float]], Any]] = {
    "median": statistics.median,
    "mean": statistics.fmean,
    "min": min,
    "max": max,
    "all": list,
}


def pytest_collection_finish(session: Any) -> None:
    """The provider is imported: wrap its benchmarks and put the planned timer in place."""
    if session.items:
        Timer(stop=lambda reason: setattr(session, "shouldstop", reason)).install()


class Timer:
    """What the provider gets when it calls do_bench. `stop(reason)` ends the pytest session after the current test."""

    def __init__(self, stop: Callable[[str], None]) -> None:
        self._stop = stop
        self._busy = False
        self._plan = session.current().cell

    def install(self) -> None:
        """Wrap the provider's benchmarks; replace the benchmark functions; warm the compiler where it is timed."""
        protocol.attach()
        importlib.import_module("triton.testing")
        for name, attribute in BENCHMARKS:
            if hasattr(sys.modules.get(name), attribute):
                setattr(sys.modules[name], attribute, self._replacing(getattr(sys.modules[name], attribute)))
        if self._plan.instrument.timer == "compile":
            compiling.remember_entries()
            compiling.warm_compiler()

    def _replacing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        @wraps(original)
        def do_bench(fn: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
            asked = protocol.asking()
            if asked is None or self._busy or watch().depth:  # a tuner's, or nobody's
                return original(fn, *args, **kwargs)
            bound = signature.bind(fn, *args, **kwargs)
            bound.apply_defaults()
            self._busy = True
            try:
                return self._measure(asked, fn, lambda: original(fn, *args, **kwargs), bound.arguments)
            finally:
                self._busy = False

        return do_bench

    def _measure(self, asked: Asking, fn: Callable[[], Any], direct: Callable[[], Any], ask: Mapping[str, Any]) -> Any:
        if self._plan.instrument.timer == "compile":
            with session.current().phase("time"):
                readings = compiling.compile_call(fn)
            asked.readings.extend(readings)
            return sum(reading.value or 0.0 for reading in readings)
        with session.current().phase("tune"):  # and compile, which is charged apart
            fn()
        with observer().launches() as launched:
            fn()
        with session.current().phase("time"), unwatched():
            times = self._captured(fn, ask) if self._plan.instrument.timer == "cuda_graph" else None
            if times is None:
                return self._directly(asked, direct, ask, tuple(launched))
        asked.readings.append(Reading("", None, "cuda_graph", "warm", 1, "", tuple(launched)))
        return _summary(times, ask)

    def _captured(self, fn: Callable[[], Any], ask: Mapping[str, Any]) -> list[float] | None:
        """The captured times, or None (told by a marker) when this call can only be timed directly."""
        interface = importlib.import_module("triton.runtime.driver").driver.active.get_device_interface()
        try:
            return graph.replayed(fn, float(ask.get("rep", 100)), ask.get("grad_to_none") or (), interface)
        except graph.CapturePoisoned as error:
            text = f"{Marker.BENCHMARK_CAPTURE_POISONED.value}: {session.first_line(error)}"
            session.current().emit_event(Marker.BENCHMARK_CAPTURE_POISONED.value, reason=session.first_line(error))
            self._stop(text)
            raise
        except graph.CaptureFailed as error:
            repeat = str(self._repeat(ask))
            code = Marker.BENCHMARK_DIRECT_NO_CUDAGRAPH.value
            session.current().emit_event(code, repeat=repeat, reason=session.first_line(error))
            if self._plan.measure.graph == "require":
                raise
            return None

    def _directly(self, asked: Asking, direct: Callable[[], Any], ask: Mapping[str, Any], launched: tuple[str, ...]) -> Any:  # fmt: skip # noqa: E501
        """Upstream's own do_bench, as the benchmark asked; the median over `direct_repeat` calls of it."""
        repeat, reason = self._repeat(ask), ""
        try:
            values = [direct() for _ in range(repeat)]
        except ZeroDivisionError:  # upstream divides by its estimate, which is 0 when the events read 0 (triton #8948)
            values, reason = [float("nan")], "TIMER_INVALID: the estimate was 0 ms"
        l2 = "flushed" if self._plan.instrument.timer == "cuda_graph" else self._plan.instrument.l2
        asked.readings.append(Reading("", None, "direct", l2, repeat, reason, launched))
        return values[0] if len(values) == 1 else statistics.median(values)

    def _repeat(self, ask: Mapping[str, Any]) -> int:
        """How often to ask: once where the answer is no single number."""
        many = ask.get("quantiles") is not None or ask.get("return_mode") == "all"
        return 1 if many else self._plan.measure.direct_repeat


def _summary(times: list[float], ask: Mapping[str, Any]) -> Any:
    quantiles: list[float] | None = ask.get("quantiles")
    if quantiles is not None:
        values = [_quantile(sorted(times), share) for share in quantiles]
        return values[0] if len(values) == 1 else values
    return SUMMARIES[ask.get("return_mode", "mean")](times)


def _quantile(ordered: list[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
