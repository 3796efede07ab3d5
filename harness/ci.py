"""What a CI job makes of a report: which operators fail, and one exit code. Pure; it decides nothing about a verdict.

Conservative both ways: only a claimed slowdown fails, and what could not be compared never passes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.findings import OpVerdict, Verdict
from harness.grid import flat, signed
from harness.records import ExitCode, Refusal
from harness.report import CampaignReport
from harness.statistics import percent, words

Ruling = Literal["pass", "fail", "error", "undecided"]

#: No number is to be had, and why not decides the exit code. POISONED: the op cannot be captured, so nothing compared.
ERRORS = {
    Verdict.NOT_COMPARABLE: ExitCode.CALIBER,
    Verdict.MIXED_TIMER: ExitCode.CALIBER,
    Verdict.POISONED: ExitCode.CALIBER,
    Verdict.INCOMPLETE: ExitCode.INCOMPLETE,
    Verdict.FAILED: ExitCode.FAILED,
}
#: These rounds cannot tell. Passes unless asked for by name, and is never shown as a success.
UNDECIDED = (Verdict.UNRESOLVED, Verdict.SIGN_UNSTABLE, Verdict.IR_UNKNOWN, Verdict.CLOCK_CONFOUNDED)
#: Of several exit codes, the one that qualifies all others: what was not compared, then what is missing.
PRECEDENCE = (ExitCode.CALIBER, ExitCode.INCOMPLETE, ExitCode.FAILED)


class PolicyError(Refusal):
    """A limit or a verdict name that the gate cannot take."""


@dataclass(frozen=True)
class Policy:
    """What fails: a claimed slowdown of more than `max_slower_pct` per cent, and the verdicts of `fail_on`."""

    max_slower_pct: float = 0.0
    fail_on: tuple[Verdict, ...] = ()

    def __str__(self) -> str:
        named = f", {' or '.join(verdict.value for verdict in self.fail_on)}" if self.fail_on else ""
        return f"SLOWER by more than {self.max_slower_pct:g} %{named}"


@dataclass(frozen=True)
class OpRuling:
    """One op before the gate; `text` has its numbers and the rule. `code` is DONE unless it fails."""

    op: str
    verdict: Verdict
    ruling: Ruling
    text: str
    code: ExitCode


def limit(text: str) -> float:
    """`1%`, `0.5 %` or `1`: per cent. A ratio has no spelling, so that 0.01 is a hundredth of a per cent."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%?", text.strip())
    if not found:
        raise PolicyError(f"--max-slower {text!r}: is no percentage; write 1% or 0.5%")
    return float(found[1])


def verdicts(text: str) -> tuple[Verdict, ...]:
    """Verdict names, separated by commas."""
    names = [name.strip() for name in text.split(",")]
    known = [verdict.value for verdict in Verdict]
    for name in names:
        if name not in known:
            raise PolicyError(f"--fail-on {name!r}: is no verdict; the verdicts are {', '.join(known)}")
    return tuple(Verdict(name) for name in dict.fromkeys(names))


def rule(report: CampaignReport, policy: Policy) -> tuple[OpRuling, ...]:
    """The ruling on every op, in the order of the report; verdicts are those after the correction across ops."""
    return tuple(_rule(line.verdict, report.ops[line.op], policy) for line in report.verdict.ops)


def exit_code(rulings: Sequence[OpRuling]) -> ExitCode:
    """4 when an op was not comparable, else 5 when one is incomplete or none is there, else 1 when one fails, or 0."""
    if not rulings:
        return ExitCode.INCOMPLETE
    codes = {ruling.code for ruling in rulings}
    return next((code for code in PRECEDENCE if code in codes), ExitCode.DONE)


def table(rulings: Sequence[OpRuling], policy: Policy) -> str:
    """For the terminal: a line of counts, then every op that does not pass."""
    if not rulings:
        return "caliber gate: there is no op to judge, which is never a pass\n"
    counts = ", ".join(
        f"{sum(ruling.ruling == kind for ruling in rulings)} {kind}" for kind in ("pass", "fail", "error", "undecided")
    )
    head = f"caliber gate ({policy}): {len(rulings)} ops, {counts}"
    lines = [f"{ruling.ruling:<9} {ruling.op}: {ruling.text}" for ruling in rulings if ruling.ruling != "pass"]
    return "\n".join([head, *lines]) + "\n"


def _rule(verdict: Verdict, found: OpVerdict, policy: Policy) -> OpRuling:
    ruling, code = _ruling(verdict, found, policy)
    return OpRuling(found.op, verdict, ruling, _text(verdict, found, policy, ruling), code)


def _ruling(verdict: Verdict, found: OpVerdict, policy: Policy) -> tuple[Ruling, ExitCode]:
    if verdict in ERRORS:
        return "error", ERRORS[verdict]
    if verdict in policy.fail_on or (verdict is Verdict.SLOWER and _slower(found) > policy.max_slower_pct):
        return "fail", ExitCode.FAILED
    return ("undecided" if verdict in UNDECIDED else "pass"), ExitCode.DONE


def _slower(found: OpVerdict) -> float:
    """By how many per cent; a claim without its number is beyond every limit."""
    return percent(found.estimate.delta) if found.estimate else float("inf")


def _text(verdict: Verdict, found: OpVerdict, policy: Policy, ruling: Ruling) -> str:
    parts = []
    if found.estimate and verdict not in ERRORS:
        parts.append(words(found.estimate.delta) + _interval(found))
    if ruling == "fail":
        parts.append(
            f"limit {policy.max_slower_pct:g} %" if verdict is Verdict.SLOWER else f"--fail-on {verdict.value}"
        )
    elif found.reasons:
        parts.append(flat(found.reasons[0].message))
    return f"{verdict.value}: {', '.join(parts)}"


def _interval(found: OpVerdict) -> str:
    if found.estimate is None or found.estimate.low is None:
        return ""
    return f" [{signed(found.estimate.low)}, {signed(found.estimate.high)}]"
