"""Which of several sources of one run its rows are read from, and whether the others agree.

The console rounds to 1e-6 ms, so a record is preferred; two sources that disagree beyond that are two runs.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from harness.foreign.entries import KINDS, Entry, ForeignError, Kind, Table, joined

#: Half of the console's last digit, and the error of a double beside it.
ROUNDING_MS = 5.0001e-7
#: A result file is written when its session ends, so at most this much before the last line of a log of it.
OLDER = timedelta(seconds=60)

Origin = tuple[Path, Kind]


@dataclass(frozen=True)
class Source:
    """The tables of one kind in one file."""

    path: Path
    kind: Kind
    tables: tuple[Table, ...]

    @property
    def origin(self) -> Origin:
        return self.path, self.kind


@dataclass(frozen=True)
class Chosen:
    """One table per (op, dtype), the places they are from, and what to keep in mind."""

    tables: tuple[Table, ...]
    used: tuple[str, ...]
    warnings: tuple[str, ...]


def choose(found: Sequence[Source], torn: bool, started: datetime | None) -> Chosen:
    """The best source of each table; the others must agree with it. `started`: the process did, if known."""
    by_name: dict[tuple[str, str], dict[Kind, tuple[Source, Table]]] = defaultdict(dict)
    for source in found:
        for name, own in _by_name(source.tables).items():
            _once(by_name[name], source, joined(own))
    live = any(source.kind != "record json" for source in found)
    tables, rows, agreeing, stale = [], Counter[Origin](), Counter[Origin](), []
    for (op, dtype), kinds in by_name.items():
        (source, best), *others = (kinds[kind] for kind in KINDS if kind in kinds)
        if live and kinds.keys() == {"record json"}:
            stale.append(f"{op} {dtype}")
            continue
        tables.append(best)
        rows[source.origin] += len(best.entries)
        for other, table in others:
            _agree(best, table, torn)
            agreeing[other.origin] += len(table.entries)
    used = [f"{count} rows from {_named(*origin)}" for origin, count in rows.items()]
    used += [f"{count} rows agree in {_named(*origin)}" for origin, count in agreeing.items()]
    return Chosen(tuple(tables), tuple(used), (*_left_out(stale), *_dated(found, rows, live, started)))


def _by_name(tables: Sequence[Table]) -> Mapping[tuple[str, str], list[Table]]:
    found: dict[tuple[str, str], list[Table]] = defaultdict(list)
    for table in tables:
        found[table.name].append(table)
    return found


def _once(kinds: dict[Kind, tuple[Source, Table]], source: Source, table: Table) -> None:
    if source.kind in kinds:
        raise ForeignError(
            f"{table.op} {table.dtype} is in two files of one run: {kinds[source.kind][1].place} and {table.place}; "
            "a run is one process, take one of them out"
        )
    kinds[source.kind] = (source, table)


def _agree(best: Table, other: Table, torn: bool) -> None:
    """Both hold the same rows in the order they ran."""
    if len(best.entries) != len(other.entries) and not torn:
        raise ForeignError(
            f"two sources of one run disagree: {len(best.entries)} rows of {best.op} {best.dtype} at {best.place}, "
            f"{len(other.entries)} at {other.place}; one of them is another run's"
        )
    exact = "console" not in (best.kind, other.kind)
    for one, two in zip(best.entries, other.entries, strict=False):
        if not _equal(one, two, exact):
            raise ForeignError(
                f"two sources of one run disagree: {best.op} {best.dtype} {one.shape} is {_ms(one)} at {one.place} "
                f"and {_ms(two)} at {two.place}; one of them is another run's"
            )


def _equal(one: Entry, two: Entry, exact: bool) -> bool:
    if one.value is None or two.value is None or not math.isfinite(one.value) or not math.isfinite(two.value):
        return str(one.value) == str(two.value)
    return abs(one.value - two.value) <= (0.0 if exact else ROUNDING_MS)


def _ms(entry: Entry) -> str:
    return "absent" if entry.value is None else f"{entry.value!r} ms"


def _named(path: Path, kind: Kind) -> str:
    return f"{path} ({kind}{', 6 decimals' if kind == 'console' else ''})"


def _left_out(stale: Sequence[str]) -> list[str]:
    if not stale:
        return []
    names = ", ".join(stale)
    return [f"left out, in the result file only, which --record json merges into an older one: {names}"]


def _dated(found: Sequence[Source], used: Counter[Origin], live: bool, started: datetime | None) -> list[str]:
    """A result file's time against the run's own: it may be of another run, or hold one."""
    results = [source for source in found if source.kind == "record json"]
    logs = [_modified(source.path) for source in found if source.kind != "record json"]
    warnings = []
    for source in results:
        written = _modified(source.path)
        if logs and written < max(logs) - OLDER:
            warnings.append(f"{source.path} is older than the log of its run")
        elif started and written < started:
            warnings.append(f"{source.path} was written before its run started ({started.isoformat()})")
        elif not live and used[source.origin]:
            warnings.append(f"{source.path}: no log confirms it; --record json merges into an existing file")
    return warnings


def _modified(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
