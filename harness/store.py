"""Files of a campaign: where each lies, how it is read whole. Read-only, except `write_status_table`.

results/<campaign>/<op>/r<k>_<side>/{cell.json, status.json, attempts/<n>/...}
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import codec
from harness.records import (
    Cell,
    CellEvidence,
    Event,
    Fingerprint,
    Gate,
    Identity,
    Marker,
    Plan,
    Refusal,
    Row,
    Side,
    Status,
)


class StoreError(Refusal):
    """A file of a campaign that is not there."""


EVIDENCE = ("rows.jsonl", "events.jsonl", "run_identity.json", "fingerprint.json", "telemetry.csv", "run.log")


#: In a campaign: the number of its cells. The plan of 20 000 has 2 MB.
PLANNED = "plan.cells"
#: In an attempt: its terminal status was taken back, and by whom; it is no longer the cell's.
SUPERSEDED = "superseded.json"
#: Beside it: the files of the op that rested on it (verdict, gate, record), as they were.
TAKEN_BACK = "superseded"


@dataclass(frozen=True)
class Superseded:
    """A terminal status that `caliber redo` took back. The attempt and all its evidence stay where they are."""

    cell: str  # key
    reason: str
    by: str  # user name
    at: str  # ISO 8601, UTC
    because_of: str  # the cell that `redo` was asked for: this one, or one that it depends on
    status: Status


def attempt_directory(cell: Path, number: int) -> Path:
    """The directory of one attempt at the cell in `cell`."""
    return cell / "attempts" / str(number)


def read_plan(campaign: Path) -> Plan:
    """The plan of a started campaign."""
    path = campaign / "plan.json"
    if not path.exists():
        raise StoreError(f"{path}: no such campaign here; start it with snakemake, or name its directory")
    return codec.read(Plan, path)


def planned_cells(campaign: Path) -> int:
    """How many cells a started campaign has; 0 where none was started. Read by each cell, so not from the plan."""
    path = campaign / PLANNED
    return int(path.read_text(encoding="utf-8")) if path.exists() else 0


def status(directory: Path) -> Status | None:
    """The terminal status of a cell, or None."""
    path = directory / "status.json"
    return codec.read(Status, path) if path.exists() else None


def attempts(directory: Path) -> list[Path]:
    """The attempts at a cell, oldest first."""
    found = (path for path in (directory / "attempts").glob("*") if path.name.isdigit())
    return sorted(found, key=lambda path: int(path.name))


def last_attempt(directory: Path) -> Status | None:
    """How the newest attempt ended; None when there is none, it runs, was killed with its runner, or is superseded."""
    found = attempts(directory)
    return status(found[-1]) if found and not (found[-1] / SUPERSEDED).exists() else None


def superseded(directory: Path) -> tuple[Superseded, ...]:
    """What `caliber redo` took back from a cell, oldest first."""
    root = directory / "attempts"
    numbers = os.listdir(root) if root.is_dir() else ()  # not attempts(): a glob each would add seconds to a report
    found = [codec.read(Superseded, root / name / SUPERSEDED) for name in numbers if _is_superseded(root, name)]
    return tuple(sorted(found, key=lambda old: old.status.attempt))


def _is_superseded(attempts_: Path, number: str) -> bool:
    return os.path.exists(f"{attempts_}/{number}/{SUPERSEDED}")


def rows(attempt: Path) -> tuple[Row, ...]:
    """Every finished row of an attempt."""
    path = attempt / "rows.jsonl"
    return tuple(codec.read_lines(Row, path)) if path.exists() else ()


def events(attempt: Path) -> tuple[Event, ...]:
    """Every event of an attempt."""
    path = attempt / "events.jsonl"
    return tuple(codec.read_lines(Event, path)) if path.exists() else ()


def fingerprint(directory: Path) -> Fingerprint | None:
    """What the promoted attempt of a cell compiled and launched."""
    ended = status(directory)
    path = attempt_directory(directory, ended.attempt) / "fingerprint.json" if ended else None
    return codec.read(Fingerprint, path) if path and path.exists() else None


def gate(campaign: Path, op: str) -> Gate | None:
    """The gate of an op, once a cell of round 2 asked for it."""
    path = campaign / op / "gate.json"
    return codec.read(Gate, path) if path.exists() else None


def evidence(campaign: Path, key: str) -> CellEvidence:
    """All that was found of one planned cell."""
    directory = campaign / key
    cell = codec.read(Cell, directory / "cell.json")
    ended = status(directory)
    if ended is None:
        return CellEvidence(cell, None, None, None, (), ())
    attempt = attempt_directory(directory, ended.attempt)
    identity, compiled = attempt / "run_identity.json", attempt / "fingerprint.json"
    return CellEvidence(
        cell=cell,
        status=ended,
        identity=codec.read(Identity, identity) if identity.exists() else None,
        fingerprint=codec.read(Fingerprint, compiled) if compiled.exists() else None,
        rows=rows(attempt),
        events=events(attempt),
    )


def op_evidence(campaign: Path, plan: Plan, op: str) -> tuple[CellEvidence, ...]:
    """The cells of one op, in plan order."""
    return tuple(evidence(campaign, cell.key) for cell in plan.cells if cell.key.split("/")[0] == op)


def each_op(campaign: Path, plan: Plan) -> Iterator[tuple[str, tuple[CellEvidence, ...]]]:
    """Op after op with its cells, in plan order. 600 000 rows are 1 GB: let go of them before asking for the next."""
    keys: dict[str, list[str]] = {}
    for cell in plan.cells:
        keys.setdefault(cell.key.split("/")[0], []).append(cell.key)
    for op, own in keys.items():
        yield op, tuple(evidence(campaign, key) for key in own)


def ops(plan: Plan) -> tuple[str, ...]:
    """The ops of a plan, in order."""
    return tuple(dict.fromkeys(cell.key.split("/")[0] for cell in plan.cells))


def switch_text(side: Side) -> str:
    """The side's part of the switch, for a table: `X=1`, `-X` where X is unset, `+lib` for an import path."""
    parts = [f"-{key}" if value is None else f"{key}={value}" for key, value in side.env.items()]
    return " ".join(parts + [f"+{path}" for path in side.pythonpath]) or "(none)"


