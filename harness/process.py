"""One child in a process group of its own: it never outlives its limits or its parent.

Owns signals, sessions and the parent-death link. It knows nothing of cells.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import psutil

from harness.handover import Handover

GRACE_S = 5.0
#: How long a target that is about to be ended gets for writing its stacks.
DUMP_S = 1.0
POLL_S = 1.0
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


class Interrupted(BaseException):
    """A signal asked this process to stop; not an Exception, so that no handler swallows it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@dataclass(frozen=True)
class Ended:
    """How a child ended. `rc` is negative for a signal, as subprocess has it."""

    rc: int
    timed_out: bool
    interrupted: str  # name of the signal that stopped us, or ""
    elapsed_s: float
    idle_s: float = 0.0  # with `timed_out`: without progress for so long; 0 = the total limit ended it


@dataclass(frozen=True)
class Limits:
    """When a child has run for too long: in all, and without progress (0 = no such limit).

    Progress is a new size or time of the log or of a path in `signs`; of a directory, a new or removed entry.
    """

    total_s: float
    idle_s: float = 0.0
    signs: Sequence[Path] = ()


def die_with_parent(number: int) -> None:
    """Ask the kernel to signal this process when its parent thread ends (Linux; elsewhere nothing)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of grandchildren whose parents die, so that `stop_group` can reap them (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1)


def raise_on_signals() -> None:
    """SIGTERM, SIGINT and SIGHUP become Interrupted at the point where the process waits."""

    def stop(number: int, frame: FrameType | None) -> None:
        ignore_signals()  # once is enough: clean up undisturbed
        raise Interrupted(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)


def ignore_signals() -> None:
    """From here on the process finishes what it is writing."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def run_group(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log: Path,
    limits: Limits,
    handover: Handover | None = None,
    spare: Sequence[int] = (),
) -> Ended:
    """Run `command` in its own session, output to `log`, and wait.

    A child that asks through `handover` is answered; what that raises ends the child and is raised here. At a limit the
    child is asked for its stacks (SIGUSR2); then, or when this process is told to stop, the whole group is terminated,
    then killed; so is every other descendant of this process but the pids to `spare`. The child dies with this process
    even at kill -9. OSError when it cannot be started.
    """
    started = time.monotonic()
    parent = os.getpid()
    own, descriptors = (handover.variables, handover.descriptors) if handover else ({}, ())
    with open(log, "ab") as stream:
        child = subprocess.Popen(
            command, cwd=cwd, env={**env, **own}, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
            start_new_session=True, pass_fds=descriptors, preexec_fn=lambda: _link(parent),
        )  # fmt: skip
    if handover:
        handover.leave_to_target()
    timed_out, idle_s, interrupted = False, 0.0, ""
    try:
        timed_out, idle_s = _wait(child, limits, (log, *limits.signs), handover)
        if timed_out:
            _ask_for_stacks(child)
    except Interrupted as stop:
        interrupted = str(stop)
    finally:
        stop_group(child)
        stop_descendants(spare)
    return Ended(child.returncode, timed_out, interrupted, time.monotonic() - started, idle_s)


def _wait(
    child: subprocess.Popen[bytes], limits: Limits, signs: Sequence[Path], handover: Handover | None
) -> tuple[bool, float]:
    """Until the child ends (False, 0) or a limit is reached (True, seconds idle; 0 = the total limit).

    What it is kept waiting for its device counts towards no limit.
    """
    started = since = time.monotonic()
    step = min(POLL_S, limits.idle_s / 4) if limits.idle_s else POLL_S if handover else limits.total_s
    seen = _state(signs)
    while True:
        pause = min(step, max(0.0, started + limits.total_s - time.monotonic()))
        waited = _pause(child, pause, handover)
        started, since = started + waited, since + waited
        if child.poll() is not None:
            return False, 0.0
        now, state = time.monotonic(), _state(signs)
        if now - started >= limits.total_s:
            return True, 0.0
        if state != seen:
            seen, since = state, now
        elif limits.idle_s and now - since >= limits.idle_s:
            return True, now - since


def _pause(child: subprocess.Popen[bytes], seconds: float, handover: Handover | None) -> float:
    """Let the child run for up to `seconds`, less when it ends or asks; how long it was then kept waiting."""
    if handover and not handover.is_over:
        return handover.answer() if handover.is_asked(seconds) else 0.0
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(seconds)
    return 0.0


def _state(paths: Sequence[Path]) -> list[tuple[int, int] | None]:
    """Size and time of each path; None where there is none (yet)."""
    found: list[tuple[int, int] | None] = []
    for path in paths:
        try:
            stat = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_size, stat.st_mtime_ns))
    return found


def _ask_for_stacks(child: subprocess.Popen[bytes]) -> None:
    """Every cell listens to SIGUSR2 from its first moments on; a process that does not is ended by it."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.kill(child.pid, signal.SIGUSR2)
        child.wait(DUMP_S)


def stop_group(child: subprocess.Popen[bytes]) -> None:
    """Terminate what is left of the child's group, wait up to GRACE_S, then kill it; reap what was orphaned."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not _signal_group(child.pid, number):
            break
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline and _signal_group(child.pid, 0):
            child.poll()
            _reap_orphans(child.pid)
            time.sleep(0.02)
    child.wait()


def stop_descendants(spare: Sequence[int]) -> None:
    """Kill what escaped the group by a session of its own; `adopt_orphans` made it ours."""
    for process in psutil.Process().children():
        if process.pid not in spare:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
                process.wait(GRACE_S)


def _link(parent: int) -> None:
    die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:  # the parent died before the link was made
        os._exit(137)


def _signal_group(group: int, number: int) -> bool:
    """False when the group has no member left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS answers so for zombies
        return False
    return True


def _reap_orphans(group: int) -> None:
    """Collect zombies of the group that were handed to us; the child itself belongs to its Popen."""
    try:
        found = os.waitid(os.P_PGID, group, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is not None and found.si_pid != group:
            os.waitpid(found.si_pid, os.WNOHANG)
    except ChildProcessError:
        return
