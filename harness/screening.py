"""Screening: the reasons why an op gets no latency number at all, in order of precedence.

A report over the rounds that happened to succeed reads exactly like a complete one (facts: incidents 1); so every
planned cell must be there, trusted and of one caliber before any delta is formed. Must not know statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.caliber import Mismatch, compare, measured
from harness.findings import Reason, Verdict
from harness.pairing import Pairing, PairingError, pair, timer_fault
from harness.records import CellEvidence, Gate, Judge, Marker, Outcome, Status

#: Gate verdicts under which the cells of rounds 2..N are rightly skipped.
SAME_CODE = ("NO_CODE_CHANGE", "IR_DIFF_SAME_CODE")
#: How the reason of a row begins whose shape failed.
FAILED_ROW = ("OOM:", "FAULT:", "FAILED:")
#: What a cell says when other shapes ran than the plan names, or fewer.
SHAPE_EVENTS = ("SHAPES_NOT_AS_PLANNED", "SHAPES_UNCHECKED", "DTYPE_ENDED")


@dataclass(frozen=True)
class Refusal:
    """A verdict without numbers."""

    verdict: Verdict
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Admission:
    """An op that may be judged, and what to keep in mind about it."""

    pairing: Pairing
    notes: tuple[Reason, ...]


def screen(cells: Sequence[CellEvidence], gate: Gate | None, judge: Judge, planned: bool = True) -> Refusal | Admission:
    """Refuse, with the verdict of the first check that has a reason, or admit the pairing of the op's rows.

    `planned` is False for runs made elsewhere: no plan says which cells there must be.
    """
    for verdict, check in CHECKS if planned else UNPLANNED:
        reasons = tuple(check(cells, gate))
        if reasons:
            return Refusal(verdict, reasons)
    mismatches = compare(cells)
    if mismatches and not judge.allow_caliber_mismatch:
        return Refusal(Verdict.NOT_COMPARABLE, _caliber("CALIBER", mismatches))
    try:
        pairing = pair(cells)
    except PairingError as error:
        return Refusal(Verdict.NOT_COMPARABLE, (Reason("DUPLICATE_ROW", str(error)),))
    return Admission(pairing, (*_caliber("CALIBER_RELEASED", mismatches), *_shapes(cells)))


def _poisoned(cells: Sequence[CellEvidence], gate: Gate | None) -> Iterator[Reason]:
    for item in cells:
        count = marker_count(item, Marker.BENCHMARK_CAPTURE_POISONED)
        if count:
            yield Reason("CAPTURE_POISONED", f"{item.cell.key}: graph capture left the context unusable; graph: off")


def _failed(cells: Sequence[CellEvidence], gate: Gate | None) -> Iterator[Reason]:
    for item in cells:
        if item.status and item.status.outcome is Outcome.OP_FAILED:
            yield Reason("CELL_FAILED", f"{item.cell.key}: {item.status.reason or 'no reason recorded'}")


def _unfinished(cells: Sequence[CellEvidence], gate: Gate | None) -> Iterator[Reason]:
    """Also a planned cell that is not in `cells` at all: absence of evidence is not a small report."""
    expected = _expected(cells)
    found = {item.cell.key: item.status for item in cells}
    missing = [key for key in expected if not _ended(found.get(key))]
    if missing or not cells:
        done = len(expected) - len(missing)
        yield Reason("CELLS_MISSING", f"{done} of {len(expected)} cells ended; missing: {', '.join(missing) or 'all'}")


def _skipped(cells: Sequence[CellEvidence], gate: Gate | None) -> Iterator[Reason]:
    keys: dict[str, list[str]] = {}
    for item in cells:
        if item.status and item.status.outcome is Outcome.SKIPPED and not _gated(item, gate):
            keys.setdefault(item.status.reason or "no reason recorded", []).append(item.cell.key)
    for reason, own in keys.items():
        yield Reason("CELL_SKIPPED", f"{_first(own)}: {reason}")


def _row_counts(cells: Sequence[CellEvidence], gate: Gate | None) -> Iterator[Reason]:
    """A shape that failed, in this cell or in the one that counted, is one row however many it would have made."""
    counted_failures = any(_lost(item) for item in cells if item.cell.round == 0)
    for item in measured(cells):
        expected = item.status.rows_expected if item.status else None
        if expected is not None and expected != len(item.rows) and not (counted_failures or _lost(item)):
            yield Reason("ROWS_MISSING", f"{item.cell.key}: {len(item.rows)} rows, {expected} expected")


def _untrusted(cells: Sequence[CellEvidence], gate: Gate | None) -> Iterator[Reason]:
    """Rows whose configuration or timer is not the planned one."""
    for item in measured(cells):
        fallbacks = marker_count(item, Marker.AUTOTUNE_REPLAY_FALLBACK)
        if fallbacks:
            yield Reason("REPLAY_PARTIAL", f"{item.cell.key}: {fallbacks} key(s) tuned themselves, not replayed")
        for row in list(filter(timer_fault, item.rows))[:1]:
            yield Reason("TIMER_INVALID", f"{item.cell.key}: {row.key}: {row.reason or row.value}; no row is trusted")


def _lost(item: CellEvidence) -> bool:
    """A row without a number for a shape that failed, all others being there: no data type ended before its time."""
    failed = any(row.value is None and row.reason.startswith(FAILED_ROW) for row in item.rows)
    return failed and not any(event.code == "DTYPE_ENDED" for event in item.events)


def _shapes(cells: Sequence[CellEvidence]) -> tuple[Reason, ...]:
    """What the cells say about the shapes that ran, each wording once."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for item in measured(cells):
        for event in item.events:
            if event.code in SHAPE_EVENTS:
                text = " ".join(f"{name}={value}" for name, value in event.detail.items() if name != "why")
                text += f": {event.detail['why']}" if "why" in event.detail else ""
                found.setdefault((event.code, text), {})[item.cell.key] = None
    return tuple(Reason(code, f"{_first(list(keys))}: {text}") for (code, text), keys in found.items())


