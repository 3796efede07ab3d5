import math
from types import SimpleNamespace

import pytest

from harness import backends
from harness.plugins import session, timing
from harness.plugins.question import Question, impossible, unresolved
from tests.plugins.target import ON_FAKE_DEVICE, make_cell, run

TEXTS = backends.get("cuda").capture_texts
GRAPH = {**ON_FAKE_DEVICE, "timer": "cuda_graph", "l2": "warm", "capture_texts": TEXTS}
slow = pytest.mark.slow
FLUSHED = {**GRAPH, "l2": "flushed"}
TUNED = ["scale_kernel(BLOCK=64,num_warps=2,num_stages=3)", "scale_kernel(BLOCK=128,num_warps=4,num_stages=3)"]


@slow
def test_each_row_of_the_compile_timer_is_a_fresh_compile(aot_record):
    rows = aot_record.rows_of("double")
    assert len(rows) == 6 and {row.timer for row in rows} == {"compile"} and {row.l2 for row in rows} == {"none"}
    assert all(row.value > 0 for row in rows)
    # two of the three shapes are equal: had the second been found in a cache, fewer compiles would have been heard
    fresh = sum(len(row.variants) for row in aot_record.rows)
    assert aot_record.fingerprint.compile_count == fresh
    assert aot_record.fingerprint.cache_hits == 0


@slow
def test_equal_shapes_are_rows_of_their_own_and_launch_the_same_variant(aot_record):
    first, second = (row for row in aot_record.rows_of("double") if (row.dtype, row.shape) == ("float16", "[[64,64]]"))
    assert (first.occurrence, second.occurrence) == (0, 1)
    assert first.variants == second.variants and first.metrics == second.metrics


@slow
def test_every_candidate_of_a_tuner_is_a_row_and_the_untuned_kernels_are_another(aot_record):
    assert [row.config for row in aot_record.rows_of("both")] == ["", *TUNED]
    assert [row.config for row in aot_record.rows_of("scale")] == TUNED * 4
    kernels = {variant.id: variant.kernel for variant in aot_record.fingerprint.variants}
    assert [kernels[row.variants[0]] for row in aot_record.rows_of("both")] == ["double_kernel"] + ["scale_kernel"] * 2


@slow
def test_a_replayed_cell_compiles_exactly_the_recorded_candidates(aot_record, aot_replay):
    assert aot_replay.rc == 0, aot_replay.log
    assert [str(row.key) for row in aot_replay.rows] == [str(row.key) for row in aot_record.rows]
    assert [row.variants for row in aot_replay.rows] == [row.variants for row in aot_record.rows]
    assert [row.metrics for row in aot_replay.rows] == [row.metrics for row in aot_record.rows]


@slow
def test_an_operator_without_a_triton_kernel_has_no_compile_time(aot_record):
    (row,) = aot_record.rows_of("no_kernel")
    assert row.value is None and row.reason.startswith("NOTHING_COMPILED")


@slow
def test_a_failing_shape_names_itself_and_the_shapes_after_it_are_measured(aot_failing):
    assert aot_failing.rc == 0
    told = [(event.code, event.row) for event in aot_failing.events if event.code.startswith("ROW_")]
    assert told == [
        (code, f"{op} {dtype} {shape}")
        for op, shape, code in (("fails", "[[4096]]", "ROW_FAILED"), ("too_large", "[[8192]]", "ROW_OOM"))
        for dtype in ("float16", "float32")
    ]
    assert [row.value and row.value > 0 for row in aot_failing.rows_of("fails")] == [True, None, True] * 2
    assert {row.reason for row in aot_failing.rows if row.value is None} == {
        "FAILED: RuntimeError: boom",
        "OOM: RuntimeError: CUDA out of memory. Tried to allocate 80 GiB",
    }
    assert aot_failing.fingerprint.variants


