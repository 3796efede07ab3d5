"""What only the page shows of an op, read from its cells' files: round deltas per shape, telemetry, the code's text.

The rim of the package: files in, plain values out. Everything is reduced here, so that 20 000 cells fit on a page.
"""

from __future__ import annotations

import difflib
import gzip
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from harness import fingerprint, store, telemetry
from harness.caliber import SIDES, measured
from harness.pairing import unusable
from harness.records import CellEvidence, Fingerprint, RowKey, SideName, Variant
from harness.samplers import HARMLESS

#: Points of the telemetry strip of one op, and of all ops of a page together.
POINTS, ALL_POINTS = 400, 60_000
VARIANTS, DIFF_LINES, TEXT_LINES = 12, 400, 3000
SERIES = ("sm_clock_mhz", "temp_c", "power_w")
Series = tuple[float | None, ...]


@dataclass(frozen=True)
class Track:
    """Telemetry of one cell in evenly spaced means; None where nothing was read, and for a whole absent series."""

    cell: str  # r1_A
    seconds: float
    clock_mhz: Series | None
    temp_c: Series | None
    power_w: Series | None
    throttle: str


@dataclass(frozen=True)
class Changed:
    """One launched variant that the switch changed: where it first differs, and its exact counts A -> B."""

    id: str
    kernel: str
    signature: str
    options: str
    stage: str
    metrics: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Code:
    """Round 1's code of both sides. `totals` over the launched variants; `diff` is of normalised ttgir."""

    totals: tuple[tuple[str, int, int], ...]
    changed: tuple[Changed, ...]
    more: int  # changed variants that are not listed
    diff_of: str  # variant id
    diff: tuple[str, ...]
    diff_cut: int  # lines left out


@dataclass(frozen=True)
class Detail:
    """Everything of one op that is in no verdict. `deltas`: log ratios per round, None where a round has no pair."""

    deltas: Mapping[RowKey, tuple[float | None, ...]]
    tracks: tuple[Track, ...]
    untracked: str  # why there is no telemetry
    code: Code | None


def gather(directory: Path, cells: Sequence[CellEvidence], points: int) -> Detail:
    """Read the files of one op's promoted attempts; `points` is what its telemetry may take."""
    places = {item.cell.key: _attempt(directory, item) for item in cells if item.status}
    sampled = [key for key, place in places.items() if (place / "telemetry.csv").exists()]
    each = max(2, points // max(len(sampled), 1))
    tracks = (_track(key, places[key] / "telemetry.csv", each) for key in sampled)
    errors = (place / "telemetry.err" for key, place in places.items() if key not in sampled)
    first = next((path for path in errors if path.exists()), None)
    return Detail(
        deltas=_deltas(cells),
        tracks=tuple(track for track in tracks if track is not None),
        untracked=first.read_text(encoding="utf-8", errors="replace").strip()[:300] if first else "",
        code=_code(cells, places),
    )


def _attempt(directory: Path, item: CellEvidence) -> Path:
    return store.attempt_directory(directory / item.cell.key, item.status.attempt if item.status else 0)


def _deltas(cells: Sequence[CellEvidence]) -> Mapping[RowKey, tuple[float | None, ...]]:
    rounds = sorted({item.cell.round for item in measured(cells)})
    values: dict[RowKey, dict[tuple[int, str], float]] = {}
    for item in measured(cells):
        for row in item.rows:
            if row.value is not None and not unusable(row):
                values.setdefault(row.key, {})[item.cell.round, item.cell.side.name] = row.value

    def delta(seen: Mapping[tuple[int, str], float], number: int) -> float | None:
        a, b = seen.get((number, "A")), seen.get((number, "B"))
        return math.log(b / a) if a and b else None

    return {key: tuple(delta(seen, number) for number in rounds) for key, seen in values.items()}


# --- telemetry --------------------------------------------------------------------------------------------------------


def _track(key: str, path: Path, points: int) -> Track | None:
    table = telemetry.columns(path)
    times = [float(text) for text in table["time_s"]]
    if not times:
        return None
    start, end = min(times), max(times)
    size = max(1, min(points, len(times)))
    places = [min(size - 1, int((at - start) / (end - start) * size)) if end > start else 0 for at in times]
    clock, temp, power = (_means(table[name], places, size) for name in SERIES)
    reasons = {name for text in set(table["throttle"]) for name in text.split("|")} - HARMLESS - {""}
    return Track(key.split("/")[-1], end - start, clock, temp, power, " ".join(sorted(reasons)))


def _means(texts: Sequence[str], places: Sequence[int], size: int) -> Series | None:
    sums, counts = [0.0] * size, [0] * size
    for text, place in zip(texts, places, strict=True):
        if text:
            sums[place] += float(text)
            counts[place] += 1
    if not any(counts):
        return None
    return tuple(total / number if number else None for total, number in zip(sums, counts, strict=True))


# --- code -------------------------------------------------------------------------------------------------------------


def _code(cells: Sequence[CellEvidence], places: Mapping[str, Path]) -> Code | None:
    first: dict[SideName, CellEvidence] = {
        item.cell.side.name: item for item in measured(cells) if item.cell.round == 1
    }
    a, b = (first[side].fingerprint if side in first else None for side in SIDES)
    if a is None or b is None:
        return None
    pairs = fingerprint.changed_pairs(a, b)
    diff_of, diff = "", list[str]()
    for own, _ in (pair for pair in pairs if fingerprint.first_stage([pair]) in ("ttir", "ttgir")):
        mine, theirs = (read_text(places[first[side].cell.key], own.id) for side in SIDES)
        if mine and theirs:
            diff_of, diff = own.id, _diff(mine, theirs)
            break
    return Code(
        totals=_totals(a, b),
        changed=tuple(_changed(own, other) for own, other in islice(pairs, VARIANTS)),
        more=max(0, len(pairs) - VARIANTS),
        diff_of=diff_of,
        diff=tuple(diff[:DIFF_LINES]),
        diff_cut=max(0, len(diff) - DIFF_LINES),
    )


def read_text(attempt: Path, variant: str) -> str:
    """The normalised ttgir that a round 1 cell kept of a variant, or "" where it kept none."""
    path = attempt / "ir" / f"{variant.replace('#', '-')}.ttgir.gz"
    return gzip.decompress(path.read_bytes()).decode("utf-8", "replace") if path.exists() else ""


def _diff(a: str, b: str) -> list[str]:
    """difflib is quadratic where texts have nothing in common: only the first lines of very long ones are compared."""
    mine, theirs = (text.splitlines()[:TEXT_LINES] for text in (a, b))
    return list(difflib.unified_diff(mine, theirs, "A", "B", lineterm="", n=3))


def _totals(a: Fingerprint, b: Fingerprint) -> tuple[tuple[str, int, int], ...]:
    mine, theirs = fingerprint.totals(a), fingerprint.totals(b)
    return tuple((name, mine[name], theirs[name]) for name in mine if name in theirs)


def _changed(a: Variant, b: Variant) -> Changed:
    names = [name for name in a.metrics if name in b.metrics and a.metrics[name] != b.metrics[name]]
    return Changed(
        id=a.id,
        kernel=a.kernel,
        signature=a.signature,
        options=a.options,
        stage=fingerprint.first_stage([(a, b)]) or "resources",
        metrics=tuple((name, a.metrics[name], b.metrics[name]) for name in names),
    )
