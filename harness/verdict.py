"""Verdicts: one op from its own cells. Owns the order of the rules; the formulas are statistics', the words findings'.

Pure: evidence in, frozen values out. Must not know files, vendors or how a report looks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness import decision, statistics
from harness.corpus import exit_code, judge_campaign
from harness.exact import Metrics, compare_metrics
from harness.findings import (
    CampaignVerdict,
    OpVerdict,
    Quantity,
    Reason,
    RoundDelta,
    ShapeVerdict,
    SideNoise,
    Verdict,
)
from harness.pairing import Pairing
from harness.records import CellEvidence, Gate, Judge, Marker, RowKey
from harness.screening import Admission, Refusal, marker_count, screen
from harness.statistics import Array, Estimate, percent, words

__all__ = ["CampaignVerdict", "OpVerdict", "Reason", "Verdict", "exit_code", "judge_campaign", "judge_op"]

#: Round spread over side noise (variances) from which the rounds no longer look like independent noise of two sides.
INTERACTION = 4.0
INTERACTION_ROUNDS = 6


def judge_op(
    cells: Sequence[CellEvidence],
    gate: Gate | None,
    judge: Judge,
    clocks: Mapping[str, float] | None = None,
    planned: bool = True,
) -> OpVerdict:
    """Judge one op from all its planned cells; `planned=False` from those of runs that nobody planned here.

    `clocks`: cell key -> mean SM clock (MHz) of the cells whose telemetry covers at least 90 %; a claim that does not
    survive in clock cycles is CLOCK_CONFOUNDED. Checked only when every measured cell has one.
    """
    if not cells:
        raise ValueError("judge_op: no cells; an op without a plan has no verdict")
    screened = screen(cells, gate, judge, planned)
    if isinstance(screened, Refusal):
        return _blank(cells, gate, screened.verdict, screened.reasons)
    return _admitted(cells, gate, judge, screened, clocks or {})


def _admitted(
    cells: Sequence[CellEvidence], gate: Gate | None, judge: Judge, screened: Admission, clocks: Mapping[str, float]
) -> OpVerdict:
    pairing, metrics = screened.pairing, compare_metrics(cells)
    shapes = decision.judge_shapes(pairing, judge, metrics)
    blank = _blank(cells, gate, Verdict.NOT_COMPARABLE, ())
    base = replace(blank, shapes=shapes, metrics=metrics.totals, ledger=pairing.ledger)
    keys = pairing.whole()
    notes = (*screened.notes, *_cell_notes(cells), *_metric_notes(metrics))
    if not keys:
        verdict, reason = _nothing_left(shapes)
        return replace(base, verdict=verdict, reasons=(reason, *notes))
    deltas = decision.matrix(pairing, keys).mean(axis=0)
    found = statistics.estimate(deltas, pairing.orders)
    limit = decision.bar(judge, float(np.mean(decision.resolutions(pairing, keys))))
    verdict, reasons = decision.decide(found, deltas, found.p, limit)
    verdict, reasons = _clock_checked(verdict, reasons, deltas, pairing, _clock_ratios(cells, pairing, clocks), limit)
    noise = _noise(pairing, keys, found)
    judged = replace(
        base,
        verdict=verdict,
        reasons=(*reasons, *_design_notes(pairing, found, noise), *_shape_notes(shapes), *notes),
        estimate=found,
        margin=limit.margin,
        rounds=tuple(map(RoundDelta, pairing.rounds, pairing.orders, map(float, deltas))),
        noise=noise,
    )
    return _gated(judged, pairing, keys, rounds=cells[0].cell.measure.rounds)


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
        note = Reason("IR_UNKNOWN", gate.reason or "no kernel was compiled fresh on both sides")
        return replace(judged, verdict=Verdict.IR_UNKNOWN, reasons=(note, alone, *judged.reasons))
    return _same_code(judged, gate, pairing, keys)


def _same_code(judged: OpVerdict, gate: Gate, pairing: Pairing, keys: Sequence[RowKey]) -> OpVerdict:
    """Identical code: the measured cells are a free A/A, so their delta is the noise floor and no finding."""
    verdict = Verdict(gate.verdict)
    moved = float(np.median(np.abs(decision.matrix(pairing, keys)[:, 0])))
    first = pairing.rounds[0]
    reasons = [
        Reason(verdict.value, gate.reason or f"{gate.variants_compared} kernels compared, the code is the same"),
        Reason("AA_NOISE", f"round {first} moved by {percent(moved):.2f} % (median over shapes: {len(keys)})"),
    ]
    if judged.verdict.claims:
        text = f"{words(judged.estimate.delta)} on identical code" if judged.estimate else "a claim on identical code"
        reasons.append(Reason("AA_ALARM", f"{text}: noise, drift or configuration, not the switch"))
    kept = judged.reasons if len(pairing.rounds) > 1 else ()
    shapes = tuple(replace(shape, verdict=verdict, reasons=()) if shape.estimate else shape for shape in judged.shapes)
    return replace(judged, verdict=verdict, reasons=(*reasons, *kept), shapes=shapes, aa_delta=moved)


def _noise(pairing: Pairing, keys: Sequence[RowKey], found: Estimate) -> SideNoise:
    order, rounds = np.array(pairing.orders, dtype=float), np.array(pairing.rounds, dtype=float)
    a, b = (statistics.side_noise(_levels(pairing, keys, side), order, rounds) for side in ("a", "b"))
    total = (a or 0.0) ** 2 + (b or 0.0) ** 2
    return SideNoise(a, b, found.sd**2 / total if found.sd is not None and total else None)


def _levels(pairing: Pairing, keys: Sequence[RowKey], side: str) -> Array:
    """(N,) mean over the shapes of one side's log latency."""
    logs = [[math.log(getattr(pair, side)) for pair in pairing.pairs[key]] for key in keys]
    levels: Array = np.array(logs, dtype=float).mean(axis=0)
    return levels


