"""outcome: terminal is about the operator, retryable about the circumstances."""

import signal

import pytest

from harness.outcome import Found, classify, exit_code
from harness.process import Ended
from harness.records import Event, ExitCode, Outcome, Row

ROW = Row("add", "float16", "[[4]]", 0, "", 1.0, "ms", "direct", "flushed", 1, "", {}, ())


def ended(rc: int = 0, timed_out: bool = False, interrupted: str = "") -> Ended:
    return Ended(rc, timed_out, interrupted, 12.0)


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
        "ROW_FAILED mm float16 [[4]]: RuntimeError: no"
    )


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
