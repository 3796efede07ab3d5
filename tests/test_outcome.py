"""outcome: terminal is about the operator, retryable about the circumstances."""

import dataclasses
import signal

import pytest

from harness.outcome import Found, classify, exit_code
from harness.process import Ended
from harness.records import Event, ExitCode, Outcome, Row

ROW = Row("add", "float16", "[[4]]", 0, "", 1.0, "ms", "direct", "flushed", 1, "", {}, ())


BAD = dataclasses.replace(ROW, shape="[[8]]", value=None, reason="OOM: OutOfMemoryError: CUDA out of memory")
FAULT = dataclasses.replace(BAD, reason="FAULT: RuntimeError: an illegal memory access was encountered")


def ended(rc: int = 0, timed_out: bool = False, interrupted: str = "", idle_s: float = 0.0) -> Ended:
    return Ended(rc, timed_out, interrupted, 12.0, idle_s)


def found(rows=(ROW,), events=(), identity=True, log="") -> Found:
    return Found(rows, events, identity, log)


@pytest.mark.parametrize(
    ("how", "what", "outcome"),
    [
        (ended(), found(), Outcome.MEASURED),
        (ended(), found(rows=()), Outcome.OP_FAILED),
        (ended(5), found(rows=()), Outcome.OP_FAILED),
        (ended(1), found(), Outcome.OP_FAILED),
        (ended(4), found(rows=(), identity=False), Outcome.CRASHED),
        (ended(0), found(identity=False), Outcome.CRASHED),
        (ended(1), found(log="sqlite3.OperationalError: database is locked"), Outcome.CRASHED),
        (ended(-signal.SIGSEGV), found(), Outcome.OP_FAILED),
        (ended(-signal.SIGABRT), found(), Outcome.OP_FAILED),
        (ended(-signal.SIGKILL), found(), Outcome.KILLED),
        (ended(139), found(), Outcome.OP_FAILED),
        (ended(134), found(), Outcome.OP_FAILED),
        (ended(137), found(), Outcome.KILLED),
        (ended(), found(rows=(ROW, BAD)), Outcome.MEASURED),
        (ended(), found(rows=(BAD, BAD)), Outcome.OP_FAILED),
        (ended(-signal.SIGTERM, timed_out=True), found(), Outcome.TIMED_OUT),
        (ended(-signal.SIGTERM, interrupted="SIGTERM"), found(), Outcome.INTERRUPTED),
    ],
)
def test_every_end_has_one_outcome(how, what, outcome):
    assert classify(how, what, recording=False)[0] is outcome


def test_recording_is_never_a_measurement():
    assert classify(ended(), found(), recording=True)[0] is Outcome.RECORDED


def test_rc_0_without_rows_is_skipped_only_with_a_reason():
    skipped = Event("SKIPPED", "", {"reason": "CUDA is not available"})
    outcome, reason = classify(ended(), found(rows=(), events=(skipped,)), recording=False)
    assert (outcome, reason) == (Outcome.SKIPPED, "the benchmark skipped itself: CUDA is not available")


def test_a_failure_names_the_row_and_the_error():
    failed = Event("ROW_FAILED", "mm float16 [[4]]", {"error": "RuntimeError: no"})
    assert classify(ended(1), found(events=(failed,)), recording=False)[1] == (
        "FAILED: mm float16 [[4]]: RuntimeError: no"
    )


