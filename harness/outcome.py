"""From how a target process ended to the one outcome of its cell. Pure.

Terminal outcomes are about the operator, retryable ones about the circumstances; a wrong choice either burns device
time at every resume or hides a failure for ever.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from harness.process import Ended
from harness.records import Event, ExitCode, Outcome, Row

#: Signals by which a compiler or kernel crash ends a process: the operator's own failure, the same on every retry.
CRASH_SIGNALS = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP})
#: Texts of circumstances, in a failed target's log (FlagGems #6065, #6121).
ENVIRONMENT_TEXTS = ("database is locked",)
PYTEST_INTERNAL = 3
PYTEST_USAGE = 4


@dataclass(frozen=True)
class Found:
    """What the target left behind."""

    rows: Sequence[Row]
    events: Sequence[Event]
    identity: bool
    log_tail: str


def classify(ended: Ended, found: Found, recording: bool) -> tuple[Outcome, str]:
    """The outcome of an attempt, and its reason ("" for a plain success)."""
    if ended.interrupted:
        return Outcome.INTERRUPTED, f"stopped by {ended.interrupted}"
    if ended.timed_out:
        return Outcome.TIMED_OUT, f"no end after {ended.elapsed_s:.0f} s (measure.cell_timeout_s)"
    if ended.rc < 0:
        return _by_signal(-ended.rc)
    if ended.rc in (PYTEST_INTERNAL, PYTEST_USAGE) or not found.identity:
        return Outcome.CRASHED, f"pytest ended with {ended.rc} before anything was measured: {last_words(found)}"
    if ended.rc not in (0, 5):
        return _by_failure(found)
    return _by_rows(found, recording)


def exit_code(outcome: Outcome) -> ExitCode:
    """What the cell runner exits with: 0 for everything terminal, so that Snakemake keeps it."""
    if outcome.terminal:
        return ExitCode.DONE
    return {
        Outcome.PREFLIGHT: ExitCode.ENVIRONMENT,
        Outcome.BUSY: ExitCode.BUSY,
        Outcome.TIMED_OUT: ExitCode.TIMED_OUT,
        Outcome.KILLED: ExitCode.KILLED,
        Outcome.INTERRUPTED: ExitCode.INCOMPLETE,
        Outcome.CRASHED: ExitCode.FAILED,
    }[outcome]


def last_words(found: Found) -> str:
    """The last telling line of the log: pytest prefixes errors with `E `, `ERROR` or ends with one."""
    lines = [line.strip() for line in found.log_tail.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("E  ", "ERROR", "error:")) or "Error:" in line]
    return (errors or lines or ["(empty log)"])[-1][:300]


def _by_signal(number: int) -> tuple[Outcome, str]:
    name = signal.Signals(number).name
    if number in CRASH_SIGNALS:
        return Outcome.OP_FAILED, f"the target died of {name}"
    return Outcome.KILLED, f"the target was ended by {name} from outside (out of memory?)"


def _by_failure(found: Found) -> tuple[Outcome, str]:
    for text in ENVIRONMENT_TEXTS:
        if text in found.log_tail:
            return Outcome.CRASHED, f"environment: {text}"
    failures = [event for event in found.events if event.code in ("ROW_FAILED", "ROW_OOM")]
    if failures:
        event = failures[0]
        return Outcome.OP_FAILED, f"{event.code} {event.row}: {event.detail.get('error', '')}"[:400]
    return Outcome.OP_FAILED, last_words(found)


def _by_rows(found: Found, recording: bool) -> tuple[Outcome, str]:
    if found.rows:
        return (Outcome.RECORDED if recording else Outcome.MEASURED), ""
    skips = [event for event in found.events if event.code == "SKIPPED"]
    if skips:
        return Outcome.SKIPPED, f"the benchmark skipped itself: {skips[0].detail.get('reason', 'no reason given')}"
    return Outcome.OP_FAILED, "the benchmark ended well and measured nothing"
