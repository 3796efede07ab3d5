"""The human's door: `caliber <command>`. Every error is one line on stderr, with the exit code of its kind."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from harness.commands import evidence, foreign, judging, running
from harness.commands.command import Table
from harness.records import ExitCode, Refusal


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run one command, turn a refusal into one line and its exit code."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.command(arguments))
    except BrokenPipeError:
        sys.stdout = None  # the reader left; the exit flush must not complain again
        return int(ExitCode.DONE)
    except KeyboardInterrupt:
        return int(ExitCode.INCOMPLETE)
    except Refusal as error:
        text = " ".join(str(error).split())
        print(text if text.startswith(("!!!", "PREFLIGHT_FAILED")) else f"caliber: {text}", file=sys.stderr)
        return int(error.code)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="caliber",
        description="Which operators got faster, which slower, which did not change at all, and can I believe it? "
        "Run a campaign with `make campaign` or `snakemake --cores N`; these commands look at it and around it.",
        epilog="Exit codes: " + ", ".join(f"{code.value} {code.name.lower().replace('_', ' ')}" for code in ExitCode),
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (text, function, arguments) in COMMANDS.items():
        sub = commands.add_parser(name, help=text, description=text)
        arguments(sub)
        sub.set_defaults(command=function)
    return top


COMMANDS: Table = {**running.COMMANDS, **judging.COMMANDS, **evidence.COMMANDS, **foreign.COMMANDS}


if __name__ == "__main__":
    sys.exit(main())
