"""Runs made elsewhere -> verdicts. Owns the order: caliber, then latencies, then pairing, then the campaign's judge.

An incomplete pairing never looks complete: each row without a partner, torn file and failed test is in `incomplete`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness import fingerprint
from harness.caliber import Mismatch
from harness.corpus import judge_campaign
from harness.findings import CampaignVerdict, OpVerdict, Reason, ShapeVerdict
from harness.foreign import calibration, evidence, run
from harness.foreign.differences import differences
from harness.foreign.entries import ForeignError
from harness.foreign.evidence import Place, Placed
from harness.foreign.rounds import SIDES
from harness.foreign.run import Opened
from harness.records import ExitCode, Gate, Judge, SideName
from harness.verdict import judge_op

ORDER_UNKNOWN = Reason("ORDER_UNKNOWN", "nothing says which side ran first in each round; --order says it")
Sides = Mapping[SideName, Path]


class CaliberRefused(ForeignError):
    """The runs are of different caliber, or nothing shows that they are not; one line per axis in `lines`."""

    code = ExitCode.CALIBER

    def __init__(self, mismatches: Sequence[Mismatch]) -> None:
        self.lines = tuple(map(str, mismatches))
        super().__init__("; ".join(self.lines))


@dataclass(frozen=True)
class Settings:
    """How to compare. `order`: which side ran first in each round, "" when only the identities know."""

    judge: Judge
    aa: bool = False
    order: str = ""


@dataclass(frozen=True)
class RunLine:
    """One run as the report shows it."""

    round: int
    side: SideName
    path: str
    rows: int
    used: tuple[str, ...]
    markers: Mapping[str, int]


@dataclass(frozen=True)
class Comparison:
    """The whole answer. `incomplete`: everything that keeps it from being whole; `released`: refused, but allowed."""

    n_a: int
    n_b: int
    n_paired: int
    rounds: int
    runs: tuple[RunLine, ...]
    released: tuple[str, ...]
    incomplete: tuple[str, ...]
    warnings: tuple[str, ...]
    ops: Mapping[str, OpVerdict]
    campaign: CampaignVerdict

    @property
    def code(self) -> ExitCode:
        """5 unless every row of both sides is paired, and there is one."""
        return ExitCode.INCOMPLETE if self.incomplete or not self.n_paired else ExitCode.DONE


def compare(rounds: Sequence[Sides], settings: Settings) -> Comparison:
    """Compare the runs of each round. CaliberRefused before a latency is read; ForeignError for what cannot be read."""
    _distinct(rounds)
    opened = [{side: run.opened(sides[side]) for side in SIDES} for sides in rounds]
    started = _started(opened)
    firsts = list(settings.order) or started or ["A"] * len(rounds)
    if len(firsts) != len(rounds):
        raise ForeignError(f"--order {settings.order} names {len(firsts)} rounds, there are {len(rounds)}")
    places = [
        (Place(number, side, firsts[number - 1] == side, len(rounds), settings.aa), sides[side])
        for number, sides in enumerate(opened, 1)
        for side in SIDES
    ]
    checked = calibration.check(places)
    _refuse(checked.mismatches, settings)
    placed = list(_placed(places))
    tables = calibration.check_tables(placed)
    _refuse(tables, settings)
    _same_repeats(placed)
    judge = replace(settings.judge, allow_caliber_mismatch=True)
    ops = {op: _judged(op, placed, judge, bool(settings.order), bool(started)) for op in _ops(placed)}
    warnings = [*checked.warnings, *_contradicted(settings.order, started)]
    return _comparison(placed, ops, settings, (*checked.mismatches, *tables), warnings)


def _comparison(
    placed: Sequence[Placed],
    ops: Mapping[str, OpVerdict],
    settings: Settings,
    released: Sequence[Mismatch],
    warnings: Sequence[str],
) -> Comparison:
    counts = {side: sum(_count(each) for each in placed if each.at.side == side) for side in SIDES}
    return Comparison(
        n_a=counts["A"],
        n_b=counts["B"],
        n_paired=sum(found.ledger.n_paired for found in ops.values() if found.ledger),
        rounds=len(placed) // 2,
        runs=tuple(map(_line, placed)),
        released=tuple(map(str, released)),
        incomplete=(*differences(placed, ops), *_unfinished(placed)),
        warnings=(*warnings, *_warnings(placed, ops)),
        ops=ops,
        campaign=judge_campaign(ops, settings.judge),
    )


def _refuse(mismatches: Sequence[Mismatch], settings: Settings) -> None:
    if mismatches and not settings.judge.allow_caliber_mismatch:
        raise CaliberRefused(mismatches)


def _distinct(rounds: Sequence[Sides]) -> None:
    seen: dict[Path, Path] = {}
    for path in (sides[side] for sides in rounds for side in SIDES):
        if path.resolve() in seen:
            raise ForeignError(f"{seen[path.resolve()]} and {path} are one run; name two")
        seen[path.resolve()] = path


def _started(opened: Sequence[Mapping[SideName, Opened]]) -> list[str]:
    """Which side started first in each round; empty unless every identity says when it did."""
    starts = [(each["A"].started, each["B"].started) for each in opened]
    known = ["B" if b < a else "A" for a, b in starts if a and b]
    return known if len(known) == len(starts) else []


def _contradicted(order: str, started: Sequence[str]) -> Iterator[str]:
    wrong = [str(number) for number, (told, seen) in enumerate(zip(order, started, strict=False), 1) if told != seen]
    if wrong:
        yield f"--order {order}, but by their identities the other side started first in round {', '.join(wrong)}"


def _placed(places: Sequence[tuple[Place, Opened]]) -> Iterator[Placed]:
    """Only here are latencies read."""
    read = [(at, run.parsed(each)) for at, each in places]
    for (at_a, a), (at_b, b) in zip(read[::2], read[1::2], strict=True):
        yield evidence.place(at_a, a, b)
        yield evidence.place(at_b, b, a)


def _same_repeats(placed: Sequence[Placed]) -> None:
    """A name that repeats (BLAS: one shape, two layouts) pairs by its order, which needs one count everywhere."""
    for name, found in evidence.repeats(placed):
        text = "; ".join(f"{len(places)} in {each.run.opened.path} ({', '.join(places[:4])})" for each, places in found)
        raise ForeignError(f"duplicate rows: {name}: {text}; rows of one name pair in order, if all runs have as many")


def _ops(placed: Sequence[Placed]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(op for each in placed for op in each.rows))


def _judged(op: str, placed: Sequence[Placed], judge: Judge, told: bool, known: bool) -> OpVerdict:
    """`told`: the order is the user's word, which stands above the starts that are `known`."""
    cells = [evidence.cell(op, each, started=known and not told) for each in placed]
    found = judge_op(cells, _gate(op, placed), judge, planned=False)
    if told or known:
        return found
    shapes = tuple(replace(shape, reasons=_unordered(shape)) for shape in found.shapes)
    return replace(found, reasons=_unordered(found), shapes=shapes)


