"""Commands that judge a campaign and say where it stands."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

from harness.commands.command import Table, campaign_argument, config_argument
from harness.records import ExitCode


def _status(arguments: argparse.Namespace) -> int:
    from harness import progress, store

    plan = store.read_plan(arguments.campaign)
    print(progress.table(arguments.campaign, plan, arguments.all), end="")
    done = all((arguments.campaign / cell.key / "status.json").exists() for cell in plan.cells)
    return int(ExitCode.DONE if done else ExitCode.INCOMPLETE)


def _report(arguments: argparse.Namespace) -> int:
    from harness import finish

    return int(finish.show(arguments.campaign))


def _summary(arguments: argparse.Namespace) -> int:
    from harness import config, finish

    return int(finish.show(config.load(arguments.config).directory))


def _aa(arguments: argparse.Namespace) -> int:
    from harness import control, finish, noise

    path, settings = control.write_configuration(arguments.config)
    workflow = Path(__file__).resolve().parents[2] / "workflow" / "Snakefile"
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(workflow), "--cores", str(arguments.cores)]
    command += ["--configfile", str(path), *arguments.snakemake]
    print(f"caliber: {shlex.join(command)}", flush=True)
    ran = subprocess.call(command)
    if not (settings.directory / "plan.json").exists():
        return ran
    judged = finish.show(settings.directory)
    if (settings.directory / "noise.json").exists():
        print(noise.table(control.read(settings.directory)), end="")
        print(f"to widen the margin by it: judge: {{noise_campaign: {settings.directory}}} in {arguments.config}")
    return ran or int(judged)


def _aa_arguments(sub: argparse.ArgumentParser) -> None:
    config_argument(sub)
    sub.add_argument("--cores", type=int, default=2, help="for snakemake (default: %(default)s)")
    sub.add_argument("snakemake", nargs="*", metavar="-- ARGS", help="more arguments for snakemake, after `--`")


def _status_arguments(sub: argparse.ArgumentParser) -> None:
    campaign_argument(sub)
    sub.add_argument("--all", action="store_true", help="every cell, not only those that are not well")


COMMANDS: Table = {
    "status": ("where a campaign stands: done, running, stalled and missing cells", _status, _status_arguments),
    "aa": ("run the A/A control of a configuration, side A on both sides, and print its noise", _aa, _aa_arguments),
    "report": ("judge a campaign's finished operators again and write its report", _report, campaign_argument),
    "summary": ("ten lines on the campaign of a configuration", _summary, config_argument),
}