@slow
def test_a_skip_is_told_with_its_reason_and_the_tests_are_counted(aot_failing):
    assert aot_failing.event("SKIPPED").detail["reason"] == "Issue #1: not working"
    assert aot_failing.event("TEST_RESULT").detail == {"passed": "2", "failed": "0", "skipped": "1"}


@slow
def test_markers_reach_the_log_although_pytest_captures_output(aot_failing):
    assert '\nROW_FAILED error="RuntimeError: boom" row="fails float16 [[4096]]"\n' in aot_failing.log


@slow
def test_a_direct_row_is_upstreams_own_do_bench_as_the_benchmark_asked(device_record):
    assert device_record.rc == 0, device_record.log
    rows = device_record.rows_of("double")
    assert {(row.value, row.timer, row.l2, row.repeat) for row in rows} == {(0.5, "direct", "flushed", 1)}
    assert all(row.variants and row.metrics["registers"] > 0 for row in rows)


@slow
def test_a_subclass_that_corrects_its_latency_is_believed(device_record):
    assert [row.value for row in device_record.rows_of("halved")] == [0.25]


@slow
def test_a_row_says_how_often_it_was_timed(device_replay):
    assert {row.repeat for row in device_replay.rows_of("double")} == {3}


@slow
def test_the_seconds_of_each_phase_are_told(device_record):
    seconds = {name: float(value) for name, value in device_record.event("PHASES").detail.items()}
    assert seconds.keys() == {"compile", "import", "time", "tune"} and min(seconds.values()) >= 0


@pytest.mark.parametrize("milliseconds", ["0", "nan"])
@slow
def test_a_clock_that_cannot_be_right_gives_a_reason_and_no_number(tmp_path, milliseconds):
    ran = run(tmp_path / "run", "halved", make_cell(**ON_FAKE_DEVICE), FAKE_MS=milliseconds)
    (row,) = ran.rows
    assert row.value is None and row.timer == "direct" and row.reason.startswith("TIMER_INVALID")


@slow
def test_a_captured_row_says_so_and_its_cache_is_warm(tmp_path):
    ran = run(tmp_path / "run", "double", make_cell(**GRAPH, direct_repeat=3))
    assert {(row.value, row.timer, row.l2, row.repeat) for row in ran.rows} == {(0.5, "cuda_graph", "warm", 1)}


@slow
def test_a_row_that_cannot_be_captured_is_timed_directly_and_marked(tmp_path):
    ran = run(tmp_path / "run", "halved", make_cell(**GRAPH, direct_repeat=3), FAKE_CAPTURE="fails")
    (row,) = ran.rows
    assert (row.value, row.timer, row.l2, row.repeat) == (0.25, "direct", "flushed", 3)
    event = ran.event("BENCHMARK_DIRECT_NO_CUDAGRAPH")
    assert event.row == str(row.key) and event.detail["repeat"] == "3"
    assert "BENCHMARK_DIRECT_NO_CUDAGRAPH repeat=3" in ran.log
    assert ran.identity.timer == "cuda_graph"  # planned; the row says what was used


@slow
def test_a_campaign_that_requires_capture_has_no_direct_rows_and_says_why(tmp_path):
    ran = run(tmp_path / "run", "halved", make_cell(**GRAPH, graph="require"), FAKE_CAPTURE="fails")
    assert [row.value for row in ran.rows] in ([], [None])
    assert ran.event("ROW_FAILED").detail["error"] == (
        "CaptureFailed: measure.graph is 'require', but this call is not captured: "
        "RuntimeError: CUDA error: operation not permitted when stream is capturing"
    )
    assert "BENCHMARK_DIRECT_NO_CUDAGRAPH" not in ran.codes


@slow
def test_after_a_poisoned_capture_nothing_more_is_run(tmp_path):
    ran = run(tmp_path / "run", "double or halved", make_cell(**GRAPH), FAKE_CAPTURE="poisons")
    assert ran.rc != 0 and not ran.rows
    assert ran.event("BENCHMARK_CAPTURE_POISONED").row == "double float16 [[64,64]]"
    assert ran.event("TEST_RESULT").detail == {"passed": "0", "failed": "1", "skipped": "0"}