def _gate(op: str, placed: Sequence[Placed]) -> Gate | None:
    """Cells of caliber left fingerprints: what their first round compiled for their one op."""
    a, b = placed[:2]
    known = a.run.opened.fingerprint and b.run.opened.fingerprint and a.rows.keys() == b.rows.keys() == {op}
    return fingerprint.gate(op, a.run.opened.fingerprint, b.run.opened.fingerprint) if known else None


def _unordered(found: OpVerdict | ShapeVerdict) -> tuple[Reason, ...]:
    """An order that nobody knows was set to A; what the judge says about it must not be."""
    reasons = (ORDER_UNKNOWN if reason.code == "ORDER_CONFOUNDED" else reason for reason in found.reasons)
    return tuple(reasons)


def _unfinished(placed: Sequence[Placed]) -> Iterator[str]:
    for each in placed:
        yield from each.run.torn
        for name, reason in each.run.failed.items():
            yield f"failed in {each.run.opened.path}: {name}: {reason}"


def _warnings(placed: Sequence[Placed], ops: Mapping[str, OpVerdict]) -> Iterator[str]:
    for each in placed:
        yield from each.run.warnings
        skips = each.run.skipped
        if skips:
            yield f"{each.run.opened.path}: {len(skips)} skipped: {skips[0]}"
    shapes = [shape for found in ops.values() for shape in found.shapes if shape.estimate]
    if shapes and all(shape.estimate.smallest == shape.estimate.largest == 0 for shape in shapes if shape.estimate):
        yield "every latency of B equals A's to the last digit: is it the same run twice?"
    repeated = sum(key.occurrence > 0 for each in placed if each.at.side == "A" for key in each.places)
    if any(found.gate is None for found in ops.values()):
        yield "no fingerprints: whether the change reached any generated code is not known"
    if repeated:
        yield f"{repeated} rows of A share a name with an earlier one (BLAS layouts do); paired in order"


def _count(placed: Placed) -> int:
    return sum(map(len, placed.rows.values()))


def _line(placed: Placed) -> RunLine:
    found, opened = placed.run, placed.run.opened
    used = tuple(text.replace(f"{opened.path}/", "") for text in found.used)
    return RunLine(placed.at.round, placed.at.side, str(opened.path), _count(placed), used, dict(opened.marks.total()))
