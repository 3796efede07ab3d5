"""Commands that judge runs made elsewhere."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.command import Table

if TYPE_CHECKING:
    from harness.foreign.comparing import Comparison, Settings

WAY_OUT = "caliber: not compared (exit 4); --allow-caliber-mismatch compares all the same, and still prints this"


def _ab(arguments: argparse.Namespace) -> int:
    from harness.foreign import comparing

    return _report(arguments, lambda settings: comparing.compare([{"A": arguments.a, "B": arguments.b}], settings))


def _ab_rounds(arguments: argparse.Namespace) -> int:
    from harness.foreign import comparing, rounds

    found = rounds.find(arguments.root)
    for name in found.passed_over:
        print(f"caliber: {arguments.root / name} is no round, and passed over", file=sys.stderr)
    return _report(arguments, lambda settings: comparing.compare(list(found.runs.values()), settings))


def _report(arguments: argparse.Namespace, compare: Callable[[Settings], Comparison]) -> int:
    from harness import codec
    from harness.foreign import comparing, printing
    from harness.records import Judge

    judge = Judge(arguments.margin, arguments.q, False, arguments.allow_caliber_mismatch)
    try:
        found = compare(comparing.Settings(judge, arguments.aa, getattr(arguments, "order", None) or ""))
    except comparing.CaliberRefused as error:
        print(*error.lines, WAY_OUT, sep="\n", file=sys.stderr)
        return int(error.code)
    if arguments.json:
        codec.write(arguments.json, found)
    print(printing.text(found), end="")
    return int(found.code)


def _judging(sub: argparse.ArgumentParser) -> None:
    released = "compare although a run has no identity, or another one; what is refused is still printed"
    sub.add_argument("--allow-caliber-mismatch", action="store_true", help=released)
    sub.add_argument("--aa", action="store_true", help="the sides are meant to be equal (an A/A control)")
    margin = "smaller effects are no finding (default: %(default)s %%)"
    sub.add_argument("--margin", type=float, default=0.5, metavar="PCT", help=margin)
    sub.add_argument("--q", type=float, default=0.05, help="rate of false claims (default: %(default)s)")
    sub.add_argument("--json", type=Path, metavar="FILE", help="also write everything found as JSON")


def _ab_arguments(sub: argparse.ArgumentParser) -> None:
    sub.epilog = (
        "A run is what one process left: a directory, or one file. FlagGems console logs (pytest -s), `--record log` "
        "and `--record json` files, and cells of caliber are known by what they hold; run_identity.json beside them "
        "says under what conditions they were made. Only the latency of the operator under test is used. One pair of "
        "runs never gets a verdict but UNRESOLVED. Exit codes: 0 every row is paired; 1 a file cannot be read; 4 the "
        "runs are not of one caliber, or nothing shows it; 5 rows without a partner, or a run that did not end well."
    )
    sub.add_argument("a", type=Path, metavar="RUN_A", help="the run to compare with")
    sub.add_argument("b", type=Path, metavar="RUN_B", help="the run with the change")
    _judging(sub)


def _order(text: str) -> str:
    if not text or set(text) - {"A", "B"}:
        raise argparse.ArgumentTypeError(f"{text!r} is not made of A and B")
    return text


def _ab_rounds_arguments(sub: argparse.ArgumentParser) -> None:
    sub.epilog = (
        "Rounds are looked for as ROOT/<round>/A and ROOT/<round>/B, or as ROOT/r1_A, ROOT/r1_B, ROOT/r2_A, ..., each "
        "a directory or a file as `caliber ab` takes it. The round is the unit: at least 4 of them, with either side "
        "first in half, can give a verdict. Round 0 is a recording, never a measurement. Exit codes as of `caliber ab`."
    )
    sub.add_argument("root", type=Path, metavar="ROOT", help="directory with the rounds")
    order = "which side ran first, a letter per round; needed where the runs have no identities"
    sub.add_argument("--order", type=_order, metavar="ABBA...", help=order)
    _judging(sub)


COMMANDS: Table = {
    "ab": ("compare two runs made elsewhere (FlagGems logs, records, result files)", _ab, _ab_arguments),
    "ab-rounds": ("judge rounds of runs made elsewhere", _ab_rounds, _ab_rounds_arguments),
}
