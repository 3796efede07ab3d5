"""Noise: how far identical sides move apart, from a declared A/A campaign, and when that may widen another's margin.

Pure: verdicts and evidence in, `noise.json` out; must not know where a campaign lies. Sizes are log ratios.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from harness.caliber import measured
from harness.findings import OpVerdict, ShapeVerdict
from harness.grid import count, signless
from harness.margin import Floor
from harness.moderation import MIN_SHAPES
from harness.records import Cell, CellEvidence, ExitCode, Refusal

#: What two campaigns must share for one's noise to speak for the other. Not the device's UUID, the code or the shapes.
AXES = (
    "epoch", "backend", "target", "device_model", "driver", "timer", "l2", "level", "direct_repeat", "warmup_ms",
    "rep_ms", "tuner_cache", "provider",
)  # fmt: skip


class NoiseRefused(Refusal):
    """An A/A campaign whose noise does not speak for this one."""

    code = ExitCode.CALIBER


@dataclass(frozen=True)
class Spread:
    """|delta| of `number` shapes (or ops) whose sides are identical."""

    number: int
    p50: float
    p95: float
    largest: float


@dataclass(frozen=True)
class Claims:
    """False verdicts: every claim of an A/A is one. `ops_with_one`: ops of which a shape claims."""

    q: float
    ops: int
    ops_claiming: int
    ops_with_one: int
    shapes: int
    shapes_claiming: int

    @property
    def chance(self) -> float:
        """Probability of so many ops with a false shape claim, or more, at the rate q."""
        return float(stats.binom.sf(self.ops_with_one - 1, self.ops, self.q)) if self.ops else 1.0


@dataclass(frozen=True)
class Noise:
    """`noise.json` of a finished declared A/A campaign. Shapes' deltas are means over its `rounds`, order-balanced."""

    campaign: str
    rounds: int
    conditions: Mapping[str, tuple[str, ...]]  # axis of AXES -> the values its measured cells saw
    shapes: Spread | None
    by_op: Mapping[str, Spread]
    ops: Spread | None  # |delta| of the ops' own verdicts
    claims: Claims

    def shape_floor(self, op: str) -> Floor | None:
        """For the shapes of `op`: its own shapes' p95 where it has MIN_SHAPES of them, else that of all shapes."""
        own = self.by_op.get(op)
        if own and own.number >= MIN_SHAPES:
            return Floor(own.p95, f"A/A {self.campaign}: p95 of {own.number} shapes of {op}")
        every = self.shapes
        return Floor(every.p95, f"A/A {self.campaign}: p95 of {every.number} shapes") if every else None

    def op_floor(self, op: str) -> Floor | None:
        """For the op's own verdict, a mean over shapes: the p95 over ops where there are enough, else over shapes."""
        if self.ops and self.ops.number >= MIN_SHAPES:
            return Floor(self.ops.p95, f"A/A {self.campaign}: p95 of {self.ops.number} ops")
        return self.shape_floor(op)


def spread(deltas: Sequence[float]) -> Spread | None:
    """The distribution of |delta|; None of nothing."""
    if not deltas:
        return None
    sizes = np.abs(np.array(deltas, dtype=float))
    return Spread(len(sizes), *(float(np.percentile(sizes, share)) for share in (50, 95, 100)))


def distil(campaign: str, cells: Mapping[str, Sequence[CellEvidence]], ops: Mapping[str, OpVerdict], q: float) -> Noise:
    """What a declared A/A campaign says about noise. Ops without a number (failed, incomplete) are in none."""
    every = [item for own in cells.values() for item in own]
    judged = [found for found in ops.values() if found.estimate]
    by_op = {found.op: spread([shape.estimate.delta for shape in found.shapes if shape.estimate]) for found in judged}
    shapes = [shape for found in judged for shape in found.shapes if shape.estimate]
    return Noise(
        campaign=campaign,
        rounds=max((item.cell.measure.rounds for item in every), default=0),
        conditions=conditions(every),
        shapes=spread([shape.estimate.delta for shape in shapes if shape.estimate]),
        by_op={op: found for op, found in by_op.items() if found},
        ops=spread([found.estimate.delta for found in judged if found.estimate]),
        claims=_claims(judged, shapes, q),
    )


