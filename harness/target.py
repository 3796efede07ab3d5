"""The target process of an attempt: it prepares without the device, and measures under the lease and telemetry."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from harness import process
from harness.attempt import Place, next_seq
from harness.handover import Handover
from harness.lease import Lease
from harness.process import Ended, Limits

BUSY_WAIT_S = 10.0


@dataclass(frozen=True)
class Use:
    """How the target ended, and the device's share in it, in seconds; both sums where a first run was set aside."""

    ended: Ended
    seq: int  # nth cell started on its device; 0 = it ended before it asked for the device
    wait_s: float
    lease_s: float


def run(place: Place, device: str, env: Mapping[str, str], before: Use | None = None) -> Use:
    """One target process, to its end or its limits. DeviceBusy when it asks for a device that somebody else holds.

    The lease is held from its question on, for as long as any of it lives; `before` is an earlier run's use.
    """
    cell, spare, seq = place.cell, list[int](), before.seq if before else 0
    plugins = [argument for name in cell.instrument.plugins for argument in ("-p", name)]
    signs = [place.attempt / "rows.jsonl", place.attempt / "events.jsonl", Path(env["TRITON_CACHE_DIR"])]
    with ExitStack() as held:

        def grant() -> int:
            nonlocal seq
            lease = held.enter_context(Lease(device, f"{cell.campaign}/{cell.key}").acquire(BUSY_WAIT_S))
            seq = seq or next_seq(place, device)
            sampler = start_telemetry(place, device)
            if sampler:
                held.callback(_stop, sampler)
                spare.append(sampler.pid)
            return lease.fileno()

        handover = held.enter_context(Handover(grant))
        ended = process.run_group(
            [cell.side.python, "-m", "pytest", *plugins, *cell.pytest_args], cwd=place.root, env=env,
            log=place.attempt / "run.log", handover=handover, spare=spare,
            limits=Limits(cell.measure.cell_timeout_s, cell.measure.no_progress_s, signs),
        )  # fmt: skip
        lease_s = 0.0
        if handover.granted_at is None:
            _tell_none(place, "the target ended before it asked for its device")
        else:
            lease_s = time.monotonic() - handover.granted_at
    earlier = (before.wait_s, before.lease_s) if before else (0.0, 0.0)
    return Use(ended, seq, earlier[0] + handover.waited_s, earlier[1] + lease_s)


def start_telemetry(place: Place, device: str) -> subprocess.Popen[bytes] | None:
    """The sampler beside the cell, or None when it is off; it writes its own reason when it cannot sample."""
    instrument, interval = place.cell.instrument, place.cell.telemetry_s
    if not instrument.sampler or interval <= 0:
        reason = "telemetry is off (telemetry.interval_s: 0)" if instrument.sampler else "this backend has no sampler"
        _tell_none(place, reason)
        return None
    arguments = ["--backend", instrument.backend, "--devices", device, "--interval", str(interval), "--run"]
    with open(place.attempt / "telemetry.csv", "wb") as out, open(place.attempt / "telemetry.err", "wb") as err:
        return subprocess.Popen(
            [sys.executable, "-m", "harness.telemetry", *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True, preexec_fn=lambda: process.die_with_parent(signal.SIGTERM),
        )  # fmt: skip


def _tell_none(place: Place, reason: str) -> None:
    (place.attempt / "telemetry.err").write_text(f"{reason}\n", encoding="utf-8")


def _stop(sampler: subprocess.Popen[bytes]) -> None:
    sampler.terminate()
    sampler.wait()
