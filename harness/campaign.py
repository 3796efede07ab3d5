"""A campaign as Snakemake sees it: prepared at parse, started, judged, reported.

Everything a `.smk` file needs is a function here, so that it can be tested without Snakemake.
"""

from __future__ import annotations

import difflib
import fcntl
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from harness import backends, codec, config, plan, providers, seal, store
from harness.config import Config
from harness.manifest import Manifest, load
from harness.records import Cell, Judge, Refusal, Seal

#: Options that break "a plain re-run resumes exactly the retryable and missing cells" (facts: snakemake 0, 3).
FORBIDDEN = {
    "--keep-incomplete": "it counts a failed cell as complete",
    "--forceall": "it deletes good cells before measuring again",
    "-F": "it deletes good cells before measuring again",
    "--force": "it deletes a good cell before measuring again",
    "-f": "it deletes a good cell before measuring again",
    "--forcerun": "it deletes good cells before measuring again",
    "-R": "it deletes good cells before measuring again",
    "--touch": "it makes missing evidence look present",
    "-t": "it makes missing evidence look present",
    "--nolock": "two runs would measure the same cells",
    "--drop-metadata": "it hides what has changed",
    "--no-hooks": "the campaign is locked, sealed and checked in the start hook",
}
WAY_OUT = "a plain `snakemake` resumes; to measure again choose another `campaign` name"


class CampaignError(Refusal):
    """Why a campaign cannot be planned or started, in one line."""


@dataclass(frozen=True)
class Campaign:
    """A prepared campaign: nothing is written yet. `cells` is every cell by key, in plan order."""

    config: Config
    manifest: Manifest
    cells: Mapping[str, Cell]
    seal: Seal

    @property
    def directory(self) -> Path:
        return self.config.directory

    @property
    def ops(self) -> tuple[str, ...]:
        return tuple(workload.op for workload in self.manifest.workloads)

    @cached_property
    def shards(self) -> Mapping[str, Cell]:
        """The shards of every sharded round 0 by key. They are no cells of the plan: no verdict waits for them."""
        parts = [part for cell in self.cells.values() for part in plan.shards(self.config, cell)]
        return {part.key: part for part in parts}

    def needs(self, key: str) -> tuple[str, ...]:
        """Files below the campaign that must be there before a cell may start; a cell that has ended needs none.

        When a cell before it is redone, a need would be missing, and Snakemake would delete its status and measure it
        again: `ancient` does not excuse an input that is not there (9.27).
        """
        if (self.directory / key / "status.json").exists():
            return ()
        cell = self.cells[key]
        keys = plan.needs(cell.op, cell.round, cell.side.name, self.config.measure.sweep_shards)
        ahead = (f"{cell.op}/ahead_{side}.json" for side in plan.compiled_ahead(cell))
        return (*(f"{other}/status.json" for other in keys), *ahead)

    def priority(self, key: str) -> int:
        """Higher runs first; place in the plan."""
        return len(self.cells) - self.cells[key].seq

    def lanes(self) -> range:
        return range(len(self.config.devices))


def prepare(data: Mapping[str, Any], base: Path | None = None) -> Campaign:
    """From Snakemake's merged config to every cell; refuses what cannot be compared. Writes nothing."""
    return build(config.parse(data, base or Path.cwd()))


def build(settings: Config) -> Campaign:
    """Manifest, backend and provider facts put together."""
    manifest = load(settings.manifest)
    if not manifest.sealed:
        raise CampaignError(
            f"{settings.manifest}: is not sealed; review it, then `caliber seal {os.path.relpath(settings.manifest)}`"
        )
    if manifest.provider != settings.provider:
        raise CampaignError(
            f"{settings.manifest}: is for provider {manifest.provider!r}, the config says {settings.provider!r}; "
            "change provider.name or the manifest"
        )
    refuse_denials(settings, manifest)
    backend = backends.get(settings.backend)
    instrument = backends.instrument(backend, settings.measure.graph, settings.target, settings.measure.l2)
    provider = providers.get(settings.provider)
    root = provider.locate(settings.provider_root or None)
    provider.check(root, manifest.workloads)
    digest = provider.digest(root)
    corpus = plan.Corpus(
        provider=provider.as_seen_by_cells(root, digest),
        pytest_args=lambda workload: provider.pytest_args(root, workload, settings.measure),
    )
    plan.refuse_sweep(settings.measure, instrument.timer)
    cells = {cell.key: cell for cell in plan.cells(settings, manifest.workloads, instrument, corpus)}
    current = seal.new(settings.campaign, manifest.digest, settings.digest(), digest)
    seal.check(settings.directory, current)
    return Campaign(settings, manifest, cells, current)


