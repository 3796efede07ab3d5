"""One attempt at a cell: where it works, in what environment, what it left, and how it becomes the cell's own.

Owns `attempts/<n>/`. It decides nothing about the outcome.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from harness import codec, progress, providers, store
from harness.records import Cell, Outcome, Status

LOG_TAIL_BYTES = 65536


@dataclass(frozen=True)
class Place:
    """Where one attempt at a cell works. All paths absolute."""

    cell: Cell
    campaign: Path
    directory: Path
    attempt: Path

    @property
    def scratch(self) -> Path:
        return self.attempt / "scratch"

    @property
    def compile_cache(self) -> Path:
        """The Triton cache: that of the (op, side), or of this attempt alone. Never moved: it names its own paths."""
        own = self.campaign / self.cell.op / f"cache_{self.cell.side.name}"
        return (own if caches(self.cell) else self.scratch) / "triton"

    @property
    def root(self) -> Path:
        """The provider's root: absolute, or inside the campaign (the frozen builtin operators)."""
        return self.campaign / self.cell.provider.root

    @property
    def record(self) -> Path:
        """The tuning record of the op: replayed by measured cells, written by round 0. A shard of it keeps its own."""
        return (self.directory if self.cell.shards > 1 else self.campaign / self.cell.op) / "autotune.json"


def caches(cell: Cell) -> bool:
    """True where the measured cells of a side share what they compile. Round 0 compiles hundreds of losers apart."""
    return cell.round > 0 and cell.measure.compile_cache == "side" and cell.instrument.timer != "compile"


def unclaimed(cell: Cell, campaign: Path, root: Path) -> Place:
    """A place for checks before the campaign exists: nothing is made, the provider is where it is now."""
    provider = dataclasses.replace(cell.provider, root=str(root))
    directory = campaign / cell.key
    return Place(dataclasses.replace(cell, provider=provider), campaign, directory, directory / "attempts" / "0")


def claim(path: Path) -> Place:
    """Make the next attempt directory of the cell, with the cell's complete description in it."""
    if not path.exists():
        raise store.StoreError(f"{path}: no such cell; `caliber plan` lists them, a started campaign has their files")
    cell = codec.read(Cell, path)
    directory = path.parent if path.parent.parent.name != "attempts" else path.parent.parent.parent
    numbers = [int(found.name) for found in store.attempts(directory)]
    attempt = store.attempt_directory(directory, max(numbers, default=0) + 1)
    attempt.mkdir(parents=True)  # exclusive: two runners never share an attempt
    codec.write(attempt / "cell.json", cell)
    (attempt / progress.RUNNER).write_text(f"{socket.gethostname()} {os.getpid()}\n", encoding="utf-8")
    return Place(cell, directory.parent.parent, directory, attempt)


def environment(place: Place, visible: str) -> dict[str, str]:
    """The target's whole environment: ours, the device, private caches, the provider's, then the side's switch last."""
    cell = place.cell
    env = {key: value for key, value in os.environ.items() if not key.startswith("CALIBER_")}
    frozen = str(place.campaign / "frozen")
    env |= {name: visible for name in cell.instrument.visible_env}
    env |= {
        "CALIBER_CELL": str(place.attempt / "cell.json"),
        "CALIBER_ATTEMPT": str(place.attempt),
        "CALIBER_AUTOTUNE": str(place.record),
        "CALIBER_RUNTIME": cell.instrument.runtime,
        "TRITON_CACHE_DIR": str(place.compile_cache),
        **({"CALIBER_CACHE_STAMP": str(place.compile_cache.with_name("stamp.json"))} if caches(cell) else {}),
        "PYTHONPATH": os.pathsep.join([frozen, *cell.side.pythonpath, *provider_path(place)]),
        "PYTHONUNBUFFERED": "1",
        "LC_ALL": "C.UTF-8",
    }
    if env.pop("PYTHONDONTWRITEBYTECODE", ""):
        # Obeyed, every process would compile torch and the provider anew. The user's directories stay as they are.
        env.setdefault("PYTHONPYCACHEPREFIX", str(place.campaign / "bytecode"))
    env |= providers.get(cell.provider.name).environment(place.scratch, cell.measure)
    for name, value in cell.side.env.items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    return env


def provider_path(place: Place) -> tuple[str, ...]:
    """Import paths the provider's benchmarks need."""
    return providers.get(place.cell.provider.name).python_path(place.root)


def expected_rows(place: Place) -> int | None:
    """How many rows round 0 found for this op; None in round 0 itself."""
    if place.cell.round == 0:
        return None
    recorded = place.campaign / place.cell.op / "r0_A"
    ended = store.status(recorded)
    return len(store.rows(store.attempt_directory(recorded, ended.attempt))) if ended else None


def digests(attempt: Path) -> dict[str, str]:
    """SHA-256 of each evidence file, so that a verdict can say what it rests on."""
    found = (attempt / name for name in store.EVIDENCE)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in found if path.exists()}


def tail(log: Path) -> str:
    """The end of the log, for the reason of a failure."""
    data = log.read_bytes()[-LOG_TAIL_BYTES:] if log.exists() else b""
    return data.decode("utf-8", "replace")


def next_seq(place: Place, device: str) -> int:
    """How many cells of this campaign the device has started, this one included. The lease makes it race-free."""
    path = place.campaign / "lanes" / f"{device.replace('/', '_')}.seq"
    number = (int(path.read_text()) if path.exists() else 0) + 1
    codec.write_text(path, f"{number}\n")
    return number


def final(cell: Cell, outcome: Outcome) -> bool:
    """True when a plain re-run must not run the cell again. A shard has one try: failed, it discards the sweep."""
    return outcome.terminal or (cell.shards > 1 and outcome is not Outcome.INTERRUPTED)


def promote(place: Place, status: Status) -> bool:
    """Write the attempt's status; make it the cell's when final and the cell has none. False when it has one."""
    codec.write(place.attempt / "status.json", status)
    if not final(place.cell, status.outcome):
        return False
    if (place.directory / "status.json").exists():
        return False
    if status.outcome is Outcome.RECORDED and place.cell.autotune == "record":
        codec.write_text(place.record, codec.read_text(place.attempt / "autotune.json"))
    codec.write(place.directory / "status.json", status)
    return True


def now() -> str:
    """This instant, ISO 8601, UTC."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
