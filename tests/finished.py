"""A finished campaign on disk, written from built evidence: what `caliber report`, `verify`, `reaccount` start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness import attempt, codec, config, fingerprint, finish, seal
from harness.records import CellEvidence, Fingerprint, Judge, Plan, Planned, Seal, Variant
from tests import evidence

SETTINGS = {"backend": "cuda", "measure": {"rounds": 6}}
NOISE = (0.05, -0.04, 0.02, -0.05, 0.03, -0.01)


def op_cells(op: str, effect_pct: float = 0.0, **prints: Fingerprint) -> tuple[CellEvidence, ...]:
    """Six rounds of two shapes, B slower by `effect_pct`; `A` and `B` are what either side compiled."""
    levels = {"[8]": 1.0, "[16,16]": 2.0}
    a = {shape: list(evidence.steps(ms, NOISE)) for shape, ms in levels.items()}
    b = {shape: list(evidence.steps((1 + effect_pct / 100) * ms, NOISE[::-1])) for shape, ms in levels.items()}
    found = {side: prints.get(side) or compiled(variant("v0", code=f"{op}{side}")) for side in "AB"}
    return tuple(replace(item, fingerprint=found[item.cell.side.name]) for item in evidence.op_cells(a, b, op))


def variant(name: str, converts: int = 0, code: str = "c", launched: bool = True, kernel: str = "kernel") -> Variant:
    """One specialization with `converts` layout conversions in ttgir."""
    texts = {"ttir": "i", "ttgir": f"{code}{converts}", "cubin": code}
    return Variant(
        name, kernel, "*fp16", "num_warps=4", texts, code, {"convert_layout.ttgir": converts}, True, launched
    )


def compiled(*variants: Variant) -> Fingerprint:
    """All of them fresh."""
    return Fingerprint(variants, len(variants), 0)


def write(directory: Path, ops: Mapping[str, Sequence[CellEvidence]], judge: Judge = evidence.JUDGE) -> Path:
    """Everything that a run leaves before it is judged. Returns `directory`."""
    planned = [Planned(item.cell.key, item.cell.seq, item.cell.slot, 0) for own in ops.values() for item in own]
    codec.write(directory / "plan.json", Plan("demo", ("0",), tuple(planned)))
    codec.write(directory / "judge.json", judge)
    sealed = Seal(2, "demo", "sha256:m", config.digest(SETTINGS), seal.harness_digest(), "sha256:p", "2026-01-01")
    seal.write(directory, sealed, {"config.json": codec.dumps(SETTINGS, indent=1) + "\n"})
    for op, own in ops.items():
        for item in own:
            write_cell(directory / item.cell.key, item)
        prints = {item.cell.side.name: item.fingerprint for item in own if item.cell.round == 1}
        codec.write(directory / op / "gate.json", fingerprint.gate(op, prints.get("A"), prints.get("B")))
    return directory


def write_cell(directory: Path, item: CellEvidence) -> None:
    """One cell as its runner leaves it, the hashes of its evidence included."""
    codec.write(directory / "cell.json", item.cell)
    if item.status is None:
        return
    place = directory / "attempts" / str(item.status.attempt)
    place.mkdir(parents=True)
    for row in item.rows:
        codec.append_line(place / "rows.jsonl", row)
    for event in item.events:
        codec.append_line(place / "events.jsonl", event)
    for name, value in (("run_identity.json", item.identity), ("fingerprint.json", item.fingerprint)):
        if value is not None:
            codec.write(place / name, value)
    codec.write(directory / "status.json", replace(item.status, evidence_sha256=attempt.digests(place)))


def reported(directory: Path, **ops: Sequence[CellEvidence]) -> Path:
    """The same, judged and reported; by default one op that got slower and one that did not."""
    write(directory, ops or {"mm": op_cells("mm", 5.0), "add": op_cells("add")})
    finish.render(directory)
    return directory
