"""What the timers read on a real device: `python benchmarks/timers.py [--out DIRECTORY]`, about 40 s, CUDA only.

Every reading comes from the real plugin (harness.plugins.timing.Timer). Writes timers.json, prints a table; exit status
1 if anything is not as claimed. Parts, each a process of its own:
- agree: warm, the graph timer is within 3 % of do_bench_cudagraph. Flushed, do_bench less the graph timer is between 0
  and 5 us for memory-bound calls above 25 us: a constant, not a ratio, for do_bench's own events and the launch gap
  between them are in each of its times (on an H200 2.4, 2.6 and 3.2 us at 29, 38 and 188 us).
- classes: what can be captured and what is timed directly; what was compiled inside the timed region is told.
- unguarded: what a failed capture of upstream's leaves behind, for the record.
- fault-*: a kernel that faults is no reading, but the event KERNEL_FAULT. A device assertion in a replay may end the
  process instead, by SIGSEGV in the driver's launch of the graph (H200: 4 of 10); a cell tells that as SIGNAL.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "harness/providers/builtin")]

FAULTS = ("at-once", "in-replay", "assert")
ASSERTED = "index out of bounds"  # torch's kernel says so before the process may end
FLUSHED_FROM_US = 25.0
FLUSHED_APART_US = 5.0

Call = Callable[[], Any]
Found = dict[str, Any]


class Bench:
    """The plugin's timer on a cell of its own, asked as a benchmark asks it."""

    def __init__(self, part: str) -> None:
        from harness import backends, codec
        from harness.plugins import timing
        from harness.plugins.variants import observer
        from tests.plugins.target import make_cell

        self.place = Path(tempfile.mkdtemp(prefix=f"timers-{part}-"))
        self.stopped: list[str] = []
        instrument = replace(backends.instrument(backends.get("cuda"), "auto", ""), plugins=())
        cell = self.place / "cell.json"
        codec.write(cell, make_cell(instrument=instrument))
        os.environ.update(CALIBER_CELL=str(cell), CALIBER_ATTEMPT=str(self.place), CALIBER_RUNTIME="cuda")
        os.environ["TRITON_CACHE_DIR"] = str(self.place / "triton")
        observer().install()
        self.timer = timing.Timer(stop=self.stopped.append)

    def plan(self, graph: str = "", **instrument: str) -> None:
        """Change what the plan says from here on."""
        plan = self.timer._plan
        measure = replace(plan.measure, graph=graph) if graph else plan.measure  # type: ignore[arg-type]
        self.timer._plan = replace(plan, instrument=replace(plan.instrument, **instrument), measure=measure)  # type: ignore[arg-type]

    def ask(self, call: Call, rep: int = 20, **arguments: Any) -> tuple[Any, float]:
        """(reading, answer in ms) of one do_bench as a benchmark would ask it."""
        import triton.testing

        from harness.plugins import protocol

        asked = protocol.Asking(("op", "dtype", "shape"))
        protocol._asking.append(asked)
        do_bench = self.timer._replacing(triton.testing.do_bench)
        try:
            answer = do_bench(call, warmup=10, rep=rep, return_mode="median", **arguments)
        finally:
            protocol._asking.pop()
        (reading,) = asked.readings
        return reading, answer

    def events(self) -> list[tuple[str, Any]]:
        """(code, detail) of every event so far."""
        path = self.place / "events.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(event["code"], event["detail"]) for event in map(json.loads, lines)]


def memory_bound() -> dict[str, Call]:
    """Calls from 1 us to 184 us on an H200."""
    import torch
    from builtin_ops.softmax import softmax  # type: ignore[import-not-found]

    calls: dict[str, Call] = {}
    for name, count in (("add 4Ki", 2**12), ("add 1Mi", 2**20), ("add 16Mi", 2**24), ("add 128Mi", 2**27)):
        a, b = (torch.randn(count, device="cuda", dtype=torch.float16) for _ in range(2))
        calls[name] = partial(torch.add, a, b)
    x = torch.randn(8192, 4096, device="cuda", dtype=torch.float16)
    calls["softmax 8192x4096 (Triton)"] = lambda: softmax(x)
    return calls


