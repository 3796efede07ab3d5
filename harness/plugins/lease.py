"""pytest plugin: asks the runner for the device, when all that needs none is done, and ends the process soon after.

It must not know what the device is, nor what is measured.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import socket
import sys
from typing import Any

from harness.plugins import observed, session

VARIABLE = "CALIBER_LEASE"
#: The lock, open until this process ends: whoever holds its descriptor holds the device.
_locks: list[int] = []
#: pytest's, once it has the device: it knows how the process is to end.
_sessions: list[Any] = []


def pytest_runtestloop(session: Any) -> None:
    """Behind every collection hook, before any test. Without a test there is nothing to ask for."""
    if session.items:
        take()
        _sessions.append(session)


def take() -> None:
    """Return when the device is this process's. Started by hand, without a runner, it is nobody's to give."""
    # What was imported lives to the end: no collection between two rows need walk through it (0.17 s for FlagGems).
    gc.collect()
    gc.freeze()
    current = session.current()
    current.seconds.clear()
    current.charge("import", observed.process_age())
    if VARIABLE not in os.environ:
        return
    with socket.socket(fileno=int(os.environ.pop(VARIABLE))) as runner:
        runner.sendall(b"?")
        _, locks, _, _ = socket.recv_fds(runner, 1, 1)
    if not locks:
        raise session.EndsCell("the runner gave no lease; it has ended, or is about to end this process")
    _locks.extend(locks)


def leave() -> None:
    """The last of the exit handlers: end here, with what pytest returned, once every other handler has run.

    What follows in an interpreter with torch and a compiler loaded is tearing them down, a quarter of a second in which
    the device waits.
    """
    if _sessions and not hasattr(sys, "last_value"):  # else an exception is on its way out
        sys.stdout.flush()
        sys.stderr.flush()
        ctypes.CDLL(None).fflush(None)  # what kernels printed lies in C's own buffer
        os._exit(int(_sessions[0].exitstatus))


if VARIABLE in os.environ:
    atexit.register(leave)  # before torch and the provider register theirs, so behind them
