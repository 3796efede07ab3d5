"""The summary for the terminal: at most ten lines, whatever the size of the campaign. Pure text."""

from __future__ import annotations

from harness import occupancy
from harness.findings import OpLine, OpVerdict, Verdict
from harness.grid import flat
from harness.records import CellEvidence, Outcome
from harness.report import CampaignReport
from harness.statistics import percent, words

#: Up to this many ops have a line each; more are grouped by verdict.
OPS_LISTED = 6
LINES = 10
WIDTH = 110
#: No claim about speed: whatever the latencies of round 1 say, the code is the same.
SAME_CODE = (Verdict.NO_CODE_CHANGE, Verdict.IR_DIFF_SAME_CODE)


def summary(report: CampaignReport, report_path: str) -> str:
    """Cells done, one line per op or per verdict, the path of the full report."""
    lines = report.verdict.ops
    leased = occupancy.line(item.status for own in report.cells.values() for item in own if item.status)
    ends = [*([leased] if leased else []), f"report: {report_path}"]
    few = len(lines) <= OPS_LISTED
    floor, kinds = report.verdict.noise_floor, len({line.verdict for line in lines})
    if floor and (few or kinds < LINES - len(ends) - 2):  # every verdict comes first
        ends = [f"controls: {floor}", *ends]
    body = [_op(line, report.ops[line.op]) for line in lines] if few else _groups(lines, LINES - len(ends) - 2)
    return "\n".join([_head(report), *body, *ends]) + "\n"


def _head(report: CampaignReport) -> str:
    cells = [item for own in report.cells.values() for item in own]
    ended = [item for item in cells if item.status and item.status.outcome.terminal]
    failed, skipped = (_number_of(ended, outcome) for outcome in (Outcome.OP_FAILED, Outcome.SKIPPED))
    quantity = " and ".join(dict.fromkeys(op.quantity for op in report.ops.values())) or "no value"
    return (
        f"{report.campaign}: {len(ended)}/{len(cells)} cells ended, {failed} failed, {skipped} skipped, "
        f"{len(cells) - len(ended)} missing; {quantity}, B vs A"
    )


def _number_of(cells: list[CellEvidence], outcome: Outcome) -> int:
    return sum(item.status is not None and item.status.outcome is outcome for item in cells)


def _op(line: OpLine, found: OpVerdict) -> str:
    parts = [f"  {found.op}: {line.verdict.value}"]
    if found.estimate and line.verdict in SAME_CODE:
        parts.append(f"same machine code; round 1 read {percent(found.estimate.delta):+.2f} %, which is noise")
    elif found.estimate:
        parts.append(words(found.estimate.delta))
    if found.estimate and found.estimate.low is not None and found.estimate.high is not None:
        parts.append(f"[{percent(found.estimate.low):+.2f}, {percent(found.estimate.high):+.2f}] %")
    if not found.estimate:
        parts.append(flat(found.reasons[0].message))
    parts += [str(total) for total in found.metrics if total.rows_changed]
    return _short("  ".join(parts))


def _groups(lines: tuple[OpLine, ...], room: int) -> list[str]:
    """Verdicts in the order of their enum; what does not fit in `room` lines is counted on one more."""
    names = {verdict: [line.op for line in lines if line.verdict is verdict] for verdict in Verdict}
    found = [(verdict, ops) for verdict, ops in names.items() if ops]
    listed = [_short(f"  {verdict.value} {len(ops)}: {', '.join(ops)}") for verdict, ops in found[:room]]
    rest = ", ".join(f"{verdict.value} {len(ops)}" for verdict, ops in found[room:])
    return [*listed, _short(f"  {rest}")] if rest else listed


def _short(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."
