"""FlagGems on Moore Threads: lift one skip guard that asks for CUDA though the operator runs (S5000: 25 rows of fft).

Pinned to one file and one exact reason, and only where flag_gems itself dispatched to mthreads. Other guards that
skip something are left alone and named.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

FILE = "benchmark/test_fft.py"
REASON = "CUDA is not available"
VENDOR = "mthreads"


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Remove the guard from what was collected, and say what was removed and what was not."""
    if getattr(sys.modules.get("flag_gems"), "vendor_name", None) != VENDOR:
        return
    lifted = [item.nodeid for item in items if lift(item)]
    left = sorted({f"{item.nodeid} ({reason})" for item in items for reason in standing(item)})
    if lifted:
        say(config, f"COMPAT_MUSA lifted {REASON!r} from {', '.join(lifted)}")
    if left:
        say(config, f"COMPAT_MUSA left alone: {', '.join(left)}")


def lift(item: Any) -> bool:
    """Drop the pinned guard from `item` and the nodes above it; True when there was one."""
    if not item.path.as_posix().endswith(f"/{FILE}"):
        return False
    found = False
    for node in item.listchain():
        kept = [mark for mark in node.own_markers if not pinned(mark)]
        found = found or len(kept) != len(node.own_markers)
        node.own_markers[:] = kept
    return found


def pinned(mark: Any) -> bool:
    """True for the one guard this plugin is about, when it skips."""
    return skips(mark) and mark.kwargs.get("reason") == REASON


def standing(item: Any) -> Iterator[str]:
    """Reasons of the guards that still skip `item`."""
    for mark in item.iter_markers("skipif"):
        if skips(mark):
            yield str(mark.kwargs.get("reason", "no reason"))


def skips(mark: Any) -> bool:
    """True for a skipif whose condition came out true at import. Conditions in text form are left to pytest."""
    condition = mark.args[0] if mark.args else mark.kwargs.get("condition")
    return mark.name == "skipif" and condition is True


def say(config: Any, text: str) -> None:
    """A line of its own in run.log; a plain print during collection is swallowed by pytest's capture."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(text)
