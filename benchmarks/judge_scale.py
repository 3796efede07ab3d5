"""How long a finished campaign takes to judge and render, and how much memory: real files, the code that users run.

    python benchmarks/judge_scale.py [ops, default 1540] [--keep DIRECTORY] [--profile]

An op has 6 rounds, 2 sides and 30 rows a cell, so 13 cells; 1 540 ops are 20 020 cells with 600 600 rows. The campaign
is written first, by the codec, in a process of its own; what is timed is one `finish.render`: every op judged from its
files, then every form of the report, receipts.json, caliber.json, status.tsv and each verdict.json. Goal: 60 s, 1 GB.
Prints wall seconds, CPU seconds, peak resident memory, and the size of what was written.

Two shared cores, load 2: 1 540 ops in 51 s wall, 45 s CPU, 0.61 GB; report.html 22 MB. 300 ops of 40 shapes: 5.8 MB.
"""

from __future__ import annotations

import argparse
import cProfile
import math
import os
import pstats
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import codec, finish, telemetry
from harness.records import (
    Cell,
    Event,
    Fingerprint,
    Gate,
    Outcome,
    Plan,
    Planned,
    Row,
    SideName,
    Variant,
)
from tests import evidence

ROUNDS, ROWS, VARIANTS, SAMPLES = 6, 30, 6, 40
STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin")
CODE = {"A": "a" * 64, "B": "b" * 64}
#: log ratio of B to A, by the op's place: most do nothing, a few are faster or slower, some change no code at all.
EFFECTS = (0.0, 0.0, -0.03, 0.0, 0.012, 0.0, 0.0, -0.008, 0.0, 0.05)
UNCHANGED = 7  # every so many ops, the gate finds no code change; --allow-no-ir-diff measured them all the same


