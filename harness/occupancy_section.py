"""The report's section on occupancy: what `occupancy` finds in the statuses, as tables. Computes no number."""

from __future__ import annotations

from collections.abc import Mapping

from harness.caliber import measured
from harness.grid import ABSENT, grid
from harness.occupancy import PHASES, Held, Use, held, use
from harness.records import CellEvidence, Outcome

#: More ops than this have no line of their own.
OPS_LISTED = 40


def section(cells: Mapping[str, tuple[CellEvidence, ...]]) -> str:
    """What the devices were held for: by kind of cell, per device, and per op where there are few."""
    every = [item.status for own in cells.values() for item in own if item.status]
    if not use(every).cells:
        return ""
    kinds = {outcome.value: use(ended for ended in every if ended.outcome is outcome) for outcome in Outcome}
    titles = ("number", "import s", "lease s", *(f"{name} %" for name in PHASES))
    lines = [_use(*kind) for kind in {**kinds, "all": use(every)}.items() if kind[1].cells]
    parts = [
        "## Occupancy\n\nSeconds for which devices were leased, and each phase's part of them; imports come before the "
        "lease. Of cells that ended terminally; the time of other attempts and of a sweep's shards is not in it.",
        grid(("cells", *titles), lines),
        grid(("device", "lease s", "first start to last end s", "idle s", "longest gap s"), map(_held, held(every))),
    ]
    if 1 < len(cells) <= OPS_LISTED:
        own = {op: use(item.status for item in measured(found) if item.status) for op, found in cells.items()}
        parts.append(grid(("op, measured cells", *titles), [_use(*line) for line in own.items()]))
    return "\n\n".join(parts)


def _use(name: str, found: Use) -> tuple[str, ...]:
    shares = (f"{100 * found.share(phase):.1f}" if found.cells else ABSENT for phase in PHASES)
    return name, str(found.cells), f"{found.import_s:.1f}", f"{found.lease_s:.1f}", *shares


def _held(found: Held) -> tuple[str, ...]:
    seconds = (found.use.lease_s, found.wall_s, found.idle_s, found.longest_gap_s)
    return found.device, *(f"{value:.1f}" for value in seconds)