def compare(bench: Bench, call: Call) -> dict[str, list[float]]:
    """Three times each, interleaved, in us: ours and upstream's, warm and flushed."""
    from triton.testing import do_bench, do_bench_cudagraph

    took: dict[str, list[float]] = {"ours": [], "upstream": [], "flushed": [], "do_bench": []}
    for _ in range(3):
        bench.plan(l2="warm")
        reading, answer = bench.ask(call)
        assert (reading.timer, reading.l2, reading.reason) == ("cuda_graph", "warm", ""), reading
        took["ours"].append(answer * 1e3)
        took["upstream"].append(do_bench_cudagraph(call, rep=20, return_mode="median") * 1e3)
        bench.plan(l2="flushed")
        reading, answer = bench.ask(call)
        took["flushed"].append((answer if not reading.reason else float("nan")) * 1e3)
        assert (reading.timer, reading.l2) == ("cuda_graph", "flushed"), reading
        took["do_bench"].append(do_bench(call, warmup=10, rep=20, return_mode="median") * 1e3)
    return took


def disagreeing(rows: list[Found]) -> list[str]:
    """The rows that break a claim of part agree; a flushed reading that is no number breaks it too."""
    bad = [row["op"] for row in rows if abs(row["ratio"]["warm"] - 1) > 0.03]
    large = [row for row in rows if row["median_us"]["do_bench"] > FLUSHED_FROM_US]
    for row in large:
        apart = [row["median_us"]["do_bench"] - value for value in (row["median_us"]["flushed"], *row["us"]["flushed"])]
        if apart[0] < 0 or apart[0] > FLUSHED_APART_US or any(value != value for value in apart):
            bad.append(f"{row['op']} flushed")
    return bad


def middle_of(values: list[float]) -> float:
    """The median; of values one of which is no number, no number either."""
    return statistics.median(values) if all(map(math.isfinite, values)) else math.nan


def strict(value: Any) -> Any:
    """`value` with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [strict(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def agree() -> Found:
    """Our graph timer against upstream's timers."""
    bench, rows = Bench("agree"), []
    for name, call in memory_bound().items():
        took = compare(bench, call)
        middle = {key: middle_of(values) for key, values in took.items()}
        ratios = {"warm": middle["ours"] / middle["upstream"], "flushed": middle["flushed"] / middle["do_bench"]}
        rows.append({"op": name, "us": took, "median_us": middle, "ratio": ratios})
        warm = f"graph {middle['ours']:8.3f} do_bench_cudagraph {middle['upstream']:8.3f} ratio {ratios['warm']:.4f}"
        apart = middle["do_bench"] - middle["flushed"]
        flushed = f"graph flushed {middle['flushed']:8.3f} do_bench {middle['do_bench']:8.3f} apart {apart:.3f} us"
        print(f"{name:28} {warm} | {flushed}", flush=True)
    return {"rows": rows, "bad": disagreeing(rows)}


class Classes:
    """What part classes has found so far, and what of it was not as claimed."""

    def __init__(self) -> None:
        self.bench = Bench("classes")
        self.rows: list[Found] = []
        self.bad: list[str] = []

    def row(self, name: str, call: Call, expected: str, **arguments: Any) -> None:
        """Ask for `call`; `expected` is the timer that must have answered, "" = either."""
        before = len(self.bench.events())
        reading, answer = self.bench.ask(call, **arguments)
        told = self.bench.events()[before:]
        found = {"op": name, "timer": reading.timer, "l2": reading.l2, "reason": reading.reason, "ms": answer}
        self.rows.append(found | {"events": told})
        print(f"{name:28} {reading.timer:10} {reading.l2:8} {answer:.5f} {reading.reason} {told}", flush=True)
        if expected and reading.timer != expected:
            self.bad.append(f"{name}: {reading.timer}, expected {expected}")


