"""The human's door: `caliber <command>`. Every error is one line on stderr, with the exit code of its kind."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.records import ExitCode, Refusal

Command = Callable[[argparse.Namespace], int]
DEFAULT_CONFIG = Path("config/config.yaml")


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


def _status(arguments: argparse.Namespace) -> int:
    from harness import progress, store

    plan = store.read_plan(arguments.campaign)
    print(progress.table(arguments.campaign, plan, arguments.all), end="")
    done = all((arguments.campaign / cell.key / "status.json").exists() for cell in plan.cells)
    return int(ExitCode.DONE if done else ExitCode.INCOMPLETE)


def _report(arguments: argparse.Namespace) -> int:
    from harness import finish

    for op in finish.judgeable(arguments.campaign):
        finish.judge(arguments.campaign, op)
    return int(finish.show(arguments.campaign))


def _summary(arguments: argparse.Namespace) -> int:
    from harness import config, finish

    return int(finish.show(config.load(arguments.config).directory))


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


def _nothing(sub: argparse.ArgumentParser) -> None:
    """A command without arguments."""


def _config_argument(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--config", type=Path, default=DEFAULT_CONFIG, help="configuration (default: %(default)s)")


def _campaign_argument(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("campaign", type=Path, help="results/<campaign>")


def _status_arguments(sub: argparse.ArgumentParser) -> None:
    _campaign_argument(sub)
    sub.add_argument("--all", action="store_true", help="every cell, not only those that are not well")


def _manifest_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("manifest", type=Path, nargs="+", help="manifests/*.yaml")


def _cell_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("cell", type=Path, help="results/<campaign>/<op>/r<k>_<side>/cell.json")


def _telemetry_arguments(sub: argparse.ArgumentParser) -> None:
    from harness import telemetry

    telemetry.add_arguments(sub)


COMMANDS: dict[str, tuple[str, Command, Callable[[argparse.ArgumentParser], None]]] = {
    "seal": ("write the digest of a manifest into it, after you reviewed it", _seal, _manifest_arguments),
    "plan": ("print every cell a configuration would run, in order", _plan, _config_argument),
    "preflight": ("check both sides' interpreters, devices and files before a campaign", _preflight, _config_argument),
    "cell": ("run one cell again by hand: same interpreter, same environment", _cell, _cell_arguments),
    "status": ("where a campaign stands: done, running, stalled and missing cells", _status, _status_arguments),
    "report": ("judge a campaign's finished operators again and write its report", _report, _campaign_argument),
    "summary": ("ten lines on the campaign of a configuration", _summary, _config_argument),
    "telemetry": ("sample a device's clocks, temperature, power and load", _telemetry, _telemetry_arguments),
    "backends": ("what each backend is and can do", _backends, _nothing),
    "doctor": ("what this machine can run, and what is missing", _doctor, _nothing),
}


if __name__ == "__main__":
    sys.exit(main())
