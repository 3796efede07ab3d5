"""What orchestration costs, as ratios taken in one run: `python benchmarks/orchestration.py [--cells N] [--sleep S]`.

1. A campaign of N cells whose target sleeps S seconds, against a plain shell loop that starts the same target processes
   with the same environment: wall per cell of both, and their ratio.
2. Planning (`snakemake -n`) at 5 000 and 20 000 cells: wall and peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import cell as runner
from harness import codec, store
from harness.records import Cell
from tests.workflow.project import Project

ROUNDS = 6
CELLS_PER_OP = 1 + 2 * ROUNDS


def campaign(root: Path, cells: int, sleep: float) -> Project:
    """A finished campaign of about `cells` cells, each sleeping `sleep` seconds in its target."""
    ops = [f"mm{index}" for index in range(max(1, cells // CELLS_PER_OP))]
    project = Project(root, ops=ops, rounds=ROUNDS, extra={"telemetry": {"interval_s": 0}})
    words = {f"{op}/r{k}_{side}": [f"sleep={sleep}"] for op in ops for k in range(ROUNDS + 1) for side in "AB"}
    project.behave(words)
    return project


def shell_loop(project: Project, root: Path) -> float:
    """Seconds of a plain `sh` loop over the same target processes."""
    lines = []
    for planned in store.read_plan(project.results).cells:
        cell = codec.read(Cell, project.results / planned.key / "cell.json")
        attempt = root / planned.key / "1"
        attempt.mkdir(parents=True)
        codec.write(attempt / "cell.json", cell)
        place = runner.Place(cell, project.results.resolve(), project.results / planned.key, attempt)
        env = {k: v for k, v in runner.environment(place, "0").items() if os.environ.get(k) != v}
        words = " ".join(f"{key}={shlex.quote(value)}" for key, value in env.items())
        command = shlex.join([cell.side.python, "-m", "pytest", *cell.pytest_args])
        lines.append(f"(cd {shlex.quote(str(place.root))} && {words} {command}) > {attempt}/run.log 2>&1")
    script = root / "loop.sh"
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    started = time.monotonic()
    subprocess.run(["sh", str(script)], env=project.env, check=True)
    return time.monotonic() - started


def overhead(cells: int, sleep: float) -> None:
    """Print the first table."""
    with tempfile.TemporaryDirectory() as temporary:
        project = campaign(Path(temporary) / "p", cells, sleep)
        started = time.monotonic()
        ended = project.run(timeout_s=3600)
        wall = time.monotonic() - started
        assert ended.returncode == 0, ended.stdout[-2000:]
        statuses = [store.status(path.parent) for path in project.results.glob("*/r*_?/status.json")]
        inside = sum(status.phases_s["target"] for status in statuses if status)
        runners = sum(status.elapsed_s for status in statuses if status)
        loop = shell_loop(project, Path(temporary) / "loop")
        count = len(statuses)
        print(f"{count} cells, target sleeps {sleep} s")
        print(f"  campaign wall          {wall:9.2f} s   {1000 * wall / count:8.1f} ms/cell")
        print(f"  inside targets         {inside:9.2f} s   {1000 * inside / count:8.1f} ms/cell")
        print(f"  runner beside targets  {runners - inside:9.2f} s   {1000 * (runners - inside) / count:8.1f} ms/cell")
        print(f"  orchestration overhead {wall - inside:9.2f} s   {1000 * (wall - inside) / count:8.1f} ms/cell")
        print(f"  plain shell loop       {loop:9.2f} s   {1000 * loop / count:8.1f} ms/cell")
        print(f"  campaign / loop        {wall / loop:9.3f}")


def planning(cells: int) -> None:
    """Print one line of the second table."""
    with tempfile.TemporaryDirectory() as temporary:
        project = Project(
            Path(temporary) / "p", ops=[f"op{i}" for i in range(cells // CELLS_PER_OP + 1)], rounds=ROUNDS
        )
        command = json.dumps(project.command("-n", "-q"))
        code = (
            "import json, resource, subprocess, sys, time; t = time.monotonic(); "
            f"rc = subprocess.run(json.loads({command!r}), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)"
            ".returncode; print(rc, time.monotonic() - t, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        ended = subprocess.run([sys.executable, "-c", code], cwd=project.root, env=project.env, capture_output=True)
        rc, wall, peak_kib = ended.stdout.split()
        count = len(project.ops) * CELLS_PER_OP
        print(f"plan {count:6d} cells: {float(wall):6.1f} s, {int(peak_kib) / 1024:6.0f} MiB peak, rc {int(rc)}")


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=104)
    parser.add_argument("--sleep", type=float, default=0.5)
    arguments = parser.parse_args()
    overhead(arguments.cells, arguments.sleep)
    for cells in (5_000, 20_000):
        planning(cells)
    print(f"this script's own peak: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
