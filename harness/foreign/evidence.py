"""Foreign runs -> the cells that judging reads, so that it is the campaign's own. Pure.

What a run does not say stays empty. It never says which rows fell back from capture, only how many of a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.foreign.entries import Table
from harness.foreign.run import Opened, Run
from harness.records import (
    CALIBER_EPOCH,
    Cell,
    CellEvidence,
    Instrument,
    Marker,
    Measure,
    Outcome,
    Provider,
    Row,
    RowKey,
    Side,
    SideName,
    Status,
    Workload,
)

#: By mode, where no identity says it: kernel is do_bench (flushes L2), cudagraph replay (does not), else the host's.
MODE_L2: Mapping[str, str] = {"kernel": "flushed", "cudagraph": "warm"}
DIRECT = Marker.BENCHMARK_DIRECT_NO_CUDAGRAPH.value


@dataclass(frozen=True)
class Place:
    """Where a run stands: its round (1..N), side, and whether it ran first in its round."""

    round: int
    side: SideName
    first: bool
    rounds: int
    aa: bool


@dataclass(frozen=True)
class Placed:
    """A run in its place, with the place of each of its rows in its files."""

    at: Place
    run: Run
    rows: Mapping[str, tuple[Row, ...]]  # by op, in the order they ran
    places: Mapping[RowKey, str]


def place(at: Place, run: Run, other: Run) -> Placed:
    """`run` in its place; `other` is the other side of its round, against which its fallbacks are counted."""
    found = list(run.own) or [pair for table in run.tables for pair in _rows(table, run, other)]
    rows: dict[str, list[Row]] = {}
    for row, _ in found:
        rows.setdefault(row.op, []).append(row)
    return Placed(at, run, {op: tuple(own) for op, own in rows.items()}, {row.key: where for row, where in found})


def unread(at: Place, run: Opened, started: bool) -> CellEvidence:
    """The cell of a run of which only the identity is known: all that caliber asks for."""
    return CellEvidence(_cell("run", at, run), _status("run", at, run, started), run.identity, None, (), ())


def cell(op: str, placed: Placed, started: bool) -> CellEvidence:
    """The cell of one op; `started`: the identity's start is to be trusted for the order of the round."""
    run, opened = placed.run, placed.run.opened
    rows = placed.rows.get(op, ())
    failed = run.failed.get(op, "")
    status = _status(op, placed.at, opened, started, failed, len(rows))
    return CellEvidence(_cell(op, placed.at, opened), status, opened.identity, None, rows, ())


def _rows(table: Table, run: Run, other: Run) -> Iterator[tuple[Row, str]]:
    """Rows of one table. A side is timed directly where it fell back at least as often as the other: unequal counts
    mean that some pair of rows had two timers, and which one cannot be known."""
    mine, theirs = (each.opened.marks.of(*table.name)[DIRECT] for each in (run, other))
    timer, l2, repeat = _timer(table, run, captures=bool(mine or theirs))
    if mine and mine >= theirs:
        told = run.opened.marks.repeats
        timer, l2, repeat = "direct", "flushed", max(told) if told and not run.opened.identity else repeat
    for shape, occurrence, entry in table.numbered():
        row = Row(table.op, table.dtype, shape, occurrence, "", entry.value, "ms", timer, l2, repeat,  # type: ignore[arg-type]
                  entry.reason, {}, ())  # fmt: skip
        yield row, entry.place


def _timer(table: Table, run: Run, captures: bool) -> tuple[str, str, int]:
    """Planned timer, L2 state and repeat count."""
    identity = run.opened.identity
    if identity:
        return identity.timer, identity.l2, identity.direct_repeat
    if captures:
        return "cuda_graph", "warm", 1
    return ("cuda_graph" if table.mode == "cudagraph" else "direct"), MODE_L2.get(table.mode, "none"), 1


def _cell(op: str, at: Place, run: Opened) -> Cell:
    """Only op, round, side and slot mean anything: nobody planned the rest."""
    identity = run.identity
    python = identity.executable if identity else ""
    timer = identity.timer if identity else "direct"
    slot = 1 if at.first else 2
    return Cell(
        epoch=identity.epoch if identity else CALIBER_EPOCH,
        campaign="",
        op=op,
        round=at.round,
        side=Side(at.side, python, (), dict(identity.switch) if identity else {}),
        seq=2 * at.round + slot,
        slot=slot,  # type: ignore[arg-type]
        lane=0,
        device="",
        workload=Workload(op, ""),
        provider=Provider("", "", ""),
        instrument=Instrument("", "", (), "", timer, "none", (), ""),  # type: ignore[arg-type]
        measure=Measure(at.rounds, "core", "upstream", "auto", 1, 0, 0, "isolated", 0),
        autotune="record" if run.recorded else "replay",
        declared_aa=at.aa,
        allow_no_ir_diff=False,
        pytest_args=(),
    )


def _status(op: str, at: Place, run: Opened, started: bool, failed: str = "", rows: int = 0) -> Status:
    begun = run.identity.started_at if run.identity and started else ""
    return Status(
        campaign="",
        op=op,
        round=at.round,
        side=at.side,
        outcome=Outcome.OP_FAILED if failed else Outcome.MEASURED,
        rc=0,
        reason=failed,
        elapsed_s=0.0,
        success=rows,
        failed=0,
        rows_expected=None,
        markers=_markers(op, run),
        seq=2 * at.round + (1 if at.first else 2),
        attempt=1,
        started_at=begun,
        ended_at="",
        device="",
        phases_s={},
        evidence_sha256={},
    )


def _markers(op: str, run: Opened) -> Mapping[str, int]:
    """Those of the op's tables, and those that no table follows: they may concern any op."""
    total = Counter(run.marks.unplaced)
    for (own, _), counted in run.marks.placed.items():
        total.update(counted if own == op else {})
    return dict(total)


def repeats(runs: Sequence[Placed]) -> Iterator[tuple[str, list[tuple[Placed, list[str]]]]]:
    """Names that some run has more often than another: (name, the places in each run that has it)."""
    seen: dict[tuple[str, ...], list[tuple[Placed, list[str]]]] = {}
    for placed in runs:
        own: dict[tuple[str, ...], list[str]] = {}
        for key, where in placed.places.items():
            own.setdefault((key.op, key.dtype, key.shape, key.config), []).append(where)
        for name, places in own.items():
            seen.setdefault(name, []).append((placed, places))
    for name, found in seen.items():
        if len({len(places) for _, places in found}) > 1:
            yield " ".join(filter(None, name)), found
