import pytest

from tests.plugins.target import ON_FAKE_DEVICE, make_cell, run

pytestmark = pytest.mark.slow
GRAPH = {**ON_FAKE_DEVICE, "timer": "cuda_graph", "l2": "warm"}
TUNED = ["scale_kernel(BLOCK=64,num_warps=2,num_stages=3)", "scale_kernel(BLOCK=128,num_warps=4,num_stages=3)"]


def test_each_row_of_the_compile_timer_is_a_fresh_compile(aot_record):
    rows = aot_record.rows_of("double")
    assert len(rows) == 6 and {row.timer for row in rows} == {"compile"} and {row.l2 for row in rows} == {"none"}
    assert all(row.value > 0 for row in rows)
    # two of the three shapes are equal: had the second been found in a cache, fewer compiles would have been heard
    fresh = sum(len(row.variants) for row in aot_record.rows)
    assert aot_record.fingerprint.compile_count == fresh
    assert aot_record.fingerprint.cache_hits == 0


def test_equal_shapes_are_rows_of_their_own_and_launch_the_same_variant(aot_record):
    first, second = (row for row in aot_record.rows_of("double") if (row.dtype, row.shape) == ("float16", "[[64,64]]"))
    assert (first.occurrence, second.occurrence) == (0, 1)
    assert first.variants == second.variants and first.metrics == second.metrics


def test_every_candidate_of_a_tuner_is_a_row_and_the_untuned_kernels_are_another(aot_record):
    assert [row.config for row in aot_record.rows_of("both")] == ["", *TUNED]
    assert [row.config for row in aot_record.rows_of("scale")] == TUNED * 4
    kernels = {variant.id: variant.kernel for variant in aot_record.fingerprint.variants}
    assert [kernels[row.variants[0]] for row in aot_record.rows_of("both")] == ["double_kernel"] + ["scale_kernel"] * 2


def test_a_replayed_cell_compiles_exactly_the_recorded_candidates(aot_record, aot_replay):
    assert aot_replay.rc == 0, aot_replay.log
    assert [str(row.key) for row in aot_replay.rows] == [str(row.key) for row in aot_record.rows]
    assert [row.variants for row in aot_replay.rows] == [row.variants for row in aot_record.rows]
    assert [row.metrics for row in aot_replay.rows] == [row.metrics for row in aot_record.rows]


def test_an_operator_without_a_triton_kernel_has_no_compile_time(aot_record):
    (row,) = aot_record.rows_of("no_kernel")
    assert row.value is None and row.reason.startswith("NOTHING_COMPILED")


def test_a_failing_shape_keeps_the_rows_before_it_and_names_itself(aot_failing):
    assert aot_failing.rc == 1
    assert [row.shape for row in aot_failing.rows] == ["[[64]]", "[[64]]"]
    failed, out_of_memory = aot_failing.event("ROW_FAILED"), aot_failing.event("ROW_OOM")
    assert (failed.row, failed.detail) == ("fails float16 [[4096]]", {"error": "RuntimeError: boom"})
    assert out_of_memory.row == "too_large float16 [[8192]]"
    assert aot_failing.fingerprint.variants


def test_a_skip_is_told_with_its_reason_and_the_tests_are_counted(aot_failing):
    assert aot_failing.event("SKIPPED").detail["reason"] == "Issue #1: not working"
    assert aot_failing.event("TEST_RESULT").detail == {"passed": "0", "failed": "2", "skipped": "1"}


def test_markers_reach_the_log_although_pytest_captures_output(aot_failing):
    assert '\nROW_FAILED error="RuntimeError: boom" row="fails float16 [[4096]]"\n' in aot_failing.log


def test_a_direct_row_is_upstreams_own_do_bench_as_the_benchmark_asked(device_record):
    assert device_record.rc == 0, device_record.log
    rows = device_record.rows_of("double")
    assert {(row.value, row.timer, row.l2, row.repeat) for row in rows} == {(0.5, "direct", "flushed", 1)}
    assert all(row.variants and row.metrics["registers"] > 0 for row in rows)


def test_a_subclass_that_corrects_its_latency_is_believed(device_record):
    assert [row.value for row in device_record.rows_of("halved")] == [0.25]


def test_a_row_says_how_often_it_was_timed(device_replay):
    assert {row.repeat for row in device_replay.rows_of("double")} == {3}


def test_the_seconds_of_each_phase_are_told(device_record):
    seconds = {name: float(value) for name, value in device_record.event("PHASES").detail.items()}
    assert seconds.keys() == {"compile", "import", "time", "tune"} and min(seconds.values()) >= 0


@pytest.mark.parametrize("milliseconds", ["0", "nan"])
def test_a_clock_that_cannot_be_right_gives_a_reason_and_no_number(tmp_path, milliseconds):
    ran = run(tmp_path / "run", "halved", make_cell(**ON_FAKE_DEVICE), FAKE_MS=milliseconds)
    (row,) = ran.rows
    assert row.value is None and row.timer == "direct" and row.reason.startswith("TIMER_INVALID")


def test_a_captured_row_says_so_and_its_cache_is_warm(tmp_path):
    ran = run(tmp_path / "run", "double", make_cell(**GRAPH, direct_repeat=3))
    assert {(row.value, row.timer, row.l2, row.repeat) for row in ran.rows} == {(0.5, "cuda_graph", "warm", 1)}


def test_a_row_that_cannot_be_captured_is_timed_directly_and_marked(tmp_path):
    ran = run(tmp_path / "run", "halved", make_cell(**GRAPH, direct_repeat=3), FAKE_CAPTURE="fails")
    (row,) = ran.rows
    assert (row.value, row.timer, row.l2, row.repeat) == (0.25, "direct", "flushed", 3)
    event = ran.event("BENCHMARK_DIRECT_NO_CUDAGRAPH")
    assert event.row == str(row.key) and event.detail["repeat"] == "3"
    assert "BENCHMARK_DIRECT_NO_CUDAGRAPH repeat=3" in ran.log
    assert ran.identity.timer == "cuda_graph"  # planned; the row says what was used


def test_a_campaign_that_requires_capture_has_no_direct_rows(tmp_path):
    ran = run(tmp_path / "run", "halved", make_cell(**GRAPH, graph="require"), FAKE_CAPTURE="fails")
    assert ran.rc == 1 and not ran.rows


def test_after_a_poisoned_capture_nothing_more_is_run(tmp_path):
    ran = run(tmp_path / "run", "double or halved", make_cell(**GRAPH), FAKE_CAPTURE="poisons")
    assert ran.rc != 0 and not ran.rows
    assert ran.event("BENCHMARK_CAPTURE_POISONED").row == "double float16 [[64,64]]"
    assert ran.event("TEST_RESULT").detail == {"passed": "0", "failed": "1", "skipped": "0"}


def test_a_kernel_that_faults_while_captured_is_a_failed_row(tmp_path):
    ran = run(tmp_path / "run", "halved", make_cell(**GRAPH), FAKE_CAPTURE="faults")
    assert ran.rc == 1 and not ran.rows
    assert "illegal memory access" in ran.event("ROW_FAILED").detail["error"]


def test_a_tuner_keeps_upstreams_benchmark(device_record):
    # a tuner asks do_bench too; had its benchmarks been taken for rows, scale would have more than these
    assert [(row.dtype, row.shape) for row in device_record.rows_of("scale")] == [
        (dtype, shape) for dtype in ("float16", "float32") for shape in ("[[64,64]]", "[[1000]]")
    ]
    assert {row.value for row in device_record.rows_of("scale")} == {0.5}