def refuse_denials(settings: Config, manifest: Manifest) -> None:
    """Refuse a `capture_deny_ops` that denies nothing: keyed by file (`unique`), a list once failed open, silently."""
    known = {providers.key(workload.node) for workload in manifest.workloads}
    denied = settings.measure.capture_deny_ops
    for key in denied:
        if key not in known:
            near = difflib.get_close_matches(key, sorted(known))
            meant = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known are {', '.join(sorted(known))}"
            raise CampaignError(
                f"measure.capture_deny_ops: {key!r} is the test function (less test_) of no workload of "
                f"{settings.manifest}; {meant}"
            )
    if denied and settings.measure.graph == "require":
        raise CampaignError(
            f"measure.capture_deny_ops: {denied[0]!r} is never captured, and measure.graph is 'require'; "
            "drop the key, or use graph: auto"
        )


def refuse_flags(argv: Sequence[str]) -> None:
    """Refuse Snakemake options that would make a valid-looking campaign out of an invalid one."""
    if Path(argv[0]).name != "snakemake" and not argv[0].endswith("snakemake/__main__.py"):
        return
    for argument in argv[1:]:
        name = argument.split("=")[0]
        if name in FORBIDDEN:
            raise CampaignError(f"snakemake {name} is refused: {FORBIDDEN[name]}; {WAY_OUT}")


def refuse_settings(dag: Any, execution: Any) -> None:
    """The same for options that came from a profile or through the API. Settings may be None while parsing."""
    checks = [
        ("--forceall", getattr(dag, "forceall", False)),
        ("--force", getattr(dag, "forcetargets", False)),
        ("--forcerun", bool(getattr(dag, "forcerun", ()))),
        ("--keep-incomplete", getattr(execution, "keep_incomplete", False)),
        ("--drop-metadata", not getattr(execution, "keep_metadata", True)),
    ]
    for name, given in checks:
        if given:
            raise CampaignError(f"snakemake {name} is refused: {FORBIDDEN[name]}; {WAY_OUT}")


def require_lanes(campaign: Campaign, limits: Mapping[str, Any]) -> None:
    """Every lane needs a limit in the profile: a rule's own `resources:` limits nothing (facts: snakemake 1)."""
    for lane in campaign.lanes():
        limit = limits.get(f"gpu{lane}")
        if limit != 1:
            wanted = " ".join(f"gpu{index}=1" for index in campaign.lanes())
            raise CampaignError(
                f"no limit of 1 for resource gpu{lane} (seen: {limit}): cells would share device "
                f"{campaign.config.devices[lane]}; use workflow/profiles/default, or pass --resources {wanted}"
            )


def write_judge(settings: Config, only_if_started: bool = False) -> None:
    """Write `judge.json` when it differs: newer than the report, it makes Snakemake judge again, not measure."""
    path = settings.directory / "judge.json"
    if path.exists():
        if codec.read(Judge, path) == settings.judge:
            return
    elif only_if_started and not (settings.directory / "seal.json").exists():
        return
    codec.write(path, settings.judge)


def start(campaign: Campaign) -> IO[str]:
    """Lock, seal, write the plan and the cells that have not ended. Returns the lock; keep it open.

    The kernel releases the lock when this process ends, also at kill -9.
    """
    directory = campaign.directory
    lock = take_lock(directory)
    if not seal.check(directory, campaign.seal):
        seal.write(directory, campaign.seal, sources(campaign))
    write_judge(campaign.config)
    codec.write(directory / "plan.json", plan.outline(campaign.config, list(campaign.cells.values())))
    codec.write_text(directory / store.PLANNED, f"{len(campaign.cells)}\n")
    for key, cell in {**campaign.cells, **campaign.shards}.items():
        path = directory / key / "cell.json"
        if not (path.parent / "status.json").exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(codec.dumps(cell, indent=1) + "\n", encoding="utf-8")
    for warning in config.warnings(campaign.config):
        print(f"caliber: warning: {warning}", file=sys.stderr)
    return lock


def sources(campaign: Campaign) -> Mapping[str, str]:
    """File name -> text of what the seal's digests are of, so that a copied campaign can be verified by itself."""
    return {
        "manifest.yaml": codec.read_text(campaign.config.manifest),
        "config.json": codec.dumps(campaign.config.sealed(), indent=1) + "\n",
    }


def take_lock(directory: Path) -> IO[str]:
    """The campaign's own lock: Snakemake's is removed by whichever instance ends first (facts: snakemake 0.5)."""
    directory.mkdir(parents=True, exist_ok=True)
    stream = open(directory / ".lock", "a+", encoding="utf-8")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream.seek(0)
        holder = stream.read().strip()
        stream.close()
        raise CampaignError(f"{directory} is being run by {holder}; wait for it, or stop it") from None
    stream.truncate(0)
    stream.write(f"pid {os.getpid()} on {socket.gethostname()}\n")
    stream.flush()
    return stream