def _clock_ratios(cells: Sequence[CellEvidence], pairing: Pairing, clocks: Mapping[str, float]) -> Array | None:
    """(N,) log clock B - log clock A; None unless every measured cell has a clock."""
    op = cells[0].cell.op
    pairs = [(clocks.get(f"{op}/r{number}_A"), clocks.get(f"{op}/r{number}_B")) for number in pairing.rounds]
    logs = [math.log(b) - math.log(a) for a, b in pairs if a and b]
    return np.array(logs) if len(logs) == len(pairs) else None


def _clock_checked(
    verdict: Verdict,
    reasons: tuple[Reason, ...],
    deltas: Array,
    pairing: Pairing,
    ratios: Array | None,
    limit: decision.Bar,
) -> tuple[Verdict, tuple[Reason, ...]]:
    """A claim must hold in cycles too (latency x clock); else a clock, not the code, moved it."""
    if ratios is None or not verdict.claims:
        return verdict, reasons
    cycles = statistics.estimate(deltas + ratios, pairing.orders)
    other, _ = decision.decide(cycles, deltas + ratios, cycles.p, limit)
    if other is verdict:
        return verdict, reasons
    text = f"{verdict.value} in time but {other.value} in cycles ({decision.interval(cycles, cycles.p)})"
    return Verdict.CLOCK_CONFOUNDED, (Reason("CLOCK", text), *reasons)


def _design_notes(pairing: Pairing, found: Estimate, noise: SideNoise) -> list[Reason]:
    notes = []
    a_first, b_first = found.a_first, found.rounds - found.a_first
    if a_first != b_first and found.slot is not None:
        text = f"A first in {a_first} rounds, B first in {b_first}; the slot term is fitted, not balanced out"
        notes.append(Reason("ORDER_UNBALANCED", text))
    if pairing.ledger.deviations:
        first, *more = pairing.ledger.deviations
        notes.append(Reason("ORDER_DEVIATED", first + (f"; and {len(more)} more" if more else "")))
    if noise.ratio is not None and noise.ratio > INTERACTION and found.rounds >= INTERACTION_ROUNDS:
        text = f"round spread^2 is {noise.ratio:.1f} x the sides' noise^2: replay holes, drift or two modes?"
        notes.append(Reason("INTERACTION", text))
    return notes


def _shape_notes(shapes: Sequence[ShapeVerdict]) -> list[Reason]:
    left_out = [shape for shape in shapes if shape.estimate is None]
    if not left_out:
        return []
    names = "; ".join(f"{shape.key} ({shape.reasons[0].code})" for shape in left_out[:3])
    more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
    return [Reason("SHAPES_LEFT_OUT", f"{len(left_out)} of {len(shapes)} shapes are in no number: {names}{more}")]


def _cell_notes(cells: Sequence[CellEvidence]) -> list[Reason]:
    """Rows that a captured run timed directly: their L2 state and call overhead are not a graph's."""
    counts = {"A": 0, "B": 0}
    for item in cells:
        if item.cell.round >= 1:
            counts[item.cell.side.name] += marker_count(item, Marker.BENCHMARK_DIRECT_NO_CUDAGRAPH)
    if not any(counts.values()):
        return []
    return [Reason("FALLBACK_TIMER", f"rows timed directly, not by graph: A {counts['A']}, B {counts['B']}")]


def _metric_notes(metrics: Metrics) -> list[Reason]:
    notes = []
    if metrics.unstable:
        more = f" and {len(metrics.unstable) - 1} more" if len(metrics.unstable) > 1 else ""
        notes.append(Reason("METRIC_UNSTABLE", f"{metrics.unstable[0]}{more}; left out of the totals"))
    if metrics.one_sided:
        notes.append(Reason("METRIC_ONE_SIDED", f"on one side only: {', '.join(metrics.one_sided)}"))
    return notes
