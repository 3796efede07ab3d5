"""What a row that goes wrong costs on a real device: `python benchmarks/rows.py --flaggems FLAGGEMS [--out DIRECTORY]`.

Three cells on FlagGems' own benchmark classes, by the real plugins, limits and classification: shapes that do not fit
into memory (rows without a number, the others measured), a kernel that faults (ends the cell, keeps the row before),
a kernel that spins (ended for want of progress, with the place). Needs one CUDA device of less than 192 GiB, about two
minutes. Each cell's evidence goes to a directory of its name under --out, which must not have one yet. Prints what was
found, last ALL GOOD, or what is BAD with exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import backends, codec, process
from harness.outcome import Found, classify
from harness.records import Cell, Event, Row
from tests.plugins.target import REPOSITORY as ROOT
from tests.plugins.target import make_cell

TEST = """
import pytest, torch, triton, triton.language as tl
from . import base

@triton.jit
def out_of_bounds(p):
    tl.store(p + (1 << 40), 1.0)

class Small(base.GenericBenchmark):
    def set_shapes(self, shape_file_path=None):
        self.shapes = [(64, 64), (128, 128), (256, 256)]

def one(shape, dtype, device):
    yield torch.ones(shape, dtype=dtype, device=device),

def faulting(x):
    if x.shape[0] == 128:
        out_of_bounds[(1,)](x)
    return x + 1

def hanging(x):
    if x.shape[0] == 128:
        torch.cuda._sleep(1 << 60)
    return x + 1

def test_faulting():
    Small(op_name="faulting", torch_op=lambda x: x + 1, gems_op=faulting, input_fn=one, dtypes=[torch.float16]).run()

def test_hanging():
    Small(op_name="hanging", torch_op=lambda x: x + 1, gems_op=hanging, input_fn=one, dtypes=[torch.float16]).run()

def test_add_large():
    def two(shape, dtype, device):
        yield torch.ones(shape, dtype=dtype, device=device), torch.ones(shape, dtype=dtype, device=device)
    base.GenericBenchmark(op_name="add", torch_op=torch.add, input_fn=two, dtypes=[torch.float16, torch.float32]).run()
"""
#: 2^37 halves do not fit at all; 2^35 halves: both inputs fit into 139 GiB, the output does not.
SHAPES = "add:\n  shapes: [[64, 64], [137438953472], [34359738368], [4096, 4096]]\n"

Check = Callable[[str, bool], None]


@dataclass(frozen=True)
class Told:
    """What one cell left behind, and what it was classified as."""

    rc: int
    outcome: str
    reason: str
    rows: list[Row]
    codes: list[str]


def provider(gems: Path, root: Path) -> None:
    """FlagGems at `root` with the tests and shapes of this file; the checkout at `gems` stays untouched."""
    root.mkdir()
    shutil.copytree(gems / "benchmark", root / "benchmark")
    for name in ("src", "conftest.py", "pytest.ini", "pyproject.toml"):
        if (gems / name).exists():
            (root / name).symlink_to(gems / name)
    (root / "benchmark/test_rows_proof.py").write_text(TEST)
    (root / "shapes.yaml").write_text(SHAPES)


def environment(attempt: Path, root: Path) -> dict[str, str]:
    """The target's environment, as an attempt would build it."""
    path = [os.environ.get("PYTHONPATH", ""), str(ROOT), str(root / "src")]
    return {
        **os.environ,
        "CALIBER_CELL": str(attempt / "cell.json"),
        "CALIBER_ATTEMPT": str(attempt),
        "CALIBER_AUTOTUNE": str(attempt / "none.json"),
        "CALIBER_RUNTIME": "cuda",
        "TRITON_CACHE_DIR": str(attempt / "triton"),
        "FLAGGEMS_DB_URL": "sqlite:///:memory:",
        "USE_FLAGTUNE": "0",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": os.pathsep.join(path),
    }


def command(cell: Cell) -> list[str]:
    """pytest on the one test of the cell."""
    plugins = [word for plugin in cell.instrument.plugins for word in ("-p", plugin)]
    options = ["--level=core", "--mode=kernel", "--warmup=10", "--iter=20", "--metrics=latency", *cell.pytest_args]
    test = f"benchmark/test_rows_proof.py::test_{cell.op}"
    return [sys.executable, "-m", "pytest", *plugins, test, *options, "-s", "-p", "no:cacheprovider"]


