"""The gate: did the switch change any generated code of this op? (design, decision 9)

Pure: two fingerprints in, one Gate out. It must not know files, cells or Triton; what a stage's hash covers is the
business of `stages`. "No difference" is a claim that needs proof: every launched variant compiled by its own side, in
the cell's process or into a cache that was the side's own since it was empty, and its code equal. What cannot be proved
is IR_UNKNOWN, and never skips a round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Optional

from harness.records import Fingerprint, Gate, GateVerdict, Variant
from harness.stages import OPAQUE

Pair = tuple[Variant, Variant]
#: Equal code with other resources is another launch: they decide how many blocks fit on a multiprocessor.
RESOURCES = ("registers", "shared_bytes")


def gate(op: str, a: Optional[Fingerprint], b: Optional[Fingerprint]) -> Gate:
    """Compare the variants that the two sides launched, matched by id; ids that repeat are compared as multisets.

    `variants_changed` counts pairs with other code or resources; `stage` is the first in compile order that differs in
    any pair, "variants" when the launched sets differ, "resources" when those alone do, "" when nothing does.
    """
    doubts = [doubt for side, found in (("A", a), ("B", b)) if (doubt := _doubt(side, found))]
    if a is None or b is None or doubts:
        return Gate(op, "IR_UNKNOWN", "", "; ".join(doubts), 0, 0, (), ())
    pairs, only_a, only_b = _match(_launched(a), _launched(b))
    changed = [pair for pair in pairs if _code_differs(pair) or _resources_differ(pair)]
    verdict, stage, reason = _judge(pairs, changed, len(only_a), len(only_b))
    return Gate(op, verdict, stage, reason, len(pairs), len(changed), only_a, only_b)


def should_skip(gate: Gate, allow_no_ir_diff: bool) -> bool:
    """True when further rounds could only measure noise: the launched code is proved equal, and none asked for them."""
    return gate.verdict in ("NO_CODE_CHANGE", "IR_DIFF_SAME_CODE") and not allow_no_ir_diff


def changed_pairs(a: Fingerprint, b: Fingerprint) -> list[Pair]:
    """The launched variants of both sides that differ in a stage, in code or in resources; by id."""
    pairs, _, _ = _match(_launched(a), _launched(b))
    return sorted((pair for pair in pairs if _stages_that_differ(pair) or _resources_differ(pair)), key=_of_pair)


def totals(fingerprint: Fingerprint) -> Mapping[str, int]:
    """Sum of each metric over the launched variants; one that any of them lacks is left out, for a part is no sum."""
    launched = _launched(fingerprint)
    names = launched[0].metrics if launched else ()
    shared = (name for name in names if all(name in variant.metrics for variant in launched))
    return {name: sum(variant.metrics[name] for variant in launched) for name in shared}


def _launched(fingerprint: Fingerprint) -> list[Variant]:
    return [variant for variant in fingerprint.variants if variant.launched]


def _doubt(side: str, fingerprint: Optional[Fingerprint]) -> str:
    """Why nothing can be said of a side, or ""."""
    if fingerprint is None:
        return f"side {side} left no fingerprint"
    launched = _launched(fingerprint)
    cached = sum(not variant.compiled for variant in launched)
    unread = sum(not variant.stages for variant in launched)
    if not launched:
        return f"side {side} launched no kernel"
    if cached and not fingerprint.own_cache:
        return f"{cached} of {len(launched)} launched variants of side {side} came from a cache"
    if fingerprint.compile_count + fingerprint.own_cache * fingerprint.cache_hits < 1:
        return f"side {side} counted no compilation, so its {len(launched)} variants came from a cache"
    return f"{unread} of {len(launched)} launched variants of side {side} left no stage to compare" if unread else ""


def _match(mine: Sequence[Variant], theirs: Sequence[Variant]) -> tuple[list[Pair], tuple[str, ...], tuple[str, ...]]:
    """(pairs, ids left over in A, ids left over in B): equal ones first, then by id."""
    pairs: list[Pair] = []
    only_a: list[str] = []
    only_b: list[str] = []
    for identity in sorted({variant.id for variant in (*mine, *theirs)}):
        rest = sorted((variant for variant in theirs if variant.id == identity), key=_content)
        unlike = []
        for variant in sorted((variant for variant in mine if variant.id == identity), key=_content):
            twin = next((other for other in rest if _content(other) == _content(variant)), None)
            if twin is None:
                unlike.append(variant)
            else:
                rest.remove(twin)
                pairs.append((variant, twin))
        both = min(len(unlike), len(rest))
        pairs.extend(zip(unlike[:both], rest[:both], strict=True))
        only_a.extend(variant.id for variant in unlike[both:])
        only_b.extend(variant.id for variant in rest[both:])
    return pairs, tuple(only_a), tuple(only_b)


def _content(variant: Variant) -> tuple[object, ...]:
    return variant.code, tuple(variant.stages.items()), tuple(sorted(variant.metrics.items()))


def _of_pair(pair: Pair) -> str:
    return pair[0].id


def _judge(pairs: list[Pair], changed: list[Pair], only_a: int, only_b: int) -> tuple[GateVerdict, str, str]:
    total, stage = len(pairs), first_stage(pairs)
    other = sum(map(_code_differs, changed))
    unlike = sum(bool(_stages_that_differ(pair)) for pair in pairs)
    opaque = sum(_opaque_differs(pair) for pair in pairs)
    if only_a or only_b:
        alone = f"{only_a} launched variants are only on side A, {only_b} only on side B"
        return "CODE_CHANGED", "variants", f"{alone}; of the {total} on both, {len(changed)} changed"
    if other:
        return "CODE_CHANGED", stage, f"{other} of {total} launched variants have other code, first in {stage}"
    if changed:
        same = f"{len(changed)} of {total} launched variants have equal code but other {' or '.join(RESOURCES)}"
        return "CODE_CHANGED", stage or "resources", same
    if opaque:
        return "IR_UNKNOWN", stage, f"{opaque} of {total} binaries differ, of a format whose code caliber cannot find"
    if unlike:
        same = f"{unlike} of {total} launched variants differ, first in {stage}, but the code of all {total} is equal"
        return "IR_DIFF_SAME_CODE", stage, same
    return "NO_CODE_CHANGE", "", f"all {total} launched variants are equal in every stage"


def first_stage(pairs: Sequence[Pair]) -> str:
    """The first stage in compile order that differs in any pair, "" when none does."""
    places = [(_place(stage, pair), stage) for pair in pairs for stage in _stages_that_differ(pair)]
    return min(places)[1] if places else ""


def _place(stage: str, pair: Pair) -> int:
    return min(list(variant.stages).index(stage) for variant in pair if stage in variant.stages)


def _stages_that_differ(pair: Pair) -> list[str]:
    a, b = pair
    return [stage for stage in {**a.stages, **b.stages} if a.stages.get(stage) != b.stages.get(stage)]


def _code_differs(pair: Pair) -> bool:
    a, b = pair
    return _last(a) != _last(b)


def _last(variant: Variant) -> str:
    """What decides: the code, or where the binary's format is unknown the last text stage."""
    readable = [found for found in variant.stages.values() if not found.startswith(OPAQUE)]
    return variant.code or (readable[-1] if readable else "")


def _opaque_differs(pair: Pair) -> bool:
    """True when an unreadable binary differs: equal text before it then proves nothing."""
    opaque = [[found for found in variant.stages.values() if found.startswith(OPAQUE)] for variant in pair]
    return opaque[0] != opaque[1]


def _resources_differ(pair: Pair) -> bool:
    a, b = pair
    return any(a.metrics[name] != b.metrics[name] for name in RESOURCES if name in a.metrics and name in b.metrics)
