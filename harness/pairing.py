"""Pairing: which row of A stands against which row of B, round by round, and everything that stands alone.

Nothing is intersected silently: each row that enters no pair is named here with its reason. Must not know statistics.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from harness.caliber import measured
from harness.records import CellEvidence, Row, RowKey, SideName

#: Reasons of rows whose clock ran backwards, as the timer and the benchmark protocol write them.
TIMER_BACKWARDS = ("TIMER_INVALID: latency -", "TIMER_INVALID: a time of -")


class PairingError(ValueError):
    """Rows that cannot be paired without guessing; the message names both."""


@dataclass(frozen=True)
class Pair:
    """One row of A against the same row of B in one round. `a` and `b` in ms; `order` is +1 when A ran first."""

    key: RowKey
    round: int
    order: int
    a: float
    b: float
    timer: str  # what timed both: `direct l2=flushed repeat=5`

    @property
    def delta(self) -> float:
        """log b - log a: negative when B is faster."""
        return math.log(self.b) - math.log(self.a)


@dataclass(frozen=True)
class Orphan:
    """A valid row without a partner on the other side."""

    side: SideName
    round: int
    key: RowKey
    reason: str


@dataclass(frozen=True)
class Invalid:
    """A row whose value is no latency."""

    side: SideName
    round: int
    key: RowKey
    reason: str


@dataclass(frozen=True)
class Mixed:
    """Two rows that different timers timed: not a number."""

    round: int
    key: RowKey
    a: str
    b: str


@dataclass(frozen=True)
class Gap:
    """A key that is paired in some rounds only."""

    key: RowKey
    rounds: tuple[int, ...]  # in which it is paired


@dataclass(frozen=True)
class Ledger:
    """Rows seen and paired over all rounds, and each row that was not paired."""

    n_a: int
    n_b: int
    n_paired: int
    orphans: tuple[Orphan, ...]
    invalid: tuple[Invalid, ...]
    mixed: tuple[Mixed, ...]
    gaps: tuple[Gap, ...]
    deviations: tuple[str, ...]  # where the start order is not the planned one


@dataclass(frozen=True)
class Pairing:
    """The pairs of one op. `rounds` are those with both cells measured; `orders[i]` belongs to `rounds[i]`."""

    rounds: tuple[int, ...]
    orders: tuple[int, ...]
    keys: tuple[RowKey, ...]  # every key of either side, in first-seen order
    pairs: Mapping[RowKey, tuple[Pair, ...]]  # in round order
    ledger: Ledger

    def whole(self) -> tuple[RowKey, ...]:
        """The keys paired in every round and always by one timer: the one set that all numbers of the op use."""
        return tuple(key for key in self.keys if len(self.pairs.get(key, ())) == len(self.rounds) and self._one(key))

    def _one(self, key: RowKey) -> bool:
        return len({pair.timer for pair in self.pairs[key]}) == 1


def pair(evidences: Sequence[CellEvidence]) -> Pairing:
    """Pair the measured rows of one op by RowKey, per round. A duplicate key within a cell is a PairingError."""
    cells = {(item.cell.round, item.cell.side.name): item for item in measured(evidences)}
    rounds = sorted({number for number, _ in cells if {(number, "A"), (number, "B")} <= cells.keys()})
    found = [_Round(cells[number, "A"], cells[number, "B"]) for number in rounds]
    pairs: dict[RowKey, tuple[Pair, ...]] = {}
    for each in found:
        for item in each.pairs:
            pairs[item.key] = (*pairs.get(item.key, ()), item)
    whole = len(rounds)
    ledger = Ledger(
        n_a=sum(len(each.a) for each in found),
        n_b=sum(len(each.b) for each in found),
        n_paired=sum(len(each.pairs) for each in found),
        orphans=tuple(item for each in found for item in each.orphans),
        invalid=tuple(item for each in found for item in each.invalid),
        mixed=tuple(item for each in found for item in each.mixed),
        gaps=tuple(Gap(key, tuple(p.round for p in own)) for key, own in pairs.items() if len(own) < whole),
        deviations=tuple(_deviations([cells[number, side] for number in rounds for side in ("A", "B")])),
    )
    keys = tuple(dict.fromkeys(key for each in found for key in (*each.a, *each.b)))
    return Pairing(tuple(rounds), tuple(each.order for each in found), keys, pairs, ledger)


def used_timer(row: Row) -> str:
    """What timed a row, as far as two rows must agree on it."""
    return f"{row.timer} l2={row.l2} repeat={row.repeat}"


def unusable(row: Row) -> str:
    """Why the value of `row` is no latency, or ""."""
    if row.value is None:
        return row.reason or "no value and no reason given"
    if not math.isfinite(row.value) or row.value <= 0:
        return f"latency {row.value!r} ms is not positive" + (f" ({row.reason})" if row.reason else "")
    return ""


def timer_fault(row: Row) -> bool:
    """A negative time: the timer is broken for the whole cell. Zero may be a clamp (ROCm) and is the row's alone."""
    return row.reason.startswith(TIMER_BACKWARDS) or (row.value is not None and row.value < 0)