@slow
def test_a_kernel_that_faults_while_captured_is_a_failed_row_and_the_last_one(tmp_path):
    ran = run(tmp_path / "run", "double or halved", make_cell(**GRAPH), FAKE_CAPTURE="faults")
    assert ran.rc != 0 and not any(row.value for row in ran.rows)
    fault = ran.event("KERNEL_FAULT")
    assert fault.detail["text"] == "CUDA error: an illegal memory access was encountered during capture"
    assert fault.row == "double float16 [[64,64]]"
    assert "illegal memory access" in ran.event("ROW_FAILED").detail["error"]
    assert ran.event("TEST_RESULT").detail == {"passed": "0", "failed": "1", "skipped": "0"}


@slow
def test_a_flushed_graph_takes_the_flushes_out_and_its_rows_say_flushed(tmp_path):
    ran = run(tmp_path / "run", "double", make_cell(**FLUSHED, direct_repeat=3), FAKE_FLUSH_MS="2")
    assert {(row.value, row.timer, row.l2, row.repeat) for row in ran.rows} == {(0.5, "cuda_graph", "flushed", 1)}
    assert ran.identity.l2 == "flushed"


@slow
def test_a_fallback_of_a_flushed_graph_is_direct_and_flushed(tmp_path):
    ran = run(tmp_path / "run", "halved", make_cell(**FLUSHED), FAKE_CAPTURE="fails")
    assert [(row.value, row.timer, row.l2) for row in ran.rows] == [(0.25, "direct", "flushed")]


@slow
def test_nothing_left_of_a_flushed_call_is_no_time(tmp_path):
    ran = run(tmp_path / "run", "halved", make_cell(**FLUSHED), FAKE_MS="0", FAKE_FLUSH_MS="2")
    assert [(row.value, row.timer, row.reason) for row in ran.rows] == [
        (None, "cuda_graph", "TIMER_RESOLUTION: 10 of 10 replays took no longer than their flushes")
    ]


@slow
def test_a_tuner_keeps_upstreams_benchmark(device_record):
    # a tuner asks do_bench too; had its benchmarks been taken for rows, scale would have more than these
    assert [(row.dtype, row.shape) for row in device_record.rows_of("scale")] == [
        (dtype, shape) for dtype in ("float16", "float32") for shape in ("[[64,64]]", "[[1000]]")
    ]
    assert {row.value for row in device_record.rows_of("scale")} == {0.5}


class Observer:
    """Counts what the tests say was compiled."""

    compile_count = cache_hits = 0
    kernels = {}


@pytest.fixture
def make_timer(monkeypatch, tmp_path):
    """A Timer of one cell, without pytest, device or compiler; `timer.events` and `timer.stopped` tell what it did."""

    def make(**changes):
        current = session.Session(make_cell(**{**ON_FAKE_DEVICE, **changes}), tmp_path, started_cold=True)
        events, stopped = [], []
        monkeypatch.setattr(current, "emit_event", lambda code, row=None, **detail: events.append((code, detail)))
        monkeypatch.setattr(session, "current", lambda: current)
        driver = SimpleNamespace(get_device_interface=lambda: None)
        monkeypatch.setattr(timing, "_driver", lambda: driver)
        timer = timing.Timer(stop=stopped.append)
        timer.events, timer.stopped, timer.driver = events, stopped, driver
        return timer

    watching = Observer()
    monkeypatch.setattr(timing, "observer", lambda: watching)
    make.observer = watching
    return make


def asking(upstream, **arguments):
    return Question(lambda: None, upstream, {"return_mode": "median", **arguments})


@pytest.mark.parametrize("planned", [{}, GRAPH])
def test_a_direct_row_is_the_median_over_its_calls_planned_or_fallen_back(make_timer, planned):
    values = iter([3.0, 1.0, 2.0])
    reading, answer = make_timer(**planned, direct_repeat=3)._directly(asking(lambda: next(values)))
    assert (answer, reading.repeat, reading.l2, reading.reason) == (2.0, 3, "flushed", "")


