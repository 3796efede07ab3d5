"""Verdicts: one op from its own cells. Owns the order of the rules; the formulas are statistics', the words findings'.

Pure: evidence in, frozen values out. Must not know files, vendors or how a report looks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness import decision, notes
from harness.corpus import exit_code, judge_campaign
from harness.exact import compare_metrics
from harness.findings import (
    CampaignVerdict,
    OpVerdict,
    Quantity,
    Reason,
    RoundDelta,
    ShapeVerdict,
    Verdict,
)
from harness.margin import Bar, Floor, bar, resolutions
from harness.noise import Noise
from harness.pairing import Pairing
from harness.records import CellEvidence, Gate, Judge, RowKey
from harness.screening import Admission, Refusal, screen
from harness.statistics import Array, percent, words

__all__ = ["CampaignVerdict", "OpVerdict", "Reason", "Verdict", "exit_code", "judge_campaign", "judge_op"]


def judge_op(
    cells: Sequence[CellEvidence],
    gate: Gate | None,
    judge: Judge,
    clocks: Mapping[str, float] | None = None,
    planned: bool = True,
    noise: Noise | None = None,
) -> OpVerdict:
    """Judge one op from all its planned cells; `planned=False` from those of runs that nobody planned here.

    `clocks`: cell key -> mean SM clock (MHz) of the cells whose telemetry covers at least 90 %; a claim that does not
    survive in clock cycles is CLOCK_CONFOUNDED. Checked only when every measured cell has one. `noise`: of an A/A
    campaign measured alike; its floor widens the margin.
    """
    if not cells:
        raise ValueError("judge_op: no cells; an op without a plan has no verdict")
    screened = screen(cells, gate, judge, planned)
    if isinstance(screened, Refusal):
        return _blank(cells, gate, screened.verdict, screened.reasons)
    return _admitted(cells, gate, judge, screened, clocks or {}, noise)


def _admitted(
    cells: Sequence[CellEvidence],
    gate: Gate | None,
    judge: Judge,
    screened: Admission,
    clocks: Mapping[str, float],
    control: Noise | None,
) -> OpVerdict:
    pairing, metrics, op = screened.pairing, compare_metrics(cells), cells[0].cell.op
    ratios = clock_ratios(op, pairing, clocks)
    floor = control.shape_floor(op) if control else None
    shapes, family = decision.judge_shapes(pairing, judge, metrics, floor, ratios)
    blank = _blank(cells, gate, Verdict.NOT_COMPARABLE, ())
    base = replace(blank, shapes=shapes, metrics=metrics.totals, ledger=pairing.ledger, family_p=family)
    keys = pairing.whole()
    more = (*screened.notes, *notes.results(cells), *notes.fallbacks(cells), *notes.metrics(metrics))
    if not keys:
        verdict, reason = _nothing_left(shapes)
        return replace(base, verdict=verdict, reasons=(reason, *more))
    deltas = op_deltas(pairing, keys)
    limit = op_bar(pairing, keys, judge, control.op_floor(op) if control else None)
    weighed = decision.weigh(deltas[None, :], pairing.orders, [limit], ratios)
    (found,), (verdict,), (reasons,) = weighed.found, weighed.verdicts, weighed.reasons
    noise = notes.side_noise(pairing, keys, found)
    judged = replace(
        base,
        verdict=verdict,
        reasons=(*reasons, *notes.design(pairing, found, noise), *notes.left_out(shapes), *more),
        estimate=found,
        margin=limit.margin,
        margin_source=limit.source,
        rounds=tuple(map(RoundDelta, pairing.rounds, pairing.orders, map(float, deltas))),
        noise=noise,
    )
    return _gated(judged, pairing, keys, rounds=cells[0].cell.measure.rounds)


def _aa(shape: ShapeVerdict, verdict: Verdict) -> ShapeVerdict:
    """A shape of identical code: what it read is noise, and no reason of a decision counts."""
    read = percent(shape.estimate.delta) if shape.estimate else 0.0
    return replace(shape, verdict=verdict, reasons=(Reason("AA_NOISE", f"identical code read {read:+.2f} %"),))


def op_deltas(pairing: Pairing, keys: Sequence[RowKey]) -> Array:
    """(N,) round deltas of the op: the log of its geometric mean ratio over the shapes that are paired throughout."""
    deltas: Array = decision.matrix(pairing, keys).mean(axis=0)
    return deltas


def op_bar(pairing: Pairing, keys: Sequence[RowKey], judge: Judge, floor: Floor | None) -> Bar:
    """What the op's own delta must clear; its timer's tick is the mean over its shapes."""
    return bar(judge, float(np.mean(resolutions(pairing, keys))), floor)


def clock_ratios(op: str, pairing: Pairing, clocks: Mapping[str, float]) -> Array | None:
    """(N,) log clock B - log clock A; None unless every measured cell has a clock."""
    pairs = [(clocks.get(f"{op}/r{number}_A"), clocks.get(f"{op}/r{number}_B")) for number in pairing.rounds]
    logs = [math.log(b) - math.log(a) for a, b in pairs if a and b]
    return np.array(logs) if len(logs) == len(pairs) else None


def _blank(
    cells: Sequence[CellEvidence], gate: Gate | None, verdict: Verdict, reasons: tuple[Reason, ...]
) -> OpVerdict:
    cell = cells[0].cell
    quantity: Quantity = "compile latency" if cell.instrument.timer == "compile" else "device latency"
    return OpVerdict(
        op=cell.op,
        verdict=verdict,
        reasons=reasons,
        quantity=quantity,
        declared_aa=cell.declared_aa,
        gate=gate,
        estimate=None,
        margin=None,
        rounds=(),
        noise=None,
        aa_delta=None,
        shapes=(),
        metrics=(),
        ledger=None,
    )


def _nothing_left(shapes: Sequence[ShapeVerdict]) -> tuple[Verdict, Reason]:
    """No shape is paired in every round. An empty comparison is never a good one."""
    if not shapes:
        return Verdict.NOT_COMPARABLE, Reason("NOTHING_PAIRED", "no row on either side")
    lacks = [shape.verdict for shape in shapes]
    verdict = Verdict.MIXED_TIMER if Verdict.MIXED_TIMER in lacks else Verdict.INCOMPLETE
    first = next(shape for shape in shapes if shape.verdict is verdict)
    text = f"none of {len(shapes)} shapes is paired in every round; {first.key}: {first.reasons[0].message}"
    return verdict, Reason("NOTHING_PAIRED", text)


def _gated(judged: OpVerdict, pairing: Pairing, keys: Sequence[RowKey], rounds: int) -> OpVerdict:
    """What the gate makes of a verdict that the latencies alone gave."""
    gate = judged.gate
    if gate is None:
        note = Reason("GATE_MISSING", "no gate: whether the switch changes any code of this op is not known")
        return replace(judged, reasons=(*judged.reasons, note))
    control = judged.declared_aa and len(pairing.rounds) == rounds
    if gate.verdict == "CODE_CHANGED":
        note = Reason("CODE_CHANGED", gate.reason or f"{gate.variants_changed} of {gate.variants_compared} variants")
        return replace(judged, reasons=(*judged.reasons, note))
    if control:
        note = Reason("AA_CONTROL", f"declared A/A, gate {gate.verdict}: judged on latency alone")
        return replace(judged, reasons=(*judged.reasons, note))
    if gate.verdict == "IR_UNKNOWN":
        alone = Reason("LATENCY_ALONE", f"without the gate this were {judged.verdict.value}")
        why = gate.reason or "no kernel was compiled fresh on both sides"
        note = Reason("IR_UNKNOWN", f"{why}; {gate.variants_compared} variants compared")
        shapes = tuple(_unknown(shape) if shape.estimate else shape for shape in judged.shapes)
        return replace(judged, verdict=Verdict.IR_UNKNOWN, reasons=(note, alone, *judged.reasons), shapes=shapes)
    return _same_code(judged, gate, pairing, keys)


def _unknown(shape: ShapeVerdict) -> ShapeVerdict:
    alone = Reason("LATENCY_ALONE", f"without the gate this were {shape.verdict.value}")
    return replace(shape, verdict=Verdict.IR_UNKNOWN, reasons=(alone, *shape.reasons))


def _same_code(judged: OpVerdict, gate: Gate, pairing: Pairing, keys: Sequence[RowKey]) -> OpVerdict:
    """Identical code: the measured cells are a free A/A, so their delta is the noise floor and no finding."""
    verdict = Verdict(gate.verdict)
    deltas = decision.matrix(pairing, keys)[:, 0]
    moved, first = float(np.median(np.abs(deltas))), pairing.rounds[0]
    reasons = [
        Reason(verdict.value, gate.reason or f"{gate.variants_compared} kernels compared, the code is the same"),
        Reason("AA_NOISE", f"round {first} moved by {percent(moved):.2f} % (median over shapes: {len(keys)})"),
    ]
    if judged.verdict.claims:
        text = f"{words(judged.estimate.delta)} on identical code" if judged.estimate else "a claim on identical code"
        reasons.append(Reason("AA_ALARM", f"{text}: noise, drift or configuration, not the switch"))
    alone = len(pairing.rounds) == 1  # nothing but AA_NOISE can be said of one round
    kept = tuple(one for one in judged.reasons if not alone or one.code == notes.RESULT_DIFFERS)
    shapes = tuple(_aa(shape, verdict) if shape.estimate else shape for shape in judged.shapes)
    control = tuple(map(float, deltas)) if first == 1 else ()
    return replace(judged, verdict=verdict, reasons=(*reasons, *kept), shapes=shapes, aa_delta=moved, control=control)
