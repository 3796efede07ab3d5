"""pytest plugin: the planned timer in the place of triton.testing.do_bench, and the row that says what timed it.

The plan decides, this plugin obeys, the row says what happened. Tuners that benchmark through do_bench keep upstream's.
"""

from __future__ import annotations

import importlib
import inspect
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
SUMMARIES: Mapping[str, Callable[[list[float]], float]] = {
    "median": statistics.median,
    "mean": statistics.fmean,
    "min": min,
    "max": max,
}


def pytest_collection_finish(session: Any) -> None:
    """The provider is imported: wrap its benchmarks and put the planned timer in place."""
    if session.items:
        Timer(stop=lambda reason: setattr(session, "shouldstop", reason)).install()


@dataclass(frozen=True)
class Question:
    """One call of do_bench: what to time, upstream's way of timing it, and the arguments it was asked with."""

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
    def rep_ms(self) -> float:
        return float(self.arguments.get("rep", 100))

    @property
    def gradients(self) -> Sequence[Any]:
        return self.arguments.get("grad_to_none") or ()


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
                return self._measure(asked, Question(fn, lambda: original(fn, *args, **kwargs), bound.arguments))
            finally:
                self._busy = False

        return do_bench

    def _measure(self, asked: Asking, question: Question) -> Any:
        if self._plan.instrument.timer == "compile":
            with session.current().phase("time"):
                readings = compiling.compile_call(question.call)
            asked.readings.extend(readings)
            return sum(reading.value or 0.0 for reading in readings)
        with session.current().phase("tune"):  # and compile, which is charged apart
            question.call()
        with observer().launches() as launched:
            question.call()
        with session.current().phase("time"), unwatched():
            reading, answer = self._captured(question) or self._directly(question)
        asked.readings.append(replace(reading, variants=tuple(launched)))
        return answer

    def _captured(self, question: Question) -> tuple[Reading, Any] | None:
        """Reading and answer by graph replay; None where it is not planned or (told by a marker) does not work."""
        if self._plan.instrument.timer != "cuda_graph" or question.wants_many:
            return None
        interface = importlib.import_module("triton.runtime.driver").driver.active.get_device_interface()
        try:
            times = graph.replayed(question.call, question.rep_ms, question.gradients, interface)
        except graph.CapturePoisoned as error:
            code = Marker.BENCHMARK_CAPTURE_POISONED.value
            session.current().emit_event(code, reason=session.first_line(error))
            self._stop(f"{code}: {session.first_line(error)}")
            raise
        except graph.CaptureFailed as error:
            code, repeat = Marker.BENCHMARK_DIRECT_NO_CUDAGRAPH.value, str(self._plan.measure.direct_repeat)
            session.current().emit_event(code, repeat=repeat, reason=session.first_line(error))
            if self._plan.measure.graph == "require":
                raise
            return None
        return Reading("", None, "cuda_graph", "warm", 1, "", ()), SUMMARIES[question.return_mode](times)

    def _directly(self, question: Question) -> tuple[Reading, Any]:
        """Upstream's own do_bench, as the benchmark asked; the median over `direct_repeat` calls of it."""
        repeat, reason = (1 if question.wants_many else self._plan.measure.direct_repeat), ""
        try:
            values = [question.upstream() for _ in range(repeat)]
        except (ZeroDivisionError, ValueError, OverflowError) as error:
            # upstream divides by its estimate, which is 0 when the events read 0 (triton #8948), and rounds the result
            if not isinstance(error, ZeroDivisionError) and "cannot convert float" not in str(error):
                raise
            values, reason = [float("nan")], f"TIMER_INVALID: {session.first_line(error)}"
        l2 = "flushed" if self._plan.instrument.timer == "cuda_graph" else self._plan.instrument.l2
        answer = values[0] if len(values) == 1 else statistics.median(values)
        return Reading("", None, "direct", l2, repeat, reason, ()), answer