STATUS_COLUMNS = (
    "campaign", "round", "op", "side", "switch", "rc", "outcome", "elapsed_s", "success", "failed",
    *(marker.value for marker in Marker), "seq", "started_at", "device", "superseded", "reason",
)  # fmt: skip


def status_rows(campaign: Path, plan: Plan, read: Iterable[CellEvidence] = ()) -> Iterator[dict[str, str]]:
    """One row per planned cell; a cell that has not ended has the outcome "missing" or that of its last attempt.

    Of the cells in `read` neither cell.json nor status.json is read once more.
    """
    known = {item.cell.key: (item.cell, item.status) for item in read}
    for planned in plan.cells:
        directory = campaign / planned.key
        cell, ended = known.get(planned.key) or (codec.read(Cell, directory / "cell.json"), status(directory))
        yield _status_row(cell, ended or last_attempt(directory), superseded(directory))


def write_status_table(campaign: Path, read: Iterable[CellEvidence] = ()) -> Path:
    """Derive `status.tsv`, whole and atomic; `read` are cells whose files need not be read again."""
    path = campaign / "status.tsv"
    codec.write_text(path, tsv(STATUS_COLUMNS, status_rows(campaign, read_plan(campaign), read)))
    return path


def tsv(columns: tuple[str, ...], lines: Iterable[dict[str, str]]) -> str:
    """Tab-separated text with a header."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, delimiter="\t", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return stream.getvalue()


def _status_row(cell: Cell, ended: Status | None, before: tuple[Superseded, ...]) -> dict[str, str]:
    row = dict.fromkeys(STATUS_COLUMNS, "") | {"superseded": str(len(before))}
    row |= {"campaign": cell.campaign, "round": str(cell.round), "op": cell.op, "side": cell.side.name}
    row |= {"switch": switch_text(cell.side), "outcome": "missing"}
    if ended is None:
        return row | ({"reason": f"superseded: {before[-1].reason}"} if before else {})
    row |= {name: str(getattr(ended, name)) for name in ("rc", "success", "failed", "seq", "started_at", "device")}
    row |= {marker.value: str(ended.markers.get(marker.value, 0)) for marker in Marker}
    row |= {"outcome": ended.outcome.value, "elapsed_s": f"{ended.elapsed_s:.3f}"}
    row |= {"reason": " ".join(ended.reason.split())}
    return row
