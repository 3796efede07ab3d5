"""Report sections about the verdicts: per op, per shape, over all ops, and their reasons as footnotes.

One pure function each: values in, markdown out. Must not compute a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.findings import CampaignVerdict, OpLine, OpVerdict, ShapeVerdict
from harness.grid import ABSENT, count, flat, grid, signed, signless
from harness.statistics import Estimate

#: Reasons that the columns of a shape's line already say.
EVIDENT = ("EFFECT", "EQUIVALENT", "AA_NOISE")


def verdicts(ops: Sequence[OpVerdict], campaign: CampaignVerdict) -> str:
    """One line per op; the number in brackets is its footnote."""
    lines = [_op_line(number, op, line) for number, (op, line) in enumerate(zip(ops, campaign.ops, strict=True), 1)]
    titles = (
        "op",
        "verdict",
        "B vs A",
        "95 % CI",
        "HL",
        "[min, max]",
        "same sign",
        "noise A / B (ratio)",
        "spread",
        "slot",
    )
    return "## Verdicts\n\n" + grid((*titles, "p adjusted", "rows A / B / paired", "gate", "metrics A -> B"), lines)


def corpus(campaign: CampaignVerdict) -> str:
    """What all ops together say."""
    balance, mean, floor = campaign.balance, campaign.geomean, campaign.noise_floor
    lines = [
        f"- claims: {balance.faster} faster, {balance.slower} slower; "
        f"sign of all deltas: {balance.negative} negative, {balance.positive} positive"
    ]
    if mean:
        lines.append(
            f"- geometric mean: {signed(mean.delta)} over {count(mean.ops, 'op')} "
            f"({count(mean.shapes, 'paired shape')}), ops from {signed(mean.smallest)} to {signed(mean.largest)}"
        )
    if floor:
        lines.append(f"- in-campaign controls: {floor}")
    lines += [f"- {reason}" for reason in campaign.reasons]
    return "## All ops together\n\n" + "\n".join(lines)


def shapes(op: OpVerdict) -> str:
    """Every shape of one op, collapsed."""
    kinds = Counter(shape.verdict.value for shape in op.shapes)
    title = f"{op.op}: {count(len(op.shapes), 'shape')} ({', '.join(f'{n} {kind}' for kind, n in kinds.items())})"
    titles = ("dtype", "shape", "verdict", "A ms", "B ms", "B vs A", "95 % CI", "HL", "[min, max]", "same sign")
    body = grid((*titles, "p adjusted", "margin", "metrics A -> B", "why"), map(_shape_line, op.shapes))
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def footnotes(ops: Sequence[OpVerdict], campaign: CampaignVerdict) -> str:
    """The reasons of every verdict, numbered as in the table of verdicts."""
    lines = []
    for number, (op, line) in enumerate(zip(ops, campaign.ops, strict=True), 1):
        lines.append(f"[{number}] {op.op}: {line.verdict.value}")
        lines += [f"   - {flat(str(reason))}" for reason in (*line.reasons, *op.reasons)]
    return "## Reasons\n\n" + "\n".join(f"- {line}" if line.startswith("[") else f" {line}" for line in lines)


def _op_line(number: int, op: OpVerdict, line: OpLine) -> tuple[str, ...]:
    found = op.estimate
    spread, slot = (signless(found.sd), signed(found.slot)) if found else (ABSENT, ABSENT)
    verdict = f"**{line.verdict.value}** [{number}]"
    rows, p = _rows_paired(op), _p(line.p_adjusted)
    return (op.op, verdict, *_effect(found), _noise(op), spread, slot, p, rows, _gate(op), _metrics(op))


def _effect(found: Estimate | None) -> tuple[str, str, str, str, str]:
    """B vs A, confidence interval, Hodges-Lehmann, [min, max], same sign."""
    if found is None:
        return ABSENT, ABSENT, ABSENT, ABSENT, ABSENT
    if found.rounds == 1:
        return signed(found.delta), ABSENT, ABSENT, ABSENT, ABSENT
    interval = ABSENT if found.low is None else f"[{signed(found.low)}, {signed(found.high)}]"
    spread = f"[{signed(found.smallest)}, {signed(found.largest)}] ({found.range_confidence:.1%})"
    return signed(found.delta), interval, signed(found.hodges_lehmann), spread, f"{found.same_sign}/{found.rounds}"


def _noise(op: OpVerdict) -> str:
    if op.noise is None or op.noise.a is None:
        return ABSENT
    ratio = "" if op.noise.ratio is None else f" ({op.noise.ratio:.2g})"
    return f"{signless(op.noise.a)} / {signless(op.noise.b)}{ratio}"


def _p(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2g}"


def _rows_paired(op: OpVerdict) -> str:
    return f"{op.ledger.n_a} / {op.ledger.n_b} / {op.ledger.n_paired}" if op.ledger else ABSENT


def _gate(op: OpVerdict) -> str:
    return " ".join(filter(None, (op.gate.verdict, op.gate.stage))) if op.gate else ABSENT


def _metrics(op: OpVerdict) -> str:
    changed = [str(total) for total in op.metrics if total.rows_changed]
    return "; ".join(changed) or (f"{len(op.metrics)} equal" if op.metrics else ABSENT)


def _shape_line(shape: ShapeVerdict) -> tuple[str, ...]:
    key = shape.key
    where = f"{key.shape}{f' #{key.occurrence}' if key.occurrence else ''}{f' {key.config}' if key.config else ''}"
    levels = [ABSENT if value is None else f"{value:.6g}" for value in (shape.a_ms, shape.b_ms)]
    changes = "; ".join(map(str, shape.metrics))
    why = "; ".join(str(reason) for reason in shape.reasons if reason.code not in EVIDENT)
    judged = (*_effect(shape.estimate), _p(shape.p_adjusted), signless(shape.margin))
    return (key.dtype, where, shape.verdict.value, *levels, *judged, changes, why)
