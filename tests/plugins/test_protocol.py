import math
import sys
from types import ModuleType, SimpleNamespace
from unittest import SkipTest

import pytest

from harness import codec
from harness.plugins import protocol, session
from harness.plugins.protocol import Reading
from harness.plugins.replay import ReplayRefused
from harness.records import CaptureTexts, Event, Row
from tests.plugins.target import make_cell


class Size(tuple):
    """Stands for torch.Size."""


class Dtype:
    def __str__(self):
        return "torch.float16"


@pytest.fixture
def current(tmp_path, monkeypatch):
    texts = CaptureTexts(fatal=("illegal memory access",))
    found = session.Session(make_cell(capture_texts=texts), tmp_path, started_cold=True)
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
    path = current.attempt / "rows.jsonl"
    return list(codec.read_lines(Row, path)) if path.exists() else []


def events(current):
    path = current.attempt / "events.jsonl"
    return list(codec.read_lines(Event, path)) if path.exists() else []


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


@pytest.mark.parametrize("how", ["raise", "pytest.fail"])
@pytest.mark.parametrize(
    "error, code, word",
    [(RuntimeError("boom"), "ROW_FAILED", "FAILED"), (MemoryError("CUDA out of memory"), "ROW_OOM", "OOM")],
)
def test_a_shape_that_fails_is_a_row_without_a_number(current, benchmark_class, error, code, word, how):
    def fails():
        if how == "raise":
            raise error
        pytest.fail(str(error))

    bench = benchmark_class()
    assert math.isnan(bench.get_latency(fails, Size((2,))))
    assert bench.get_latency(lambda: 0.5, Size((3,))) == 0.5
    (event,) = events(current)
    failed, good = rows(current)
    assert (event.code, event.row) == (code, str(failed.key)) and str(error) in event.detail["error"]
    assert failed.value is None and failed.reason.startswith(f"{word}: ") and str(error) in failed.reason
    assert good.value == 0.5


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), pytest.skip.Exception("no such hardware"), pytest.exit.Exception("enough"), SkipTest("no")],
)
def test_what_is_no_failure_of_the_shape_goes_on_untold(current, benchmark_class, error):
    def ends():
        raise error

    with pytest.raises(type(error)):
        benchmark_class().get_latency(ends)
    assert not rows(current) and not events(current)


def test_what_is_a_failure_of_the_cell_is_no_row_and_goes_on(current, benchmark_class):
    def refused():
        raise ReplayRefused("made for another op")

    with pytest.raises(ReplayRefused):
        benchmark_class().get_latency(refused)
    assert not rows(current) and [event.code for event in events(current)] == ["ROW_FAILED"]


def test_a_kernel_that_failed_on_the_device_ends_the_cell(current, benchmark_class):
    def faults():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(RuntimeError):
        benchmark_class().get_latency(faults)
    (row,) = rows(current)
    assert row.value is None and row.reason.startswith("FAULT: RuntimeError: CUDA error: an illegal")


class Device:
    """Stands for torch.<runtime>, which has no method more that is used here."""

    def __init__(self, answer=None):
        self.answer, self.emptied = answer, 0

    def synchronize(self):
        if self.answer:
            raise RuntimeError(self.answer)

    def empty_cache(self):
        self.emptied += 1


def on_device(monkeypatch, device):
    torch = ModuleType("torch")
    torch.musa, torch.zeros = device, lambda size, device: None
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setenv("CALIBER_RUNTIME", "musa")


def fails(*sizes):
    raise RuntimeError("unknown error")


def test_after_a_failure_the_device_is_asked_and_its_memory_given_back(current, benchmark_class, monkeypatch):
    device = Device()
    on_device(monkeypatch, device)
    assert math.isnan(benchmark_class().get_latency(fails))
    assert device.emptied == 1 and [event.code for event in events(current)] == ["ROW_FAILED"]


def test_a_device_that_does_not_answer_any_more_ends_the_cell(current, benchmark_class, monkeypatch):
    on_device(monkeypatch, Device("MUSA error: unspecified launch failure"))
    with pytest.raises(RuntimeError, match="unknown error"):
        benchmark_class().get_latency(fails, Size((2,)))
    failed, lost = events(current)
    assert (failed.code, lost.code, lost.row) == ("ROW_FAILED", "CONTEXT_LOST", failed.row)
    assert "unspecified launch failure" in lost.detail["reason"]
    assert rows(current)[0].reason == "FAULT: RuntimeError: unknown error"


def test_a_row_that_cannot_be_written_is_no_failed_shape(current, benchmark_class, monkeypatch):
    """A full disk."""

    def full(row):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(current, "emit_row", full)
    with pytest.raises(OSError):
        benchmark_class().get_latency(lambda: 0.5)


def test_an_input_that_cannot_be_made_is_told_and_ends_its_dtype(current, benchmark_class):
    class NoMemory(benchmark_class):
        def get_input_iter(self, dtype):
            raise RuntimeError("out of memory")
            yield

    bench = NoMemory()
    (nothing,) = bench.get_input_iter(Dtype())
    assert nothing == () and math.isnan(bench.get_latency(lambda: 0.5, *nothing))  # what an empty table is made of
    assert [(event.code, event.row) for event in events(current)] == [("ROW_OOM", "add float16 "), ("DTYPE_ENDED", "")]
    assert [row.reason for row in rows(current)] == ["OOM: RuntimeError: out of memory"]


def test_a_skip_while_inputs_are_made_stays_a_skip(current, benchmark_class):
    class Skips(benchmark_class):
        def get_input_iter(self, dtype):
            pytest.skip("needs a large device")
            yield

    with pytest.raises(pytest.skip.Exception):
        list(Skips().get_input_iter(Dtype()))
    assert not events(current)


def test_a_provider_without_the_protocol_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(protocol.sys, "modules", {"pytest": pytest, "benchmark.base": SimpleNamespace()})
    with pytest.raises(pytest.UsageError, match="benchmark.base or benchmark.performance_utils"):
        protocol.attach()
