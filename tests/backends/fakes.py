"""Vendor tools that answer from recorded texts: as scripts on PATH, or as a callable."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.backends import RunTool, ToolError

TEXTS = Path(__file__).parents[1] / "fixtures" / "telemetry"
BIN = TEXTS / "bin"

H200_0 = "GPU-1a2b3c4d-5e6f-7081-92a3-b4c5d6e7f809"
H200_1 = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"


def text(name: str) -> str:
    return (TEXTS / name).read_text(encoding="utf-8")


def path_with_fakes() -> str:
    return f"{BIN}{os.pathsep}/usr/bin{os.pathsep}/bin"


def answering(answers: Mapping[str, str]) -> RunTool:
    """Answers a command line by its longest matching beginning; anything else is not installed."""

    def run(command: Sequence[str]) -> str:
        line = " ".join(command)
        found = [start for start in answers if line.startswith(start)]
        if not found:
            raise ToolError(f"{command[0]} is not on PATH")
        return answers[max(found, key=len)]

    return run