class _Round:
    """The two cells of one round, sorted into pairs and the rest."""

    def __init__(self, a: CellEvidence, b: CellEvidence) -> None:
        self.number = a.cell.round
        self.a, self.b = _unique(a), _unique(b)
        self.order = _order(a, b)
        self.pairs: list[Pair] = []
        self.orphans: list[Orphan] = []
        self.invalid: list[Invalid] = []
        self.mixed: list[Mixed] = []
        shifted = _shifted(self.a, self.b)
        for key in dict.fromkeys((*self.a, *self.b)):
            self._sort(key, shifted.get(key, ""))

    def _sort(self, key: RowKey, shifted: str) -> None:
        a, b = self.a.get(key), self.b.get(key)
        sides: tuple[tuple[SideName, Row | None], ...] = (("A", a), ("B", b))
        bad = [Invalid(side, self.number, key, unusable(row)) for side, row in sides if row and unusable(row)]
        if bad:
            self.invalid += bad
        elif a is None or b is None or shifted:
            reason = shifted or f"only {'A' if a else 'B'} has it"
            self.orphans += [Orphan(side, self.number, key, reason) for side, row in sides if row]
        elif used_timer(a) != used_timer(b):
            self.mixed.append(Mixed(self.number, key, used_timer(a), used_timer(b)))
        elif a.value is not None and b.value is not None:
            self.pairs.append(Pair(key, self.number, self.order, a.value, b.value, used_timer(a)))


def _unique(item: CellEvidence) -> dict[RowKey, Row]:
    rows: dict[RowKey, Row] = {}
    for number, row in enumerate(item.rows, 1):
        if row.key in rows:
            first = list(rows).index(row.key) + 1
            raise PairingError(
                f"{item.cell.key}: row {first} ({rows[row.key].value} ms) and row {number} ({row.value} ms) share the "
                f"key {row.key}; number repeats by `occurrence`"
            )
        rows[row.key] = row
    return rows


def _shifted(a: Iterable[RowKey], b: Iterable[RowKey]) -> dict[RowKey, str]:
    """Repeats whose count differs between the sides: which one is missing cannot be known, so none pairs."""
    counts = [Counter((key.dtype, key.shape, key.config) for key in side) for side in (a, b)]
    found = {}
    for key in (*a, *b):
        n_a, n_b = (count[key.dtype, key.shape, key.config] for count in counts)
        if n_a and n_b and n_a != n_b:
            found[key] = f"{n_a} repeats in A, {n_b} in B"
    return found


def _order(a: CellEvidence, b: CellEvidence) -> int:
    """+1 when A ran first: the plan's slot, unless the recorded starts say otherwise (a cell that was run again)."""
    planned = 1 if a.cell.slot < b.cell.slot else -1
    start_a, start_b = _start(a), _start(b)
    if start_a is None or start_b is None or start_a == start_b:
        return planned
    return 1 if start_a < start_b else -1


def _start(item: CellEvidence) -> datetime | None:
    return datetime.fromisoformat(item.status.started_at) if item.status and item.status.started_at else None


def _deviations(cells: Sequence[CellEvidence]) -> Iterator[str]:
    """Cells come as A, B of each round, in round order."""
    sides = list(zip(cells[::2], cells[1::2], strict=True))
    for a, b in sides:
        planned = 1 if a.cell.slot < b.cell.slot else -1
        if _order(a, b) != planned:
            first, other = ("A", "B") if planned == 1 else ("B", "A")
            yield f"round {a.cell.round}: planned {first} first, but {other} started first; the order that ran is used"
        between = abs(a.status.seq - b.status.seq) - 1 if a.status and b.status else 0
        if between > 0:
            yield f"round {a.cell.round}: {between} other cell(s) started between its two"
    for (early, _), (late, _) in pairwise(sides):
        start, following = _start(early), _start(late)
        if start and following and following < start:
            yield f"round {late.cell.round} started before round {early.cell.round}"
