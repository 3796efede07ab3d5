"""One op as compact JSON for the page's script. Pure: values in, text out.

Arrays instead of objects where there are thousands; the script names their columns. Percentages are of A's latency,
five significant digits: the page is for reading, verdict.json and report.tsv have every digit.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness import evidence_sections, verdict_sections
from harness.findings import OpVerdict, Reason, ShapeVerdict
from harness.html.details import Code, Detail, Track
from harness.records import CellEvidence
from harness.statistics import percent

Plain = Any  # what json.dumps takes


def op_json(found: OpVerdict, cells: Sequence[CellEvidence], detail: Detail) -> str:
    """Everything that the page shows of one op when it is opened."""
    estimate, ledger = found.estimate, found.ledger
    data = {
        "op": found.op,
        "quantity": found.quantity,
        "total": None
        if estimate is None
        else [_percent(estimate.delta), _percent(estimate.low), _percent(estimate.high), _percent(found.margin)],
        "rounds": [[each.round, each.order, _percent(each.delta)] for each in found.rounds],
        "reasons": _reasons(found.reasons),
        "shapes": [_shape(shape, detail) for shape in found.shapes],
        "gate": [found.gate.verdict, found.gate.stage, found.gate.reason] if found.gate else None,
        "code": _code(detail.code),
        "tracks": [_track(track) for track in detail.tracks],
        "untracked": detail.untracked,
        "events": _events(cells),
        "cells": [_cell(item) for item in cells],
        "paired": [ledger.n_a, ledger.n_b, ledger.n_paired] if ledger else None,
        "order": list(ledger.deviations) if ledger else [],
    }
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _shape(shape: ShapeVerdict, detail: Detail) -> list[Plain]:
    key, found = shape.key, shape.estimate
    number = f" #{key.occurrence}" if key.occurrence else ""
    row: list[Plain] = [key.dtype, f"{key.shape}{number}{f' {key.config}' if key.config else ''}", shape.verdict.value]
    row += [_short(shape.a_ms), _short(shape.b_ms)]
    row += [_percent(value) for value in ((found.delta, found.low, found.high) if found else (None, None, None))]
    row += [f"{found.same_sign}/{found.rounds}" if found else "", _short(shape.p_adjusted), _percent(shape.margin)]
    row += ["; ".join(map(str, shape.metrics)), _why(shape.reasons)]
    return [*row, [_percent(delta) for delta in detail.deltas.get(key, ())]]


def _why(reasons: Sequence[Reason]) -> str:
    """Less what the row's own columns say."""
    return "; ".join(str(reason) for reason in reasons if reason.code not in verdict_sections.EVIDENT)


def _reasons(reasons: Sequence[Reason]) -> list[list[str]]:
    return [[reason.code, reason.message] for reason in reasons]


def _code(code: Code | None) -> Plain:
    if code is None:
        return None
    return {
        "totals": code.totals,
        "changed": [[each.kernel, each.options, each.stage, each.metrics, each.signature] for each in code.changed],
        "more": code.more,
        "of": code.diff_of,
        "diff": "\n".join(code.diff),
        "cut": code.diff_cut,
    }


def _track(track: Track) -> list[Plain]:
    series = ([_short(each) for each in values] if values else None
              for values in (track.clock_mhz, track.temp_c, track.power_w))  # fmt: skip
    return [track.cell, round(track.seconds, 1), *series, track.throttle]


def _cell(item: CellEvidence) -> list[Plain]:
    name, ended = item.cell.key.split("/")[-1], item.status
    if ended is None:
        return [name, "missing", None, "", None]
    return [name, ended.outcome.value, round(ended.elapsed_s, 1), ended.reason, ended.attempt]


def _events(cells: Sequence[CellEvidence]) -> list[list[str]]:
    """Code, the cells with their counts, and the first one in words."""
    where: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for item in cells:
        for event in item.events:
            text = " ".join([event.row, *(f"{name}={value}" for name, value in event.detail.items())])
            first.setdefault(event.code, text.strip()[:300])
        found: Counter[str] = evidence_sections.events(item)
        for code, count in sorted(found.items()):
            where.setdefault(code, []).append(f"{item.cell.key.split('/')[-1]}: {count}")
    return [[code, ", ".join(places), first.get(code, "")] for code, places in where.items()]


def _percent(value: float | None) -> float | None:
    return None if value is None else _short(percent(value))


def _short(value: float | None) -> float | int | None:
    if value is None:
        return None
    found = float(f"{value:.5g}")
    return int(found) if found.is_integer() else found
