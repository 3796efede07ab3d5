"""Sections of an explanation that concern one series: its rounds, its estimate, the rules it met.

One pure function each: values in, lines out. Must not compute a number that judging does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness import statistics
from harness.findings import Reason, Verdict
from harness.pairing import Pairing
from harness.rules import Case, rules
from harness.statistics import Array, Estimate, percent, words


def rounds(pairing: Pairing, deltas: Array, more: Sequence[str]) -> list[str]:
    """One line per round: order, what `more` has to say, delta."""
    lines = []
    for number, order, delta, text in zip(pairing.rounds, pairing.orders, deltas, more, strict=True):
        first = "A first" if order > 0 else "B first"
        lines.append(f"  r{number} {first}{text}  delta {percent(float(delta)):+.3f} %  {words(float(delta))}")
    return lines


def estimate(case: Case, family: int | None) -> list[str]:
    """Every number of one estimate; `family`: how many shapes it was adjusted among, None for an op."""
    found = case.found
    lines = ["estimate", f"  order-balanced mean: {percent(found.delta):+.3f} %, {words(found.delta)}"]
    b_first = found.rounds - found.a_first
    lines.append(f"  slot (running second): {signed(found.slot)}; A first in {found.a_first} rounds, B in {b_first}")
    if found.sd is None or found.se is None or found.df is None:
        return [*lines, "  no degree of freedom for a spread"]
    used = found.sd_used or 0.0
    shared = f"; {percent(used):.3f} % moderated over {family} shapes" if used != found.sd else "; not moderated"
    df = found.rounds - (1 if found.slot is None else 2)
    lines.append(f"  sd of round deltas: {percent(found.sd):.3f} % on {df} df{shared}")
    t = "infinite: constant samples" if found.se == 0 else f"{found.delta / found.se:.3f}"
    lines.append(f"  se {percent(found.se):.3f} %, df {found.df:.2f}, t {t}")
    return lines + list(_evidence(case, found, family))


def _evidence(case: Case, found: Estimate, family: int | None) -> Iterator[str]:
    among = f", adjusted {case.p or 0.0:.3g} among {family} shapes" if family else ""
    whole = "" if case.family_p is None else f"; family p {case.family_p:.3g}"
    yield f"  p {found.p or 0.0:.3g}{among}{whole}; q {case.bar.q:g}"
    yield f"  95 % CI [{signed(found.low)}, {signed(found.high)}]"
    low, high = statistics.tost_interval(found)
    yield f"  equivalence: 90 % CI [{signed(low)}, {signed(high)}] against +-{percent(case.bar.margin):.3f} %"
    yield f"  {case.bar}; one timer tick is {percent(case.bar.resolution):.3f} %"
    spread = f"[{signed(found.smallest)}, {signed(found.largest)}] ({found.range_confidence:.1%} for the median)"
    yield f"  {found.same_sign} of {found.rounds} rounds have its sign; range {spread}"
    yield f"  Hodges-Lehmann {signed(found.hodges_lehmann)}; MDE80 {percent(found.mde80 or 0.0):.3f} %"


def decided(case: Case, verdict: Verdict, reasons: Sequence[Reason]) -> list[str]:
    """The rules that were asked, the one that held, and what the clock or the gate made of it."""
    lines = ["rules, in order; the first that holds decides"]
    for rule in rules(case):
        lines.append(f"  {rule.question}: {f'yes -> {rule.verdict.value}' if rule.holds else 'no'}")
        if rule.holds:
            if rule.verdict is not verdict:
                lines.append(f"  then {reasons[0].code}: {verdict.value}")
            break
    return lines


def signed(value: float | None) -> str:
    """Log ratio with three decimals and its sign."""
    return "-" if value is None else f"{percent(value):+.3f} %"
