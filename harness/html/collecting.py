"""What the page shows of each op, taken while that op's evidence is in hand; afterwards its rows are let go of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness import judging, store
from harness.findings import OpVerdict
from harness.html import details, payload
from harness.records import CellEvidence


class Pages:
    """A judge of ops, as `finish.collect` takes one, that keeps each op's part of the page as JSON in `ops`."""

    def __init__(self, directory: Path) -> None:
        count = len(store.ops(store.read_plan(directory)))
        self.points = max(26, min(details.POINTS, details.ALL_POINTS // max(count, 1)))  # two for each of 13 cells
        self.ops: list[str] = []

    def judge(self, directory: Path, op: str, cells: Sequence[CellEvidence]) -> OpVerdict:
        """The op's verdict, on file too, and its part of the page."""
        found = judging.settle(directory, op, cells)
        self.ops.append(payload.op_json(found, cells, details.gather(directory, cells, self.points)))
        return found
