"""progress: what is missing, running or stalled is a row like any other."""

import os
import socket
import time

import pytest

from harness import codec, progress
from harness.records import Outcome, Plan, Planned, Status

NOW = time.time()


def status(outcome: Outcome, attempt: int = 1, reason: str = "") -> Status:
    return Status("c", "mm", 1, "A", outcome, 0, reason, 7.5, 2, 0, None, {}, 1, attempt, "", "", "", {}, {})


def attempt(tmp_path, key: str, pid: int | None = None, age_s: float = 0.0):
    path = tmp_path / key / "attempts" / "1"
    path.mkdir(parents=True)
    (path / "cell.json").write_text("{}")
    if pid is not None:
        (path / progress.RUNNER).write_text(f"{socket.gethostname()} {pid}\n")
    for item in path.iterdir():
        os.utime(item, (NOW - age_s, NOW - age_s))
    return path


def test_every_planned_cell_is_a_row_whether_or_not_it_left_a_trace(tmp_path):
    keys = ["mm/r0_A", "mm/r1_A", "mm/r1_B", "mm/r2_A", "mm/r2_B", "mm/r3_A"]
    plan = Plan("c", ("0",), tuple(Planned(key, n, 1, 0) for n, key in enumerate(keys)))
    codec.write(tmp_path / "mm/r0_A/status.json", status(Outcome.RECORDED))
    attempt(tmp_path, "mm/r1_A", os.getpid(), age_s=10)
    attempt(tmp_path, "mm/r1_B", os.getpid(), age_s=1000)
    attempt(tmp_path, "mm/r2_A", 2**22 + 1)
    codec.write(attempt(tmp_path, "mm/r2_B") / "status.json", status(Outcome.TIMED_OUT, reason="no end"))
    found = {item.key: item.state for item in progress.states(tmp_path, plan, NOW)}
    assert found == {
        "mm/r0_A": "recorded", "mm/r1_A": "running", "mm/r1_B": "stalled", "mm/r2_A": "lost", "mm/r2_B": "timed_out",
        "mm/r3_A": "missing",
    }  # fmt: skip


def test_the_table_counts_first_and_then_names_what_is_not_well(tmp_path):
    plan = Plan("c", ("0",), (Planned("mm/r0_A", 0, 1, 0), Planned("mm/r1_A", 1, 1, 0)))
    codec.write(tmp_path / "mm/r0_A/status.json", status(Outcome.OP_FAILED, reason="boom"))
    text = progress.table(tmp_path, plan, everything=False)
    assert text.splitlines()[0] == "c: 1/2 cells done (1 missing, 1 op_failed)"
    assert "mm/r0_A" in text and "boom" in text
    assert "mm/r1_A" not in text
    assert "mm/r1_A" in progress.table(tmp_path, plan, everything=True)


@pytest.mark.parametrize("outcome", [Outcome.TIMED_OUT, Outcome.PREFLIGHT, Outcome.INTERRUPTED])
def test_a_retryable_end_says_that_a_plain_rerun_tries_again(tmp_path, outcome):
    codec.write(attempt(tmp_path, "mm/r1_A") / "status.json", status(outcome, reason="why"))
    assert progress.state(tmp_path / "mm/r1_A", "mm/r1_A", NOW).note == "why (a plain re-run tries again)"
