"""The plugin that asks for the device, in a target of its own beside a runner of ours."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import codec
from harness.handover import Handover
from harness.process import Limits, run_group
from harness.records import Event
from tests.plugins.target import REPOSITORY, make_cell

TEST = """
import atexit, ctypes, gc, os, fcntl, sys, time
class TornDown:
    def __del__(self, write=os.write):
        write(1, b"TORN DOWN")
sys.kept = TornDown()
atexit.register(print, "LATE", end="")
print("IMPORTED", flush=True)
time.sleep(0.3)
def test_one():
    ctypes.CDLL(None).printf(b"BY C")
    print("RUNS", "CALIBER_LEASE" in os.environ, gc.get_freeze_count() > 10000, flush=True)
    with open("lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            print("FREE", flush=True)
        except BlockingIOError:
            print("HELD", flush=True)
"""
ARGUMENTS = ["-p", "harness.plugins.lease", "-p", "harness.plugins.timing", "-p", "no:cacheprovider", "-c", os.devnull]
PROVIDER = "class Benchmark: pass\n"


def command(directory: Path, test: str = TEST) -> tuple[list[str], dict[str, str]]:
    package = directory / "benchmark"
    package.mkdir()
    (package / "base.py").write_text(PROVIDER, encoding="utf-8")
    (package / "__init__.py").touch()
    (directory / "test_provider.py").write_text("import benchmark.base\n" + test, encoding="utf-8")
    codec.write(directory / "cell.json", make_cell(timer="direct"))
    own = {"CALIBER_CELL": str(directory / "cell.json"), "CALIBER_ATTEMPT": str(directory),
           "PYTHONPATH": f"{directory}{os.pathsep}{REPOSITORY}"}  # fmt: skip
    words = [sys.executable, "-m", "pytest", *ARGUMENTS, "--rootdir", ".", "-s", "-q", "test_provider.py"]
    return words, {**os.environ, **own}


def test_it_asks_behind_the_imports_and_holds_the_lock_while_tests_run(tmp_path):
    words, env = command(tmp_path)
    seen = []

    def grant() -> int:
        seen.append((tmp_path / "run.log").read_text())
        with open(tmp_path / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return os.dup(lock.fileno())

    with Handover(grant) as handover:
        ended = run_group(words, cwd=tmp_path, env=env, log=tmp_path / "run.log", limits=Limits(60), handover=handover)
    log = (tmp_path / "run.log").read_text()
    assert ended.rc == 0, log
    assert "IMPORTED" in seen[0] and "RUNS" not in seen[0]
    assert "RUNS False True" in log, "no later process finds a number that is no socket; imports are frozen"
    assert "HELD" in log
    assert "LATE" in log and "TORN DOWN" not in log, "exit handlers run, and nothing is torn down under the lease"
    assert "BY C" in log, "nothing that was printed is lost"
    (phases,) = [event for event in codec.read_lines(Event, tmp_path / "events.jsonl") if event.code == "PHASES"]
    assert float(phases.detail["import"]) >= 0.3


def test_without_a_test_it_asks_for_nothing(tmp_path):
    words, env = command(tmp_path, test="")
    with Handover(lambda: pytest.fail("nothing to run")) as handover:
        ended = run_group(words, cwd=tmp_path, env=env, log=tmp_path / "run.log", limits=Limits(60), handover=handover)
    assert ended.rc == 5


def test_by_hand_there_is_nobody_to_ask(tmp_path):
    words, env = command(tmp_path)
    (tmp_path / "lock").touch()
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "RUNS" in done.stdout and "FREE" in done.stdout
    assert "LATE" in done.stdout and "TORN DOWN" in done.stdout


@pytest.mark.parametrize("test, rc", [("def test_one(): assert 0", 1), ("def test_one(): pass", 0)])
def test_it_ends_as_pytest_says(tmp_path, test, rc):
    words, env = command(tmp_path, test=test)
    with Handover(lambda: os.open(tmp_path, os.O_RDONLY)) as handover:
        ended = run_group(words, cwd=tmp_path, env=env, log=tmp_path / "run.log", limits=Limits(60), handover=handover)
    assert ended.rc == rc, (tmp_path / "run.log").read_text()
