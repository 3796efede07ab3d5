"""One process group per device: an OS lock on the device's UUID, handed down to the benchmark.

The kernel releases it when the last holder ends, also at kill -9; a benchmark that outlives its runner keeps it
(tilelang #2838: a timed-out benchmark overlapped the next one). Containers share it only if they share the directory.
"""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import re
import socket
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from harness.records import ExitCode, Refusal

POLL_S = 0.2


class DeviceBusy(Refusal):
    """Somebody else holds the device; the message names who."""

    code = ExitCode.BUSY


class LeaseError(Refusal):
    """The lock file itself cannot be had."""

    code = ExitCode.ENVIRONMENT


def lease_directory() -> Path:
    """Where leases of this machine lie: $CALIBER_LEASE_DIR, else /run/lock where all may write, else /tmp.

    Why not $XDG_RUNTIME_DIR or $TMPDIR: they differ between users, sessions and jobs, and a lock that two campaigns
    look for in two places locks nothing.
    """
    chosen = os.environ.get("CALIBER_LEASE_DIR")
    if chosen:
        return Path(chosen)
    shared = Path("/run/lock")
    open_to_all = shared.is_dir() and shared.stat().st_mode & stat.S_IWOTH
    return (shared if open_to_all else Path("/tmp")) / "caliber"  # noqa: S108 - a fixed place is the point


@dataclass(frozen=True)
class Lease:
    """The right to use the device `uuid`, asked for on behalf of `campaign` (any text that names the asker)."""

    uuid: str
    campaign: str
    directory: Path = field(default_factory=lease_directory)

    @property
    def path(self) -> Path:
        """The lock file; an old MIG UUID has slashes."""
        return self.directory / f"{re.sub(r'[^A-Za-z0-9._-]', '_', self.uuid)}.lock"

    def acquire(self, wait_s: float = 0.0) -> IO[str]:
        """The held lock as an open, inheritable file; closing it releases. DeviceBusy after `wait_s` seconds.

        Pass its `fileno()` on to the benchmark, so that the device stays taken for as long as that runs.
        """
        stream = os.fdopen(self._open(), "r+", encoding="utf-8")
        try:
            self._lock(stream, time.monotonic() + wait_s)
            self._sign(stream)
        except BaseException:
            stream.close()
            raise
        return stream

    def _open(self) -> int:
        try:
            self._make_directory()
            return self._open_file()
        except OSError as error:
            raise LeaseError(
                f"lease {self.path} cannot be opened ({error.strerror}); set CALIBER_LEASE_DIR to a directory that "
                "every user of this machine may write"
            ) from None

    def _open_file(self) -> int:
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
            os.fchmod(handle, 0o666)  # past the umask: the next user must be able to lock it too
        except FileExistsError:
            # Without O_CREAT: Linux refuses that on another user's file in a sticky directory (protected_regular).
            handle = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW)
        os.set_inheritable(handle, True)
        return handle

    def _make_directory(self) -> None:
        try:
            self.directory.mkdir(parents=True)
            self.directory.chmod(0o1777)
        except FileExistsError:
            return

    def _lock(self, stream: IO[str], deadline: float) -> None:
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                left = deadline - time.monotonic()
            if left <= 0:
                raise DeviceBusy(f"device {self.uuid} is held by {_holder(stream)}; wait for it, or end it")
            time.sleep(min(POLL_S, left))

    def _sign(self, stream: IO[str]) -> None:
        since = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "campaign": self.campaign, "since": since}
        stream.seek(0)
        stream.truncate()
        stream.write(json.dumps(holder) + "\n")
        stream.flush()


def _holder(stream: IO[str]) -> str:
    """Who signed the file. The lock decides, not the text: a holder that just came has not signed yet."""
    stream.seek(0)
    try:
        found = json.loads(stream.read())
        return f"pid {found['pid']} on {found['host']} ({found['campaign']}) since {found['since']}"
    except (ValueError, KeyError, TypeError):
        return "a process that left no name"
