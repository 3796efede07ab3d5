"""What the devices of a campaign were held for: lease time by phase, and the time between leases. Pure,
and light: the runner of every cell loads it.

It knows terminal statuses and nothing else: attempts that ended otherwise are not counted. Phases are the target's own
account (`compile`, `tune`, `time`, `check`), in seconds; what it does not account for is `other`. What a target does
before it asks for the device (`import`) is in no lease; in campaigns of epoch 1 and 2 it was, and is `other` of theirs.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.records import Status

#: tune: the first calls of a row less their compiles; check: results against torch's.
ACCOUNTED = ("compile", "tune", "time", "check")
PHASES = (*ACCOUNTED, "other")


@dataclass(frozen=True)
class Use:
    """Lease seconds of some cells, whole and by phase, and what they took to get ready for it."""

    cells: int
    import_s: float
    lease_s: float
    phases_s: Mapping[str, float]

    def share(self, phase: str) -> float:
        """The phase's part of the lease time, 0 to 1."""
        return self.phases_s[phase] / self.lease_s if self.lease_s else 0.0


@dataclass(frozen=True)
class Held:
    """One device: leases against the wall time from the first cell's start to the last one's end."""

    device: str
    use: Use
    wall_s: float
    longest_gap_s: float  # from one cell's end to the next one's start; a resumed campaign shows its pause here

    @property
    def idle_s(self) -> float:
        return max(self.wall_s - self.use.lease_s, 0.0)


def use(statuses: Iterable[Status]) -> Use:
    """The sum over the statuses that tell how long their lease was held."""
    leased = [ended for ended in statuses if "lease" in ended.phases_s]
    total = sum(ended.phases_s["lease"] for ended in leased)
    phases = {name: sum(ended.phases_s.get(name, 0.0) for ended in leased) for name in ACCOUNTED}
    imports = sum(ended.phases_s.get("import", 0.0) for ended in leased)
    return Use(len(leased), imports, total, {**phases, "other": max(total - sum(phases.values()), 0.0)})


def held(statuses: Iterable[Status]) -> tuple[Held, ...]:
    """Every device that was leased, in the order of its first cell."""
    devices: dict[str, list[Status]] = {}
    for ended in sorted((ended for ended in statuses if "lease" in ended.phases_s), key=lambda one: one.started_at):
        devices.setdefault(ended.device, []).append(ended)
    return tuple(_held(device, own) for device, own in devices.items())


def line(statuses: Iterable[Status]) -> str:
    """One line for the terminal; "" where no lease was recorded."""
    own = list(statuses)
    total = use(own)
    if not total.cells:
        return ""
    parts = ", ".join(f"{name} {100 * total.share(name):.0f} %" for name in PHASES)
    idle = sum(device.idle_s for device in held(own))
    return f"devices: leased {total.lease_s:.0f} s ({parts}), idle {idle:.0f} s"


def _held(device: str, own: Sequence[Status]) -> Held:
    """`own` in the order of their start."""
    starts = [datetime.datetime.fromisoformat(ended.started_at) for ended in own]
    ends = [datetime.datetime.fromisoformat(ended.ended_at) for ended in own]
    gaps = [(start - end).total_seconds() for end, start in zip(ends, starts[1:], strict=False)]
    wall = (max(ends) - starts[0]).total_seconds()
    return Held(device, use(own), wall, max([0.0, *gaps]))
