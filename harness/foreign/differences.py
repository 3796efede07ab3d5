"""Every row that is in no pair, named: by its table where the whole table lacks a partner, else one by one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.findings import OpVerdict
from harness.foreign.evidence import Placed
from harness.pairing import Orphan
from harness.records import RowKey, SideName

Where = Mapping[tuple[int, SideName], Placed]


def differences(placed: Sequence[Placed], ops: Mapping[str, OpVerdict]) -> Iterator[str]:
    """One line for each row, or table, of either side that enters no number."""
    where = {(each.at.round, each.at.side): each for each in placed}
    for op, found in ops.items():
        ledger = found.ledger
        if ledger is None:
            yield f"{op}: no row is paired: {found.reasons[0]}"
            continue
        yield from _orphans(ledger.orphans, where)
        for invalid in ledger.invalid:
            yield f"invalid{_at(where, invalid.round, invalid.side, invalid.key)}: {invalid.reason}"
        for mixed in ledger.mixed:
            yield f"two timers: {mixed.key}: A by {mixed.a}, B by {mixed.b}"
        for gap in ledger.gaps:
            yield f"in some rounds only: {gap.key}: {', '.join(map(str, gap.rounds))}"


def _orphans(orphans: Sequence[Orphan], where: Where) -> Iterator[str]:
    tables: dict[tuple[int, SideName, str, str], list[Orphan]] = {}
    for orphan in orphans:
        tables.setdefault((orphan.round, orphan.side, orphan.key.op, orphan.key.dtype), []).append(orphan)
    for (number, side, op, dtype), own in tables.items():
        rows = [key for key in where[number, side].places if (key.op, key.dtype) == (op, dtype)]
        if len(own) == len(rows) and len(rows) > 1:
            yield f"only {side}{_at(where, number, side, own[0].key, f'{op} {dtype}, all {len(rows)} rows')}"
        else:
            yield from (f"only {side}{_at(where, number, side, orphan.key)}" for orphan in own)


def _at(where: Where, number: int, side: SideName, key: RowKey, name: str = "") -> str:
    """` (round 3): mm float16 [[4,4]] at file:line`"""
    rounds = f" (round {number})" if len(where) > 2 else ""
    return f"{rounds}: {name or key} at {where[number, side].places[key]}"
