"""Incidents of what ran inside the target process (facts/incidents.md): tuning, timers, captures, lost rows."""

import dataclasses
import gc
import math

import pytest

from harness import backends, campaign, codec, config
from harness.plugins import graph, protocol, session
from harness.plugins.replay import Replayer, ReplayRefused
from harness.records import AutotuneRecord
from tests.fixtures.plugins.fake_device import Interface
from tests.plugins.target import ON_FAKE_DEVICE, edited, make_cell, replaying, run
from tests.workflow.project import Project

TEXTS = backends.get("cuda").capture_texts
GRAPH = {**ON_FAKE_DEVICE, "timer": "cuda_graph", "l2": "warm", "capture_texts": TEXTS}


@pytest.fixture
def current(tmp_path, monkeypatch):
    found = session.Session(make_cell(), tmp_path, started_cold=True)
    monkeypatch.setattr(session, "current", lambda: found)
    return found


@pytest.mark.slow
def test_a_second_run_cannot_inherit_a_database_unnoticed(tmp_path):
    """mm "945 variants -> 33" was one run taking the other's winners out of a shared tuner database."""
    cell, shared = make_cell(**ON_FAKE_DEVICE), str(tmp_path / "tuner.db")
    first = run(tmp_path / "first", "shift", cell, TUNER_DB=shared)
    second = run(tmp_path / "second", "shift", cell, TUNER_DB=shared)
    tuned, inherited = first.fingerprint, second.fingerprint
    assert inherited.compile_count < tuned.compile_count  # what the incident looked like
    # The numbers that were published are not made any more: what was only tried is no variant, and ids are equal.
    assert [variant.id for variant in inherited.variants] == [variant.id for variant in tuned.variants]
    # And a measured cell replays its record, or refuses.
    loser = first.record.keys[0].candidates[0]
    record = edited(first, tmp_path / "record.json", lambda key: dataclasses.replace(key, winner=loser))
    refused = run(tmp_path / "third", "shift", replaying(cell), record=record, TUNER_DB=shared)
    assert refused.rc == 1 and "AUTOTUNE_REPLAY_REFUSED" in refused.codes


@pytest.mark.slow
def test_a_record_with_holes_is_counted_key_by_key(tmp_path):
    """A sweep with holes was published as a replay; 90 keys had tuned themselves."""
    cell = make_cell(**ON_FAKE_DEVICE)
    recorded = run(tmp_path / "recorded", "scale", cell)
    record = edited(recorded, tmp_path / "record.json", lambda key: None)
    holes = run(tmp_path / "holes", "scale", replaying(cell), record=record)
    assert holes.codes.count("AUTOTUNE_REPLAY_FALLBACK") == 4
    assert holes.event("AUTOTUNE_REPLAY").detail == {"used": "0", "missing": "4", "unused": "0"}


@pytest.mark.slow
def test_a_table_of_fallbacks_is_not_labelled_with_the_planned_timer(tmp_path):
    """`timer=cuda_graph` stood above a table of 15 rows, all of which had fallen back."""
    ran = run(tmp_path / "run", "double", make_cell(**GRAPH), FAKE_CAPTURE="fails")
    assert {(row.timer, row.l2) for row in ran.rows} == {("direct", "flushed")}
    assert ran.codes.count("BENCHMARK_DIRECT_NO_CUDAGRAPH") == len(ran.rows) == 6


@pytest.mark.slow
def test_the_rows_before_a_failure_survive_it(tmp_path):
    """FlagGems prints a table only after all shapes of a dtype: out of memory in the last one meant no row at all."""
    ran = run(tmp_path / "run", "too_large")
    assert ran.rc == 0
    assert [(row.dtype, row.value is None) for row in ran.rows] == [
        (dtype, lost) for dtype in ("float16", "float32") for lost in (False, True)
    ]
    assert ran.codes.count("ROW_OOM") == 2


def test_no_fallback_runs_in_a_process_that_the_capture_killed(monkeypatch):
    """The fallback was timed on a dead context: marker printed, zero rows, crash in teardown."""
    monkeypatch.setenv("FAKE_CAPTURE", "poisons")
    with pytest.raises(graph.CapturePoisoned):
        graph.replayed(graph.Calls(lambda: None), 20, graph.Device(Interface(), TEXTS))


