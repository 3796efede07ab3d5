"""Builders of evidence: a whole op as its cells, and small changes to one cell of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.records import (
    Cell,
    CellEvidence,
    Event,
    Gate,
    Identity,
    Instrument,
    Judge,
    Marker,
    Measure,
    Outcome,
    Provider,
    Row,
    Side,
    Status,
    Workload,
)

JUDGE = Judge(margin_pct=0.5, q=0.05, allow_no_ir_diff=False, allow_caliber_mismatch=False)
SWITCH = {"A": None, "B": "1"}
CUDA = Instrument("cuda", "", ("CUDA_VISIBLE_DEVICES",), "cuda", "cuda_graph", "warm", ("timing",), "")
AOT = Instrument("aot", "cuda:90", (), "meta", "compile", "none", ("aot", "timing"), "")
Values = Mapping[str, Sequence[float | None]]  # shape -> ms per round


def cell(op: str = "softmax", round_: int = 1, side: str = "A", slot: int = 1, rounds: int = 6, **changes: Any) -> Cell:
    plain = Cell(
        epoch=1,
        campaign="demo",
        op=op,
        round=round_,
        side=Side(side, "/venv/bin/python", (), {"X": SWITCH[side]}),  # type: ignore[arg-type]
        seq=2 * round_ + slot - 2,
        slot=slot,  # type: ignore[arg-type]
        lane=0,
        device="0",
        workload=Workload(op, f"test_{op}.py::test_{op}"),
        provider=Provider("builtin", "builtin", "sha256:p"),
        instrument=CUDA,
        measure=Measure(rounds, "core", "file", "auto", 1, 25, 100, "isolated", 2400),
        autotune="replay" if round_ else "record",
        declared_aa=False,
        allow_no_ir_diff=False,
        pytest_args=(),
    )
    return replace(plain, **changes)


def identity(of: Cell, **changes: Any) -> Identity:
    plain = Identity(
        epoch=1,
        backend=of.instrument.backend,
        target=of.instrument.target,
        device_model="H200",
        device_uuid="GPU-1",
        driver="570",
        runtime=of.instrument.runtime,
        python="3.12.3",
        torch="2.11.0",
        provider="builtin",
        provider_digest="sha256:p",
        harness_digest="sha256:h",
        plugins=of.instrument.plugins,
        timer=of.instrument.timer,
        l2=of.instrument.l2,
        level="core",
        shapes="file",
        dtypes=(),
        direct_repeat=1,
        warmup_ms=25,
        rep_ms=100,
        tuner_cache="isolated",
        autotune_mode=of.autotune,
        autotune_digest=f"sha256:{of.op}",
        compile_cache="cold",
        env={},
        switch=dict(of.side.env),
        executable=of.side.python,
        pythonpath=(),
        triton="3.6.0",
        triton_digest="sha256:t",
        compiler_commit="",
        host="box",
        pid=1000 + of.seq,
        started_at="2026-01-01T00:00:00+00:00",
        cuda_visible="0",
    )
    return replace(plain, **changes)


def row(
    value: float | None, shape: str = "[[64,64]]", op: str = "softmax", timer: str = "cuda_graph", **changes: Any
) -> Row:
    l2 = {"compile": "none", "direct": "flushed", "cuda_graph": "warm"}[timer]
    plain = Row(op, "float16", shape, 0, "", value, "ms", timer, l2, 1, "", {}, ())  # type: ignore[arg-type]
    return replace(plain, **changes)


def status(of: Cell, outcome: Outcome = Outcome.MEASURED, rows: int = 0, reason: str = "") -> Status:
    started = 60 * of.seq
    at = f"2026-01-01T{started // 3600:02d}:{started // 60 % 60:02d}:00+00:00"
    return Status(
        campaign=of.campaign,
        op=of.op,
        round=of.round,
        side=of.side.name,
        outcome=outcome,
        rc=int(outcome is Outcome.OP_FAILED),
        reason=reason,
        elapsed_s=10.0,
        success=rows,
        failed=0,
        rows_expected=rows,
        markers={},
        seq=of.seq,
        attempt=1,
        started_at=at,
        ended_at=at,
        device="GPU-1",
        phases_s={},
        evidence_sha256={},
    )


def ended(of: Cell, rows: Sequence[Row], outcome: Outcome = Outcome.MEASURED, reason: str = "") -> CellEvidence:
    found = identity(of) if rows else None
    return CellEvidence(of, status(of, outcome, len(rows), reason), found, None, tuple(rows), ())


def op_cells(
    a: Values,
    b: Values,
    op: str = "softmax",
    orders: Sequence[int] | None = None,
    timer: str = "cuda_graph",
    **cell_changes: Any,
) -> tuple[CellEvidence, ...]:
    """Every cell of one op: a recorded round 0, then one measured round per value. Orders alternate by default."""
    rounds = max(len(values) for side in (a, b) for values in side.values())
    orders = orders or [1 if number % 2 == 0 else -1 for number in range(rounds)]
    first = cell(op, 0, "A", 1, rounds, **cell_changes)
    cells = [ended(first, (), Outcome.RECORDED)]
    for index, order in enumerate(orders):
        for slot, (name, values) in enumerate((("A", a), ("B", b))[::order], 1):
            own = cell(op, index + 1, name, slot, rounds, **cell_changes)
            cells.append(ended(own, [row(ms[index], shape, op, timer) for shape, ms in values.items()]))
    return tuple(cells)


def change(cells: Sequence[CellEvidence], key: str, **changes: Any) -> tuple[CellEvidence, ...]:
    """`cells` with fields of the evidence `r<k>_<side>` replaced."""
    assert any(item.cell.key.endswith(f"/{key}") for item in cells), key
    return tuple(replace(item, **changes) if item.cell.key.endswith(f"/{key}") else item for item in cells)


def change_identity(cells: Sequence[CellEvidence], key: str, **changes: Any) -> tuple[CellEvidence, ...]:
    (old,) = (item.identity for item in cells if item.cell.key.endswith(f"/{key}"))
    assert old is not None
    return change(cells, key, identity=replace(old, **changes))


def change_status(cells: Sequence[CellEvidence], key: str, **changes: Any) -> tuple[CellEvidence, ...]:
    (old,) = (item.status for item in cells if item.cell.key.endswith(f"/{key}"))
    assert old is not None
    return change(cells, key, status=replace(old, **changes))


def each_row(cells: Sequence[CellEvidence], **changes: Any) -> tuple[CellEvidence, ...]:
    """`cells` with fields of all rows replaced."""
    return tuple(replace(item, rows=tuple(replace(own, **changes) for own in item.rows)) for item in cells)


def side_rows(cells: Sequence[CellEvidence], side: str, **changes: Any) -> tuple[CellEvidence, ...]:
    """`cells` with fields of one side's rows replaced."""
    return tuple(each_row([item], **changes)[0] if item.cell.side.name == side else item for item in cells)


