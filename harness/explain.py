"""Explain: the whole derivation of one verdict, of an op or of one of its shapes, as text.

Pure: everything comes from the evidence and from the very functions that judge, so that it cannot say anything else.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness import caliber, decision, rules, screening, statistics
from harness import derivation_sections as sections
from harness.findings import OpLine, OpVerdict, ShapeVerdict
from harness.grid import count, flat
from harness.margin import Bar, resolutions
from harness.noise import Noise
from harness.pairing import Pairing
from harness.records import CellEvidence, Gate, Judge, Refusal, RowKey
from harness.statistics import Array, words
from harness.verdict import clock_ratios, judge_op, op_deltas

NEAR = 5


class UnknownName(Refusal):
    """No such op or shape here, or several; the message names the near ones."""


@dataclass(frozen=True)
class Source:
    """All that a verdict is derived from. `on_file`: what verdict.json says, None where there is none."""

    campaign: str
    cells: tuple[CellEvidence, ...]
    gate: Gate | None
    judge: Judge
    clocks: Mapping[str, float]
    noise: Noise | None
    on_file: OpVerdict | None
    line: OpLine | None = None  # what all ops of the campaign together make of it


def explain(source: Source, shape: str = "") -> str:
    """The derivation of an op's verdict, or of the one shape that `shape` names; UnknownName otherwise."""
    found = judge_op(source.cells, source.gate, source.judge, source.clocks, noise=source.noise)
    screened = screening.screen(source.cells, source.gate, source.judge)
    pairing = None if isinstance(screened, screening.Refusal) else screened.pairing
    key = _key(source, shape)
    chosen = next((each for each in found.shapes if each.key == key), None)
    parts = [_head(source, found, chosen), _cells(source), _caliber(source), _gate(source.gate), _screening(source)]
    parts += [_rows(source.cells, key)] if key else []
    if pairing and chosen:
        parts += _shape(source, found, chosen, pairing)
    elif pairing:
        parts += _op(source, found, pairing)
    parts.append(["reasons", *(f"  {flat(str(reason))}" for reason in (chosen or found).reasons)])
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def one_of(name: str, names: Sequence[str], what: str) -> str:
    """The one of `names` that is `name` or contains it; UnknownName with the near ones when none or several do."""
    hits = [each for each in names if each == name] or [each for each in names if name in each]
    if len(hits) == 1:
        return hits[0]
    if hits:
        more = f" and {len(hits) - NEAR} more" if len(hits) > NEAR else ""
        raise UnknownName(f"{what} {name!r} is not unique: {', '.join(hits[:NEAR])}{more}")
    near = difflib.get_close_matches(name, names, NEAR, 0.3) or names[:NEAR]
    raise UnknownName(f"no {what} {name!r}; near: {', '.join(near) or 'none, nothing was measured'}")


def _key(source: Source, shape: str) -> RowKey | None:
    """From the rows themselves: an op that got no verdict has rows to look at too."""
    if not shape:
        return None
    by_name = {str(row.key): row.key for item in source.cells for row in item.rows}
    return by_name[one_of(shape, list(by_name), f"shape of {source.cells[0].cell.op}")]


def _head(source: Source, found: OpVerdict, chosen: ShapeVerdict | None) -> list[str]:
    name, verdict = (str(chosen.key), chosen.verdict) if chosen else (found.op, found.verdict)
    lines = [f"{name} in {source.campaign}: {verdict.value}", f"{found.quantity}; {statistics.DIRECTION}"]
    if source.line and not chosen:
        across = f", p {source.line.p_adjusted:.3g} adjusted across ops" if source.line.p_adjusted is not None else ""
        lines.append(f"among all ops of the campaign: {source.line.verdict.value}{across}")
        lines += [f"  {reason}" for reason in source.line.reasons]
    if source.on_file is None:
        return [*lines, "no verdict.json: this was derived now, from the files"]
    same = "this derivation gives the same" if source.on_file == found else "THIS DERIVATION DIFFERS from it"
    return [*lines, f"verdict.json says {source.on_file.verdict.value} for {found.op}; {same}"]


def _cells(source: Source) -> list[str]:
    lines = ["cells"]
    for item in source.cells:
        ended, key = item.status, item.cell.key.split("/")[1]
        if ended is None:
            lines.append(f"  {key:6} missing")
            continue
        rows = f"{ended.success} of {'?' if ended.rows_expected is None else ended.rows_expected} rows"
        clock = source.clocks.get(item.cell.key)
        facts = [rows, f"attempt {ended.attempt}", f"{ended.elapsed_s:.1f} s from {ended.started_at}"]
        facts += [f"SM clock {clock:.0f} MHz"] if clock else []
        facts += [f"{code} {number}" for code, number in ended.markers.items() if number]
        facts += [flat(ended.reason)] if ended.reason else []
        lines.append(f"  {key:6} {ended.outcome.value:10} {', '.join(facts)}")
    return lines