def lines(kind: type, path: Path) -> list:  # type: ignore[type-arg]
    """The records of a file of lines; none where the target wrote no such file."""
    return list(codec.read_lines(kind, path)) if path.exists() else []


def run(name: str, root: Path, out: Path, idle_s: float) -> Told:
    """Run one cell to its end, at most 120 s and `idle_s` without progress (0 = no such limit); print and return it."""
    attempt = out / name
    attempt.mkdir(parents=True)
    cell = replace(
        make_cell(shapes="file", warmup_ms=10, rep_ms=20, direct_repeat=1),
        op=name,
        instrument=backends.instrument(backends.get("cuda"), "off", ""),
        pytest_args=(f"--shape_file={root}/shapes.yaml",),
    )
    codec.write(attempt / "cell.json", cell)
    limits = process.Limits(120, idle_s, [attempt / "rows.jsonl", attempt / "events.jsonl", attempt / "triton"])
    log = attempt / "run.log"
    ended = process.run_group(command(cell), cwd=root, env=environment(attempt, root), log=log, limits=limits)
    shutil.rmtree(attempt / "triton", ignore_errors=True)
    rows, events = lines(Row, attempt / "rows.jsonl"), lines(Event, attempt / "events.jsonl")
    found = Found(rows, events, (attempt / "run_identity.json").exists(), log.read_text())
    outcome, reason = classify(ended, found, False)
    told = Told(ended.rc, outcome.value, reason, rows, [event.code for event in events])
    shown = [(row.dtype, row.shape, row.value, row.reason) for row in rows]
    summary = {"name": name, "rc": told.rc, "s": round(ended.elapsed_s, 1), "outcome": told.outcome, "reason": reason}
    print(json.dumps(summary | {"rows": shown, "events": told.codes}, indent=1), flush=True)
    return told


def check_memory(told: Told, check: Check) -> None:
    """A shape that does not fit is a row without a number; it costs no other row."""
    lost = [row.value is None for row in told.rows]
    words = {row.reason[:4] for row in told.rows if row.value is None}
    check("out of memory in two of four shapes, in both dtypes, and all eight are rows", len(told.rows) == 8)
    check("the shapes before and after have numbers", lost == [False, True, True, False] * 2)
    check("each says OOM", words == {"OOM:"})
    check("measured, rc 0", (told.outcome, told.rc) == ("measured", 0) and "rows have no number" in told.reason)


def check_fault(told: Told, check: Check) -> None:
    """A kernel that faults ends the cell, for the context is lost; what was measured stays."""
    lost = [row.value is None for row in told.rows]
    check("a fault ends the cell: op_failed, FAULT", told.outcome == "op_failed" and told.reason.startswith("FAULT:"))
    check("the row before it is kept, the one after it was not tried", lost == [False, True])
    check("the lost context is told", "CONTEXT_LOST" in told.codes)


def check_hang(told: Told, check: Check) -> None:
    """A kernel that spins is ended by measure.no_progress_s."""
    ended = told.outcome == "timed_out" and "no_progress_s" in told.reason
    check("a kernel that spins is ended for want of progress", ended)
    check("with the place it hung at", "; hung at" in told.reason)
    check("and the row before it", [row.value is not None for row in told.rows] == [True])


def main() -> int:
    """Run the three cells, print what holds; 1 if anything does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flaggems", type=Path, required=True, help="root of a FlagGems checkout; only read")
    parser.add_argument("--out", type=Path, default=Path(), help="where the cells' evidence goes (default: here)")
    arguments = parser.parse_args()
    out, root = arguments.out.resolve(), Path(tempfile.mkdtemp()) / "gems"
    provider(arguments.flaggems.resolve(), root)
    bad: list[str] = []

    def check(what: str, good: bool) -> None:
        print("ok  " if good else "BAD ", what, flush=True)
        if not good:
            bad.append(what)

    check_memory(run("add_large", root, out, 0), check)
    check_fault(run("faulting", root, out, 0), check)
    check_hang(run("hanging", root, out, 30), check)
    print("ALL GOOD" if not bad else f"{len(bad)} BAD: {bad}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
