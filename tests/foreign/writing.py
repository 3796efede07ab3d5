"""Writes run directories in the formats FlagGems documents: console table, `--record log`, `--record json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import codec
from harness.records import Identity
from tests.evidence import cell, identity

Pair = (((384, 384), (384, 384)), ((4096, 4096), (4096, 4096)))


@dataclass(frozen=True)
class Bench:
    """One (op, dtype): detail of a shape -> its latency in ms. `columns`: extra numbers a row prints."""

    op: str
    dtype: str
    rows: Sequence[tuple[Any, float | None]]
    mode: str = "kernel"
    level: str = "core"
    columns: Sequence[float] = ()
    error: str | None = None


def bench(
    op: str = "mm", dtype: str = "float16", latencies: Sequence[float | None] = (0.01, 0.5), **more: Any
) -> Bench:
    """One row per latency: square matrices of growing size."""
    rows = [([(8 << n, 8 << n), (8 << n, 8 << n)], latency) for n, latency in enumerate(latencies)]
    return Bench(op, dtype, rows, **more)


def printed(detail: Any) -> str:
    """As Python prints a detail: tuples of sizes as torch.Size."""
    if isinstance(detail, tuple) and all(isinstance(item, int) for item in detail):
        return f"torch.Size({list(detail)})"
    if isinstance(detail, list):
        return f"[{', '.join(map(printed, detail))}]"
    if isinstance(detail, tuple):
        return f"({', '.join(map(printed, detail))})"
    if isinstance(detail, dict):
        return f"{{{', '.join(f'{key!r}: {printed(value)}' for key, value in detail.items())}}}"
    return str(detail) if isinstance(detail, str) and detail.startswith("torch.") else repr(detail)


def row_line(detail: Any, latency: float | None, columns: Sequence[float] = (), status: str = "SUCCESS") -> str:
    shown = "N/A" if latency is None else f"{latency:.6f}"
    more = "".join(f"{column:>20.3f}" for column in columns)
    return f"{status:<10}{7.5:>20.6f}{shown:>20}{1.234:>20.3f}{more}{'':10}{printed(detail)}\n"


def table(of: Bench) -> str:
    names = ["TFLOPS"][: len(of.columns)] if len(of.columns) == 1 else ["Torch GBPS ", "Gems GBPS "][: len(of.columns)]
    titles = [
        f"{'Status':<10}",
        *(f"{name:>20}" for name in ("Torch Latency (ms)", "Gems Latency (ms)", "Gems Speedup")),
    ]
    header = " ".join([*titles, *(f"{name:>20}" for name in names), f"{'Size Detail':>20}\n"])
    status = "FAILED" if of.error else "SUCCESS"
    title = f"\nOperator: {of.op}  Performance Test (dtype=torch.{of.dtype}, mode={of.mode},level={of.level})\n"
    rows = "".join(row_line(detail, latency, of.columns, status) for detail, latency in of.rows)
    return f"{title}{header}{'-' * len(header)}\n{rows}\n"


def record(of: Bench) -> dict[str, Any]:
    """One record; `latency_base` and `speedup` are there to be ignored."""
    rows = [
        {
            "legacy_shape": None, "shape_detail": detail, "latency_base": 7.5, "latency": latency, "gbps_base": None,
            "gbps": None, "speedup": 1.234, "accuracy": None, "tflops": None, "utilization": None,
            "compared_speedup": None, "error_msg": of.error,
        }
        for detail, latency in of.rows
    ]  # fmt: skip
    head = {"op_name": of.op, "dtype": f"torch.{of.dtype}", "mode": of.mode, "level": of.level}
    return {**head, "result": rows}


def console(benches: Sequence[Bench], before: str = "") -> str:
    return (
        "===== test session starts =====\n"
        + before
        + "".join(map(table, benches))
        + ".\n===== 1 passed in 9.87s =====\n"
    )


def log(benches: Sequence[Bench]) -> str:
    records = "".join(f"[INFO] {json.dumps(record(each))}\n" for each in benches)
    attributes = json.dumps([{"op_name": each.op, "shape_desc": "M, N"} for each in benches], indent=2)
    return f"[INFO] Benchmark record logger enabled\n{records}[INFO] {attributes}\n"


def result(benches: Sequence[Bench], ended: Mapping[str, tuple[str, str]] | None = None) -> str:
    tests: dict[str, Any] = {}
    for each in benches:
        tests.setdefault(
            each.op, {"result": "passed", "reason": None, "test_case": f"benchmark/test_{each.op}.py::test"}
        )
        tests[each.op].setdefault("details", []).append(record(each))
    for op, (outcome, reason) in (ended or {}).items():
        tests.setdefault(op, {"test_case": f"benchmark/test_{op}.py::test"}).update(result=outcome, reason=reason)
    return json.dumps(tests, indent=2)


def side_identity(side: str, **changes: Any) -> Identity:
    return identity(cell(side=side), **{"timer": "direct", "l2": "flushed", **changes})


def write(folder: Path, files: Mapping[str, str | bytes], of: Identity | None = None) -> Path:
    """A run directory with `files` and, where given, an identity."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    if of:
        codec.write(folder / "run_identity.json", of)
    return folder


def run(folder: Path, benches: Sequence[Bench], side: str = "A", **changes: Any) -> Path:
    """A run with an identity of `side` and a record log."""
    return write(folder, {"result_mm.log": log(benches)}, side_identity(side, **changes))