def fallen(cells: Sequence[CellEvidence], key: str, marker: Marker) -> tuple[CellEvidence, ...]:
    """One cell that raised `marker`."""
    return change(cells, key, events=(Event(marker.value, "", {"reason": "test"}),))


def gated(cells: Sequence[CellEvidence]) -> tuple[CellEvidence, ...]:
    """The same op after its gate said no: rounds 2..N skipped."""
    return tuple(
        ended(item.cell, (), Outcome.SKIPPED, "SWITCH_NO_IR_DIFF") if item.cell.round > 1 else item for item in cells
    )


def gate(verdict: str = "CODE_CHANGED", op: str = "softmax") -> Gate:
    changed = int(verdict == "CODE_CHANGED")
    reason = "1 of 3 launched variants have other code, first in ttgir" if changed else ""
    return Gate(op, verdict, "ttgir" if changed else "", reason, 3, changed, (), ())  # type: ignore[arg-type]


def swapped(cells: Sequence[CellEvidence]) -> tuple[CellEvidence, ...]:
    """The same campaign with the names of its sides exchanged."""
    other: Mapping[str, Any] = {"A": "B", "B": "A"}

    def swap(item: CellEvidence) -> CellEvidence:
        side = replace(item.cell.side, name=other[item.cell.side.name])
        ended_ = replace(item.status, side=side.name) if item.status else None
        return replace(item, cell=replace(item.cell, side=side), status=ended_)

    return tuple(swap(item) if item.cell.round else item for item in cells)


def steps(level: float, per_cent: Sequence[float]) -> Iterator[float]:
    """Latencies (ms) around `level`, one per deviation in per cent."""
    return (level * (1 + each / 100) for each in per_cent)
