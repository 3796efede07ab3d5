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


def _explain(arguments: argparse.Namespace) -> int:
    from harness import control, explain, judging, store
    from harness.verdict import judge_campaign

    directory, plan = arguments.campaign, store.read_plan(arguments.campaign)
    op = explain.one_of(arguments.op, store.ops(plan), "op")
    cells, settings = store.op_evidence(directory, plan, op), judging.settings(directory)
    ops = judging.on_file(directory, store.ops(plan))
    lines = {line.op: line for line in judge_campaign(ops, settings).ops}
    source = explain.Source(
        campaign=plan.campaign,
        cells=cells,
        gate=store.gate(directory, op),
        judge=settings,
        clocks=judging.clocks(directory, cells),
        noise=control.floor(settings, cells, directory / control.KEPT),
        on_file=ops.get(op),
        line=lines.get(op),
    )
    print(explain.explain(source, arguments.shape), end="")
    return int(ExitCode.DONE)


def _explain_arguments(sub: argparse.ArgumentParser) -> None:
    campaign_argument(sub)
    sub.add_argument("op", help="the operator, or a unique part of its name")
    sub.add_argument("shape", nargs="?", default="", help="one row of it: any unique part of its key, '[4096, 4096]'")


def _status_arguments(sub: argparse.ArgumentParser) -> None:
    campaign_argument(sub)
    sub.add_argument("--all", action="store_true", help="every cell, not only those that are not well")


COMMANDS: Table = {
    "status": ("where a campaign stands: done, running, stalled and missing cells", _status, _status_arguments),
    "explain": ("the whole derivation of one verdict, from its files", _explain, _explain_arguments),
    "aa": ("run the A/A control of a configuration, side A on both sides, and print its noise", _aa, _aa_arguments),
    "report": ("judge a campaign's finished operators again and write its report", _report, campaign_argument),
    "summary": ("ten lines on the campaign of a configuration", _summary, config_argument),
}
