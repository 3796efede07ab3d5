"""The device lease, with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import lease
from harness.lease import DeviceBusy, Lease, LeaseError
from harness.records import ExitCode

UUID = "GPU-1a2b3c4d"
ROOT = Path(__file__).parents[1]
#: Takes the lease, optionally leaves it to a child that outlives it, says so, and waits to be killed.
HOLDER = """
import subprocess, sys, time
from pathlib import Path
from harness.lease import Lease
held = Lease(sys.argv[1], "demo/add/r1_A", Path(sys.argv[2])).acquire()
pid = 0
if sys.argv[3] == "child":
    pid = subprocess.Popen(["sleep", "60"], pass_fds=(held.fileno(),), stdout=subprocess.DEVNULL).pid
print(pid, flush=True)
time.sleep(60)
"""


def holder(directory: Path, child: bool = False) -> tuple[subprocess.Popen[str], int]:
    """A process that holds the lease by the time this returns, and the pid of its child (0 = none)."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, UUID, str(directory), "child" if child else ""],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=60)


def test_a_held_device_is_busy_and_the_holder_is_named(tmp_path):
    process, _ = holder(tmp_path)
    try:
        with pytest.raises(DeviceBusy) as caught:
            Lease(UUID, "other", tmp_path).acquire()
    finally:
        end(process)
    assert f"device {UUID} is held by pid {process.pid} on " in str(caught.value)
    assert "(demo/add/r1_A)" in str(caught.value)
    assert caught.value.code is ExitCode.BUSY


def test_kill_9_releases_the_device(tmp_path):
    process, _ = holder(tmp_path)
    end(process)
    assert process.returncode == -signal.SIGKILL
    Lease(UUID, "next", tmp_path).acquire().close()


def test_a_benchmark_that_outlives_its_runner_keeps_the_device(tmp_path):
    process, child = holder(tmp_path, child=True)
    end(process)
    with pytest.raises(DeviceBusy):
        Lease(UUID, "next", tmp_path).acquire()
    os.kill(child, signal.SIGKILL)
    Lease(UUID, "next", tmp_path).acquire(wait_s=30).close()


def test_waiting_gets_the_device_when_it_is_given_back(tmp_path, monkeypatch):
    held = Lease(UUID, "first", tmp_path).acquire()
    monkeypatch.setattr(lease.time, "sleep", lambda seconds: held.close())
    Lease(UUID, "second", tmp_path).acquire(wait_s=30).close()


def test_the_file_names_the_current_holder_alone(tmp_path):
    Lease(UUID, "a campaign with a rather long name", tmp_path).acquire().close()
    with Lease(UUID, "short", tmp_path).acquire():
        found = json.loads((tmp_path / f"{UUID}.lock").read_text(encoding="utf-8"))
    assert (found["campaign"], found["pid"]) == ("short", os.getpid())


def test_a_holder_that_has_not_signed_yet_is_still_a_holder(tmp_path):
    held = Lease(UUID, "first", tmp_path).acquire()
    os.truncate(held.fileno(), 0)
    with pytest.raises(DeviceBusy, match="held by a process that left no name"):
        Lease(UUID, "second", tmp_path).acquire()
    held.close()


def test_two_devices_do_not_disturb_each_other(tmp_path):
    with Lease(UUID, "a", tmp_path).acquire(), Lease("GPU-8932f937", "b", tmp_path).acquire():
        pass


def test_an_old_mig_name_with_slashes_is_one_file(tmp_path):
    Lease("MIG-GPU-c7b6/1/0", "a", tmp_path).acquire().close()
    assert [path.name for path in tmp_path.iterdir()] == ["MIG-GPU-c7b6_1_0.lock"]


def test_the_lease_is_inherited_by_a_child_that_is_given_its_descriptor(tmp_path):
    with Lease(UUID, "a", tmp_path).acquire() as held:
        assert os.get_inheritable(held.fileno())


def test_any_user_may_lock_the_file(tmp_path):
    directory = tmp_path / "new" / "caliber"
    previous = os.umask(0o077)
    try:
        Lease(UUID, "a", directory).acquire().close()
    finally:
        os.umask(previous)
    assert directory.stat().st_mode & 0o7777 == 0o1777
    assert (directory / f"{UUID}.lock").stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize("trap", ["file", "link"])
def test_a_lock_file_that_cannot_be_had_is_refused_with_a_way_out(tmp_path, trap):
    place = tmp_path / "caliber"
    if trap == "file":
        place.write_text("", encoding="utf-8")
    else:  # never followed: the directory is open to all
        place.mkdir()
        (place / f"{UUID}.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LeaseError, match="cannot be opened .*; set CALIBER_LEASE_DIR"):
        Lease(UUID, "a", place).acquire()


def test_the_directory_does_not_depend_on_session_or_job(monkeypatch):
    """Slurm and ssh give each job its own of these; a lock looked for in two places locks nothing."""
    monkeypatch.delenv("CALIBER_LEASE_DIR", raising=False)
    found = lease.lease_directory()
    for name in ("XDG_RUNTIME_DIR", "TMPDIR", "HOME"):
        monkeypatch.setenv(name, f"/elsewhere/{name}")
    assert lease.lease_directory() == found and found.name == "caliber"


def test_the_directory_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("CALIBER_LEASE_DIR", str(tmp_path))
    assert Lease(UUID, "a").path == tmp_path / f"{UUID}.lock"
