"""The benchmark protocol as seen from outside: whose latency is being asked for, and what a reading becomes a row of.

FlagGems and the builtin provider share one protocol (class Benchmark: get_input_iter, record_shapes, get_latency, run).
Instances are wrapped, not the class, so that subclasses with their own get_latency or run are covered too. It must not
know how a reading is made.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from typing import Any

from harness.plugins import failures, session, shapes
from harness.plugins.correctness import Checks, Taken
from harness.plugins.question import Reading
from harness.plugins.shapes import Walk, scalar, shape_text
from harness.plugins.variants import observer
from harness.records import Row, RowKey

MODULES = ("benchmark.base", "benchmark.performance_utils")  # FlagGems from 5.3 on, and before
METRIC = "latency"


class Asking:
    """What the provider is asking right now: the latency of one shape. `readings` are the timer's answers so far.

    `taken`, where it is wanted, is to hold the result of the call; a reference's is called for that alone, not timed.
    """

    def __init__(self, name: tuple[str, str, str], taken: Taken | None = None) -> None:
        self.name = name
        self.taken = taken
        self.readings: list[Reading] = []


_asking: list[Asking] = []


def asking() -> Asking | None:
    """The row being asked for, or None outside get_latency."""
    return _asking[-1] if _asking else None


def attach() -> None:
    """Wrap every Benchmark made from now on. Raises pytest.UsageError when the provider has none."""
    found = [module for name, module in sys.modules.items() if f".{name}".endswith(tuple(f".{end}" for end in MODULES))]
    classes = [module.Benchmark for module in found if hasattr(module, "Benchmark")]
    if not classes:
        text = f"no module {' or '.join(MODULES)} with a class Benchmark was imported by the benchmark file"
        raise importlib.import_module("pytest").UsageError(text)
    for cls in classes:
        # __new__, for a subclass may have an __init__ that never calls this one.
        cls.__new__ = staticmethod(_new)
    shapes.prepare()


def _new(cls: type, *_: Any, **__: Any) -> Any:
    benchmark: Any = object.__new__(cls)
    state = _State(Checks(benchmark, cls))
    benchmark.__dict__["get_input_iter"] = _with_dtype(benchmark, cls, state)
    benchmark.__dict__["get_latency"] = _with_row(benchmark, cls, state)
    return benchmark


class _State:
    """Where one benchmark is: its data type, and how many latencies of it were asked for."""

    dtype = ""
    asked = 0
    without_shape = False  # the next latency is of no shape

    def __init__(self, checks: Checks) -> None:
        self.checks = checks


def _with_dtype(benchmark: Any, cls: Any, state: _State) -> Callable[[Any], Iterator[Any]]:
    def get_input_iter(dtype: Any) -> Iterator[Any]:
        state.dtype, state.asked = scalar(dtype), 0
        # Only the operator under test is measured: the reference would double the device time, and metrics that
        # need its latency (gbps at level comprehensive) would fail without it. Asked for, it is called, not timed.
        if METRIC in benchmark.to_bench_metrics:
            benchmark.to_bench_metrics = state.checks.metrics()
        walk = shapes.settle(benchmark)
        if walk is not None:
            walk.start()
        failed = yield from _inputs(benchmark, cls, dtype, walk, state.checks)
        if not failed:
            shapes.ended(benchmark, walk)
        if not state.asked and (failed or walk == []):
            # FlagGems prints a table of the data type and fails on an empty one; the types after it would be lost.
            state.without_shape, benchmark.to_bench_metrics = True, [METRIC]
            yield ()

    return get_input_iter


def _inputs(benchmark: Any, cls: Any, dtype: Any, walk: Walk | None, checks: Checks) -> Generator[Any, None, bool]:
    """The inputs of one data type; those of a shape that cannot be made are a row without a number. True if any."""
    failed = False
    while True:
        try:
            yield from checks.between(cls.get_input_iter(benchmark, dtype))
            return failed
        except BaseException as error:
            at = walk.current if walk is not None else ""
            key = session.current().number(benchmark.op_name, scalar(dtype), at)
            if not failures.is_failure(error) or not failures.survived(error, key):
                raise
            failed = True
        failures.free_memory()
        if walk is None or shapes.by_position(benchmark) or not walk.skip():
            why = f"{cls.__name__}.get_input_iter cannot be taken up behind the shape that failed"
            session.current().emit_event("DTYPE_ENDED", "", op=benchmark.op_name, dtype=scalar(dtype), why=why)
            return failed


def _with_row(benchmark: Any, cls: Any, state: _State) -> Callable[..., Any]:
    def get_latency(op: Any, *args: Any, **kwargs: Any) -> Any:
        if state.without_shape:
            state.without_shape = False
            return math.nan
        if state.checks.is_reference():
            state.checks.reference(lambda taken: _take(taken, benchmark, cls, op, args, kwargs), (args, kwargs))
            return math.nan
        state.asked += 1
        name = (benchmark.op_name, state.dtype, shape_text(benchmark.record_shapes(*args, **kwargs)))
        key = session.current().number(*name)
        asked = Asking(name, state.checks.own(str(key)))
        session.current().row = str(key)
        _asking.append(asked)
        try:
            latency = cls.get_latency(benchmark, op, *args, **kwargs)
        except BaseException as error:
            if not failures.is_failure(error) or not failures.survived(error, key):
                raise
        else:
            _emit(asked, key, latency)
            return latency
        finally:
            _asking.pop()
            session.current().row = ""
        failures.free_memory()
        return math.nan  # what FlagGems prints; with no metric but the latency, it computes nothing from it

    return get_latency


def _take(taken: Taken, benchmark: Any, cls: Any, op: Any, args: Any, kwargs: Any) -> None:
    """Have get_latency ask for the latency of `op`, where the timer takes its result instead."""
    _asking.append(Asking(("", "", ""), taken))
    try:
        cls.get_latency(benchmark, op, *args, **kwargs)
    finally:
        _asking.pop()


def _emit(asked: Asking, key: RowKey, latency: Any) -> None:
    """The rows of one shape. A device timer's row holds what get_latency made of its reading: it may correct it."""
    if not asked.readings:
        planned = session.current().cell.instrument
        reason = "TIMER_BYPASSED: get_latency did not call triton.testing.do_bench"
        asked.readings.append(Reading("", None, planned.timer, planned.l2, 1, reason, ()))
    timed = Counter(reading.config for reading in asked.readings)
    for reading in {reading.config: reading for reading in asked.readings}.values():
        own = key if not reading.config else session.current().number(*asked.name, reading.config)
        value, reason = reading.value, reading.reason
        if timed[reading.config] > 1:
            value, reason = None, f"TIMER_TWICE: get_latency timed {timed[reading.config]} calls; a row is one"
        if not reason:
            value, reason = checked(value if reading.timer == "compile" else latency)
        session.current().emit_row(_row(own, reading, value, reason))


def _row(key: RowKey, reading: Reading, value: float | None, reason: str) -> Row:
    variants = [observer().variant(hash) for hash in reading.variants]
    metrics: Counter[str] = Counter()
    for variant in variants:
        metrics.update(variant.metrics)
    return Row(
        op=key.op,
        dtype=key.dtype,
        shape=key.shape,
        occurrence=key.occurrence,
        config=key.config,
        value=value,
        unit="ms",
        timer=reading.timer,
        l2=reading.l2,
        repeat=reading.repeat,
        reason=reason,
        metrics=dict(metrics),
        variants=tuple(variant.id for variant in variants),
    )


def checked(latency: Any) -> tuple[float | None, str]:
    """(value, "") for a latency that can be one; (None, reason) for 0, less, NaN, inf or no number at all."""
    if isinstance(latency, (int, float)) and math.isfinite(latency) and latency > 0:
        return float(latency), ""
    return None, f"TIMER_INVALID: latency {latency!r}"
