"""process: a child never outlives its limits or its parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness import process
from harness.outcome import hung_at

PRINT_PID = "import os, sys, time; print(os.getpid(), flush=True); "


def run(tmp_path: Path, code: str, timeout_s: float = 20.0, idle_s: float = 0.0, signs=()) -> process.Ended:
    return process.run_group(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ, log=tmp_path / "log",
        limits=process.Limits(timeout_s, idle_s, signs),
    )  # fmt: skip


def pids(log: Path) -> list[int]:
    return [int(word) for word in log.read_text().split()]


def gone(pid: int, within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def wait_for(condition, within_s: float = 10.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "condition never held"
        time.sleep(0.02)


def test_a_child_that_ends_is_reported_with_its_code_and_log(tmp_path):
    ended = run(tmp_path, "print('hello'); raise SystemExit(3)")
    assert (ended.rc, ended.timed_out, ended.interrupted) == (3, False, "")
    assert (tmp_path / "log").read_text() == "hello\n"


def test_a_hung_child_is_ended_with_its_whole_group(tmp_path):
    code = PRINT_PID + "import subprocess; subprocess.Popen([sys.executable, '-c', %r]); time.sleep(60)"
    ended = run(tmp_path, code % (PRINT_PID + "time.sleep(60)"), timeout_s=1.5)
    assert ended.timed_out
    found = pids(tmp_path / "log")
    assert len(found) == 2
    assert all(gone(pid) for pid in found)


def test_only_the_total_limit_counts_without_the_other(tmp_path):
    ended = run(tmp_path, "import time; time.sleep(60)", timeout_s=1.0)
    assert ended.timed_out and not ended.idle_s


#: What harness.plugins.session does in a cell, then a hang in the middle of a call.
LISTENING = "import faulthandler, signal, sys, time; faulthandler.register(signal.SIGUSR2, sys.stdout); "
STUCK = LISTENING + "print('working', flush=True)\ndef stuck(): time.sleep(60)\nstuck()"


@pytest.mark.parametrize("limits", [{"timeout_s": 2.0}, {"timeout_s": 30.0, "idle_s": 2.0}], ids=["total", "idle"])
def test_a_child_that_hangs_says_where_before_it_is_ended(tmp_path, limits):
    ended = run(tmp_path, STUCK, **limits)
    assert ended.timed_out and bool(ended.idle_s) == ("idle_s" in limits)
    log = (tmp_path / "log").read_text()
    assert log.startswith("working\n") and "line 2 in stuck" in log
    assert hung_at(log) == '; hung at "<string>", line 2 in stuck'


@pytest.mark.parametrize("what", ["log", "file", "directory"])
def test_a_child_that_makes_progress_is_left_alone(tmp_path, what):
    """For four times the limit: lines in its log, a file that grows, or new entries of a cache."""
    own = tmp_path / "cache"
    own.mkdir()
    steps = {
        "log": "print('row', flush=True)",
        "file": "open('rows', 'a').write('row')",
        "directory": "open(f'cache/{n}', 'w')",
    }
    code = f"import time\nfor n in range(16): {steps[what]}; time.sleep(0.5)"
    ended = run(tmp_path, code, idle_s=2.0, timeout_s=60, signs=(tmp_path / "rows", own))
    assert (ended.rc, ended.timed_out) == (0, False)


def test_a_child_that_ignores_sigterm_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "GRACE_S", 0.3)
    deaf = "import signal; [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGUSR2)]; "
    code = deaf + PRINT_PID + "time.sleep(60)"
    ended = run(tmp_path, code, timeout_s=1.5)
    assert ended.rc == -signal.SIGKILL


def test_a_grandchild_left_behind_does_not_hold_the_device(tmp_path):
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', %r])" % (PRINT_PID + "time.sleep(60)")
    run(tmp_path, code + "; import time; time.sleep(0.5)")
    assert all(gone(pid) for pid in pids(tmp_path / "log"))


RUNNER = """
import os, sys
from pathlib import Path
from harness import process

process.adopt_orphans()
here, code = Path(sys.argv[1]), sys.argv[2]
process.run_group([sys.executable, "-c", code], cwd=here, env=os.environ, log=here / "log",
                  limits=process.Limits(60))
"""


def runner(tmp_path: Path, code: str) -> subprocess.Popen[bytes]:
    """A process of its own that runs `code` as a cell runner would."""
    return subprocess.Popen([sys.executable, "-c", RUNNER, str(tmp_path), code], cwd=Path(__file__).parent.parent)


@pytest.mark.skipif(sys.platform != "linux", reason="subreapers and parent-death signals are Linux")
def test_a_grandchild_in_a_session_of_its_own_is_found_and_ended(tmp_path):
    sleeper = PRINT_PID + "time.sleep(60)"
    code = (
        f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {sleeper!r}], start_new_session=True)"
    )
    assert runner(tmp_path, code + "; time.sleep(0.5)").wait() == 0
    assert all(gone(pid) for pid in pids(tmp_path / "log"))


@pytest.mark.skipif(sys.platform != "linux", reason="parent-death signals are Linux")
def test_the_child_dies_when_its_runner_is_killed(tmp_path):
    parent = runner(tmp_path, PRINT_PID + "time.sleep(60)")
    log = tmp_path / "log"
    wait_for(lambda: log.exists() and log.read_text().endswith("\n"))
    parent.kill()
    parent.wait()
    assert gone(pids(log)[0])
