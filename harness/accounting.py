"""Accounting of layout conversions: how many a workload's kernels have on either side, under a named rule.

A layout conversion moves data between threads; a compiler change that removes some has changed the topology, whatever
the latency says. What is counted, over which variants, is a rule, and rules get corrected: each has a name and a
version, and a count without its rule means nothing. Pure: evidence in, values out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from harness.caliber import SIDES, measured
from harness.exact import MetricTotal
from harness.records import CellEvidence, Fingerprint, SideName, Variant
from harness.stages import OPAQUE

METRIC = "convert_layout."


class Topology(str, Enum):
    """What happened to the layout conversions of a workload from A to B."""

    REDUCED = "REDUCED"
    INCREASED = "INCREASED"
    MIXED = "MIXED"  # fewer in one place, more in another
    SAME = "SAME"
    UNKNOWN = "UNKNOWN"

    @property
    def strength(self) -> int:
        """How much is claimed: a direction most, then a change without one, then none, then nothing at all."""
        return {"REDUCED": 3, "INCREASED": 3, "MIXED": 2, "SAME": 1, "UNKNOWN": 0}[self.value]


Change = Literal["kept", "demoted", "not promoted"]


@dataclass(frozen=True)
class Count:
    """Layout conversions in the text of one stage, side by side. None: this side has no such variant."""

    stage: str
    a: int | None
    b: int | None


@dataclass(frozen=True)
class Unit:
    """Variants that are counted together: all of a side, those of one kernel, or those with one id."""

    kernel: str  # "" for all
    variant: str  # id, "" for a whole kernel
    variants_a: int
    variants_b: int
    counts: tuple[Count, ...]


@dataclass(frozen=True)
class Account:
    """The conversions of one workload under one rule; `reason` says how the class came about, with its numbers."""

    topology: Topology
    reason: str
    totals: tuple[Count, ...] = ()
    kernels: tuple[Unit, ...] = ()
    variants: tuple[Unit, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A named way of counting: which variants count, and what is compared with its own other side."""

    name: str
    text: str
    counts: Callable[[Variant], bool]
    compared: Literal["totals", "kernels", "variants"]


RULES: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "all_variants_v1",
            "Every variant that a cell compiled or loaded, launched or not, once each. Kept to read old numbers: the "
            "candidates a tuner rejected count too, so that a warm tuner looks like a compiler result (945 variants "
            "against 33, 136 conversions against 10, of one and the same compiler).",
            lambda variant: True,
            "totals",
        ),
        Rule(
            "launched_kernels_v1",
            "Every variant that a cell launched, once each, however often and for however many rows; rejected "
            "candidates do not count. The two sides may have launched different variants of a kernel; a kernel that "
            "only one side launched makes the workload UNKNOWN.",
            lambda variant: variant.launched,
            "kernels",
        ),
        Rule(
            "matched_variants_v1",
            "As launched_kernels_v1, and both sides launched the same specializations (kernel, signature, constants, "
            "options), so that each is compared with itself; one that only one side launched makes the workload "
            "UNKNOWN, for sums over two different sets say nothing. The strictest rule.",
            lambda variant: variant.launched,
            "variants",
        ),
    )
}


def published(totals: Sequence[MetricTotal]) -> Account:
    """What the verdict of the op says: sums over rows, each of which counts every kernel it launched."""
    own = [total for total in totals if total.metric.startswith(METRIC)]
    counts = tuple(Count(total.metric.removeprefix(METRIC), total.a, total.b) for total in own)
    if not own:
        return Account(Topology.UNKNOWN, "the verdict counts no layout conversions")
    found = _direction(counts)
    if found is Topology.SAME and any(total.rows_changed for total in own):
        found = Topology.MIXED
    return Account(found, f"sums over the paired rows: {_shown(counts)}", counts)


def account(cells: Sequence[CellEvidence], rule: Rule) -> Account:
    """Count one op's measured cells under `rule`. The rounds of a side must agree, else nothing is known."""
    sides: dict[SideName, Sequence[Variant]] = {}
    for side in SIDES:
        chosen, doubt = _chosen([item for item in measured(cells) if item.cell.side.name == side], rule)
        if doubt:
            return Account(Topology.UNKNOWN, f"side {side}: {doubt}")
        sides[side] = chosen
    totals = _unit("", "", sides["A"], sides["B"])
    kernels = _units(sides["A"], sides["B"], lambda variant: (variant.kernel, ""))
    variants = _units(sides["A"], sides["B"], lambda variant: (variant.kernel, variant.id))
    units = {"totals": (totals,), "kernels": kernels, "variants": variants}[rule.compared]
    topology, reason = _classify(units, rule, totals.counts)
    return Account(topology, reason, totals.counts, kernels, variants)