def capture_classes(seen: Classes) -> None:
    """Calls that can be captured between calls that cannot: no failed capture may harm the next one."""
    import torch

    x = torch.randn(1 << 20, device="cuda", dtype=torch.float16)
    leaf = torch.randn(4096, 1024, device="cuda", requires_grad=True)
    y = torch.softmax(leaf, -1)
    seen.row("add", lambda: x + x, "cuda_graph")
    seen.row("item", lambda: x.sum().item(), "direct")
    seen.row("add after item", lambda: x + x, "cuda_graph")
    seen.row("nonzero", lambda: x.nonzero(), "direct")
    seen.row("add after nonzero", lambda: x + x, "cuda_graph")
    seen.row("unpinned copy", lambda: x[:4] + torch.tensor([1, 2, 3, 4], device="cuda"), "direct")
    seen.row("unique", lambda: torch.unique(x.int()), "direct")
    seen.row("rand", lambda: torch.rand(1 << 20, device="cuda"), "cuda_graph")
    seen.row("dropout", lambda: torch.dropout(x, 0.5, True), "cuda_graph")
    seen.row("rand then item", lambda: torch.rand(1 << 20, device="cuda").sum().item(), "direct")
    first, second = (torch.rand(8, device="cuda") for _ in range(2))
    if not (first.isfinite().all() and (first != second).any()):
        seen.bad.append("torch.rand after a failed capture")
    seen.row("rand after all that", lambda: torch.rand(1 << 20, device="cuda"), "cuda_graph")
    seen.row("sort", lambda: torch.sort(x), "cuda_graph")
    seen.row("softmax backward", lambda: y.backward(y, retain_graph=True), "", grad_to_none=[leaf])
    seen.row("add after backward", lambda: x + x, "cuda_graph")
    seen.bench.plan(l2="flushed")
    seen.row("item, flushed", lambda: x.sum().item(), "direct")
    seen.bench.plan(l2="warm")


