"""The sharded sweep of round 0: what its shards recorded becomes the seeds of cell r0_A, or is discarded whole.

A sweep with holes was once published as a record: 5 of 29 shapes of mm, and 90 keys that tuned themselves in a run that
called itself replaying. So any shard that did not record discards the sweep here, before r0_A starts; and a key that
the seeds lack ends the seeded run in the target (plugins/seeding.py). Either way r0_A then sweeps alone, serially.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness import codec, store
from harness.attempt import Place
from harness.records import AutotuneRecord, Event, Outcome, TunedKey

DISCARDED = "SWEEP_DISCARDED"
#: Left by the runner for the target: the merged record of the shards.
SEEDS = "seeds.json"
#: Where the evidence of a seeded run goes that met a hole; nothing of it counts.
ASIDE = "discarded"


@dataclass(frozen=True)
class Conflict:
    """Two shards that chose differently for one key; the first shard's choice is kept."""

    kernel: str
    key: str
    kept: int
    dropped: int


def merge(records: Mapping[int, AutotuneRecord]) -> tuple[AutotuneRecord, tuple[Conflict, ...]]:
    """One record of all shards' keys, in shard order, and every conflict. `records` is one record per shard."""
    found: dict[tuple[str, str, str, str], tuple[int, TunedKey]] = {}
    conflicts = []
    for shard, record in records.items():
        for key in record.keys:
            first, kept = found.setdefault((key.kernel, key.source_hash, key.key, key.candidates_hash), (shard, key))
            if kept.winner != key.winner:
                conflicts.append(Conflict(key.kernel, key.key, first, shard))
    return replace(next(iter(records.values())), keys=tuple(key for _, key in found.values())), tuple(conflicts)


def seed(place: Place) -> None:
    """Before the target of r0_A starts: lay the shards' merged record beside it, or say why the sweep is discarded."""
    cell = place.cell
    if cell.round or cell.shards > 1 or cell.measure.sweep_shards < 2 or cell.autotune != "record":
        return
    count = cell.measure.sweep_shards
    shards = {number: place.campaign / replace(cell, shard=number, shards=count).key for number in range(count)}
    own = {number: directory for number, directory in shards.items() if not _had_no_shapes(directory)}
    lost = list(_lost(own or shards))
    if lost:
        for event in lost:
            _tell(place, event)
        return
    merged, conflicts = merge({n: codec.read(AutotuneRecord, shard / "autotune.json") for n, shard in own.items()})
    for conflict in conflicts:
        detail = {"kernel": conflict.kernel, "key": conflict.key, "kept_shard": str(conflict.kept)}
        _tell(place, Event("SWEEP_CONFLICT", "", {**detail, "dropped_shard": str(conflict.dropped)}))
    codec.write(place.attempt / SEEDS, merged)


def discarded(place: Place) -> bool:
    """After the target ended: True when its seeds had a hole. What it left is then set aside, and nothing is tuned."""
    seeded = (place.attempt / SEEDS).exists()
    told = [event for event in store.events(place.attempt) if event.code.startswith("SWEEP_")] if seeded else []
    if not any(event.code == DISCARDED for event in told):
        return False
    aside = place.attempt / ASIDE
    aside.mkdir()
    for name in (SEEDS, "autotune.json", *store.EVIDENCE):
        if (place.attempt / name).exists() and not name.startswith("telemetry"):
            (place.attempt / name).rename(aside / name)
    shutil.rmtree(place.scratch)  # the tuners' own database holds the seeds
    place.compile_cache.mkdir(parents=True)
    for event in told:
        _tell(place, event)
    return True


def _had_no_shapes(directory: Path) -> bool:
    """True of a shard for which none was left, as it says itself: it cannot have recorded, and nothing is missing."""
    ended = store.status(directory)
    events = store.events(store.attempt_directory(directory, ended.attempt)) if ended else ()
    taken = {event.detail.get("taken") for event in events if event.code == "SHARD_SHAPES"}
    return taken == {"0"}


def _lost(shards: Mapping[int, Path]) -> Iterator[Event]:
    for number, directory in shards.items():
        ended = store.status(directory)
        if ended is None or ended.outcome is not Outcome.RECORDED:
            why = f"{ended.outcome.value}: {ended.reason}" if ended else "it has not run"
            yield Event(DISCARDED, "", {"reason": "shard_failed", "shard": str(number), "why": why})


def _tell(place: Place, event: Event) -> None:
    codec.append_line(place.attempt / "events.jsonl", event)
    text = " ".join([event.code, *(f"{name}={value}" for name, value in event.detail.items())])
    with open(place.attempt / "run.log", "a", encoding="utf-8") as log:
        log.write(f"{text}\n")
    print(f"{place.cell.key} {text}", flush=True)
