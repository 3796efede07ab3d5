"""The compile step: one side's Triton cache filled ahead of its measured cells. `python -m harness.ahead <op> ...`.

It holds no device and never fails a campaign: whatever goes wrong is the `reason` in `ahead_<side>.json`, and the
measured cells compile what is missing. Round 0 says what to compile; the side's own interpreter compiles it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from harness import attempt, codec, process, store
from harness.attempt import Place
from harness.compilations import Ahead
from harness.outcome import exit_code
from harness.process import Limits
from harness.records import Cell, Identity, Outcome, Refusal


def main() -> int:
    """Fill the cache of the side whose first measured cell is named, and write `ahead_<side>.json` beside it."""
    parser = argparse.ArgumentParser(prog="python -m harness.ahead", description=__doc__)
    parser.add_argument("cell", type=Path, help="results/<campaign>/<op>/r1_<side>/cell.json")
    path = parser.parse_args().cell.resolve()
    process.die_with_parent(signal.SIGTERM)
    process.adopt_orphans()
    process.raise_on_signals()
    os.nice(10)  # a cell measured meanwhile on this host goes first
    cell = codec.read(Cell, path)
    op = path.parent.parent
    own = op / f"cache_{cell.side.name}" / "ahead"
    shutil.rmtree(own, ignore_errors=True)  # of a killed step; what it compiled is in the cache
    place = Place(cell, op.parent, path.parent, own)
    started = time.monotonic()
    try:
        found = fill(place)
    except process.Interrupted:
        return int(exit_code(Outcome.INTERRUPTED))  # a plain re-run fills it
    except (Refusal, OSError) as error:
        found = nothing(cell, " ".join(str(error).split()))
    process.ignore_signals()
    shutil.rmtree(place.scratch, ignore_errors=True)
    found = replace(found, elapsed_s=time.monotonic() - started)
    codec.write(op / f"ahead_{cell.side.name}.json", found)
    print(line(found), flush=True)
    return 0


def fill(place: Place) -> Ahead:
    """Run the side's interpreter without a device over what round 0 launched. OSError when it cannot be started."""
    recorded = place.campaign / place.cell.op / "r0_A"
    ended = store.status(recorded)
    if ended is None or ended.outcome is not Outcome.RECORDED:
        return nothing(place.cell, f"round 0 {ended.outcome.value if ended else 'is missing'}")
    evidence = store.attempt_directory(recorded, ended.attempt)
    wanted = evidence / "specializations.jsonl"
    if not wanted.exists():
        return nothing(place.cell, f"round 0 left no {wanted.name}")
    place.scratch.mkdir(parents=True)
    place.compile_cache.mkdir(parents=True, exist_ok=True)
    codec.write(place.attempt / "cell.json", place.cell)
    result = place.attempt / "result.json"
    model = codec.read(Identity, evidence / "run_identity.json").device_model
    ended_ = process.run_group(
        [place.cell.side.python, "-m", "harness.plugins.ahead", f"--specializations={wanted}", f"--result={result}",
         f"--device-name={model}"],
        cwd=place.root, env=attempt.environment(place, visible=""), log=place.attempt / "run.log",
        limits=Limits(place.cell.measure.cell_timeout_s, 0, []),
    )  # fmt: skip
    if ended_.interrupted:
        raise process.Interrupted(signal.Signals[ended_.interrupted])
    if not result.exists():
        last = (attempt.tail(place.attempt / "run.log").strip().splitlines() or ["no message"])[-1]
        how = "timed out" if ended_.timed_out else f"ended with {ended_.rc}"
        return nothing(place.cell, f"{place.cell.side.python} {how}: {last[:300]}")
    return codec.read(Ahead, result)


def nothing(cell: Cell, reason: str) -> Ahead:
    """Nothing was compiled, and why."""
    return Ahead(cell.op, cell.side.name, 0, 0, 0, {}, reason, 0.0)


def line(found: Ahead) -> str:
    """What a person following the campaign reads about this step."""
    head = f"{found.op}/ahead_{found.side} compiled {found.compiled} of {found.asked} variants"
    cached = f", {found.cached} were there" if found.cached else ""
    why = found.reason or "; ".join(f"{name}: {reason}" for name, reason in list(found.missing.items())[:3])
    return f"{head}{cached} in {found.elapsed_s:.1f} s" + (f" ({why})" if why else "")


if __name__ == "__main__":
    sys.exit(main())
