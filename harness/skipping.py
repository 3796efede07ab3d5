"""When a cell is not measured: its op failed before, or its gate found no code change. Writes the gate only."""

from __future__ import annotations

from collections.abc import Mapping

from harness import codec, fingerprint, store
from harness.attempt import Place
from harness.records import Gate, Judge, Marker, Outcome


def reason_to_skip(place: Place) -> tuple[Mapping[str, int], str] | None:
    """(marker counts, reason) when the cell must not be measured: an earlier failure of the op, or no code change."""
    op = place.campaign / place.cell.op
    for directory in sorted(op.glob("r*_?")):
        ended = store.status(directory)
        if ended is not None and ended.outcome is Outcome.OP_FAILED and directory != place.directory:
            return {}, f"{place.cell.op}/{directory.name} failed: {ended.reason}"
    if place.cell.round < 2:
        return None
    gate = ask_gate(place)
    if not fingerprint.should_skip(gate, allowed(place)):
        return None
    text = f"{Marker.SWITCH_NO_IR_DIFF.value} verdict={gate.verdict} {gate.reason}"
    (place.attempt / "run.log").write_text(f"{text}\n", encoding="utf-8")
    return {Marker.SWITCH_NO_IR_DIFF.value: 1}, text


def allowed(place: Place) -> bool:
    """`judge.allow_no_ir_diff`, as it is now: it may be changed between two runs of a campaign."""
    path = place.campaign / "judge.json"
    return codec.read(Judge, path).allow_no_ir_diff if path.exists() else place.cell.allow_no_ir_diff


def ask_gate(place: Place) -> Gate:
    """The gate of the op, from round 1's two fingerprints; whoever asks first writes it."""
    op = place.campaign / place.cell.op
    found = store.gate(place.campaign, place.cell.op)
    if found is None:
        found = fingerprint.gate(place.cell.op, store.fingerprint(op / "r1_A"), store.fingerprint(op / "r1_B"))
        codec.write(op / "gate.json", found)
    return found