def main() -> None:
    """Write, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", type=int, nargs="?", default=1540)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--keep", type=Path, help="leave the campaign here; one that is there already is used")
    parser.add_argument("--profile", action="store_true", help="also print where the time goes (it is slower then)")
    parser.add_argument("--write-only", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write_only:
        write_campaign(arguments.write_only, arguments.ops, arguments.rows)
        return
    directory = arguments.keep or Path(tempfile.mkdtemp(prefix="caliber-scale-")) / "scale"
    try:
        if not (directory / "plan.json").exists():
            own = [sys.executable, __file__, str(arguments.ops), "--rows", str(arguments.rows)]
            subprocess.run([*own, "--write-only", str(directory)], check=True)
        measure(directory, arguments.profile)
    finally:
        if not arguments.keep:
            shutil.rmtree(directory.parent)


def measure(directory: Path, profile: bool) -> None:
    """One render, timed; memory is this process's peak, which has judged nothing else."""
    profiler = cProfile.Profile()
    started, cpu = time.monotonic(), time.process_time()
    if profile:
        profiler.enable()
    found, code = finish.render(directory)
    profiler.disable()
    wall, cpu = time.monotonic() - started, time.process_time() - cpu
    cells = sum(map(len, found.cells.values()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    sizes = ", ".join(f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in sorted(directory.glob("report.*")))
    print(f"{len(found.ops)} ops, {cells} cells, exit code {int(code)}: {wall:.1f} s wall, {cpu:.1f} s CPU, "
          f"{peak:.2f} GB peak; {sizes}")  # fmt: skip
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(35)


def write_campaign(directory: Path, ops: int, rows: int) -> None:
    """Every file that judging reads, and none that it does not."""
    planned = []
    for number in range(ops):
        op = f"op_{number:04d}"
        for item in op_cells(op, number):
            planned.append(Planned(item.key, item.seq, item.slot, 0))
            write_cell(directory / item.key, item, number, rows)
        same = number % UNCHANGED == 0
        verdict = "NO_CODE_CHANGE" if same else "CODE_CHANGED"
        gate = Gate(op, verdict, "" if same else "ttgir", "", VARIANTS, 0 if same else 1, (), ())
        text(directory / op / "gate.json", gate)
    text(directory / "judge.json", evidence.JUDGE)
    text(directory / "plan.json", Plan("scale", ("0",), tuple(planned)))


def op_cells(op: str, number: int) -> Iterator[Cell]:
    """The 13 cells of one op in plan order."""
    plan: Sequence[tuple[int, Sequence[SideName]]] = [
        (0, "A"), *((k, ("A", "B") if k % 2 else ("B", "A")) for k in range(1, ROUNDS + 1))
    ]  # fmt: skip
    seq = number * (2 * ROUNDS + 1)
    for round_, sides in plan:
        for slot, side in enumerate(sides, 1):
            yield replace(evidence.cell(op, round_, side, slot, ROUNDS), seq=seq, campaign="scale")
            seq += 1


def write_cell(directory: Path, cell: Cell, number: int, rows: int) -> None:
    """One measured (or recorded) cell as its runner leaves it."""
    attempt = directory / "attempts" / "1"
    attempt.mkdir(parents=True)
    rng = random.Random(cell.seq)
    found = [latency(cell, number, index, rng) for index in range(rows)]
    ended = evidence.status(cell, Outcome.MEASURED if cell.round else Outcome.RECORDED, rows)
    digests = {name: "sha256:" + "0" * 64 for name in ("rows.jsonl", "events.jsonl", "run_identity.json")}
    at = f"2026-01-{1 + cell.seq // 1440 % 28:02d}T{cell.seq // 60 % 24:02d}:{cell.seq % 60:02d}:00+00:00"
    ended = replace(ended, evidence_sha256=digests, phases_s={"target": 9.0, "time": 7.0}, started_at=at, ended_at=at)
    text(directory / "cell.json", cell)
    text(directory / "status.json", ended)
    os.link(directory / "status.json", attempt / "status.json")
    text(attempt / "run_identity.json", evidence.identity(cell))
    text(attempt / "fingerprint.json", fingerprint(cell))
    (attempt / "rows.jsonl").write_text("".join(codec.dumps(row) + "\n" for row in found), encoding="utf-8")
    events = [Event("PHASES", "", {"time": "7.0"}), Event("AUTOTUNE_REPLAY", "", {"keys": "3"})]
    (attempt / "events.jsonl").write_text("".join(codec.dumps(event) + "\n" for event in events), encoding="utf-8")
    (attempt / "telemetry.csv").write_text(samples(cell, rng), encoding="utf-8")


def latency(cell: Cell, number: int, index: int, rng: random.Random) -> Row:
    """Noise of 0.4 % a round, and the op's effect on side B."""
    effect = EFFECTS[number % len(EFFECTS)] if cell.side.name == "B" and number % UNCHANGED else 0.0
    value = (0.01 + 0.003 * index) * math.exp(rng.gauss(effect, 0.004))
    metrics = {"registers": 64 + index, "convert_layout.ttgir": 4 if cell.side.name == "A" else 3, "spill_bytes": 0}
    variants = (f"{index % VARIANTS:016x}",)
    return evidence.row(value, f"[[{64 * (index + 1)}, 4096]]", cell.op, metrics=metrics, variants=variants)


def fingerprint(cell: Cell) -> Fingerprint:
    """A few launched variants, the first of which differs between the sides."""
    found = []
    for index in range(VARIANTS):
        code = CODE[cell.side.name] if index == 0 else "c" * 64
        stages = {stage: "d" * 64 if stage == "ttir" else code for stage in STAGES}
        signature = "*fp16 %16, *fp16 %16, i32 %16, constexpr=128"
        metrics = {"registers": 64, "convert_layout.ttgir": 4, "shared_bytes": 8192}
        name = f"{index:016x}"
        found.append(Variant(name, "kernel", signature, "num_warps=4", stages, code, metrics, True, True))
    return Fingerprint(tuple(found), VARIANTS, 0, True)


def samples(cell: Cell, rng: random.Random) -> str:
    """Telemetry of a cell, a sample every quarter second."""
    start = 1767225600 + 60 * cell.seq
    lines = [",".join(telemetry.COLUMNS)]
    for index in range(SAMPLES):
        clock, watts = 1900 + rng.randrange(3) * 15, 500 + rng.randrange(80)
        lines.append(f"{start + index / 4:.3f},0,GPU-1,{clock},3201,{45 + index // 8},{watts},97,none")
    return "\n".join(lines) + "\n"


def text(path: Path, value: object) -> None:
    """What `codec.write` writes, without its fsync: 60 000 of those would take the afternoon."""
    path.write_text(codec.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
