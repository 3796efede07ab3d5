"""The report of a campaign: what it is made of, and its two text forms. Pure; writes no file and decides nothing.

Coverage comes first and orphans are named: an incomplete comparison must not look like a complete one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness import evidence_sections, occupancy_section, verdict_sections
from harness.caliber import AxisLine, Mismatch, compare, table
from harness.findings import CampaignVerdict, OpVerdict, ShapeVerdict, codes
from harness.records import CellEvidence, Gate, Judge, RowKey
from harness.statistics import DIRECTION, Estimate, percent
from harness.store import Superseded
from harness.store import tsv as tab_separated
from harness.verdict import judge_campaign


@dataclass(frozen=True)
class CampaignReport:
    """All that a report shows. Mappings are keyed by op, in plan order."""

    campaign: str
    judge: Judge
    cells: Mapping[str, tuple[CellEvidence, ...]]  # every planned cell
    ops: Mapping[str, OpVerdict]
    verdict: CampaignVerdict
    caliber: Mapping[str, tuple[AxisLine, ...]]
    mismatches: Mapping[str, tuple[Mismatch, ...]]
    superseded: tuple[Superseded, ...] = ()


def assemble(
    campaign: str,
    cells: Mapping[str, tuple[CellEvidence, ...]],
    ops: Mapping[str, OpVerdict],
    judge: Judge,
    superseded: tuple[Superseded, ...] = (),
) -> CampaignReport:
    """Put a report together from the evidence and the verdicts of its ops, and what was taken back of its cells."""
    return CampaignReport(
        campaign=campaign,
        judge=judge,
        cells=cells,
        ops=ops,
        verdict=judge_campaign(ops, judge),
        caliber={op: table(own) for op, own in cells.items()},
        mismatches={op: found for op, own in cells.items() if (found := compare(own))},
        superseded=superseded,
    )


def markdown(report: CampaignReport) -> str:
    """The whole report as GitHub markdown."""
    ops = tuple(report.ops.values())
    parts = [
        f"# caliber: {report.campaign}",
        evidence_sections.coverage(report.cells),
        evidence_sections.meaning(report.cells, ops, report.judge),
        evidence_sections.caliber(report.caliber, report.mismatches),
        verdict_sections.verdicts(ops, report.verdict),
        verdict_sections.corpus(report.verdict),
        *(verdict_sections.shapes(op) for op in ops if op.shapes),
        evidence_sections.unpaired(ops),
        evidence_sections.markers(report.cells),
        evidence_sections.order(ops),
        evidence_sections.skipped(report.cells),
        evidence_sections.superseded(report.superseded),
        occupancy_section.section(report.cells),
        verdict_sections.footnotes(ops, report.verdict),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


COLUMNS = (
    "op", "dtype", "shape", "occurrence", "config", "verdict", "quantity", "delta_pct", "ci_low_pct", "ci_high_pct",
    "hl_pct", "min_pct", "max_pct", "range_confidence", "same_sign", "rounds", "p", "p_adjusted", "margin_pct",
    "a_ms", "b_ms", "slot_pct", "sd_pct", "noise_a_pct", "noise_b_pct", "n_a", "n_b", "n_paired", "gate",
    "stage", "metrics", "reasons",
)  # fmt: skip


def tsv(report: CampaignReport) -> str:
    """One line per op (empty dtype and shape), then one per shape; absent is empty. Percentages: see DIRECTION."""
    return f"# {DIRECTION}\n" + tab_separated(COLUMNS, _lines(report))


def _lines(report: CampaignReport) -> Iterator[dict[str, str]]:
    for line in report.verdict.ops:
        found = report.ops[line.op]
        row = _row(found.op, None, found.estimate, found.margin)
        row |= {"verdict": line.verdict.value, "p_adjusted": _number(line.p_adjusted), "quantity": found.quantity}
        row |= {"reasons": " ".join(codes((*line.reasons, *found.reasons)))}
        row |= {"metrics": "; ".join(str(total) for total in found.metrics if total.rows_changed)}
        yield row | _op_columns(found) | _gate_columns(found.gate)
        yield from (_shape_row(found, shape) for shape in found.shapes)


def _shape_row(found: OpVerdict, shape: ShapeVerdict) -> dict[str, str]:
    row = _row(found.op, shape.key, shape.estimate, shape.margin)
    row |= {"verdict": shape.verdict.value, "p_adjusted": _number(shape.p_adjusted), "quantity": found.quantity}
    row |= {"a_ms": _number(shape.a_ms), "b_ms": _number(shape.b_ms), "reasons": " ".join(codes(shape.reasons))}
    return row | {"metrics": "; ".join(map(str, shape.metrics))}


def _row(op: str, key: RowKey | None, found: Estimate | None, margin: float | None) -> dict[str, str]:
    row = dict.fromkeys(COLUMNS, "") | {"op": op, "margin_pct": _percent(margin)}
    if key:
        row |= {"dtype": key.dtype, "shape": key.shape, "occurrence": str(key.occurrence), "config": key.config}
    if found is None:
        return row
    row |= {"delta_pct": _percent(found.delta), "ci_low_pct": _percent(found.low), "ci_high_pct": _percent(found.high)}
    row |= {"min_pct": _percent(found.smallest), "max_pct": _percent(found.largest), "p": _number(found.p)}
    row |= {"hl_pct": _percent(found.hodges_lehmann)}
    row |= {"range_confidence": _number(found.range_confidence), "same_sign": str(found.same_sign)}
    row |= {"rounds": str(found.rounds), "slot_pct": _percent(found.slot), "sd_pct": _percent(found.sd)}
    return row


def _op_columns(found: OpVerdict) -> dict[str, str]:
    noise, ledger = found.noise, found.ledger
    columns = {"noise_a_pct": _percent(noise.a), "noise_b_pct": _percent(noise.b)} if noise else {}
    if ledger:
        columns |= {"n_a": str(ledger.n_a), "n_b": str(ledger.n_b), "n_paired": str(ledger.n_paired)}
    return columns


def _gate_columns(gate: Gate | None) -> dict[str, str]:
    return {"gate": gate.verdict, "stage": gate.stage} if gate else {}


def _percent(value: float | None) -> str:
    return "" if value is None else f"{percent(value):.6g}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
