"""Notes: what qualifies the verdict of an op without deciding it: noise, order, fallbacks, shapes and metrics left out.

Values in, reasons out; must not weigh an effect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from harness import statistics
from harness.caliber import measured
from harness.exact import Metrics
from harness.findings import Reason, ShapeVerdict, SideNoise
from harness.pairing import Pairing
from harness.records import CellEvidence, Marker, RowKey
from harness.screening import marker_count
from harness.statistics import Array, Estimate

#: Round spread over side noise (variances) from which the rounds no longer look like independent noise of two sides.
INTERACTION = 4.0
INTERACTION_ROUNDS = 6
#: An event of round 1 (plugins/correctness.py), and the note that no verdict drops.
RESULT_DIFFERS = "RESULT_DIFFERS"


def side_noise(pairing: Pairing, keys: Sequence[RowKey], found: Estimate) -> SideNoise:
    """Spread of either side's own level, and of the rounds against it."""
    order, rounds = np.array(pairing.orders, dtype=float), np.array(pairing.rounds, dtype=float)
    a, b = (statistics.side_noise(_levels(pairing, keys, side), order, rounds) for side in ("a", "b"))
    total = (a or 0.0) ** 2 + (b or 0.0) ** 2
    return SideNoise(a, b, found.sd**2 / total if found.sd is not None and total else None)


def design(pairing: Pairing, found: Estimate, noise: SideNoise) -> list[Reason]:
    """Order and interaction: what the design of the rounds could not do."""
    notes = []
    a_first, b_first = found.a_first, found.rounds - found.a_first
    if a_first != b_first and found.slot is not None:
        text = f"A first in {a_first} rounds, B first in {b_first}; the slot term is fitted, not balanced out"
        notes.append(Reason("ORDER_UNBALANCED", text))
    if pairing.ledger.deviations:
        first, *more = pairing.ledger.deviations
        notes.append(Reason("ORDER_DEVIATED", first + (f"; and {len(more)} more" if more else "")))
    if noise.ratio is not None and noise.ratio > INTERACTION and found.rounds >= INTERACTION_ROUNDS:
        text = f"round spread^2 is {noise.ratio:.1f} x the sides' noise^2: replay holes, drift or two modes?"
        notes.append(Reason("INTERACTION", text))
    return notes


def left_out(shapes: Sequence[ShapeVerdict]) -> list[Reason]:
    """Shapes that are in no number of the op."""
    left_out = [shape for shape in shapes if shape.estimate is None]
    if not left_out:
        return []
    names = "; ".join(f"{shape.key} ({shape.reasons[0].code})" for shape in left_out[:3])
    more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
    return [Reason("SHAPES_LEFT_OUT", f"{len(left_out)} of {len(shapes)} shapes are in no number: {names}{more}")]


def fallbacks(cells: Sequence[CellEvidence]) -> list[Reason]:
    """Rows that a captured run timed directly: their L2 state and call overhead are not a graph's."""
    counts = {"A": 0, "B": 0}
    for item in cells:
        if item.cell.round >= 1:
            counts[item.cell.side.name] += marker_count(item, Marker.BENCHMARK_DIRECT_NO_CUDAGRAPH)
    if not any(counts.values()):
        return []
    return [Reason("FALLBACK_TIMER", f"rows timed directly, not by graph: A {counts['A']}, B {counts['B']}")]


def results(cells: Sequence[CellEvidence]) -> list[Reason]:
    """Rows whose result is not the reference's: a kernel that computes something else has no latency to compare."""
    texts = []
    for item in measured(cells):
        wrong = [event for event in item.events if event.code == RESULT_DIFFERS]
        if wrong:
            first = " ".join(f"{name}={value}" for name, value in wrong[0].detail.items())
            texts.append(f"{item.cell.key}: {len(wrong)} row(s) unlike torch's result; {wrong[0].row}: {first}")
    return [Reason(RESULT_DIFFERS, text) for text in texts]


def metrics(metrics: Metrics) -> list[Reason]:
    """Exact metrics that cannot be totalled."""
    notes = []
    if metrics.unstable:
        more = f" and {len(metrics.unstable) - 1} more" if len(metrics.unstable) > 1 else ""
        notes.append(Reason("METRIC_UNSTABLE", f"{metrics.unstable[0]}{more}; left out of the totals"))
    if metrics.one_sided:
        notes.append(Reason("METRIC_ONE_SIDED", f"on one side only: {', '.join(metrics.one_sided)}"))
    return notes


def _levels(pairing: Pairing, keys: Sequence[RowKey], side: str) -> Array:
    """(N,) mean over the shapes of one side's log latency."""
    logs = [[math.log(getattr(pair, side)) for pair in pairing.pairs[key]] for key in keys]
    levels: Array = np.array(logs, dtype=float).mean(axis=0)
    return levels
