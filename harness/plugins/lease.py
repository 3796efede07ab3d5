"""pytest plugin: asks the runner for the device, when all that needs none is done.

It must not know what the device is, nor what is measured.
"""

from __future__ import annotations

import gc
import os
import socket
from typing import Any

from harness.plugins import observed, session

VARIABLE = "CALIBER_LEASE"
#: The lock, open until this process ends: whoever holds its descriptor holds the device.
_locks: list[int] = []


def pytest_runtestloop(session: Any) -> None:
    """Behind every collection hook, before any test. Without a test there is nothing to ask for."""
    if session.items:
        take()


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
