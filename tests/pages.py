"""Campaigns on disk for tests of the page: real files, made of the builders in tests/evidence.py."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness import codec, telemetry
from harness.records import CellEvidence, Event, Fingerprint, Gate, Plan, Planned, Variant
from tests import evidence

ORDERS = (1, -1, -1, 1, 1, -1)
#: A name that no manifest allows, but a foreign run may have.
HOSTILE = "</script><script>alert(1)</script>\"&'"
TTGIR = {"A": "module {\n  %0 = ttg.convert_layout %x\n}\n", "B": "module {\n  %0 = tt.load %x <evil>\n}\n"}


def moved(by: float, shapes: int = 3) -> tuple[CellEvidence, ...]:
    """The cells of one op with B slower by `by` per cent, with 0.02 % of noise."""
    noise = (0.0, 0.02, -0.02, 0.01, -0.01, 0.0)
    names = [f"[[{8 * (number + 1)}]]" for number in range(shapes)]
    a = {name: [1.0 * (1 + each / 100) for each in noise] for name in names}
    b = {name: [1.0 * (1 + (by + each) / 100) for each in reversed(noise)] for name in names}
    return evidence.op_cells(a, b, orders=ORDERS)


def write(directory: Path, ops: Mapping[str, Sequence[CellEvidence]], gates: Mapping[str, Gate]) -> Path:
    """Write a campaign: every file that a report is made of."""
    planned = []
    for op, cells in ops.items():
        codec.write(directory / op / "gate.json", replace(gates.get(op, evidence.gate()), op=op))
        for item in cells:
            cell = replace(item.cell, op=op, seq=len(planned))
            planned.append(Planned(cell.key, cell.seq, cell.slot, 0))
            _write_cell(directory / cell.key, replace(item, cell=cell))
    codec.write(directory / "judge.json", evidence.JUDGE)
    codec.write(directory / "plan.json", Plan("demo", ("0",), tuple(planned)))
    return directory


def _write_cell(directory: Path, item: CellEvidence) -> None:
    codec.write(directory / "cell.json", item.cell)
    if item.status is None:
        return
    attempt, side = directory / "attempts" / "1", item.cell.side.name
    codec.write(directory / "status.json", replace(item.status, op=item.cell.op))
    if item.identity:
        codec.write(attempt / "run_identity.json", item.identity)
    for row in item.rows:
        codec.append_line(attempt / "rows.jsonl", replace(row, op=item.cell.op))
    if item.rows:
        codec.append_line(attempt / "events.jsonl", Event("ROW_OOM", "<b>row</b>", {"error": "<i>out of memory</i>"}))
        codec.write(attempt / "fingerprint.json", _fingerprint(side))
        codec.write_text(attempt / "telemetry.csv", _samples(item.cell.seq))
    if item.cell.round == 1 and item.rows:
        (attempt / "ir").mkdir()
        (attempt / "ir" / "v0.ttgir.gz").write_bytes(gzip.compress(TTGIR[side].encode()))


def _fingerprint(side: str) -> Fingerprint:
    code = {"A": "a", "B": "b"}[side]
    metrics = {"convert_layout.ttgir": 1 if side == "A" else 0, "registers": 32}
    stages = {"ttir": "s", "ttgir": code, "cubin": code}
    return Fingerprint((Variant("v0", "mm_kernel", "*fp16", "num_warps=4", stages, code, metrics, True, True),), 1, 0)


def _samples(seq: int) -> str:
    """Ten seconds with power absent throughout and the clock absent once."""
    lines = [",".join(telemetry.COLUMNS)]
    for second in range(10):
        clock = "" if second == 4 else str(1900 + second)
        lines.append(f"{1000 + 60 * seq + second}.0,0,GPU-1,{clock},3201,{40 + second},,97,none")
    return "\n".join(lines) + "\n"