@pytest.mark.parametrize(
    ("own", "l2"),
    [
        ({"active": 30}, "warm"),
        ({"active": 30, "clear_l2_cache": False}, "warm"),
        ({"clear_l2_cache": True}, "flushed"),
    ],
)
def test_an_npu_row_says_whether_its_benchmark_was_asked_to_flush(make_timer, own, l2):
    """do_bench_npu does not by default, and FlagGems calls it without any argument."""
    reading, _ = make_timer()._directly(Question(lambda: None, lambda: 1.0, {"warmup": 5, **own}))
    assert (reading.timer, reading.l2) == ("direct", l2)


@pytest.mark.parametrize("many", [{"quantiles": [0.5, 0.2]}, {"return_mode": "all"}])
def test_what_is_no_single_number_is_asked_for_once(make_timer, many):
    answers = iter([[1.0, 2.0]])
    reading, answer = make_timer(direct_repeat=3)._directly(asking(lambda: next(answers), **many))
    assert (answer, reading.repeat) == ([1.0, 2.0], 1)


@pytest.mark.parametrize("bad", [0.0, -0.0021, math.nan, math.inf])
def test_one_impossible_time_among_the_repeated_is_not_hidden_by_the_median(make_timer, bad):
    values = iter([1.0, bad, 2.0])
    reading, _ = make_timer(direct_repeat=3)._directly(asking(lambda: next(values)))
    assert reading.reason == f"TIMER_INVALID: a time of {bad!r} ms"


@pytest.mark.parametrize("bad", [0.0, -0.0021, math.nan])
def test_one_impossible_replay_among_the_ten_makes_no_number(make_timer, monkeypatch, bad):
    monkeypatch.setattr(timing.graph, "replayed", lambda *arguments: [1.0] * 9 + [bad])
    reading, _ = make_timer(**GRAPH)._replayed(asking(None))
    assert (reading.timer, reading.reason) == ("cuda_graph", f"TIMER_INVALID: a time of {bad!r} ms")


def test_a_list_of_times_is_looked_through():
    assert impossible([[1.0, 2.0], [1.0, 0.0]]) == "TIMER_INVALID: a time of 0.0 ms"
    assert impossible([[1.0, 2.0]]) == impossible(1.0) == ""


@pytest.mark.parametrize("how", [{}, {"return_mode": "mean"}, {"return_mode": "all"}, {"return_mode": "max"},
                                 {"quantiles": [0.5]}, {"quantiles": [0.5, 0.2, 0.8]}])  # fmt: skip
def test_an_answer_is_put_together_as_upstream_does(how):
    testing = pytest.importorskip("triton.testing")
    times = [0.3, 0.1, 0.2, 0.7, 0.5]
    asked = {"quantiles": None, "return_mode": "median", **how}
    assert asking(None, **how).answer(times) == pytest.approx(testing._summarize_statistics(times, **asked), rel=1e-12)


def test_a_row_in_whose_timed_region_something_was_compiled_is_timed_again(make_timer):
    timer, compiled = make_timer(), iter([2, 0])

    def upstream():
        make_timer.observer.compile_count += next(compiled)
        return 1.0

    reading, answer = timing._proven(lambda: timer._directly(asking(upstream)))
    assert (answer, reading.reason) == (1.0, "") and next(compiled, None) is None


def test_a_row_that_compiles_whenever_it_is_timed_is_no_number(make_timer):
    timer = make_timer()

    def upstream():
        make_timer.observer.compile_count += 2
        return 1.0

    reading, _ = timing._proven(lambda: timer._directly(asking(upstream)))
    assert reading.reason == "TIMER_COMPILED: 2 kernels were compiled inside the timed region"