def stand(before: Account, now: Account) -> tuple[Topology, Change, str]:
    """(class that stands, change, why) after re-accounting: a rule may take a claim back, never make one.

    Two rules that agree on a change but not on its direction leave MIXED.
    """
    old, new = before.topology, now.topology
    if old is new:
        return old, "kept", f"{new.value} under this rule too: {now.reason}"
    if new.strength > old.strength:
        return old, "not promoted", f"{new.value} under this rule, but {old.value} was published: {now.reason}"
    if new.strength == old.strength:
        text = f"published {old.value}, {new.value} under this rule: a change without a direction; {now.reason}"
        return Topology.MIXED, "demoted", text
    return new, "demoted", f"published {old.value} ({before.reason}), {new.value} under this rule: {now.reason}"


def _chosen(cells: Sequence[CellEvidence], rule: Rule) -> tuple[Sequence[Variant], str]:
    """(the variants that count of one side, doubt about them)."""
    if not cells:
        return (), "no cell was measured"
    if missing := [item.cell.key for item in cells if item.fingerprint is None]:
        return (), f"{', '.join(missing)} left no fingerprint"
    rounds = {item.cell.key: _pick(item.fingerprint, rule) for item in cells if item.fingerprint}
    first, chosen = next(iter(rounds.items()))
    for key, other in rounds.items():
        if _content(other) != _content(chosen):
            return (), f"{first} and {key} do not have the same variants with the same counts"
    unread = [variant for variant in chosen if not _countable(variant)]
    if unread:
        return (), f"{len(unread)} of {len(chosen)} variants have no text to count in, first {unread[0].kernel}"
    return (chosen, "") if chosen else ((), "no kernel was launched")


def _pick(found: Fingerprint, rule: Rule) -> Sequence[Variant]:
    return tuple(variant for variant in found.variants if rule.counts(variant))


def _content(variants: Sequence[Variant]) -> Counter[tuple[object, ...]]:
    return Counter((variant.id, tuple(sorted(_stages(variant).items()))) for variant in variants)


def _countable(variant: Variant) -> bool:
    return bool(_stages(variant)) and not any(
        hashed.startswith(OPAQUE) for stage, hashed in variant.stages.items() if stage in _stages(variant)
    )


def _stages(variant: Variant) -> Mapping[str, int]:
    """Stage -> conversions. Only ttgir says 0; a vendor's own stage without any has no metric, and counts as 0."""
    found = variant.metrics.items()
    return {name.removeprefix(METRIC): value for name, value in found if name.startswith(METRIC)}


def _units(a: Sequence[Variant], b: Sequence[Variant], name: Callable[[Variant], tuple[str, str]]) -> tuple[Unit, ...]:
    grouped: dict[tuple[str, str], tuple[list[Variant], list[Variant]]] = defaultdict(lambda: ([], []))
    for place, side in enumerate((a, b)):
        for variant in side:
            grouped[name(variant)][place].append(variant)
    return tuple(_unit(*names, *grouped[names]) for names in sorted(grouped))


def _unit(kernel: str, variant: str, a: Sequence[Variant], b: Sequence[Variant]) -> Unit:
    stages = sorted({stage for each in (*a, *b) for stage in _stages(each)})
    return Unit(
        kernel, variant, len(a), len(b), tuple(Count(stage, _total(a, stage), _total(b, stage)) for stage in stages)
    )


def _total(variants: Sequence[Variant], stage: str) -> int | None:
    return sum(_stages(variant).get(stage, 0) for variant in variants) if variants else None


def _classify(units: Sequence[Unit], rule: Rule, totals: Sequence[Count]) -> tuple[Topology, str]:
    alone = [unit for unit in units if not (unit.variants_a and unit.variants_b) or _unmatched(unit, rule)]
    if alone:
        first = alone[0]
        named = f"{first.kernel} {first.variant}".strip()
        text = f"first {named}: {first.variants_a} on side A, {first.variants_b} on side B"
        return Topology.UNKNOWN, f"{len(alone)} of {len(units)} {rule.compared} are not on both sides alike, {text}"
    changed = sum(count.a != count.b for unit in units for count in unit.counts)
    found = _direction([count for unit in units for count in unit.counts])
    return found, f"{_shown(totals)}; {changed} of {len(units)} {rule.compared} differ"


def _unmatched(unit: Unit, rule: Rule) -> bool:
    return rule.compared == "variants" and unit.variants_a != unit.variants_b


def _direction(counts: Sequence[Count]) -> Topology:
    fewer = any(count.a is not None and count.b is not None and count.b < count.a for count in counts)
    more = any(count.a is not None and count.b is not None and count.b > count.a for count in counts)
    if fewer and more:
        return Topology.MIXED
    return Topology.REDUCED if fewer else Topology.INCREASED if more else Topology.SAME


def _shown(counts: Sequence[Count]) -> str:
    return ", ".join(f"{count.stage} {count.a} -> {count.b}" for count in counts)
