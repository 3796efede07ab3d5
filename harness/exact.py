"""Exact metrics of rows (convert_layout, registers, spills, code bytes): compared as integers, never tested.

A metric that varies between the rounds of one side is no exact value and is named instead. Must not know latencies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.caliber import measured
from harness.records import CellEvidence, RowKey, SideName

#: (row, metric) -> the values that one side's rounds showed
Seen = Mapping[tuple[RowKey, str], tuple[int, ...]]


@dataclass(frozen=True)
class MetricChange:
    """One metric of one row that differs between the sides."""

    metric: str
    a: int
    b: int

    def __str__(self) -> str:
        return f"{self.metric} {self.a} -> {self.b}"


@dataclass(frozen=True)
class MetricTotal:
    """One metric summed over the rows that have it, stable, on both sides."""

    metric: str
    a: int
    b: int
    rows: int
    rows_changed: int

    def __str__(self) -> str:
        return f"{self.metric} {self.a} -> {self.b}"


@dataclass(frozen=True)
class Unstable:
    """A metric whose values differ between the rounds of one side."""

    side: SideName
    key: RowKey
    metric: str
    values: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.metric} of {self.key} is {' or '.join(map(str, self.values))} in the rounds of {self.side}"


@dataclass(frozen=True)
class Metrics:
    """The exact comparison of one op."""

    totals: tuple[MetricTotal, ...]
    changes: Mapping[RowKey, tuple[MetricChange, ...]]
    unstable: tuple[Unstable, ...]
    one_sided: tuple[str, ...]  # metrics that rows of one side have and their partners lack


def compare_metrics(evidences: Sequence[CellEvidence]) -> Metrics:
    """Compare the metrics of the rows that both sides measured."""
    a, b = (_seen(evidences, side) for side in ("A", "B"))
    rows_a, rows_b = (_keys(evidences, side) for side in ("A", "B"))
    both = [place for place in a if place in b]
    unstable = [Unstable("A", *place, a[place]) for place in both if len(a[place]) > 1]
    unstable += [Unstable("B", *place, b[place]) for place in both if len(b[place]) > 1]
    stable = [place for place in both if len(a[place]) == len(b[place]) == 1]
    lacking = [metric for key, metric in a.keys() ^ b.keys() if key in rows_a and key in rows_b]
    changes: dict[RowKey, tuple[MetricChange, ...]] = defaultdict(tuple)
    for key, metric in stable:
        if a[key, metric] != b[key, metric]:
            changes[key] += (MetricChange(metric, a[key, metric][0], b[key, metric][0]),)
    return Metrics(_totals(stable, a, b), dict(changes), tuple(unstable), tuple(sorted(set(lacking))))


def _keys(evidences: Sequence[CellEvidence], side: str) -> set[RowKey]:
    return {row.key for item in measured(evidences) if item.cell.side.name == side for row in item.rows}


def _seen(evidences: Sequence[CellEvidence], side: str) -> Seen:
    values: dict[tuple[RowKey, str], tuple[int, ...]] = {}
    for item in measured(evidences):
        for row in item.rows if item.cell.side.name == side else ():
            for metric, value in row.metrics.items():
                known = values.get(place := (row.key, metric), ())
                if value not in known:
                    values[place] = (*known, value)
    return values


def _totals(stable: Sequence[tuple[RowKey, str]], a: Seen, b: Seen) -> tuple[MetricTotal, ...]:
    places: dict[str, list[tuple[RowKey, str]]] = defaultdict(list)
    for place in stable:
        places[place[1]].append(place)
    return tuple(
        MetricTotal(
            metric=metric,
            a=sum(a[place][0] for place in own),
            b=sum(b[place][0] for place in own),
            rows=len(own),
            rows_changed=sum(a[place] != b[place] for place in own),
        )
        for metric, own in sorted(places.items())
    )
