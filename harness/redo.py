"""`caliber redo`: a cell that has ended is to be measured again. Its status is taken back, its evidence stays.

What the verdicts of the op rested on moves into the attempt with it, and every other cell that rested on it is taken
back too. A plain re-run then measures exactly these cells. The one way to measure a cell twice: a status deleted by
hand leaves no trace, and `snakemake --force` deletes more than was meant.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import codec, store
from harness.attempt import now
from harness.campaign import take_lock
from harness.records import Cell, Marker, Outcome, Refusal, Status
from harness.store import Superseded

#: Parts of a sharded round 0 lie beside the op's cells.
SHARDS = "sweep_s"


class RedoError(Refusal):
    """A cell that cannot be taken back, or not like this."""


@dataclass(frozen=True)
class _Target:
    campaign: Path
    cell: Cell
    ended: Mapping[str, Status]  # every cell of the op that has ended, by key

    @property
    def directory(self) -> Path:
        return self.campaign / self.cell.key

    @property
    def attempt(self) -> Path:
        return store.attempt_directory(self.directory, self.ended[self.cell.key].attempt)


def redo(path: Path, reason: str, with_dependents: bool) -> tuple[Superseded, ...]:
    """Take back the terminal status of the cell at `path` (its directory or cell.json) and of all that rest on it.

    Refused without a reason, while the campaign runs, and where measured cells would go with it, unless
    `with_dependents` says that they may. Returns what was taken back, the cell itself last.
    """
    if not reason.strip():
        raise RedoError("redo: --reason is empty; the report will show it, so say what was wrong with the cell")
    directory, campaign = _directory(path), campaign_of(path)
    op, key = directory.parent.name, f"{directory.parent.name}/{directory.name}"
    planned = [cell.key for cell in store.read_plan(campaign).cells if cell.key.startswith(f"{op}/")]
    if key not in planned:
        raise RedoError(f"{key}: is no cell of {campaign}; `caliber status {campaign} --all` lists them")
    with take_lock(campaign):
        shards = sorted(f"{op}/{path.parent.name}" for path in (campaign / op).glob(f"{SHARDS}*/status.json"))
        target = _target(campaign, key, [*shards, *planned])
        others = tuple(_dependents(target))
        _refuse_silent_loss(target, others, with_dependents)
        _take_back_files(target)
        return tuple(_supersede(target, other, " ".join(reason.split())) for other in (*others, key))


def campaign_of(path: Path) -> Path:
    """The campaign of a cell named by its directory or cell.json."""
    return _directory(path).parent.parent


def _directory(path: Path) -> Path:
    return (path.parent if path.name == "cell.json" else path).resolve()


def _target(campaign: Path, key: str, own: list[str]) -> _Target:
    ended = {other: status for other in own if (status := store.status(campaign / other))}
    if key not in ended:
        raise RedoError(f"{key}: has no terminal status, so there is nothing to take back; a plain re-run measures it")
    return _Target(campaign, codec.read(Cell, campaign / key / "cell.json"), ended)


def _dependents(target: _Target) -> Iterator[str]:
    """The other cells of the op whose status rests on the target's: what they replayed, or why they were skipped."""
    key, round_ = target.cell.key, target.cell.round
    for other, status in target.ended.items():
        skipped = status.outcome is Outcome.SKIPPED
        by_failure = skipped and status.reason.startswith(f"{key} failed:")
        by_gate = skipped and round_ == 1 and status.markers.get(Marker.SWITCH_NO_IR_DIFF.value, 0) > 0
        by_record = round_ == 0 and (status.round > 0 or other.split("/")[1].startswith(SHARDS))
        if other != key and (by_failure or by_gate or by_record):
            yield other


def _refuse_silent_loss(target: _Target, others: tuple[str, ...], allowed: bool) -> None:
    measured = [other for other in others if target.ended[other].outcome is Outcome.MEASURED]
    if measured and not allowed:
        raise RedoError(
            f"{target.cell.key}: round 0 made the record that {len(measured)} measured cells replayed "
            f"({', '.join(measured)}); a new record means measuring them again: add --with-dependents"
        )


def _take_back_files(target: _Target) -> None:
    """First, before any status: an interrupted redo must not leave a gate or a record that no cell stands for."""
    op, kept = target.campaign / target.cell.op, target.attempt / store.TAKEN_BACK
    rests_on = {"verdict.json": None, "gate.json": 1, "autotune.json": 0, "ahead_A.json": 0, "ahead_B.json": 0}
    for name in (name for name, last in rests_on.items() if last is None or target.cell.round <= last):
        if (op / name).exists():
            kept.mkdir(exist_ok=True)
            (op / name).replace(kept / name)


def _supersede(target: _Target, key: str, reason: str) -> Superseded:
    """Written whole before the status goes: what happens in between can be repeated."""
    status = target.ended[key]
    found = Superseded(key, reason, getpass.getuser(), now(), target.cell.key, status)
    directory = target.campaign / key
    codec.write(store.attempt_directory(directory, status.attempt) / store.SUPERSEDED, found)
    (directory / "status.json").unlink()
    return found
