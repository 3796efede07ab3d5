import math
import sys
from types import ModuleType, SimpleNamespace

import pytest

from harness import codec
from harness.plugins import protocol, session
from harness.plugins.protocol import Reading
from harness.records import Event, Row
from tests.plugins.target import make_cell


class Size(tuple):
    """Stands for torch.Size."""


class Dtype:
    def __str__(self):
        return "torch.float16"


@pytest.fixture
def current(tmp_path, monkeypatch):
    found = session.Session(make_cell(), tmp_path, started_cold=True)
    monkeypatch.setattr(session, "current", lambda: found)
    return found


@pytest.fixture
def benchmark_class(monkeypatch):
    class Benchmark:
        answers = [Reading("", None, "direct", "flushed", 1, "", ())]

        def __init__(self):
            self.op_name, self.to_bench_metrics = "add", ["latency_base", "latency", "gbps"]

        def get_input_iter(self, dtype):
            yield (Size((4, 4)),)

        def record_shapes(self, *args, **kwargs):
            return [*args], kwargs

        def get_latency(self, op, *args, **kwargs):
            protocol.asking().readings.extend(self.answers)
            return op()

    module = ModuleType("benchmark.base")
    module.Benchmark = Benchmark
    monkeypatch.setitem(sys.modules, "benchmark.base", module)
    protocol.attach()
    return Benchmark


def rows(current):
    return list(codec.read_lines(Row, current.attempt / "rows.jsonl"))


def test_every_call_of_get_latency_makes_one_row(current, benchmark_class):
    bench = benchmark_class()
    (inputs,) = bench.get_input_iter(Dtype())
    assert bench.get_latency(lambda: 0.25, *inputs, dim=-1) == 0.25
    (row,) = rows(current)
    assert (row.op, row.dtype, row.shape, row.value) == ("add", "float16", '[[[4,4]],{"dim":-1}]', 0.25)


def test_only_the_operator_under_test_is_measured(current, benchmark_class):
    bench = benchmark_class()
    list(bench.get_input_iter(Dtype()))
    assert bench.to_bench_metrics == ["latency"]


def test_a_subclass_with_an_init_of_its_own_is_covered(current, benchmark_class):
    class Own(benchmark_class):
        def __init__(self):
            self.op_name, self.to_bench_metrics = "own", ["latency"]

        def get_latency(self, op, *args, **kwargs):
            return super().get_latency(op, *args, **kwargs) / 2

    Own().get_latency(lambda: 1.0)
    assert [(row.op, row.value) for row in rows(current)] == [("own", 0.5)]


@pytest.mark.parametrize("latency", [0, -0.1, math.nan, math.inf, [0.1, 0.2], None])
def test_a_latency_that_cannot_be_one_is_a_reason_and_never_a_number(current, benchmark_class, latency):
    benchmark_class().get_latency(lambda: latency)
    (row,) = rows(current)
    assert row.value is None and row.reason.startswith("TIMER_INVALID")


def test_a_latency_that_no_known_timer_made_is_not_believed(current, benchmark_class):
    benchmark_class.answers = []
    benchmark_class().get_latency(lambda: 0.1)
    (row,) = rows(current)
    assert row.value is None and row.reason.startswith("TIMER_BYPASSED")


def test_two_timings_within_one_latency_are_not_one_row(current, benchmark_class):
    benchmark_class.answers = benchmark_class.answers * 2
    benchmark_class().get_latency(lambda: 0.1)
    (row,) = rows(current)
    assert row.value is None and row.reason.startswith("TIMER_TWICE")


@pytest.mark.parametrize(
    "error, code",
    [(RuntimeError("boom"), "ROW_FAILED"), (MemoryError("CUDA out of memory"), "ROW_OOM"), (KeyboardInterrupt(), None)],
)
def test_an_error_is_told_with_its_row_and_goes_on(current, benchmark_class, error, code):
    def fails():
        raise error

    with pytest.raises(type(error)):
        benchmark_class().get_latency(fails, Size((2,)))
    path = current.attempt / "events.jsonl"
    events = list(codec.read_lines(Event, path)) if path.exists() else []
    assert [event.code for event in events] == [code] * bool(code)
    assert all("[[2]]" in event.row and str(error) in event.detail["error"] for event in events)


def test_an_input_that_cannot_be_made_is_told_too(current, benchmark_class):
    class NoMemory(benchmark_class):
        def get_input_iter(self, dtype):
            raise RuntimeError("out of memory")
            yield

    with pytest.raises(RuntimeError):
        list(NoMemory().get_input_iter(Dtype()))
    (event,) = codec.read_lines(Event, current.attempt / "events.jsonl")
    assert (event.code, event.row) == ("ROW_OOM", "add float16 ")


def test_a_shape_has_no_address_of_an_object_in_it():
    assert protocol.shape_text([Size((2, 3)), Dtype(), object(), 0.5]) == '[[2,3],"float16","object",0.5]'


def test_a_provider_without_the_protocol_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(protocol.sys, "modules", {"pytest": pytest, "benchmark.base": SimpleNamespace()})
    with pytest.raises(pytest.UsageError, match="benchmark.base or benchmark.performance_utils"):
        protocol.attach()