def _caliber(source: Source) -> list[str]:
    axes, refused = caliber.table(source.cells), caliber.compare(source.cells)
    equal = sum(line.state == "equal" for line in axes)
    lines = [f"caliber: {equal} of {len(axes)} axes equal, {len(refused)} refused"]
    lines += [f"  {line.axis}: A {line.a}, B {line.b} ({line.state})" for line in axes if line.state != "equal"]
    return lines + [f"  {each}" for each in refused]


def _gate(gate: Gate | None) -> list[str]:
    if gate is None:
        return ["gate: none on file"]
    first = f", first in {gate.stage}" if gate.stage else ""
    counts = f"{gate.variants_changed} of {gate.variants_compared} variants changed{first}"
    return [f"gate: {gate.verdict}, {counts}" + (f"; {flat(gate.reason)}" if gate.reason else "")]


def _screening(source: Source) -> list[str]:
    """The checks before any number, up to the one that refused."""
    lines = ["screening, in order"]
    for verdict, check in screening.CHECKS:
        name = check.__name__.strip("_").replace("_", " ")
        reasons = tuple(check(source.cells, source.gate))
        lines.append(f"  {name}: {f'{verdict.value}, which ends it' if reasons else 'nothing'}")
        if reasons:
            return lines
    return lines


def _op(source: Source, found: OpVerdict, pairing: Pairing) -> list[list[str]]:
    keys = pairing.whole()
    if not keys or found.estimate is None:
        return [_shapes(found)]
    deltas = op_deltas(pairing, keys)
    a, b = (np.exp(np.mean([[np.log(getattr(p, s)) for p in pairing.pairs[k]] for k in keys], axis=0)) for s in "ab")
    lines = [f"rounds: geometric means over {count(len(keys), 'shape')} paired in every round"]
    lines += sections.rounds(pairing, deltas, [f"{x:>12.6g} ms {y:>12.6g} ms" for x, y in zip(a, b, strict=True)])
    tick = float(np.mean(resolutions(pairing, keys)))
    limit = Bar(found.margin or 0.0, tick, source.judge.q, found.margin_source)
    case = rules.Case(found.estimate, deltas, found.estimate.p, limit)
    clock = _cycles(source, pairing, deltas[None, :], [limit], 0)
    return [
        lines,
        sections.estimate(case, None),
        sections.decided(case, found.verdict, found.reasons),
        clock,
        _shapes(found),
    ]


def _shape(source: Source, found: OpVerdict, chosen: ShapeVerdict, pairing: Pairing) -> list[list[str]]:
    keys = pairing.whole()
    if chosen.estimate is None:
        return []
    index = keys.index(chosen.key)
    deltas, ticks = decision.matrix(pairing, keys), resolutions(pairing, keys)
    by_key = {each.key: each for each in found.shapes}
    limits = [
        Bar(by_key[key].margin or 0.0, tick, source.judge.q, by_key[key].margin_source)
        for key, tick in zip(keys, ticks, strict=True)
    ]
    case = rules.Case(chosen.estimate, deltas[index], chosen.p_adjusted, limits[index], found.family_p)
    lines = ["rounds", *sections.rounds(pairing, deltas[index], [""] * len(pairing.rounds))]
    clock = _cycles(source, pairing, deltas, limits, index)
    return [
        lines,
        sections.estimate(case, len(keys)),
        sections.decided(case, chosen.verdict, chosen.reasons),
        clock,
    ]


def _rows(cells: Sequence[CellEvidence], key: RowKey) -> list[str]:
    """Each row of the shape as its cell wrote it, valid or not."""
    lines = ["rows"]
    for item in cells:
        for row in (row for row in item.rows if row.key == key):
            value = "no value" if row.value is None else f"{row.value!r} ms"
            how = f"timer {row.timer}, l2 {row.l2}, repeat {row.repeat}" + (f", {row.reason}" if row.reason else "")
            note = "recorded, never counted: " if item.cell.round == 0 else ""
            lines.append(f"  {item.cell.key.split('/')[1]:6} {note}{value} ({how})")
    return lines


def _cycles(source: Source, pairing: Pairing, deltas: Array, limits: Sequence[Bar], index: int) -> list[str]:
    ratios = clock_ratios(source.cells[0].cell.op, pairing, source.clocks)
    if ratios is None:
        return ["clock check: none, telemetry does not cover every measured cell"]
    weighed = decision.weigh(deltas + ratios, pairing.orders, limits)
    seen = rules.interval(weighed.found[index], weighed.p[index])
    return [f"clock check, in cycles (latency x SM clock): {weighed.verdicts[index].value}, {seen}"]


def _shapes(found: OpVerdict) -> list[str]:
    lines = ["shapes"]
    for each in found.shapes:
        said = words(each.estimate.delta) if each.estimate else flat(str(each.reasons[0]))
        lines.append(f"  {each.key}: {each.verdict.value}, {said}")
    return lines
