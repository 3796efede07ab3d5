"""Report sections about the evidence: coverage, caliber, what was not paired, markers, order, skips.

One pure function each: values in, markdown out, "" when there is nothing to say. Must not compute a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from harness.caliber import AxisLine, Mismatch, measured
from harness.findings import OpVerdict
from harness.grid import ABSENT, grid
from harness.records import CellEvidence, Judge, Outcome
from harness.statistics import DIRECTION
from harness.store import Superseded

#: More distinct values than this over the ops of a campaign are counted, not listed.
LISTED = 3
#: What every healthy cell says about itself.
ROUTINE = frozenset({"TEST_RESULT", "PHASES", "AUTOTUNE_RECORDED", "AUTOTUNE_REPLAY", "AUTOTUNE_NOT_APPLICABLE"}) | {
    *("AUTOTUNE_FIRST", "SWEEP_SEEDED", "RESULT_CHECKED"),
}
Cells = Mapping[str, tuple[CellEvidence, ...]]


def coverage(cells: Cells) -> str:
    """Cells planned and ended, rows expected and got: what the rest of the report rests on."""
    every = [item for own in cells.values() for item in own]
    lines = [
        (op, f"{len(own) - _tally(own)[2]} of {len(own)}", *map(str, _tally(own)), _rows_got(own))
        for op, own in cells.items()
    ]
    failed, skipped_, missing = _tally(every)
    head = (
        f"{len(every) - missing} of {len(every)} cells ended: {_number_of(every, Outcome.MEASURED)} measured, "
        f"{_number_of(every, Outcome.RECORDED)} recorded, {failed} failed, {skipped_} skipped; {missing} missing."
    )
    return f"## Coverage\n\n{head}\n\n" + grid(
        ("op", "cells ended", "failed", "skipped", "missing", "rows got / expected"), lines
    )


def meaning(cells: Cells, ops: Sequence[OpVerdict], judge: Judge) -> str:
    """What the values are, so that a compile time is never read as a kernel's."""
    quantities = dict.fromkeys(op.quantity for op in ops)
    instruments = dict.fromkeys(item.cell.instrument for own in cells.values() for item in own)
    how = "; ".join(
        f"backend {each.backend}{f' for {each.target}' if each.target else ''}, timer {each.timer}, L2 {each.l2}"
        for each in instruments
    )
    return (
        f"## Values\n\nValues are **{' and '.join(quantities)}** ({how}). Percentages are {DIRECTION}.\n\n"
        f"Margin {judge.margin_pct:g} %, q {judge.q:g}. Confidence intervals are 95 %; HL is the Hodges-Lehmann "
        "estimate; [min, max] is the range of the round deltas. `same sign` counts the rounds that agree with the "
        "estimate. `noise` is the spread of a side's own level over the rounds, `spread` that of the round deltas, "
        "`ratio` spread^2 over the sides' noise^2; `slot` is what running second costs."
    )


def caliber(lines: Mapping[str, tuple[AxisLine, ...]], mismatches: Mapping[str, tuple[Mismatch, ...]]) -> str:
    """The compared conditions, equal ones once for all ops, and every mismatch in full."""
    unseen = [op for op, own in lines.items() if not own or own[0].state == "unseen"]
    axes: dict[str, dict[AxisLine, list[str]]] = {}
    for op in (op for op in lines if op not in unseen):
        for line in lines[op]:
            axes.setdefault(line.axis, {}).setdefault(line, []).append(op)
    rows = [row for found in axes.values() for row in _axis_rows(found, len(lines) - len(unseen))]
    shouts = "\n".join(f"{found}" for own in mismatches.values() for found in own)
    refused = f"```\n{shouts}\n```\n\n" if shouts else ""
    without = f"\n\nNot compared, for a side was not measured: {', '.join(unseen)}." if unseen else ""
    return f"## Caliber\n\n{refused}" + grid(("axis", "role", "A", "B", "state", "ops"), rows) + without


