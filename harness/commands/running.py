"""Commands around running a campaign."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.commands.command import Table, config_argument, nothing


def _seal(arguments: argparse.Namespace) -> int:
    from harness import manifest

    for path in arguments.manifest:
        print(f"{path}: {manifest.seal(path)}")
    return 0


def _plan(arguments: argparse.Namespace) -> int:
    from harness import campaign, config

    planned = campaign.build(config.load(arguments.config))
    settings = planned.config
    print(f"campaign {settings.campaign}: {len(planned.ops)} ops, {len(planned.cells)} cells, "
          f"{len(settings.devices)} lane(s), backend {settings.backend}, provider {settings.provider}")  # fmt: skip
    for warning in config.warnings(settings):
        print(f"warning: {warning}")
    for key, cell in planned.shards.items():
        print(f"        lane {cell.lane}  {key:<28} record (shard {cell.shard} of {cell.shards})")
    for key, cell in planned.cells.items():
        print(f"{cell.seq:6d}  lane {cell.lane}  {key:<28} {cell.autotune}")
    return 0


def _preflight(arguments: argparse.Namespace) -> int:
    from harness import campaign, config, finish

    for text in finish.preflight_sides(campaign.build(config.load(arguments.config))):
        print(text)
    return 0


def _cell(arguments: argparse.Namespace) -> int:
    from harness import cell

    return cell.run(arguments.cell)


def _telemetry(arguments: argparse.Namespace) -> int:
    from harness import telemetry

    return telemetry.run(arguments)


def _backends(arguments: argparse.Namespace) -> int:
    from harness import backends

    for name in backends.NAMES:
        print(backends.describe(backends.get(name)))
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from harness import doctor

    print(doctor.doctor(), end="")
    return 0


def _manifest_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("manifest", type=Path, nargs="+", help="manifests/*.yaml")


def _cell_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("cell", type=Path, help="results/<campaign>/<op>/r<k>_<side>/cell.json")


def _telemetry_arguments(sub: argparse.ArgumentParser) -> None:
    from harness import telemetry

    telemetry.add_arguments(sub)


COMMANDS: Table = {
    "seal": ("write the digest of a manifest into it, after you reviewed it", _seal, _manifest_arguments),
    "plan": ("print every cell a configuration would run, in order", _plan, config_argument),
    "preflight": ("check both sides' interpreters, devices and files before a campaign", _preflight, config_argument),
    "cell": ("run one cell again by hand: same interpreter, same environment", _cell, _cell_arguments),
    "telemetry": ("sample a device's clocks, temperature, power and load", _telemetry, _telemetry_arguments),
    "backends": ("what each backend is and can do", _backends, nothing),
    "doctor": ("what this machine can run, and what is missing", _doctor, nothing),
}
