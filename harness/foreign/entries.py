"""What a file of a foreign run says: entries in tables, each with its place, none of it trusted yet. Values only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.records import Refusal

#: Where a table was found, the best source first. Only the console rounds (to 1e-6 ms).
Kind = Literal["record log", "record json", "console"]
KINDS: tuple[Kind, ...] = ("record log", "record json", "console")
DECIMAL_COMMA = re.compile(r"(?<![\d,])\d+,\d+")


class ForeignError(Refusal):
    """A foreign file that cannot be read without guessing; the message has the file and the line."""


@dataclass(frozen=True)
class Entry:
    """One latency of the operator under test, in ms. FlagGems' speedup compares it with torch and is never read."""

    shape: str  # shape_text
    value: float | None
    reason: str  # why there is no value, or ""
    place: str  # file:line


@dataclass(frozen=True)
class Table:
    """The entries of one (op, dtype), in the order they ran."""

    op: str
    dtype: str
    mode: str
    level: str
    kind: Kind
    place: str
    entries: tuple[Entry, ...]

    @property
    def name(self) -> tuple[str, str]:
        """What tables of two sources share."""
        return self.op, self.dtype

    def numbered(self) -> Iterator[tuple[str, int, Entry]]:
        """Each entry with its shape and how often that shape came before: BLAS layouts share one shape text."""
        seen: dict[str, int] = {}
        for entry in self.entries:
            seen[entry.shape] = seen.get(entry.shape, -1) + 1
            yield entry.shape, seen[entry.shape], entry


def joined(tables: Sequence[Table]) -> Table:
    """The tables of one name in one file, as one: FlagGems prints a table per test, and tests may share an op."""
    first = tables[0]
    entries = tuple(entry for table in tables for entry in table.entries)
    return Table(first.op, first.dtype, first.mode, first.level, first.kind, first.place, entries)


def dtype_text(dtype: str) -> str:
    """`torch.float16` -> `float16`, as rows have it."""
    return dtype.removeprefix("torch.")


def shape_text(detail: Any) -> str:
    """record_shapes' detail as compact JSON, the form of Row.shape: tuples as lists, dtypes as bare names."""
    return json.dumps(_shape(detail), separators=(",", ":"), ensure_ascii=False)


def _shape(detail: Any) -> Any:
    if isinstance(detail, Mapping):
        return {str(key): _shape(value) for key, value in detail.items()}
    if isinstance(detail, (tuple, list)):
        return [_shape(item) for item in detail]
    return dtype_text(detail) if isinstance(detail, str) else detail