def unpaired(ops: Sequence[OpVerdict]) -> str:
    """Every row that entered no number, with the rounds it concerns."""
    rounds: dict[tuple[str, str, str], list[int]] = {}
    for op in ops:
        if op.ledger is None:
            continue
        for orphan in op.ledger.orphans:
            rounds.setdefault((str(orphan.key), f"orphan of {orphan.side}", orphan.reason), []).append(orphan.round)
        for bad in op.ledger.invalid:
            rounds.setdefault((str(bad.key), f"invalid in {bad.side}", bad.reason), []).append(bad.round)
        for mixed in op.ledger.mixed:
            rounds.setdefault((str(mixed.key), "mixed timer", f"A {mixed.a}, B {mixed.b}"), []).append(mixed.round)
    lines = [(*what, ", ".join(map(str, own))) for what, own in rounds.items()]
    return "## Not paired\n\n" + grid(("row", "what", "why", "rounds"), lines) if lines else ""


def markers(cells: Cells) -> str:
    """Markers and other events with their counts, cell by cell."""
    found: dict[tuple[str, str], list[str]] = {}
    for op, own in cells.items():
        for item in own:
            for code, count in sorted(events(item).items()):
                found.setdefault((op, code), []).append(f"{item.cell.key.split('/')[-1]}: {count}")
    lines = [(op, code, ", ".join(counts)) for (op, code), counts in found.items()]
    return "## Markers and events\n\n" + grid(("op", "code", "cells"), lines) if lines else ""


def order(ops: Sequence[OpVerdict]) -> str:
    """Where cells did not start in the planned order."""
    lines = [(op.op, text) for op in ops if op.ledger for text in op.ledger.deviations]
    return "## Order\n\n" + grid(("op", "deviation"), lines) if lines else ""


def skipped(cells: Cells) -> str:
    """Skipped cells by reason."""
    keys: dict[tuple[str, str], list[str]] = {}
    for op, own in cells.items():
        for item in own:
            if item.status and item.status.outcome is Outcome.SKIPPED:
                keys.setdefault((op, item.status.reason), []).append(item.cell.key.split("/")[-1])
    lines = [(op, reason or "no reason recorded", ", ".join(found)) for (op, reason), found in keys.items()]
    return "## Skipped\n\n" + grid(("op", "reason", "cells"), lines) if lines else ""


def superseded(taken_back: Sequence[Superseded]) -> str:
    """Cells that were measured again by a person's decision, with what they had said before."""
    lines = [(old.cell, old.reason, f"{old.at} by {old.by}", _old(old), old.because_of) for old in taken_back]
    titles = ("cell", "reason", "when", "old outcome", "asked for")
    return "## Superseded cells\n\n" + grid(titles, lines) if lines else ""


def _old(old: Superseded) -> str:
    status = old.status
    rows = f", {status.success} rows" if status.success else ""
    reason = f": {status.reason}" if status.reason else ""
    return f"attempt {status.attempt}: {status.outcome.value}{rows}{reason}"


def events(item: CellEvidence) -> Counter[str]:
    """Both from the events and from the status, which keeps the markers of a cell whose events were lost."""
    events = Counter(event.code for event in item.events if event.code not in ROUTINE)
    return events | Counter(
        {code: count for code, count in (item.status.markers if item.status else {}).items() if count}
    )


def _number_of(cells: Sequence[CellEvidence], outcome: Outcome) -> int:
    return sum(item.status is not None and item.status.outcome is outcome for item in cells)


def _tally(cells: Sequence[CellEvidence]) -> tuple[int, int, int]:
    """Failed, skipped, missing."""
    missing = sum(item.status is None or not item.status.outcome.terminal for item in cells)
    return _number_of(cells, Outcome.OP_FAILED), _number_of(cells, Outcome.SKIPPED), missing


def _rows_got(cells: Sequence[CellEvidence]) -> str:
    """Over the measured cells, rows with a value; `?` where a plan could not know."""
    found = measured(cells)
    expected = [item.status.rows_expected for item in found if item.status]
    total = "?" if None in expected else str(sum(number or 0 for number in expected))
    return f"{sum(item.status.success for item in found if item.status)} / {total}" if found else ABSENT


def _axis_rows(found: Mapping[AxisLine, Sequence[str]], ops: int) -> list[tuple[str, ...]]:
    """One row per distinct line; an axis that has its own value in each op (a device, a record) in one row."""
    states = {line.state for line in found}
    if len(found) > LISTED and "DIFFERS" not in states:
        first = next(iter(found))
        value = f"{len(found)} values, one per op" if len(found) == ops else f"{len(found)} values"
        return [(first.axis, first.role.value, value, value, " or ".join(sorted(states)), "all")]
    return [
        (line.axis, line.role.value, line.a, line.b, line.state, "all" if len(own) == ops else ", ".join(own))
        for line, own in found.items()
    ]