def test_a_flush_that_is_a_providers_kernel_is_compiled_before_the_clock_and_not_counted(make_timer):
    """Under use_gems() upstream's `cache.zero_()` is a FlagGems kernel, compiled at the first do_bench."""
    timer, order = make_timer(), []

    def clear_cache(cache):
        order.append(cache)
        make_timer.observer.compile_count += 1 if len(order) == 1 else 0

    timer.driver.clear_cache, timer.driver.get_empty_cache_for_benchmark = clear_cache, lambda: "flush"
    reading, _ = timing._proven(lambda: timer._directly(asking(lambda: order.append("timed") or 1.0)))
    assert order == ["flush", "timed"] and reading.reason == ""
    assert make_timer.observer.compile_count == 0


def test_the_flush_of_a_graph_goes_past_the_operators_that_a_provider_overrides(make_timer):
    torch = pytest.importorskip("torch")
    buffer = torch.ones(8, dtype=torch.int)

    def overridden(cache):
        pytest.fail("the operator under test flushed the cache")

    flush = timing._flusher(SimpleNamespace(get_empty_cache_for_benchmark=lambda: buffer, clear_cache=overridden))
    flush()
    assert not buffer.any()


def test_no_row_is_asked_of_a_process_that_a_capture_poisoned(make_timer, monkeypatch):
    timer, asked = make_timer(**GRAPH), SimpleNamespace(readings=[])

    def poisons(*arguments):
        raise timing.graph.CapturePoisoned("MUSA error: unknown error")

    monkeypatch.setattr(timing.graph, "replayed", poisons)
    with pytest.raises(timing.graph.CapturePoisoned):
        timer._captured(asking(None))
    with pytest.raises(timing.graph.CapturePoisoned, match="unknown error"):
        timer._measure(asked, asking(lambda: pytest.fail("a dead process was timed")))
    (event,) = timer.events
    assert event == ("BENCHMARK_CAPTURE_POISONED", {"reason": "CapturePoisoned: MUSA error: unknown error"})
    assert timer.stopped == ["BENCHMARK_CAPTURE_POISONED: CapturePoisoned: MUSA error: unknown error"]
    assert asked.readings == []


@pytest.mark.parametrize(
    ("error", "told", "stopped"),
    [
        (RuntimeError("CUDA error: misaligned address\nCompile with"), "CUDA error: misaligned address", True),
        (RuntimeError("boom"), None, False),
        (MemoryError("out of memory"), None, False),
    ],
)
def test_a_fault_while_timing_directly_is_told_by_the_vendors_wording(make_timer, monkeypatch, error, told, stopped):
    timer = make_timer(capture_texts=TEXTS)

    def fails(question):
        raise error

    monkeypatch.setattr(timer, "_timed", fails)
    with pytest.raises(type(error)) as raised:
        timer._measure(SimpleNamespace(readings=[]), asking(None))
    assert raised.value is error
    assert timer.events == ([("KERNEL_FAULT", {"text": told})] if told else [])
    assert bool(timer.stopped) is stopped


def test_an_unknown_wording_in_a_capture_is_told_as_a_fault(make_timer, monkeypatch):
    timer, error = make_timer(**GRAPH), RuntimeError("something new")

    def fails(*arguments):
        error.caliber_capturing = True  # as capture.attempted marks it
        raise error

    monkeypatch.setattr(timing.graph, "replayed", fails)
    monkeypatch.setattr(timer, "_timed", timer._captured)
    with pytest.raises(RuntimeError):
        timer._measure(SimpleNamespace(readings=[]), asking(None))
    assert timer.events == [("KERNEL_FAULT", {"text": "RuntimeError: something new"})] and not timer.stopped


def test_a_remainder_that_is_no_time_is_too_little_resolution_and_no_broken_clock():
    assert unresolved([1.0, -0.5, 0.0]) == "TIMER_RESOLUTION: 2 of 3 replays took no longer than their flushes"
    assert unresolved([1.0, math.nan]) == "TIMER_INVALID: a time of nan ms"
    assert unresolved([1.0, 2.0]) == ""
