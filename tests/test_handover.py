"""The handover: a target prepares without its device, asks, and holds the lock itself. With real processes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from harness import process
from harness.handover import VARIABLE, Handover
from harness.lease import DeviceBusy, Lease
from harness.process import Ended, Limits

ROOT = Path(__file__).parents[1]
#: What harness.plugins.lease does, without pytest and a cell.
TAKE = """
import os, socket, sys, time
def take():
    runner = socket.socket(fileno=int(os.environ["CALIBER_LEASE"]))
    runner.sendall(b"?")
    return socket.recv_fds(runner, 1, 1)[1]
"""


def run(tmp_path: Path, code: str, handover: Handover, limits: Limits | None = None) -> Ended:
    with handover:
        return process.run_group(
            [sys.executable, "-c", TAKE + code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
            log=tmp_path / "log", limits=limits or Limits(20.0), handover=handover,
        )  # fmt: skip


def lease(tmp_path: Path) -> Lease:
    return Lease("GPU-1", "demo", tmp_path / "leases")


def test_the_lock_is_taken_when_the_target_asks_and_is_the_targets_own(tmp_path):
    """Whatever becomes of the runner's copy: the device is free when the target is gone, not before."""
    asked, ours = [], []

    def grant() -> int:
        asked.append((tmp_path / "ready").exists())
        ours.append(lease(tmp_path).acquire())
        return ours[0].fileno()

    class Dropping(Handover):
        def answer(self) -> float:
            waited = super().answer()
            ours[0].close()
            return waited

    code = f"""
from pathlib import Path
from harness.lease import DeviceBusy, Lease
Path("ready").touch()
locks = take()
time.sleep(0.5)
try:
    Lease("GPU-1", "another", Path({str(tmp_path / "leases")!r})).acquire()
except DeviceBusy as busy:
    print(busy)
"""
    handover = Dropping(grant)
    assert run(tmp_path, code, handover).rc == 0
    assert asked == [True] and handover.granted_at
    assert f"is held by pid {os.getpid()} " in (tmp_path / "log").read_text()
    lease(tmp_path).acquire().close()


def test_a_target_that_ends_without_asking_never_had_the_device(tmp_path):
    handover = Handover(lambda: pytest.fail("nobody asked"))
    started = time.monotonic()
    assert run(tmp_path, "raise SystemExit(4)", handover).rc == 4
    assert handover.granted_at is None and handover.waited_s == 0.0
    assert time.monotonic() - started < 15, "its end is heard, not waited for"


def test_a_child_it_left_behind_with_the_socket_does_not_hide_its_end(tmp_path):
    code = "import subprocess; subprocess.Popen(['sleep', '60'], close_fds=False)"
    started = time.monotonic()
    assert run(tmp_path, code, Handover(lambda: pytest.fail("nobody asked"))).rc == 0
    assert time.monotonic() - started < 15


def test_the_wait_for_a_device_counts_towards_no_limit(tmp_path):
    def grant() -> int:
        time.sleep(2.5)
        return os.open(os.devnull, os.O_RDONLY)

    handover = Handover(grant)
    ended = run(tmp_path, "take()", handover, Limits(2.0, 1.5))
    assert (ended.rc, ended.timed_out) == (0, False) and handover.waited_s >= 2.5


@pytest.mark.parametrize("limits", [Limits(1.5), Limits(20.0, 1.0)], ids=["total", "idle"])
@pytest.mark.parametrize("code", ["time.sleep(60)", "take(); time.sleep(60)"], ids=["before", "after"])
def test_the_limits_hold_before_and_after_the_question(tmp_path, code, limits):
    ended = run(tmp_path, code, Handover(lambda: os.open(os.devnull, os.O_RDONLY)), limits)
    assert ended.timed_out


def test_a_target_whose_device_is_held_by_another_is_ended(tmp_path):
    with lease(tmp_path).acquire(), pytest.raises(DeviceBusy, match="is held by pid"):
        run(
            tmp_path,
            "print('asks', flush=True); take(); print('runs')",
            Handover(lambda: lease(tmp_path).acquire().fileno()),
        )
    assert (tmp_path / "log").read_text() == "asks\n"


def test_the_target_finds_its_end_where_the_plugin_looks():
    from harness.plugins import lease as plugin

    assert plugin.VARIABLE == VARIABLE
