"""Which runs of a directory stand against which: ROOT/<round>/<A|B> or ROOT/r<k>_<A|B>, each a directory or a file.

Round 0 records and is never a measurement. A round with one side only is refused: a report over the rounds that
happened to succeed reads exactly like a complete one (facts: incidents 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.foreign.entries import ForeignError
from harness.records import ExitCode, SideName

FLAT = re.compile(r"r(?P<round>\d+)_(?P<side>[AB])")
SIDES: tuple[SideName, ...] = ("A", "B")
LAYOUTS = "ROOT/<round>/A and ROOT/<round>/B, or ROOT/r1_A, ROOT/r1_B, ROOT/r2_A, ..."


class RoundsMissing(ForeignError):
    """A round without its other side."""

    code = ExitCode.INCOMPLETE


@dataclass(frozen=True)
class Rounds:
    """Round name -> its two runs, in order; entries of ROOT that are none."""

    runs: Mapping[str, Mapping[SideName, Path]]
    passed_over: tuple[str, ...]


def find(root: Path) -> Rounds:
    """The rounds below `root`, in the order of their numbers."""
    if not root.is_dir():
        raise ForeignError(f"{root}: no such directory; rounds are looked for as {LAYOUTS}")
    if (root / "plan.json").exists():
        raise ForeignError(f"{root}: a campaign of caliber; `caliber report {root}` judges it with its plan")
    runs: dict[str, dict[SideName, Path]] = {}
    taken = set()
    for entry, name, side, path in sorted(_entries(root), key=lambda found: _natural(found[1])):
        taken.add(entry)
        if side in runs.setdefault(name, {}):
            raise ForeignError(f"round {name} has two runs {side}: {runs[name][side]} and {path}")
        runs[name][side] = path
    left = tuple(entry.name for entry in sorted(root.iterdir()) if entry not in taken and entry.name[0] != ".")
    runs.pop("0", None)
    _whole(root, runs)
    return Rounds(runs, left)


def _entries(root: Path) -> Iterator[tuple[Path, str, SideName, Path]]:
    """(entry of ROOT, round, side, run)"""
    for entry in root.iterdir():
        flat = FLAT.fullmatch(entry.stem)
        if flat:
            yield entry, str(int(flat["round"])), "A" if flat["side"] == "A" else "B", entry
        elif entry.is_dir():
            for side in SIDES:
                yield from ((entry, entry.name, side, path) for path in entry.iterdir() if path.stem == side)


def _whole(root: Path, runs: Mapping[str, Mapping[SideName, Path]]) -> None:
    if not runs:
        raise ForeignError(f"{root}: no rounds; they are looked for as {LAYOUTS} (round 0 is no measurement)")
    lacking = [f"round {name} has no {side}" for name, own in runs.items() for side in SIDES if side not in own]
    if lacking:
        whole = sum(len(own) == len(SIDES) for own in runs.values())
        raise RoundsMissing(f"{root}: {'; '.join(lacking)}; {whole} of {len(runs)} rounds are whole, none is judged")


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """`r2` before `r10`."""
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"\d+|\D+", name))
