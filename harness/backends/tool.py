"""Running a vendor's command line tool. Knows no vendor; the callable is injectable so that tests need no hardware."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence

RunTool = Callable[[Sequence[str]], str]

#: mthreads-gmi and nvidia-smi have been seen to hang on a lost device; a listing takes well under a second.
TIMEOUT_S = 20.0


class ToolError(Exception):
    """A vendor tool that is missing, hangs or fails; one line that names the tool."""


def run_tool(command: Sequence[str]) -> str:
    """The standard output of `command`, run with LC_ALL=C: a decimal comma corrupts CSV. ToolError otherwise."""
    name = command[0]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except FileNotFoundError:
        raise ToolError(f"{name} is not on PATH") from None
    except subprocess.TimeoutExpired:
        raise ToolError(f"{name} gave no answer in {TIMEOUT_S:.0f} s") from None
    except OSError as error:
        raise ToolError(f"{name} cannot be run ({error.strerror})") from None
    out = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        said = " ".join((out + " " + done.stderr.decode("utf-8", "replace")).split())
        raise ToolError(f"`{' '.join(command)}` ended with {done.returncode}: {said[:200] or '(no output)'}")
    return out


def asked_once(run: RunTool = run_tool) -> RunTool:
    """`run`, with each command's answer kept: a cell looks for its device in two environments, the tool knows none."""
    answers: dict[tuple[str, ...], str] = {}

    def answered(command: Sequence[str]) -> str:
        key = tuple(command)
        if key not in answers:
            answers[key] = run(command)
        return answers[key]

    return answered
