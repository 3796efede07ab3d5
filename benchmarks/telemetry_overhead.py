"""What telemetry costs the measurement beside it: `python benchmarks/telemetry_overhead.py [--backend cuda]`.

Latencies of two builtin operators by do_bench, without a sampler and with one at 1 s and at 0.1 s, interleaved in one
process; medians over the repeats as ratios to no sampler. Needs the device; the ratios compare nothing across runs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "harness" / "providers" / "builtin")]

INTERVALS = (0.0, 1.0, 0.1)


@contextmanager
def sampler(backend: str, device: str, interval: float) -> Iterator[None]:
    """The cell's own sampler beside the block; none at interval 0."""
    if interval == 0:
        yield
        return
    arguments = ["--backend", backend, "--devices", device, "--interval", str(interval), "--run"]
    command = [sys.executable, "-m", "harness.telemetry", *arguments]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with open(os.devnull, "wb") as nowhere:
        child = subprocess.Popen(command, env=env, stdout=nowhere, stderr=nowhere)
        time.sleep(1.5)  # its own start is no sampling
        try:
            if child.poll() is not None:
                raise SystemExit(f"the sampler ended with {child.returncode}: `{' '.join(command)}` says why")
            yield
        finally:
            child.terminate()
            child.wait()


def workloads() -> dict[str, Callable[[], Any]]:
    """A launch-bound, a memory-bound and a compute-bound call."""
    import torch
    from builtin_ops.add import add
    from builtin_ops.matmul import matmul

    small, large, square = (torch.randn(size, device="cuda", dtype=torch.float16) for size in (4096, 1 << 26, 1 << 24))
    side = square.view(4096, 4096)
    return {
        "add 4 Ki": lambda: add(small, small),
        "add 64 Mi": lambda: add(large, large),
        "matmul 4096": lambda: matmul(side, side),
    }


def main() -> int:
    """Print one line per workload."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--device", default="0")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    from triton.testing import do_bench

    calls = workloads()
    taken: dict[tuple[str, float], list[float]] = {}
    for repeat in range(arguments.repeats + 1):
        for interval in INTERVALS if repeat % 2 else INTERVALS[::-1]:
            with sampler(arguments.backend, arguments.device, interval):
                for name, call in calls.items():
                    value = do_bench(call, warmup=100, rep=400, return_mode="median")
                    if repeat:  # the first compiles and warms the device up
                        taken.setdefault((name, interval), []).append(value)
    print(f"{'workload':<12} {'none ms':>10} {'spread %':>9} {'1 s / none':>11} {'0.1 s / none':>13}")
    for name in calls:
        none = statistics.median(taken[name, 0.0])
        spread = 100 * statistics.stdev(taken[name, 0.0]) / none
        ratios = [statistics.median(taken[name, interval]) / none for interval in INTERVALS[1:]]
        print(f"{name:<12} {none:10.5f} {spread:9.2f} {ratios[0]:11.4f} {ratios[1]:13.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
