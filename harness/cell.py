"""One cell: one process, one attempt, one status. `python -m harness.cell <cell.json>`; exit codes are ExitCode.

The straight line of design section 3: skip? -> preflight -> target (lease, telemetry) -> classify -> promote.
Every attempt leaves `attempts/<n>/status.json`; only a terminal outcome becomes the cell's `status.json`.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness import backends, codec, preflight, process, providers, seal, store, sweep, target
from harness.attempt import Place, claim, digests, environment, expected_rows, final, now, promote, tail
from harness.backends.device import DeviceError
from harness.lease import DeviceBusy, LeaseError
from harness.outcome import Found, classify, exit_code
from harness.process import Interrupted
from harness.records import ExitCode, Marker, Outcome, Seal, Status
from harness.skipping import reason_to_skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cell whose `cell.json` is named; print one line about it."""
    parser = argparse.ArgumentParser(prog="caliber cell", description=run.__doc__)
    add_arguments(parser)
    return run(parser.parse_args(argv).cell)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `caliber cell`."""
    parser.add_argument("cell", type=Path, help="results/<campaign>/<op>/r<k>_<side>/cell.json")


def run(path: Path) -> int:
    """Run exactly one cell again: same interpreter, same environment, same device."""
    process.die_with_parent(signal.SIGTERM)
    process.adopt_orphans()
    process.raise_on_signals()
    place = claim(path.resolve())
    started = time.monotonic()
    status = Status(
        campaign=place.cell.campaign, op=place.cell.op, round=place.cell.round, side=place.cell.side.name,
        outcome=Outcome.CRASHED, rc=0, reason="", elapsed_s=0.0, success=0, failed=0, rows_expected=None,
        markers={marker.value: 0 for marker in Marker}, seq=0, attempt=int(place.attempt.name), started_at=now(),
        ended_at="", device="", phases_s={}, evidence_sha256={},
    )  # fmt: skip
    try:
        status = attempt(place, status)
    except Interrupted as stop:
        status = replace(status, outcome=Outcome.INTERRUPTED, reason=f"stopped by {stop}")
    process.ignore_signals()
    shutil.rmtree(place.scratch, ignore_errors=True)
    status = replace(status, ended_at=now(), elapsed_s=time.monotonic() - started)
    promoted = promote(place, status)
    print(line(place, status, promoted), flush=True)
    if promoted:
        judge_if_last(place)
    return int(ExitCode.DONE if final(place.cell, status.outcome) else exit_code(status.outcome))


def judge_if_last(place: Place) -> None:
    """The op's verdict by the runner of its last cell: to be read while the campaign runs. The report judges again."""
    cells = (place.campaign / place.cell.op).glob("r*_?/cell.json")
    started = (place.campaign / "judge.json").exists()  # a cell may also be run on its own, from its description
    if not started or not all(path.with_name("status.json").exists() for path in cells):
        return
    from harness import judging  # numpy and scipy take a second to load, which the other cells need not pay

    try:
        judging.judge(place.campaign, place.cell.op)
    except Exception as error:  # why: this cell is measured and kept; the report meets the same error and fails by it
        print(f"{place.cell.op} not judged: {error}", flush=True)


def attempt(place: Place, status: Status) -> Status:
    """Everything between claiming and promoting; returns the status with outcome and counts filled in."""
    skip = reason_to_skip(place)
    if skip:
        return replace(status, outcome=Outcome.SKIPPED, reason=skip[1], markers={**status.markers, **skip[0]})
    backend = backends.get(place.cell.instrument.backend)
    try:
        tool = backends.asked_once()
        device = backend.resolve(place.cell.device, place.cell.instrument.target, run=tool)
        status = replace(status, device=device.uuid)
        env = environment(place, device.visible)
        check(place, env, tool)
        sweep.seed(place)
        use = target.run(place, device.uuid, env)
        if not use.ended.interrupted and sweep.discarded(place):
            use = target.run(place, device.uuid, env, before=use)
        return conclude(place, replace(status, seq=use.seq), use)
    except DeviceBusy as busy:
        return replace(status, outcome=Outcome.BUSY, reason=str(busy))
    except preflight.PreflightFailed as failed:
        return refused(place, status, failed)
    except DeviceError as error:
        return refused(place, status, preflight.PreflightFailed("device", error.observed, error.remedy))
    except LeaseError as error:
        return refused(place, status, preflight.PreflightFailed("lease", str(error), "make it writable"))


