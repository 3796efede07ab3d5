"""Commands about the evidence of a finished campaign: what it still says, under which rule, and before a CI gate."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.commands.command import Table, campaign_argument
from harness.records import ExitCode


def _verify(arguments: argparse.Namespace) -> int:
    from harness import verify

    found = verify.verify(arguments.campaign)
    print(verify.text(found), end="")
    return int(found.exit_code)


def _reaccount(arguments: argparse.Namespace) -> int:
    from harness import reaccount

    print(reaccount.table(reaccount.reaccount(arguments.campaign, arguments.rule)), end="")
    return int(ExitCode.DONE)


def _redo(arguments: argparse.Namespace) -> int:
    from harness import finish, redo

    taken_back = redo.redo(arguments.cell, arguments.reason, arguments.with_dependents)
    for old in taken_back:
        print(f"superseded {old.cell} ({old.status.outcome.value}): {old.reason}")
    finish.render(redo.campaign_of(arguments.cell))
    print(f"a plain `snakemake` measures {'it' if len(taken_back) == 1 else 'them'} again; the report shows both")
    return int(ExitCode.DONE)


def _gate(arguments: argparse.Namespace) -> int:
    from harness import ci, codec, finish, junit

    policy = ci.Policy(ci.limit(arguments.max_slower), ci.verdicts(arguments.fail_on) if arguments.fail_on else ())
    report = finish.collect(arguments.campaign)
    rulings = ci.rule(report, policy)
    if arguments.junit:
        codec.write_text(arguments.junit, junit.document(report, policy))
    print(ci.table(rulings, policy), end="")
    return int(ci.exit_code(rulings))


def _reaccount_arguments(sub: argparse.ArgumentParser) -> None:
    from harness.accounting import RULES

    campaign_argument(sub)
    rules = " ".join(f"{rule.name}: {rule.text}" for rule in RULES.values())
    sub.add_argument("--rule", required=True, metavar="NAME", help=rules)


def _redo_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("cell", type=Path, help="results/<campaign>/<op>/r<k>_<side>, or its cell.json")
    sub.add_argument("--reason", required=True, metavar="TEXT", help="what was wrong with it; the report shows it")
    sub.add_argument(
        "--with-dependents",
        action="store_true",
        help="of round 0: also take back the measured cells of the op, which replayed its record",
    )


def _gate_arguments(sub: argparse.ArgumentParser) -> None:
    campaign_argument(sub)
    sub.add_argument(
        "--max-slower",
        default="0%",
        metavar="PERCENT",
        help="an op fails when it is claimed SLOWER by more than this, 1%% or 0.5%% (default: any such claim fails)",
    )
    sub.add_argument("--fail-on", default="", metavar="VERDICT[,...]", help="verdicts that fail as well: UNRESOLVED")
    sub.add_argument("--junit", type=Path, metavar="FILE", help="also write the rulings as JUnit XML")


COMMANDS: Table = {
    "verify": ("hash every receipted file again and derive every verdict again", _verify, campaign_argument),
    "reaccount": ("count layout conversions under a named rule, from sealed files", _reaccount, _reaccount_arguments),
    "redo": ("take back a cell that has ended, so that a plain re-run measures it again", _redo, _redo_arguments),
    "gate": (
        "one exit code for CI: 0 pass, 1 an op fails, 4 not comparable, 5 incomplete or empty",
        _gate,
        _gate_arguments,
    ),
}
