"""Where a campaign stands, live: the plan left-joined with what is on disk. Read-only.

A cell that is missing, running or stalled is a row like any other: what is not there is what matters.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness import occupancy, store
from harness.records import Outcome, Plan, Status

#: No new byte of log or rows for this long is worth a look; tuning of one kernel stays silent for about a minute.
STALLED_S = 300.0
#: Written by the runner into its attempt: `<host> <pid>`.
RUNNER = "runner"


@dataclass(frozen=True)
class CellState:
    """One planned cell: `state` is an Outcome's text, or missing, running, stalled, lost."""

    key: str
    state: str
    terminal: bool
    attempt: int
    seconds: float | None
    note: str
    ended: Status | None = None


def states(campaign: Path, plan: Plan, now: float | None = None) -> Iterator[CellState]:
    """The state of every planned cell, in plan order. `now` is seconds since the epoch."""
    for planned in plan.cells:
        yield state(campaign / planned.key, planned.key, time.time() if now is None else now)


def state(directory: Path, key: str, now: float) -> CellState:
    """The state of one cell."""
    ended = store.status(directory)
    if ended is not None:
        return _ended(key, ended)
    found = store.attempts(directory)
    if not found:
        return CellState(key, "missing", False, 0, None, "")
    last = store.status(found[-1])
    if (found[-1] / store.SUPERSEDED).exists():
        return CellState(key, "superseded", False, int(found[-1].name), None, "a plain re-run measures it again")
    if last is not None:
        return _ended(key, last)
    number = int(found[-1].name)
    if not _alive(found[-1] / RUNNER):
        return CellState(key, "lost", False, number, None, "its runner is gone; a plain re-run measures it")
    silent = now - max(path.stat().st_mtime for path in found[-1].iterdir())
    age = now - (found[-1] / "cell.json").stat().st_mtime
    if silent > STALLED_S:
        return CellState(key, "stalled", False, number, age, f"no output for {silent:.0f} s")
    return CellState(key, "running", False, number, age, "")


def table(campaign: Path, plan: Plan, everything: bool) -> str:
    """Counts, then one line per cell that is not well (or per cell, with `everything`)."""
    found = list(states(campaign, plan))
    counts = Counter(item.state for item in found)
    done = sum(item.terminal for item in found)
    head = f"{plan.campaign}: {done}/{len(found)} cells done"
    lines = [f"{head} ({', '.join(f'{count} {name}' for name, count in sorted(counts.items()))})"]
    leased = occupancy.line(item.ended for item in found if item.ended)
    lines += [leased] if leased else []
    well = {Outcome.MEASURED.value, Outcome.RECORDED.value, Outcome.SKIPPED.value, "missing"}
    for item in found:
        if everything or item.state not in well:
            seconds = "" if item.seconds is None else f"{item.seconds:8.1f} s"
            lines.append(f"{item.key:<32} {item.state:<12} {seconds:>10}  {item.note}".rstrip())
    return "\n".join(lines) + "\n"


def _ended(key: str, ended: Status) -> CellState:
    terminal = ended.outcome.terminal
    note = ended.reason if terminal or not ended.reason else f"{ended.reason} (a plain re-run tries again)"
    return CellState(key, ended.outcome.value, terminal, ended.attempt, ended.elapsed_s, note, ended)


def _alive(path: Path) -> bool:
    """True when the runner that wrote `path` still runs, or runs on a host we cannot see."""
    if not path.exists():
        return False
    host, pid = path.read_text(encoding="utf-8").split()
    return host != socket.gethostname() or psutil.pid_exists(int(pid))
