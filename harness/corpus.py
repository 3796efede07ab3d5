"""The campaign's verdict: what only all ops together can say (correction across ops, sign balance, noise floor).

It may demote an op's claim, never make one. Must not know cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from harness import statistics
from harness.findings import (
    CampaignVerdict,
    Geomean,
    NoiseFloor,
    OpLine,
    OpVerdict,
    Reason,
    SignBalance,
    Verdict,
    codes,
)
from harness.moderation import MIN_SHAPES
from harness.records import ExitCode, Judge
from harness.statistics import percent, words

#: From this many claims on, all of one sign is remarkable: 2 x 2^-5 = 6 % by chance.
ONE_SIDED = 5


def judge_campaign(ops: Mapping[str, OpVerdict], judge: Judge) -> CampaignVerdict:
    """Correct the op claims across ops (Benjamini-Hochberg at q) and describe the corpus."""
    counted = [found for found in ops.values() if found.verdict.numeric]
    p_values = statistics.adjusted([found.estimate.p if found.estimate else None for found in counted])
    p_adjusted = {found.op: p for found, p in zip(counted, p_values, strict=True)}
    floor = _noise_floor(ops.values())
    lines = tuple(_line(found, p_adjusted.get(found.op), judge.q, floor) for found in ops.values())
    balance = _balance(counted, lines)
    return CampaignVerdict(
        ops=lines,
        balance=balance,
        geomean=_geomean(counted),
        noise_floor=floor,
        reasons=(*_one_sided(balance), *_control(counted, lines, judge.q)),
    )


def exit_code(campaign: CampaignVerdict, ops: Mapping[str, OpVerdict]) -> ExitCode:
    """4 when caliber refused an op, else 5 when one is incomplete or there is none, else 1 when one failed, else 0."""
    if any("CALIBER" in codes(found.reasons) for found in ops.values()):
        return ExitCode.CALIBER
    verdicts = {line.verdict for line in campaign.ops}
    if not verdicts or Verdict.INCOMPLETE in verdicts:
        return ExitCode.INCOMPLETE
    return ExitCode.FAILED if Verdict.FAILED in verdicts else ExitCode.DONE


def _line(found: OpVerdict, p: float | None, q: float, floor: NoiseFloor | None) -> OpLine:
    if found.verdict.claims and p is not None and p >= q:
        text = f"{found.verdict.value} alone, but p adjusted across ops is {p:.2g}, not below {q:g}"
        return OpLine(found.op, Verdict.UNRESOLVED, (Reason("ACROSS_OPS", text),), p)
    return OpLine(found.op, found.verdict, tuple(_small(found, floor)), p)


def _small(found: OpVerdict, floor: NoiseFloor | None) -> Iterator[Reason]:
    """A claim no larger than what identical code would show here: a note, for the controls are other operators.

    A control's delta is that of one round, a claim's the mean of N. Noise that is independent from round to round
    shrinks by sqrt(N) in between, so the controls' p95 over sqrt(N) is what such noise would still reach. What does not
    shrink (a side that is always dearer, code or no code) is for a declared A/A to find, whose floor is a margin.
    """
    if floor is None or floor.shapes < MIN_SHAPES:
        return
    claims = [("the op", found.verdict, found.estimate)] + [(str(s.key), s.verdict, s.estimate) for s in found.shapes]
    sizes = [(name, est) for name, verdict, est in claims if est and verdict.claims]
    low = [(name, est) for name, est in sizes if abs(est.delta) < floor.p95 / math.sqrt(est.rounds)]
    if low:
        name, least = min(low, key=lambda item: abs(item[1].delta))
        reach = floor.p95 / math.sqrt(least.rounds)
        yield Reason(
            "CONTROL_NOISE",
            f"{len(low)} of {len(sizes)} claims of this op lie within {percent(reach):.2f} %, which {least.rounds} "
            f"rounds of identical code still reach here (one: p95 {percent(floor.p95):.2f} % of {floor.shapes}); "
            f"smallest: {name}, {words(least.delta)}",
        )


def _balance(counted: Sequence[OpVerdict], lines: Sequence[OpLine]) -> SignBalance:
    deltas = [found.estimate.delta for found in counted if found.estimate]
    verdicts = [line.verdict for line in lines]
    return SignBalance(
        negative=sum(delta < 0 for delta in deltas),
        positive=sum(delta > 0 for delta in deltas),
        faster=verdicts.count(Verdict.FASTER),
        slower=verdicts.count(Verdict.SLOWER),
    )


def _geomean(counted: Sequence[OpVerdict]) -> Geomean | None:
    deltas = [found.estimate.delta for found in counted if found.estimate]
    if not deltas:
        return None
    shapes = sum(shape.estimate is not None for found in counted for shape in found.shapes)
    return Geomean(float(np.mean(deltas)), len(deltas), shapes, min(deltas), max(deltas))


def _noise_floor(ops: Iterable[OpVerdict]) -> NoiseFloor | None:
    """Round 1 of the ops whose code did not change: a free A/A of this machine on this day."""
    controls = [found.control for found in ops if found.control]
    if not controls:
        return None
    sizes = np.abs(np.concatenate([np.array(own) for own in controls]))
    p50, p95, largest = (float(np.percentile(sizes, share)) for share in (50, 95, 100))
    return NoiseFloor(p95, len(controls), len(sizes), p50, largest)


def _one_sided(balance: SignBalance) -> list[Reason]:
    claims = balance.faster + balance.slower
    if claims < ONE_SIDED or (balance.faster and balance.slower):
        return []
    word = "faster" if balance.faster else "slower"
    return [Reason("ONE_SIDED", f"all {claims} claims say {word}: check for an artifact before believing them")]


def _control(counted: Sequence[OpVerdict], lines: Sequence[OpLine], q: float) -> list[Reason]:
    """A declared A/A is the test of the whole path: what it claims is false by construction."""
    control = {found.op for found in counted if found.declared_aa}
    if not control:
        return []
    claims = sum(line.verdict.claims for line in lines if line.op in control)
    return [
        Reason("AA_CONTROL", f"{claims} of {len(control)} ops of the A/A control claim a difference; accept {q:.0%}")
    ]
