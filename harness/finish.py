"""What happens to cells once they have ended: judged, reported, tabulated. The rim around the pure judging half."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness import attempt, backends, caliber, codec, preflight, providers, report, store, telemetry
from harness.campaign import Campaign
from harness.findings import OpVerdict
from harness.records import Cell, CellEvidence, ExitCode, Judge, Outcome, Plan, Planned
from harness.summary import summary
from harness.verdict import exit_code, judge_op

#: A cell's clocks speak for it when samples cover this share of its time (facts: statistics, item 10), and this many of
#: them saw the device under load.
COVERED = 0.9
BUSY_SAMPLES = 10


def judge(directory: Path, op: str) -> OpVerdict:
    """Judge one op from its files and write its verdict.json."""
    cells = store.op_evidence(directory, store.read_plan(directory), op)
    verdict = _judge(directory, op, cells)
    codec.write(directory / op / "verdict.json", verdict)
    return verdict


def judgeable(directory: Path) -> Iterator[str]:
    """The ops whose cells have all ended."""
    plan = store.read_plan(directory)
    for op in store.ops(plan):
        if all((directory / cell.key / "status.json").exists() for cell in _of(plan, op)):
            yield op


def render(directory: Path) -> tuple[report.CampaignReport, ExitCode]:
    """Write report.md, report.tsv, caliber.json and status.tsv from what there is; the campaign's exit code."""
    plan = store.read_plan(directory)
    cells = {op: store.op_evidence(directory, plan, op) for op in store.ops(plan)}
    verdicts = {op: _verdict(directory, op, own) for op, own in cells.items()}
    found = report.assemble(plan.campaign, cells, verdicts, judge_settings(directory))
    codec.write(directory / "caliber.json", {op: caliber.table(own) for op, own in cells.items()})
    codec.write_text(directory / "report.tsv", report.tsv(found))
    codec.write_text(directory / "report.md", report.markdown(found))
    store.write_status_table(directory)
    return found, exit_code(found.verdict, verdicts)


def show(directory: Path) -> ExitCode:
    """Render, print at most ten lines and what caliber refused; the exit code a CI job should use."""
    found, code = render(directory)
    for lines in found.mismatches.values():
        for line in lines:
            print(line, file=sys.stderr)
    print(summary(found, str(directory / "report.md")))
    return code


def finish(campaign: Campaign, complete: bool) -> None:
    """Snakemake's last hook. An unfinished campaign gets its partial report, with coverage first."""
    if not (campaign.directory / "plan.json").exists():
        return
    if complete:
        store.write_status_table(campaign.directory)
    else:
        render(campaign.directory)
    print(f"caliber: report {campaign.directory / 'report.md'}", flush=True)


def judge_settings(directory: Path) -> Judge:
    """The `judge:` section in force."""
    return codec.read(Judge, directory / "judge.json")


def preflight_sides(campaign: Campaign) -> Iterator[str]:
    """Check both sides' interpreters, device and files as a cell would, imports included; PreflightFailed if not.

    Sides that differ only in environment variables share one interpreter and are asked once.
    """
    asked: dict[tuple[str, tuple[str, ...]], str] = {}
    for name, side in campaign.config.sides.items():
        asked[side.python, side.pythonpath] = asked.get((side.python, side.pythonpath), "") + name
    for names in asked.values():
        cell = next(cell for cell in campaign.cells.values() if cell.side.name == names[0])
        answer = _preflight(campaign, cell)
        modules = ", ".join(f"{name} {found['version']}" for name, found in answer["modules"].items())
        yield f"side {' and '.join(names)}: {answer['executable']} (Python {answer['python']}): {modules}"


def _preflight(campaign: Campaign, cell: Cell) -> Mapping[str, Any]:
    provider = providers.get(campaign.config.provider)
    root = provider.locate(campaign.config.provider_root or None)
    place = attempt.unclaimed(cell, campaign.directory.resolve(), root)
    device = backends.get(campaign.config.backend).resolve(cell.device, cell.instrument.target)
    return preflight.check(
        cell,
        root=root,
        env=attempt.environment(place, device.visible),
        autotune_path=None,
        requirements=provider.requirements(root, cell.workload, cell.measure),
        full=True,
    )


def _of(plan: Plan, op: str) -> Iterator[Planned]:
    return (cell for cell in plan.cells if cell.key.startswith(f"{op}/"))


def _verdict(directory: Path, op: str, cells: tuple[CellEvidence, ...]) -> OpVerdict:
    """The verdict on file, or one made now for an op that is not finished."""
    path = directory / op / "verdict.json"
    complete = all(item.status is not None for item in cells)
    return codec.read(OpVerdict, path) if complete and path.exists() else _judge(directory, op, cells)


def _judge(directory: Path, op: str, cells: tuple[CellEvidence, ...]) -> OpVerdict:
    return judge_op(cells, store.gate(directory, op), judge_settings(directory), _clocks(directory, cells))


def _clocks(directory: Path, cells: tuple[CellEvidence, ...]) -> Mapping[str, float]:
    """Mean SM clock under load, in MHz, of the measured cells whose telemetry says enough about them."""
    found = {}
    for item in cells:
        if item.status is None or item.status.outcome is not Outcome.MEASURED:
            continue
        sampled = telemetry.summarise(_attempt(directory, item.cell, item.status.attempt) / "telemetry.csv")
        covered = sampled.samples * (sampled.interval_s or 0.0) / item.status.elapsed_s
        if sampled.busy_sm_clock_mhz and sampled.busy >= BUSY_SAMPLES and covered >= COVERED:
            found[item.cell.key] = sampled.busy_sm_clock_mhz.mean
    return found


def _attempt(directory: Path, cell: Cell, number: int) -> Path:
    return directory / cell.key / "attempts" / str(number)