def compile_proof(seen: Classes) -> None:
    """A call that compiles each time has no number; one that compiles once more is timed again."""
    import torch
    import triton
    import triton.language as tl

    @triton.jit  # type: ignore[untyped-decorator]
    def turning(p, N: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        tl.store(p, N)

    target, calls = torch.zeros(1, device="cuda", dtype=torch.int32), [0]

    def compiles_always() -> None:
        calls[0] += 1
        turning[(1,)](target, N=calls[0])

    def compiles_once_late() -> None:
        calls[0] += 1
        turning[(1,)](target, N=-2 if calls[0] > 2 else -1)

    seen.bench.plan(timer="direct", l2="flushed")
    # every call compiles (30 ms each): do_bench's minimum of calls, twice
    for name, call, rep, expected in (
        ("compiles always", compiles_always, 1, "TIMER_COMPILED"),
        ("compiles once late", compiles_once_late, 20, ""),
    ):
        calls[0] = 0
        reading, _ = seen.bench.ask(call, rep=rep)
        seen.rows.append({"op": name, "reason": reading.reason})
        if reading.reason.partition(":")[0] != expected:
            seen.bad.append(f"{name}: {reading.reason!r}")
    print("compiles:", seen.rows[-2:], flush=True)


def require_graph(seen: Classes) -> None:
    """measure.graph: require gives no row of a call that cannot be captured."""
    import torch

    x = torch.randn(1 << 20, device="cuda", dtype=torch.float16)
    seen.bench.plan(timer="cuda_graph", l2="warm", graph="require")
    try:
        seen.bench.ask(lambda: x.sum().item())
        seen.bad.append("graph: require gave a row")
    except RuntimeError as error:
        seen.rows.append({"op": "require", "error": f"{type(error).__name__}: {error}"})
        print("require:", seen.rows[-1]["error"], flush=True)


def classes() -> Found:
    """All of the above in one process, in this order."""
    seen = Classes()
    for part in (capture_classes, compile_proof, require_graph):
        part(seen)
    if seen.bench.stopped:
        seen.bad.append(f"stopped: {seen.bench.stopped}")
    return {"rows": seen.rows, "bad": seen.bad}


def unguarded() -> Found:
    """For the record: upstream's own timer after one op that cannot be captured."""
    import torch
    from triton.testing import do_bench_cudagraph

    actions: dict[str, Call] = {
        "first": lambda: do_bench_cudagraph(lambda: torch.rand(1024, device="cuda").sum().item()),
        "rand": lambda: torch.rand(8, device="cuda").sum().item(),
        "capture": lambda: do_bench_cudagraph(lambda: torch.ones(8, device="cuda")),
    }
    told = {}
    for name, action in actions.items():
        try:
            action()
            told[name] = "works"
        except Exception as error:
            told[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    print("without guards:", told, flush=True)
    return {"told": told, "bad": []}


def faulting(how: str) -> Call:
    """A call that faults: at once, only while captured (so in the replay), or by a device-side assert there."""
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def stores(p, offset):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        tl.store(p + tl.load(offset), 1)

    good = torch.zeros(64, device="cuda", dtype=torch.int32)
    near, far = (torch.tensor([value], device="cuda") for value in (0, 1 << 38))

    def call() -> None:
        captured = torch.cuda.is_current_stream_capturing()
        if how == "assert" and captured:
            good[torch.full((1,), 1 << 20, device="cuda")]
        else:
            stores[(1,)](good, far if how == "at-once" or (how == "in-replay" and captured) else near)

    return call


def fault(how: str) -> Found:
    """A kernel that faults is no reading; it is told once, as what it is."""
    bench, bad, error = Bench(how), [], ""
    call = faulting(how)
    try:
        reading, _ = bench.ask(call)
        bad.append(f"{how}: a reading, {reading}")
    except RuntimeError as raised:
        error = f"{type(raised).__name__}: {str(raised).splitlines()[0]}"
    told = bench.events()
    print(f"fault {how}:", error, told, bench.stopped, flush=True)
    if [code for code, _ in told] != ["KERNEL_FAULT"]:
        bad.append(f"{how}: events {told}")
    return {"error": error, "events": told, "stopped": bench.stopped, "bad": bad}


PARTS: dict[str, Callable[[], Found]] = {"agree": agree, "classes": classes, "unguarded": unguarded}
PARTS |= {f"fault-{how}": partial(fault, how) for how in FAULTS}
#: Timings have the device alone.
WAVES = (("agree",), tuple(part for part in PARTS if part != "agree"))


def child(part: str) -> None:
    """Run one part in this process, print its result, leave without cleaning up: a faulted context aborts then."""
    try:
        found = PARTS[part]()
    except BaseException as error:  # a proof that breaks is told, not lost
        traceback.print_exc()
        found = {"bad": [f"{part}: {type(error).__name__}: {error}"]}
    print("RESULT " + json.dumps(found, default=str), flush=True)
    os._exit(0)


def start(part: str) -> subprocess.Popen[str]:
    """One part in a process of its own."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(Path(__file__).resolve()), "--part", part]
    return subprocess.Popen(command, env=env, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def collect(part: str, process: subprocess.Popen[str]) -> Found:
    """Print what a part said, without its result, which is returned."""
    lines = process.communicate(timeout=170)[0].splitlines()
    results = [line for line in lines if line.startswith("RESULT ")]
    print(f"==== {part}")
    print("\n".join(line for line in lines if not line.startswith("RESULT "))[-6000:], flush=True)
    if results:
        return dict(json.loads(results[-1].removeprefix("RESULT ")))
    died = part == "fault-assert" and process.returncode == -signal.SIGSEGV and ASSERTED in "\n".join(lines)
    told = f"{part}: no result, rc {process.returncode}"
    return {"error": told, "bad": [] if died else [told]}


def main() -> int:
    """Run every part, write timers.json; 1 if anything is not as claimed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(), help="where timers.json goes (default: here)")
    parser.add_argument("--part", choices=PARTS, help="only this one, in this process; writes no file")
    arguments = parser.parse_args()
    if arguments.part:
        child(arguments.part)
    began = time.time()
    found: Found = {}
    for wave in WAVES:
        running = {part: start(part) for part in wave}
        found |= {part: collect(part, process) for part, process in running.items()}
    bad = [text for part in found.values() for text in part["bad"]]
    told = found | {"bad": bad, "seconds": round(time.time() - began, 1)}
    (arguments.out / "timers.json").write_text(json.dumps(strict(told), indent=1, allow_nan=False))
    print(f"==== {len(bad)} not as claimed: {bad}; {told['seconds']} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
