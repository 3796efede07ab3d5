"""Runs one cell's target process on the fixture provider, as the cell runner would, and reads what it left."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import codec
from harness.records import (
    AutotuneRecord,
    Cell,
    Event,
    Fingerprint,
    Identity,
    Instrument,
    Measure,
    Provider,
    Row,
    Side,
    TunedKey,
    Workload,
)

REPOSITORY = Path(__file__).resolve().parents[2]
PROVIDER = REPOSITORY / "tests/fixtures/plugins/provider"
PLUGINS = ("aot", "identity", "lease", "autotune", "variants", "timing")


def make_cell(**changes) -> Cell:
    """A cell of backend aot on the fixture provider; `changes` go to the cell, or by name to one of its parts."""
    parts = {
        "side": Side("A", sys.executable, (), {}),
        "workload": Workload("double", "benchmark/test_ops.py::test_double"),
        "provider": Provider("builtin", str(PROVIDER), "sha256:0"),
        "instrument": Instrument(
            "aot", "cuda:90", (), "meta", "compile", "none", tuple(f"harness.plugins.{name}" for name in PLUGINS), ""
        ),
        "measure": Measure(6, "core", "file", "auto", 1, 10, 20, "isolated", 60),
    }
    cell = {
        "epoch": 1, "campaign": "test", "op": "double", "round": 1, "seq": 0, "slot": 1, "lane": 0, "device": "0",
        "autotune": "record", "declared_aa": False, "allow_no_ir_diff": False, "pytest_args": (),
    }  # fmt: skip
    for name, value in changes.items():
        owner = next((part for part in parts if value is not None and name in parts[part].__dict__), None)
        if name in cell or name in parts:
            (cell if name in cell else parts)[name] = value
        elif owner:
            parts[owner] = dataclasses.replace(parts[owner], **{name: value})
        else:
            raise TypeError(name)
    return Cell(**{**cell, **parts})


@dataclass
class Ran:
    """One target process: its exit code, its log, and the evidence in its attempt directory."""

    rc: int
    log: str
    attempt: Path

    @property
    def rows(self) -> list[Row]:
        path = self.attempt / "rows.jsonl"
        return list(codec.read_lines(Row, path)) if path.exists() else []

    @property
    def events(self) -> list[Event]:
        path = self.attempt / "events.jsonl"
        return list(codec.read_lines(Event, path)) if path.exists() else []

    def event(self, code: str) -> Event:
        found = [event for event in self.events if event.code == code]
        assert len(found) == 1, f"{code} {len(found)} times in:\n{self.log}"
        return found[0]

    def rows_of(self, op: str) -> list[Row]:
        return [row for row in self.rows if row.op == op]

    @property
    def codes(self) -> list[str]:
        return [event.code for event in self.events]

    @property
    def identity(self) -> Identity:
        return codec.read(Identity, self.attempt / "run_identity.json")

    @property
    def fingerprint(self) -> Fingerprint:
        return codec.read(Fingerprint, self.attempt / "fingerprint.json")

    @property
    def record(self) -> AutotuneRecord:
        return codec.read(AutotuneRecord, self.attempt / "autotune.json")


#: Plugins and instrument of a cell on the fake device of tests/fixtures/plugins, which has a clock of its own.
ON_FAKE_DEVICE = {
    "backend": "cuda",
    "target": "",
    "timer": "direct",
    "l2": "flushed",
    "plugins": ("tests.fixtures.plugins.fake_device", *(f"harness.plugins.{name}" for name in PLUGINS[1:])),
}


def run(
    attempt: Path, test: str, cell: Cell | None = None, record: Path | None = None,
    seeds: AutotuneRecord | None = None, file: str = "benchmark/test_ops.py", **env: str,
) -> Ran:  # fmt: skip
    """Run the tests of the provider's `file` that match `test` in a fresh interpreter, as `cell`.

    `record` is replayed, `seeds` are what the shards of a sweep recorded.
    """
    cell = cell or make_cell()
    attempt.mkdir(parents=True)
    if seeds:
        codec.write(attempt / "seeds.json", seeds)
    codec.write(attempt / "cell.json", cell)
    own = {
        "CALIBER_CELL": str(attempt / "cell.json"),
        "CALIBER_ATTEMPT": str(attempt),
        "CALIBER_AUTOTUNE": str(record or attempt / "none.json"),
        "CALIBER_RUNTIME": cell.instrument.runtime,
        "TRITON_CACHE_DIR": str(attempt / "triton"),
        "TUNER_DB": str(attempt / "tuner.db"),
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), cell.provider.root, os.environ.get("PYTHONPATH", "")]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    plugins = [word for name in cell.instrument.plugins for word in ("-p", name)]
    arguments = ["--level", "core", "--warmup", "10", "--iter", "20", "--metrics", "latency", *cell.pytest_args]
    done = subprocess.run(
        [cell.side.python, "-m", "pytest", *plugins, file, "-k", test, *arguments],
        cwd=cell.provider.root, env={**os.environ, **own, **env}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout + done.stderr, attempt)


def replaying(cell: Cell) -> Cell:
    """The same cell, measured: it replays."""
    return dataclasses.replace(cell, autotune="replay")


def edited(ran: Ran, path: Path, change: Callable[[TunedKey], TunedKey | None]) -> Path:
    """A copy at `path` of the record of `ran`, with `change` applied to each of its keys (None = left out)."""
    record = ran.record
    keys = tuple(key for key in map(change, record.keys) if key is not None)
    codec.write(path, dataclasses.replace(record, keys=keys))
    return path
