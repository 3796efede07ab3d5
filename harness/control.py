"""The A/A control of a campaign: its configuration, its noise.json, and its word in another campaign's margin.

The rim around noise; must not know the workflow beyond the command that runs it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from harness import codec, config, noise, store
from harness.noise import Noise, NoiseRefused
from harness.records import Cell, CellEvidence, ExitCode, Judge, Refusal
from harness.report import CampaignReport

SUFFIX = "_aa"
#: Beside a report: the noise.json that its verdicts were made with.
KEPT = "noise_campaign.json"


class ControlError(Refusal):
    """A configuration that has no A/A control."""


class ControlUnfinished(NoiseRefused):
    """An A/A campaign that cannot speak yet."""

    code = ExitCode.INCOMPLETE


def configuration(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same campaign with side A on both sides.

    A variable that only B names is unset on A; so it is on both, whatever the environment holds. Measured in full,
    though no code differs: the noise is that of N rounds.
    """
    if data.get("declared_aa"):
        raise ControlError(f"campaign {data.get('campaign')} is an A/A control itself; run it with snakemake")
    side = copy.deepcopy(dict(data["sides"]["A"] or {}))
    names = {**dict.fromkeys(data["sides"]["B"].get("env") or {}), **(side.get("env") or {})}
    side |= {"env": names} if names else {}
    judge = {key: value for key, value in (data.get("judge") or {}).items() if key != "noise_campaign"}
    return {
        **copy.deepcopy(dict(data)),
        "campaign": f"{data['campaign']}{SUFFIX}",
        "declared_aa": True,
        "sides": {"A": side, "B": copy.deepcopy(side)},
        "judge": {**judge, "allow_no_ir_diff": True},
    }


def write_configuration(path: Path) -> tuple[Path, config.Config]:
    """Write the control's configuration, `results/<campaign>_aa.yaml`, from the campaign's; both are checked."""
    config.load(path)
    data = configuration(yaml.safe_load(codec.read_text(path)))
    target = Path("results") / f"{data['campaign']}.yaml"
    text = f"# The A/A control of {path}: side A on both sides. Made by `caliber aa`, made anew each time.\n"
    codec.write_text(target, text + yaml.safe_dump(data, sort_keys=False))
    return target, config.load(target)


def settle(directory: Path, found: CampaignReport) -> None:
    """`noise.json` of a declared A/A campaign is there exactly while all its cells have ended."""
    path = directory / "noise.json"
    every = [item for own in found.cells.values() for item in own]
    if not every or not all(item.cell.declared_aa and item.status is not None for item in every):
        path.unlink(missing_ok=True)
        return
    codec.write(path, noise.distil(found.campaign, found.cells, found.ops, found.judge.q))


def read(directory: Path) -> Noise:
    """What a finished, declared A/A campaign says; NoiseRefused, with the way out, from any other directory."""
    if not (directory / "plan.json").exists():
        raise ControlUnfinished(
            f"judge.noise_campaign: {directory}: no campaign there; run `caliber aa`, or leave it empty"
        )
    plan = store.read_plan(directory)
    missing = [cell.key for cell in plan.cells if not (directory / cell.key / "status.json").exists()]
    first = codec.read(Cell, directory / plan.cells[0].key / "cell.json")
    if not first.declared_aa:
        raise NoiseRefused(
            f"!!! [caliber] judge.noise_campaign: {directory} is no declared A/A: what its sides differ in is no noise"
        )
    path = directory / "noise.json"
    if missing or not path.exists():
        lacking = f"{len(missing)} of {len(plan.cells)} cells missing, {missing[0]} first" if missing else "not judged"
        raise ControlUnfinished(
            f"judge.noise_campaign: {directory} is unfinished ({lacking}); finish it, then `caliber report {directory}`"
        )
    return codec.read(Noise, path)


def keep(directory: Path, settings: Judge) -> None:
    """A copy of the noise that `judge.noise_campaign` names, so that a copied campaign can be verified by itself."""
    if settings.noise_campaign:
        codec.write(directory / KEPT, read(Path(settings.noise_campaign)))
    else:
        (directory / KEPT).unlink(missing_ok=True)


def floor(settings: Judge, cells: Sequence[CellEvidence], kept: Path | None = None) -> Noise | None:
    """The noise that `judge.noise_campaign` names, if any; NoiseRefused unless it was measured as these cells were.

    `kept` is read in its place where it exists.
    """
    if not settings.noise_campaign:
        return None
    if kept and kept.exists():
        found = codec.read(Noise, kept)
        noise.require_comparable(found, cells)
        return found
    directory = Path(settings.noise_campaign)
    stamp = directory / "noise.json"
    found = _read_once(directory, stamp.stat().st_mtime_ns) if stamp.exists() else read(directory)
    noise.require_comparable(found, cells)
    return found


@lru_cache(maxsize=4)
def _read_once(directory: Path, stamp: int) -> Noise:
    """A report judges hundreds of ops by one control; `stamp` is the file's time."""
    return read(directory)