def test_nothing_is_collected_while_capturing(monkeypatch):
    """A module that the collector unloads during a capture invalidates it (triton #10712, sglang #35427)."""
    monkeypatch.delenv("FAKE_CAPTURE", raising=False)
    collecting = []

    class Watching(Interface):
        def graph(self, captured):
            collecting.append(gc.isenabled())
            return super().graph(captured)

    monkeypatch.setattr("tests.fixtures.plugins.fake_device.Clock.poisoned", False)
    graph.replayed(graph.Calls(lambda: None), 20, graph.Device(Watching(), TEXTS))
    assert collecting == [False] and gc.isenabled()


@pytest.mark.slow
def test_after_a_failed_capture_the_next_rows_are_captured_again(tmp_path):
    """One op that cannot be captured must not decide for its neighbours: torch left its allocator recording."""
    ran = run(tmp_path / "run", "double", make_cell(**GRAPH), FAKE_CAPTURE="fails", FAKE_CAPTURE_TIMES="1")
    assert [row.timer for row in ran.rows] == ["direct"] + ["cuda_graph"] * 5
    assert ran.codes.count("BENCHMARK_DIRECT_NO_CUDAGRAPH") == 1


@pytest.mark.slow
def test_a_kernel_fault_is_no_latency(tmp_path):
    """A fallback latency would have reported a broken kernel as a measurement."""
    ran = run(tmp_path / "run", "halved", make_cell(**GRAPH), FAKE_CAPTURE="faults")
    assert "KERNEL_FAULT" in ran.codes and "BENCHMARK_DIRECT_NO_CUDAGRAPH" not in ran.codes
    assert not any(row.value for row in ran.rows)


def test_a_deny_list_keyed_by_the_file_is_refused_and_not_failed_open(tmp_path, monkeypatch):
    """`unique`, after test_unique.py, denied nothing: the function is test_unique2. rc=1, no rows, and no word."""
    project = Project(tmp_path, ops=("unique2", "add"))
    monkeypatch.chdir(project.root)

    def planned(**measure):
        project.configure(measure={"rounds": 2, **measure})
        return campaign.build(config.load(project.root / "config/config.yaml"))

    with pytest.raises(campaign.CampaignError) as refused:
        planned(capture_deny_ops=["unique"])
    assert "capture_deny_ops: 'unique' is the test function (less test_) of no workload" in str(refused.value)
    assert str(refused.value).endswith("did you mean 'unique2'?")
    assert planned(capture_deny_ops=["unique2"]).cells
    with pytest.raises(campaign.CampaignError, match="'unique2' is never captured, and measure.graph is 'require'"):
        planned(capture_deny_ops=["unique2"], graph="require")


@pytest.mark.parametrize("latency", [0.0, -0.0021, math.nan])
def test_a_zero_or_negative_time_is_never_the_fastest(latency):
    """Failures stored as 0.0 ranked first; event times below zero were clamped (rocm-libraries #6379)."""
    assert protocol.checked(latency)[0] is None


def test_a_record_of_another_timer_does_not_replay(current):
    """A tuner's choice under one benchmark function was replayed under another (triton #10880)."""
    record = AutotuneRecord("mm", "3.7.1 abc", "direct", "exclusive", ())
    with pytest.raises(ReplayRefused, match="by timer direct, this cell is mm by cuda_graph; record again"):
        Replayer(record, "mm", "cuda_graph")


def test_two_rows_of_one_size_are_not_one_row(current):
    """At level comprehensive row-major and column-major inputs have the same size text; one overwrote the other."""
    keys = {str(current.number("mm", "float16", "[[384,384],[384,384]]")) for _ in range(2)}
    assert len(keys) == 2


def test_full_precision_is_kept(current):
    """The console rounds to 6 decimals: 40 ns has two digits there."""
    from harness.records import Row

    value = 4.0123456789e-05
    current.emit_row(Row("add", "float16", "[]", 0, "", value, "ms", "direct", "flushed", 1, "", {}, ()))
    assert next(codec.read_lines(Row, current.attempt / "rows.jsonl")).value == value
