"""The whole report as data, for `report.json`: nothing rounded, nothing left out but the rows. Pure.

`schemas/report.schema.json` documents it and is made from these declarations (`report_schema`). A number that changes
its meaning, or a field that goes, raises SCHEMA; a field that comes does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.caliber import AxisLine, Mismatch
from harness.findings import Geomean, NoiseFloor, OpLine, OpVerdict, Reason, SignBalance, Verdict
from harness.records import CellEvidence, Judge, Outcome
from harness.report import CampaignReport
from harness.statistics import DIRECTION, Estimate, percent
from harness.store import Superseded
from harness.verdict import exit_code

SCHEMA = 1


@dataclass(frozen=True)
class CellLine:
    """One planned cell. All but `key` and `outcome` are null or empty while it has not ended."""

    key: str  # <op>/r<round>_<side>
    outcome: str  # an outcome's word, or "missing"
    reason: str
    rc: int | None
    attempt: int | None
    seq: int | None  # nth cell started on its device
    started_at: str  # ISO 8601, UTC
    elapsed_s: float | None
    device: str
    rows: int | None  # valid ones
    rows_expected: int | None
    events: Mapping[str, int]  # markers and other events by code


@dataclass(frozen=True)
class Coverage:
    """Planned cells by how they ended; what the rest of the report rests on."""

    planned: int
    measured: int
    recorded: int
    failed: int
    skipped: int
    missing: int


@dataclass(frozen=True)
class Percent:
    """An estimate in per cent of A's latency, minus = B faster; the interval is the 95 % confidence interval."""

    delta: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class OpData:
    """One op. `verdict` is the answer, after the correction across ops; `judged` is its verdict.json."""

    op: str
    verdict: Verdict
    p_adjusted: float | None  # across ops
    reasons: tuple[Reason, ...]  # those that the campaign added
    percent: Percent | None
    judged: OpVerdict
    caliber: tuple[AxisLine, ...]
    mismatches: tuple[Mismatch, ...]
    cells: tuple[CellLine, ...]


@dataclass(frozen=True)
class ReportData:
    """`report.json`. Estimates are log ratios, log b - log a, unless a name says percent; latencies are ms."""

    schema: int
    campaign: str
    direction: str  # of every number, in words
    exit_code: int  # of `caliber report`
    judge: Judge
    coverage: Coverage
    balance: SignBalance
    geomean: Geomean | None
    noise_floor: NoiseFloor | None
    reasons: tuple[Reason, ...]  # about all ops together
    superseded: tuple[Superseded, ...]
    ops: tuple[OpData, ...]  # in plan order


def data(report: CampaignReport) -> ReportData:
    """All that the report shows."""
    found = report.verdict
    return ReportData(
        schema=SCHEMA,
        campaign=report.campaign,
        direction=DIRECTION,
        exit_code=int(exit_code(found, report.ops)),
        judge=report.judge,
        coverage=_coverage([item for own in report.cells.values() for item in own]),
        balance=found.balance,
        geomean=found.geomean,
        noise_floor=found.noise_floor,
        reasons=found.reasons,
        superseded=report.superseded,
        ops=tuple(_op(report, line) for line in found.ops),
    )


def _op(report: CampaignReport, line: OpLine) -> OpData:
    judged = report.ops[line.op]
    return OpData(
        op=line.op,
        verdict=line.verdict,
        p_adjusted=line.p_adjusted,
        reasons=line.reasons,
        percent=_percent(judged.estimate),
        judged=judged,
        caliber=report.caliber[line.op],
        mismatches=report.mismatches.get(line.op, ()),
        cells=tuple(map(_cell, report.cells[line.op])),
    )


def _percent(found: Estimate | None) -> Percent | None:
    if found is None:
        return None
    low, high = (None if value is None else percent(value) for value in (found.low, found.high))
    return Percent(percent(found.delta), low, high)


def _coverage(cells: Sequence[CellEvidence]) -> Coverage:
    ended = Counter(item.status.outcome for item in cells if item.status)
    return Coverage(
        planned=len(cells),
        measured=ended[Outcome.MEASURED],
        recorded=ended[Outcome.RECORDED],
        failed=ended[Outcome.OP_FAILED],
        skipped=ended[Outcome.SKIPPED],
        missing=len(cells) - sum(ended.values()),
    )


def _cell(item: CellEvidence) -> CellLine:
    status = item.status
    if status is None:
        return CellLine(item.cell.key, "missing", "", None, None, None, "", None, "", None, None, {})
    seen = Counter(event.code for event in item.events)
    seen |= Counter({code: count for code, count in status.markers.items() if count})
    return CellLine(
        key=item.cell.key,
        outcome=status.outcome.value,
        reason=status.reason,
        rc=status.rc,
        attempt=status.attempt,
        seq=status.seq,
        started_at=status.started_at,
        elapsed_s=status.elapsed_s,
        device=status.device,
        rows=status.success,
        rows_expected=status.rows_expected,
        events=dict(sorted(seen.items())),
    )
