"""A comparison as text: the counts first, then where they are from, what is missing, and one line per op. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from harness.findings import OpLine, OpVerdict
from harness.foreign.comparing import Comparison, RunLine
from harness.statistics import DIRECTION, percent, words

TITLES = ("op", "verdict", "B against A", "paired", "why")
ONE_PAIR = (
    "one pair of runs cannot orient a delta: every verdict is UNRESOLVED by definition, the deltas are observations. "
    "`caliber ab-rounds ROOT` judges rounds."
)
NARROW = 100


def text(found: Comparison) -> str:
    """The report; n_A, n_B and n_paired come first, whatever else there is."""
    return "\n".join(line.rstrip() for line in _lines(found)) + "\n"


def _lines(found: Comparison) -> Iterator[str]:
    state = "INCOMPLETE" if found.incomplete or not found.n_paired else "complete"
    yield f"n_A {found.n_a}  n_B {found.n_b}  n_paired {found.n_paired}  rounds {found.rounds}  {state}"
    yield from found.released
    for run in found.runs:
        yield from _run(run, found.rounds)
    yield from (f"incomplete: {each}" for each in found.incomplete)
    yield from (f"warning: {each}" for each in found.warnings)
    yield ""
    yield from _table([TITLES, *(_op(line, found.ops[line.op]) for line in found.campaign.ops)])
    yield ""
    yield from _overall(found)
    yield f"latency of the operator under test, {DIRECTION}; FlagGems' speedup column is not used"
    if found.rounds == 1:
        yield ONE_PAIR


def _run(run: RunLine, rounds: int) -> Iterator[str]:
    number = f" (round {run.round})" if rounds > 1 else ""
    yield f"{run.side}{number} {run.path}: {'; '.join(run.used)}"
    if run.markers:
        yield f"{run.side}{number} markers: " + ", ".join(f"{name} {count}" for name, count in run.markers.items())


def _op(line: OpLine, found: OpVerdict) -> tuple[str, ...]:
    delta = "-"
    if found.estimate:
        ratio = 1 + percent(found.estimate.delta) / 100
        delta = f"{words(found.estimate.delta)} ({percent(found.estimate.delta):+.2f} %, x{ratio:.4f})"
    ledger = found.ledger
    paired = f"{ledger.n_paired} of {ledger.n_a}/{ledger.n_b}" if ledger else "0"
    reason = (*line.reasons, *found.reasons)[0]
    why = "TOO_FEW_ROUNDS" if reason.code == "TOO_FEW_ROUNDS" else f"{reason.code}: {reason.message}"
    return found.op, line.verdict.value, delta, paired, _short(why)


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))


def _overall(found: Comparison) -> Iterator[str]:
    """No headline number over different sets: it would be a ratio of other things."""
    geomean, balance = found.campaign.geomean, found.campaign.balance
    if found.incomplete or not geomean:
        yield "no number over all ops: the two sides do not hold the same rows"
        return
    yield (
        f"geomean over {geomean.ops} op(s), {geomean.shapes} rows: {words(geomean.delta)} "
        f"({percent(geomean.delta):+.2f} %); ops with B faster {balance.negative}, slower {balance.positive}"
    )


def _short(message: str) -> str:
    flat = " ".join(message.split())
    return flat if len(flat) <= NARROW else flat[: NARROW - 3] + "..."
