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
#: How the reason of a row that failed begins.
WORDS = ("FAULT:", "OOM:", "FAILED:")
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
    """The outcome of an attempt, and its reason ("" for a plain success).

    The reason of a failed operator begins with OOM, FAULT, SIGNAL or FAILED.
    """
    if ended.interrupted:
        return Outcome.INTERRUPTED, f"stopped by {ended.interrupted}"
    if ended.timed_out:
        return Outcome.TIMED_OUT, _limit(ended) + hung_at(found.log_tail)
    number = signal_number(ended.rc)
    if number:
        return _by_signal(number)
    if ended.rc in (PYTEST_INTERNAL, PYTEST_USAGE) or not found.identity:
        return Outcome.CRASHED, f"pytest ended with {ended.rc} before anything was measured: {last_words(found)}"
    if ended.rc not in (0, 5):
        return _by_failure(found)
    return _by_rows(found, recording)


def signal_number(rc: int) -> int:
    """The signal that ended the target, 0 for none; a shell around it says 128 + n (139, 134, 137)."""
    number = -rc if rc < 0 else rc - 128 if rc > 128 else 0
    return number if number in signal.valid_signals() else 0


def hung_at(log_tail: str) -> str:
    """Where the stacks at the end of a log say that the main activity stood, as `; hung at ...`; "" without stacks."""
    _, found, stack = log_tail.rpartition("Current thread")
    frames = [line.strip() for line in stack.splitlines() if line.startswith("  File ")]
    return f"; hung at {frames[0].removeprefix('File ')}" if found and frames else ""


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


def _limit(ended: Ended) -> str:
    if ended.idle_s:
        return f"no progress for {ended.idle_s:.0f} s (measure.no_progress_s), {ended.elapsed_s:.0f} s after its start"
    return f"no end after {ended.elapsed_s:.0f} s (measure.cell_timeout_s)"


def _by_signal(number: int) -> tuple[Outcome, str]:
    name = signal.Signals(number).name
    if number in CRASH_SIGNALS:
        return Outcome.OP_FAILED, f"SIGNAL: the target died of {name}"
    hint = " (out of host memory?)" if number == signal.SIGKILL else ""
    return Outcome.KILLED, f"the target was ended by {name} from outside{hint}"


def _by_failure(found: Found) -> tuple[Outcome, str]:
    for text in ENVIRONMENT_TEXTS:
        if text in found.log_tail:
            return Outcome.CRASHED, f"environment: {text}"
    rows = {str(row.key): row.reason for row in found.rows if row.reason.startswith(WORDS)}
    told = [_told(rows.get(event.row) or _of_event(event), event.row) for event in found.events if _failed(event)]
    faults = [text for text in told if text.startswith("FAULT:")]
    if told:
        return Outcome.OP_FAILED, (faults or told[::-1])[0]  # without a fault, the last one ended the test
    return Outcome.OP_FAILED, f"FAILED: {last_words(found)}"


def _by_rows(found: Found, recording: bool) -> tuple[Outcome, str]:
    done = Outcome.RECORDED if recording else Outcome.MEASURED
    invalid = [row for row in found.rows if row.value is None]
    if invalid:
        told = _told(invalid[0].reason, str(invalid[0].key))
        if len(invalid) < len(found.rows):
            return done, f"{len(invalid)} of {len(found.rows)} rows have no number, the first: {told}"
        return Outcome.OP_FAILED, told if told.startswith(WORDS) else f"FAILED: no row has a number, the first: {told}"
    if found.rows or _empty_shard(found):
        return done, ""
    skips = [event for event in found.events if event.code == "SKIPPED"]
    if skips:
        return Outcome.SKIPPED, f"the benchmark skipped itself: {skips[0].detail.get('reason', 'no reason given')}"
    return Outcome.OP_FAILED, "FAILED: the benchmark ended well and measured nothing"


def _empty_shard(found: Found) -> bool:
    """More shards than shapes: this one had none to sweep."""
    taken = [event.detail.get("taken") for event in found.events if event.code == "SHARD_SHAPES"]
    return bool(taken) and set(taken) == {"0"}


def _failed(event: Event) -> bool:
    return event.code in ("ROW_FAILED", "ROW_OOM")


def _of_event(event: Event) -> str:
    return f"{'OOM' if event.code == 'ROW_OOM' else 'FAILED'}: {event.detail.get('error', '')}"


def _told(reason: str, row: str) -> str:
    """`OOM: <row>: <error>`, at most 400 characters."""
    word, _, text = reason.partition(" ")
    return (f"{word} {row}: {text}" if word in WORDS else f"{row}: {reason}")[:400]
