"""pytest plugin: the planned timer in the place of triton.testing.do_bench, and the row that says what timed it.

The plan decides, this plugin obeys, the row says what happened. Tuners that benchmark through do_bench keep upstream's.
"""

from __future__ import annotations

import importlib
import inspect
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from harness.plugins import capture, compiling, graph, protocol, session
from harness.plugins.autotune import unwatched
from harness.plugins.ending import pytest_runtest_logreport as pytest_runtest_logreport  # hooks of this plugin too
from harness.plugins.ending import pytest_sessionfinish as pytest_sessionfinish
from harness.plugins.protocol import Asking
from harness.plugins.question import Question, Reading, impossible, unresolved
from harness.plugins.variants import observer
from harness.records import Marker

#: Every benchmark function a provider may call: (module, attribute).
BENCHMARKS = (("triton.testing", "do_bench"), ("triton.backends.ascend.testing", "do_bench_npu"))
#: A row is timed again when something was compiled meanwhile: a call whose arguments change from one to the next
#: (FlagGems' random offsets) may need a second specialization.
ATTEMPTS = 2

Answered = tuple[Reading, Any]


def pytest_collection_finish(session: Any) -> None:
    """The provider is imported: wrap its benchmarks and put the planned timer in place."""
    if session.items:
        Timer(stop=lambda reason: setattr(session, "shouldstop", reason)).install()


class Timer:
    """What the provider gets when it calls do_bench. `stop(reason)` ends the pytest session after the current test."""

    def __init__(self, stop: Callable[[str], None]) -> None:
        self._stop = stop
        self._busy = False
        self._poisoned = ""
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
            if asked is None or self._busy or session.current().tuned:  # a tuner's, or nobody's
                return original(fn, *args, **kwargs)
            if asked.taken and asked.taken.reference:
                return asked.taken.take(fn)
            bound = signature.bind(fn, *args, **kwargs)
            bound.apply_defaults()
            self._busy = True
            try:
                answer = self._measure(asked, Question(fn, lambda: original(fn, *args, **kwargs), bound.arguments))
                if asked.taken:
                    asked.taken.keep(fn)
                return answer
            finally:
                self._busy = False

        return do_bench

    def _measure(self, asked: Asking, question: Question) -> Any:
        if self._plan.instrument.timer == "compile":
            with session.current().phase("time"):
                readings = compiling.compile_call(question.call)
            asked.readings.extend(readings)
            return sum(reading.value or 0.0 for reading in readings)
        if self._poisoned:
            raise graph.CapturePoisoned(self._poisoned)
        try:
            reading, answer = self._timed(question)
        except RuntimeError as error:
            self._tell_fault(error)
            raise
        asked.readings.append(reading)
        return answer

    def _timed(self, question: Question) -> Answered:
        with session.current().phase("tune"):  # and compile, which is charged apart
            question.call()
        with observer().launches() as launched:
            question.call()
        with session.current().phase("time"), unwatched():
            captured = self._captured(question) if self._plan.instrument.timer == "cuda_graph" else None
            reading, answer = captured or _proven(lambda: self._directly(question))
        return replace(reading, variants=tuple(launched)), answer

    def _captured(self, question: Question) -> Answered | None:
        """Reading and answer by graph replay; None where that (told by a marker) does not work and need not."""
        try:
            return _proven(lambda: self._replayed(question))
        except graph.CapturePoisoned as error:
            self._poisoned = session.first_line(error)
            code = Marker.BENCHMARK_CAPTURE_POISONED.value
            session.current().emit_event(code, reason=self._poisoned)
            self._stop(f"{code}: {self._poisoned}")
            raise
        except graph.CaptureFailed as error:
            if self._plan.measure.graph == "require":
                raise graph.CaptureFailed(
                    f"measure.graph is 'require', but this call is not captured: {error}"
                ) from None
            code, repeat = Marker.BENCHMARK_DIRECT_NO_CUDAGRAPH.value, str(self._repeat(question))
            session.current().emit_event(code, repeat=repeat, reason=str(error))
            return None

    def _replayed(self, question: Question) -> Answered:
        instrument = self._plan.instrument
        driver = _driver()
        flush = _flusher(driver) if instrument.l2 == "flushed" else None
        device = graph.Device(driver.get_device_interface(), instrument.capture_texts, observer().kernels.values())
        times = graph.replayed(graph.Calls(question.call, question.gradients, flush), question.rep_ms, device)
        reason = impossible(times) if flush is None else unresolved(times)
        return Reading("", None, "cuda_graph", instrument.l2, 1, reason, ()), question.answer(times)

    def _directly(self, question: Question) -> Answered:
        """Upstream's own do_bench, as the benchmark asked; the median over `direct_repeat` calls of it."""
        _settle_flush(_driver())
        repeat = self._repeat(question)
        try:
            values = [question.upstream() for _ in range(repeat)]
            reason = impossible(values)
        except (ZeroDivisionError, ValueError, OverflowError) as error:
            # upstream divides by its estimate, which is 0 when the events read 0 (triton #8948), and rounds the result
            if not isinstance(error, ZeroDivisionError) and "cannot convert float" not in str(error):
                raise
            values, reason = [math.nan], f"TIMER_INVALID: {session.first_line(error)}"
        answer = values[0] if len(values) == 1 else statistics.median(values)
        return Reading("", None, "direct", "flushed" if question.flushes else "warm", repeat, reason, ()), answer

    def _repeat(self, question: Question) -> int:
        """How many calls of do_bench make one direct row: a median of lists is none."""
        return 1 if question.wants_many else self._plan.measure.direct_repeat

    def _tell_fault(self, error: RuntimeError) -> None:
        """The event of a kernel that failed on the device; after one the vendor names, nothing more is run."""
        if isinstance(error, (graph.CaptureFailed, graph.CapturePoisoned)):
            return
        fault = capture.known_fault(error, self._plan.instrument.capture_texts)
        if fault or getattr(error, "caliber_capturing", False):
            session.current().emit_event("KERNEL_FAULT", text=fault or session.first_line(error))
        if fault:
            self._stop(f"KERNEL_FAULT: {fault}")


def _proven(timed: Callable[[], Answered]) -> Answered:
    """What `timed` read, proven to hold no compilation: timed once more if there was one, then without a number."""
    for _ in range(ATTEMPTS):
        before = observer().compile_count
        reading, answer = timed()
        compiled = observer().compile_count - before
        if not compiled:
            return reading, answer
    return replace(reading, reason=f"TIMER_COMPILED: {compiled} kernels were compiled inside the timed region"), answer


def _driver() -> Any:
    return importlib.import_module("triton.runtime.driver").driver.active


def _flusher(driver: Any) -> Callable[[], Any]:
    """Overwrites upstream's own buffer, past whatever operators a provider has put its own in the place of.

    Under use_gems() upstream's `cache.zero_()` launches a FlagGems kernel, which may be the one under test; nobody
    overrides torch's fused zeroing of a list of tensors.
    """
    cache, torch = driver.get_empty_cache_for_benchmark(), sys.modules.get("torch")
    if torch is not None and isinstance(cache, torch.Tensor):
        return lambda: torch._foreach_zero_([cache])
    return lambda: driver.clear_cache(cache)


def _settle_flush(driver: Any) -> None:
    """Flush once as upstream does: where a provider's kernel does it, it is compiled before the clock runs.

    No row launches it, so it does not count as compiled for one either.
    """
    if not hasattr(driver, "clear_cache"):
        return
    counts = observer().compile_count, observer().cache_hits
    driver.clear_cache(driver.get_empty_cache_for_benchmark())
    observer().compile_count, observer().cache_hits = counts
