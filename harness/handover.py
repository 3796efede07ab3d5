"""How a target gets its device: it prepares without one, asks for it, and is handed the lock itself.

Importing torch and a provider takes seconds and touches no device; to hold a lease meanwhile keeps others off an idle
device. What goes through the socket: a byte that asks (harness/plugins/lease.py), and back a byte with the lock's file
descriptor, so that the device stays taken for as long as the target lives, whatever becomes of this process.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

#: Names the descriptor of the target's end.
VARIABLE = "CALIBER_LEASE"


class Handover:
    """One target's question for its device. `grant` takes the lease and returns the lock's descriptor, or raises."""

    def __init__(self, grant: Callable[[], int]) -> None:
        self._grant = grant
        self._own, self._theirs = socket.socketpair()
        self.is_over = False
        self.waited_s = 0.0
        self.granted_at: float | None = None  # time.monotonic(); None = the target has not got the device

    @property
    def variables(self) -> Mapping[str, str]:
        """What the target's environment must hold."""
        return {VARIABLE: str(self._theirs.fileno())}

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the target must inherit."""
        return (self._theirs.fileno(),)

    def leave_to_target(self) -> None:
        """The target has its end: ours of it is closed, so that its death is heard."""
        self._theirs.close()

    def is_asked(self, seconds: float) -> bool:
        """Whether the target asks within `seconds`; True also when it ended without."""
        return bool(select.select([self._own], [], [], seconds)[0])

    def answer(self) -> float:
        """Take the lease and hand it over; the seconds that took. Whatever `grant` raises; `is_over` either way."""
        self.is_over = True
        if not self._own.recv(1):
            return 0.0
        asked = time.monotonic()
        descriptor = self._grant()
        self.granted_at = time.monotonic()
        self.waited_s = self.granted_at - asked
        with suppress(OSError):  # it died meanwhile, as its exit code tells
            socket.send_fds(self._own, [b"!"], [descriptor])
        return self.waited_s

    def close(self) -> None:
        """Both ends; the lock is the caller's."""
        self._own.close()
        self._theirs.close()

    def __enter__(self) -> Handover:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