def refused(place: Place, status: Status, failed: preflight.PreflightFailed) -> Status:
    """The environment was refused: said on stdout, in run.log and in the status, whoever redirects what."""
    print(failed, flush=True)
    (place.attempt / "run.log").write_text(f"{failed}\n", encoding="utf-8")
    markers = {**status.markers, Marker.PREFLIGHT_FAILED.value: 1}
    return replace(status, outcome=Outcome.PREFLIGHT, reason=str(failed), markers=markers)


def check(place: Place, env: Mapping[str, str], tool: backends.RunTool) -> None:
    """Refuse before the benchmark does, in words that name the cause."""
    place.scratch.mkdir()
    place.compile_cache.mkdir(parents=True, exist_ok=True)
    sealed = place.campaign / "seal.json"
    if sealed.exists():
        expected, found = codec.read(Seal, sealed).harness_digest, seal.frozen_digest(place.campaign)
        if expected != found:
            raise preflight.PreflightFailed(
                "harness_drift", f"{place.campaign / 'frozen'} is {found}, sealed {expected}", "start a new campaign"
            )
    provider = providers.get(place.cell.provider.name)
    preflight.check(
        place.cell,
        root=place.root,
        env=env,
        autotune_path=place.record,
        writable=(place.attempt, place.compile_cache),
        requirements=provider.requirements(place.root, place.cell.workload, place.cell.measure),
        run_tool=tool,
    )


def conclude(place: Place, status: Status, use: target.Use) -> Status:
    """Count what the attempt left and give it its outcome."""
    ended = use.ended
    rows, events = store.rows(place.attempt), store.events(place.attempt)
    found = Found(rows, events, (place.attempt / "run_identity.json").exists(), tail(place.attempt / "run.log"))
    outcome, reason = classify(ended, found, place.cell.round == 0)
    valid, own = sum(row.value is not None for row in rows), {str(row.key) for row in rows}
    rowless = sum(event.code in ("ROW_FAILED", "ROW_OOM") and event.row not in own for event in events)
    phases = {name: float(s) for event in events if event.code == "PHASES" for name, s in event.detail.items()}
    return replace(
        status,
        outcome=outcome,
        reason=reason,
        rc=124 if ended.timed_out else ended.rc,
        success=valid,
        failed=len(rows) - valid + rowless,
        rows_expected=expected_rows(place),
        markers={name: sum(event.code == name for event in events) for name in status.markers},
        phases_s={**phases, "target": ended.elapsed_s, "wait": use.wait_s, "lease": use.lease_s},
        evidence_sha256=digests(place.attempt),
    )


def line(place: Place, status: Status, promoted: bool) -> str:
    """What a person following the campaign reads about this cell."""
    total = store.planned_cells(place.campaign)
    number = f"[{place.cell.seq + 1}/{total}] " if total else ""
    rows = f" {status.success} rows" if status.success else ""
    reason = f": {status.reason}" if status.reason else ""
    kept = "" if promoted or not status.outcome.terminal else " (kept as an attempt: the cell has a status already)"
    where = "" if status.outcome.terminal else f" [{place.attempt}]"
    return f"{number}{place.cell.key} {status.outcome.value}{rows} in {status.elapsed_s:.1f} s{reason}{kept}{where}"


if __name__ == "__main__":
    code = main()
    sys.exit(code if code in set(ExitCode) else int(ExitCode.FAILED))
