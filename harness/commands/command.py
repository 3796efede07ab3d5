"""What a command is, and the arguments that several of them share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

Command = Callable[[argparse.Namespace], int]
Arguments = Callable[[argparse.ArgumentParser], None]
#: name -> (its help, what it does, its arguments)
Table = dict[str, tuple[str, Command, Arguments]]
DEFAULT_CONFIG = Path("config/config.yaml")


def nothing(sub: argparse.ArgumentParser) -> None:
    """A command without arguments."""


def config_argument(sub: argparse.ArgumentParser) -> None:
    """--config FILE."""
    sub.add_argument("--config", type=Path, default=DEFAULT_CONFIG, help="configuration (default: %(default)s)")


def campaign_argument(sub: argparse.ArgumentParser) -> None:
    """results/<campaign>."""
    sub.add_argument("campaign", type=Path, help="results/<campaign>")
