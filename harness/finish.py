"""What happens to a campaign once cells have ended: reported, tabulated. The rim around the pure report."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from harness import (
    attempt,
    backends,
    ci,
    codec,
    control,
    html,
    judging,
    junit,
    noise,
    preflight,
    providers,
    receipts,
    report,
    report_data,
    store,
)
from harness.campaign import Campaign
from harness.findings import OpVerdict
from harness.records import Cell, CellEvidence, ExitCode, Refusal
from harness.summary import summary
from harness.verdict import exit_code

Judging = Callable[[Path, str, Sequence[CellEvidence]], OpVerdict]


@contextmanager
def _no_cycles() -> Iterator[None]:
    """Frozen values make no cycles; to look for some among those of 20 000 cells took 6 s of 58."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_no_cycles()
def render(directory: Path) -> tuple[report.CampaignReport, ExitCode]:
    """Judge every op and write the report in all its forms from what there is; the campaign's exit code."""
    pages = html.Pages(directory)
    found = collect(directory, pages.judge)
    codec.write(directory / "caliber.json", found.caliber)
    codec.write_text(directory / "report.tsv", report.tsv(found))
    codec.write_text(directory / "report.json", codec.dumps(report_data.data(found)) + "\n")
    codec.write_text(directory / "report.junit.xml", junit.document(found, ci.Policy()))
    store.write_status_table(directory, chain.from_iterable(found.cells.values()))
    control.settle(directory, found)
    control.keep(directory, found.judge)
    sealed = receipts.write(directory, found.campaign, found.cells.values(), found.superseded)
    digests = {receipts.NAME: receipts.sha256(directory / receipts.NAME), **sealed.files}
    codec.write_text(directory / "report.html", html.page(found, pages.ops, digests))
    codec.write_text(directory / "report.md", report.markdown(found))  # last: Snakemake takes it for all of them
    return found, exit_code(found.verdict, found.ops)


def collect(directory: Path, judge: Judging = judging.derive) -> report.CampaignReport:
    """The whole report, every op judged by `judge` from its files. Rows are let go of, op after op."""
    plan = store.read_plan(directory)
    cells, verdicts, taken_back = {}, {}, []
    for op, own in store.each_op(directory, plan):
        verdicts[op] = judge(directory, op, own)
        cells[op] = tuple(replace(item, rows=(), fingerprint=None) for item in own)
        taken_back += [old for item in own for old in store.superseded(directory / item.cell.key)]
    return report.assemble(plan.campaign, cells, verdicts, judging.settings(directory), tuple(taken_back))


def show(directory: Path) -> ExitCode:
    """Render, print at most ten lines and what caliber refused; the exit code a CI job should use."""
    found, code = render(directory)
    for lines in found.mismatches.values():
        for line in lines:
            print(line, file=sys.stderr)
    print(summary(found, str(directory / "report.md")))
    return code


def finish(campaign: Campaign, complete: bool) -> None:
    """Snakemake's last hook. An unfinished campaign gets its partial report, with coverage first.

    What refuses the report has refused its rule already; a second traceback would bury it.
    """
    if not (campaign.directory / "plan.json").exists():
        return
    store.write_status_table(campaign.directory)
    try:
        if not complete:
            render(campaign.directory)
    except Refusal as refusal:
        print(f"caliber: no report: {refusal}", file=sys.stderr, flush=True)
        return
    print(f"caliber: report {campaign.directory / 'report.md'}", flush=True)


def preflight_sides(campaign: Campaign) -> Iterator[str]:
    """Check both sides' interpreters, device and files as a cell would, imports included; PreflightFailed if not.

    Sides that differ only in environment variables share one interpreter and are asked once. A noise campaign that the
    verdicts will lean on is asked for too, before hours are measured.
    """
    if campaign.config.judge.noise_campaign:
        known = control.read(Path(campaign.config.judge.noise_campaign))
        noise.require_planned(known, campaign.cells.values())
        yield f"noise floor from {known.campaign}: ops {len(known.by_op)}, rounds {known.rounds}"
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