@pytest.mark.parametrize(
    ("how", "what", "begins"),
    [
        (ended(1), found(rows=(ROW, FAULT), events=(Event("ROW_FAILED", str(FAULT.key), {"error": "x"}),)), "FAULT:"),
        (ended(1), found(events=(Event("ROW_OOM", "mm float16 [[4]]", {"error": "x"}),)), "OOM: mm float16 [[4]]: x"),
        (ended(1), found(log="E   AssertionError: no"), "FAILED: E   AssertionError: no"),
        (ended(0), found(rows=(BAD, BAD)), "OOM: add float16 [[8]]: OutOfMemoryError: CUDA out of memory"),
        (ended(0), found(rows=(dataclasses.replace(BAD, reason="TIMER_INVALID: latency 0.0"),)), "FAILED: no row has"),
        (ended(0), found(rows=()), "FAILED: the benchmark ended well and measured nothing"),
        (ended(-signal.SIGSEGV), found(), "SIGNAL: the target died of SIGSEGV"),
        (ended(139), found(), "SIGNAL: the target died of SIGSEGV"),
    ],
)
def test_how_an_operator_failed_is_the_first_word_of_the_reason(how, what, begins):
    outcome, reason = classify(how, what, recording=False)
    assert outcome is Outcome.OP_FAILED and reason.startswith(begins), reason


def test_of_several_failures_the_fault_is_told_and_else_the_last():
    events = [Event("ROW_FAILED", str(row.key), {"error": row.reason}) for row in (BAD, FAULT, ROW)]
    rows = (BAD, FAULT, ROW)
    assert classify(ended(1), found(rows, events), recording=False)[1].startswith("FAULT: add float16 [[8]]: ")
    refused = Event("ROW_FAILED", str(ROW.key), {"error": "ReplayRefused: another op"})
    told = classify(ended(1), found((BAD,), (events[0], refused)), recording=False)[1]
    assert told == "FAILED: add float16 [[4]]: ReplayRefused: another op"


def test_a_measured_cell_says_which_rows_have_no_number():
    assert classify(ended(), found(rows=(ROW, BAD)), recording=True) == (
        Outcome.RECORDED,
        "1 of 2 rows have no number, the first: OOM: add float16 [[8]]: OutOfMemoryError: CUDA out of memory",
    )


def test_a_shard_without_a_shape_has_recorded_all_there_was():
    none = Event("SHARD_SHAPES", "", {"op": "mm", "total": "3", "taken": "0"})
    assert classify(ended(), found(rows=(), events=(none,)), recording=True) == (Outcome.RECORDED, "")


STACKS = """tests
Thread 0x00007f0000000001 (most recent call first):
  File "/lib/threading.py", line 327 in wait

Current thread 0x00007f0000000002 (most recent call first):
  File "/gems/benchmark/test_mm.py", line 12 in stuck
  File "/gems/benchmark/base.py", line 40 in run
"""


def test_a_time_out_says_which_limit_ended_it_and_where_it_hung():
    at = '; hung at "/gems/benchmark/test_mm.py", line 12 in stuck'
    total = classify(ended(-9, timed_out=True), found(log=STACKS), recording=False)[1]
    idle = classify(ended(-9, timed_out=True, idle_s=5.0), found(log=STACKS), recording=False)[1]
    assert total == "no end after 12 s (measure.cell_timeout_s)" + at
    assert idle == "no progress for 5 s (measure.no_progress_s), 12 s after its start" + at
    assert classify(ended(-9, timed_out=True), found(log="silence"), False)[1].endswith("(measure.cell_timeout_s)")


def test_a_crash_before_measuring_keeps_the_last_words_of_the_log():
    log = "ERROR: usage\nERROR: unrecognized arguments: --level core\n  inifile: None\n"
    assert "unrecognized arguments: --level" in classify(ended(4), found(rows=(), identity=False, log=log), False)[1]


def test_exit_codes_are_the_contract():
    assert {outcome: exit_code(outcome) for outcome in Outcome if not outcome.terminal} == {
        Outcome.PREFLIGHT: ExitCode.ENVIRONMENT,
        Outcome.BUSY: ExitCode.BUSY,
        Outcome.TIMED_OUT: ExitCode.TIMED_OUT,
        Outcome.KILLED: ExitCode.KILLED,
        Outcome.INTERRUPTED: ExitCode.INCOMPLETE,
        Outcome.CRASHED: ExitCode.FAILED,
    }
    assert all(exit_code(outcome) is ExitCode.DONE for outcome in Outcome if outcome.terminal)