def _first(keys: Sequence[str]) -> str:
    return keys[0] + (f" and {len(keys) - 1} more" if len(keys) > 1 else "")


Check = Callable[[Sequence[CellEvidence], Gate | None], Iterator[Reason]]

#: POISONED first: such an op is capture-incompatible, not broken, though its cell failed. FAILED before INCOMPLETE:
#: it is final, the rest of the op will be skipped.
CHECKS: tuple[tuple[Verdict, Check], ...] = (
    (Verdict.POISONED, _poisoned),
    (Verdict.FAILED, _failed),
    (Verdict.INCOMPLETE, _unfinished),
    (Verdict.NOT_COMPARABLE, _skipped),
    (Verdict.INCOMPLETE, _row_counts),
    (Verdict.NOT_COMPARABLE, _untrusted),
)
UNPLANNED = tuple((verdict, check) for verdict, check in CHECKS if check is not _unfinished)


def marker_count(item: CellEvidence, marker: Marker) -> int:
    """How often a cell raised `marker`; its status keeps the count even where the events were lost."""
    events = sum(event.code == marker.value for event in item.events)
    return max(events, item.status.markers.get(marker.value, 0) if item.status else 0)


def _expected(cells: Sequence[CellEvidence]) -> tuple[str, ...]:
    if not cells:
        return ()
    op, rounds = cells[0].cell.op, cells[0].cell.measure.rounds
    return (f"{op}/r0_A", *(f"{op}/r{number}_{side}" for number in range(1, rounds + 1) for side in ("A", "B")))


def _ended(status: Status | None) -> bool:
    return status is not None and status.outcome.terminal


def _gated(item: CellEvidence, gate: Gate | None) -> bool:
    return gate is not None and gate.verdict in SAME_CODE and item.cell.round >= 2


def _caliber(code: str, mismatches: Sequence[Mismatch]) -> tuple[Reason, ...]:
    return tuple(Reason(code, str(mismatch)) for mismatch in mismatches)
