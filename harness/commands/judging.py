"""Commands that judge a campaign and say where it stands."""

from __future__ import annotations

import argparse

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


def _status_arguments(sub: argparse.ArgumentParser) -> None:
    campaign_argument(sub)
    sub.add_argument("--all", action="store_true", help="every cell, not only those that are not well")


COMMANDS: Table = {
    "status": ("where a campaign stands: done, running, stalled and missing cells", _status, _status_arguments),
    "report": ("judge a campaign's finished operators again and write its report", _report, campaign_argument),
    "summary": ("ten lines on the campaign of a configuration", _summary, config_argument),
}
