"""One op's verdict from its files: what `caliber report` writes, and what `caliber verify` derives once more.

The thin rim around the pure judging half (verdict): it reads evidence, gate, settings and telemetry, and must not know
reports or the workflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import codec, control, fingerprint, store, telemetry
from harness.caliber import measured
from harness.findings import OpVerdict
from harness.records import CellEvidence, Judge, Outcome
from harness.verdict import judge_op

#: A cell's clocks speak for it when samples cover this share of its time (facts: statistics, item 10), and this many of
#: them saw the device under load.
COVERED = 0.9
BUSY_SAMPLES = 10


def settle(directory: Path, op: str, cells: Sequence[CellEvidence]) -> OpVerdict:
    """Judge one op from its files. Its verdict.json is there, and says this, exactly while all its cells have ended."""
    _ask_gate(directory, op, cells)
    found, path = derive(directory, op, cells), directory / op / "verdict.json"
    if any(item.status is None for item in cells):
        path.unlink(missing_ok=True)
        return found
    text = codec.dumps(found, indent=1) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        codec.write_text(path, text)
    return found


def judge(directory: Path, op: str) -> OpVerdict:
    """The same, and read the op's evidence first."""
    return settle(directory, op, store.op_evidence(directory, store.read_plan(directory), op))


def derive(directory: Path, op: str, cells: Sequence[CellEvidence], offline: bool = False) -> OpVerdict:
    """The verdict of one op as its files give it now. Writes nothing.

    `offline`: with the noise campaign as it was kept beside the report, wherever that campaign is now.
    """
    judge = settings(directory)
    noise = control.floor(judge, cells, directory / control.KEPT if offline else None)
    return judge_op(cells, store.gate(directory, op), judge, clocks(directory, cells), noise=noise)


def on_file(directory: Path, ops: Sequence[str]) -> dict[str, OpVerdict]:
    """The verdicts that are written down; an unfinished op has none."""
    paths = {op: directory / op / "verdict.json" for op in ops}
    return {op: codec.read(OpVerdict, path) for op, path in paths.items() if path.exists()}


def settings(directory: Path) -> Judge:
    """The `judge:` section in force."""
    return codec.read(Judge, directory / "judge.json")


def clocks(directory: Path, cells: Sequence[CellEvidence]) -> Mapping[str, float]:
    """Mean SM clock under load, in MHz, of the measured cells whose telemetry says enough about them."""
    found = {}
    for item in cells:
        if item.status is None or item.status.outcome is not Outcome.MEASURED:
            continue
        attempt = store.attempt_directory(directory / item.cell.key, item.status.attempt)
        sampled = telemetry.summarise(attempt / "telemetry.csv")
        covered = sampled.samples * (sampled.interval_s or 0.0) / item.status.elapsed_s
        if sampled.busy_sm_clock_mhz and sampled.busy >= BUSY_SAMPLES and covered >= COVERED:
            found[item.cell.key] = sampled.busy_sm_clock_mhz.mean
    return found


def _ask_gate(directory: Path, op: str, cells: Sequence[CellEvidence]) -> None:
    """The gate of an op whose round 1 was measured again (`caliber redo`): no later cell is left to ask for it."""
    path, done = directory / op / "gate.json", measured(cells)
    if not path.exists() and len(done) == len(cells) - 1 and any(item.cell.round > 1 for item in done):
        codes = {item.cell.side.name: item.fingerprint for item in done if item.cell.round == 1}
        codec.write(path, fingerprint.gate(op, codes.get("A"), codes.get("B")))
