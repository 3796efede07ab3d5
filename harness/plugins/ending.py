"""What a pytest session came to: skips with their reasons, the count of tests, the seconds of each phase.

timing.py takes these hooks over as its own. It must not know torch or triton.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from harness.plugins import correctness, session

_results: Counter[str] = Counter(passed=0, failed=0, skipped=0)


def pytest_runtest_logreport(report: Any) -> None:
    """One phase (setup, call, teardown) of one test."""
    if report.outcome == "skipped":
        session.current().emit_event("SKIPPED", "", node=report.nodeid, reason=skip_reason(report.longrepr))
    if report.when == "call" or report.outcome != "passed":
        _results[report.outcome] += 1


def pytest_sessionfinish() -> None:
    """Runs also when tests failed; not when the process was killed."""
    current = session.current()
    correctness.conclude()
    current.emit_event("TEST_RESULT", "", **{outcome: str(count) for outcome, count in _results.items()})
    current.emit_event("PHASES", "", **{name: f"{seconds:.3f}" for name, seconds in sorted(current.seconds.items())})


def skip_reason(longrepr: Any) -> str:
    """The reason of a skip: the third of pytest's (file, line, "Skipped: reason")."""
    text = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return str(text).removeprefix("Skipped: ")