def conditions(cells: Iterable[CellEvidence]) -> dict[str, tuple[str, ...]]:
    """What the measured cells saw on each axis of AXES; empty when none was measured."""
    seen = [item.identity for item in measured(tuple(cells)) if item.identity]
    return {axis: tuple(sorted({str(getattr(each, axis)) for each in seen})) for axis in AXES} if seen else {}


def require_comparable(noise: Noise, cells: Sequence[CellEvidence]) -> None:
    """NoiseRefused unless the A/A was measured as these cells were, over as many rounds."""
    for rounds in sorted({item.cell.measure.rounds for item in cells}):
        _require_rounds(noise, rounds)
    _require_equal(noise, conditions(cells))


def require_planned(noise: Noise, cells: Iterable[Cell]) -> None:
    """The same before anything is measured, as far as a plan can know."""
    for cell in cells:
        measure = cell.measure
        _require_rounds(noise, measure.rounds)
        planned = {"backend": cell.instrument.backend, "timer": cell.instrument.timer, "provider": cell.provider.name}
        planned |= {name: str(getattr(measure, name)) for name in AXES if hasattr(measure, name) and name != "l2"}
        _require_equal(noise, {axis: (value,) for axis, value in planned.items()})


def table(noise: Noise) -> str:
    """The noise floor for the terminal."""
    lines = [f"A/A {noise.campaign}: |delta| of identical sides, {noise.rounds} rounds, per shape"]
    lines.append(f"  {'op':28}{'shapes':>8}{'p50':>10}{'p95':>10}{'max':>10}")
    rows = [*noise.by_op.items(), *([("all", noise.shapes)] if noise.shapes else [])]
    rows += [("ops themselves", noise.ops)] if noise.ops else []
    for name, own in rows:
        cells = "".join(f"{signless(value):>10}" for value in (own.p50, own.p95, own.largest))
        lines.append(f"  {name:28}{own.number:>8}{cells}")
    lines.append(f"  {_verdict(noise.claims)}")
    return "\n".join(lines) + "\n"


def _require_rounds(noise: Noise, rounds: int) -> None:
    if rounds != noise.rounds:
        raise NoiseRefused(
            f"!!! [caliber] judge.noise_campaign: {noise.campaign} has {noise.rounds} rounds, this campaign {rounds}: "
            "noise of another N is another noise; run `caliber aa` again"
        )


def _require_equal(noise: Noise, seen: Mapping[str, Sequence[str]]) -> None:
    for axis, values in seen.items():
        known = noise.conditions.get(axis, ())
        if not set(values) <= set(known):
            raise NoiseRefused(
                f"!!! [caliber] judge.noise_campaign: {axis}: {', '.join(values)} here, {', '.join(known) or 'unseen'} "
                f'in {noise.campaign}; run `caliber aa` again, or set judge.noise_campaign to ""'
            )


def _claims(judged: Sequence[OpVerdict], shapes: Sequence[ShapeVerdict], q: float) -> Claims:
    return Claims(
        q=q,
        ops=len(judged),
        ops_claiming=sum(found.verdict.claims for found in judged),
        ops_with_one=sum(any(shape.verdict.claims for shape in found.shapes) for found in judged),
        shapes=len(shapes),
        shapes_claiming=sum(shape.verdict.claims for shape in shapes),
    )


def _verdict(claims: Claims) -> str:
    text = (
        f"false verdicts: {claims.ops_claiming} of {claims.ops} ops, {claims.shapes_claiming} of {claims.shapes} "
        f"shapes (in {count(claims.ops_with_one, 'op')}; q = {claims.q:g} accepts {claims.q * claims.ops:.1f})"
    )
    if claims.chance < 0.05:
        return f"{text}: TOO MANY (by chance {claims.chance:.2g}); look for position, drift or a leak between the sides"
    return f"{text}: accepted"
