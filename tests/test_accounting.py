"""accounting: what counts as a layout conversion of a workload is a rule with a name; a rule takes claims back only."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from harness.accounting import RULES, Account, Count, Topology, account, published, stand
from harness.exact import MetricTotal
from tests import evidence
from tests.finished import compiled, op_cells, variant

ALL, LAUNCHED, MATCHED = RULES.values()


def counted(rule, a, b):
    return account(op_cells("mm", A=compiled(*a), B=compiled(*b)), rule)


def test_the_registry_is_named_by_version_and_says_what_it_counts():
    assert list(RULES) == ["all_variants_v1", "launched_kernels_v1", "matched_variants_v1"]
    assert all(name == rule.name and rule.text.endswith(".") for name, rule in RULES.items())


def test_candidates_that_the_tuner_rejected_count_only_under_the_old_rule():
    """945 variants against 33, 136 conversions against 10, were once published as a compiler's doing."""
    chosen = variant("v0", converts=10)
    rejected = [variant(f"w{number}", converts=14, launched=False) for number in range(9)]
    a, b = (chosen, *rejected), (chosen,)
    assert counted(ALL, a, b).topology is Topology.REDUCED
    assert counted(ALL, a, b).totals == (Count("ttgir", 136, 10),)
    assert counted(LAUNCHED, a, b).topology is Topology.SAME
    assert counted(MATCHED, a, b).topology is Topology.SAME


def test_a_launched_kernel_counts_once_however_many_rows_launched_it():
    found = counted(LAUNCHED, [variant("v0", 65)], [variant("v0", 15)])
    assert found.topology is Topology.REDUCED
    assert found.totals == (Count("ttgir", 65, 15),)
    assert found.reason == "ttgir 65 -> 15; 1 of 1 kernels differ"


def test_counts_are_given_per_kernel_and_per_variant():
    a = [variant("v0", 4, kernel="sort"), variant("v1", 6, kernel="sort"), variant("v2", 1, kernel="fill")]
    b = [variant("v0", 2, kernel="sort"), variant("v1", 3, kernel="sort"), variant("v2", 1, kernel="fill")]
    found = counted(LAUNCHED, a, b)
    assert [(unit.kernel, unit.variants_a, unit.counts) for unit in found.kernels] == [
        ("fill", 1, (Count("ttgir", 1, 1),)),
        ("sort", 2, (Count("ttgir", 10, 5),)),
    ]
    assert [(unit.variant, unit.counts[0].a, unit.counts[0].b) for unit in found.variants] == [
        ("v2", 1, 1), ("v0", 4, 2), ("v1", 6, 3),
    ]  # fmt: skip


def test_fewer_in_one_kernel_and_more_in_another_is_mixed_whatever_the_sum():
    a = [variant("v0", 9, kernel="sort"), variant("v1", 1, kernel="fill")]
    b = [variant("v0", 2, kernel="sort"), variant("v1", 2, kernel="fill")]
    assert counted(LAUNCHED, a, b).topology is Topology.MIXED
    assert counted(ALL, a, b).topology is Topology.REDUCED


def test_variants_of_one_kernel_are_told_apart_only_when_matched():
    a, b = [variant("v0", 9), variant("v1", 1)], [variant("v0", 2), variant("v1", 2)]
    assert counted(LAUNCHED, a, b).topology is Topology.REDUCED
    assert counted(MATCHED, a, b).topology is Topology.MIXED


def test_other_variants_on_the_other_side_are_no_reduction_when_matched():
    a, b = [variant("v0", 9), variant("v1", 9)], [variant("v0", 9)]
    assert counted(LAUNCHED, a, b).topology is Topology.REDUCED
    found = counted(MATCHED, a, b)
    assert found.topology is Topology.UNKNOWN
    assert "1 of 2 variants are not on both sides alike, first kernel v1: 1 on side A, 0 on side B" in found.reason


def test_a_kernel_of_one_side_only_is_unknown():
    found = counted(LAUNCHED, [variant("v0", 2), variant("v1", 1, kernel="copy")], [variant("v0", 1)])
    assert found.topology is Topology.UNKNOWN and "first copy: 1 on side A, 0 on side B" in found.reason


def test_more_conversions_are_an_increase():
    assert counted(MATCHED, [variant("v0", 1)], [variant("v0", 2)]).topology is Topology.INCREASED


def test_rounds_of_a_side_that_disagree_prove_nothing():
    cells = op_cells("mm", A=compiled(variant("v0", 4)), B=compiled(variant("v0", 2)))
    cells = evidence.change(cells, "r4_B", fingerprint=compiled(variant("v0", 3)))
    found = account(cells, LAUNCHED)
    assert found.topology is Topology.UNKNOWN
    assert "mm/r4_B do not have the same variants with the same counts" in found.reason


def test_the_recording_round_never_counts():
    cells = op_cells("mm", A=compiled(variant("v0", 4)), B=compiled(variant("v0", 2)))
    cells = evidence.change(cells, "r0_A", fingerprint=compiled(variant("tuned", 400)))
    assert account(cells, ALL).totals == (Count("ttgir", 4, 2),)


@pytest.mark.parametrize(
    ("key", "fingerprint", "reason"),
    [
        ("r2_A", None, "side A: mm/r2_A left no fingerprint"),
        ("r2_A", compiled(), "side A: mm/r1_A and mm/r2_A do not have the same variants with the same counts"),
    ],
)
def test_a_side_without_evidence_is_unknown(key, fingerprint, reason):
    cells = evidence.change(op_cells("mm"), key, fingerprint=fingerprint)
    found = account(cells, LAUNCHED)
    assert (found.topology, found.reason) == (Topology.UNKNOWN, reason)


def test_a_variant_whose_text_was_not_read_has_no_count():
    unread = replace(variant("v0"), metrics={"registers": 32})
    assert "1 of 1 variants have no text to count in, first kernel" in counted(LAUNCHED, [unread], [unread]).reason


def test_what_was_published_sums_over_rows():
    totals = [MetricTotal("convert_layout.ttgir", 130, 30, 2, 2), MetricTotal("registers", 64, 32, 2, 2)]
    found = published(totals)
    assert found.topology is Topology.REDUCED and found.totals == (Count("ttgir", 130, 30),)
    assert published([]).topology is Topology.UNKNOWN
    hidden = published([MetricTotal("convert_layout.ttgir", 10, 10, 2, 2)])
    assert hidden.topology is Topology.MIXED, "rows that moved both ways add up to nothing"


@pytest.mark.parametrize(("old", "new"), list(itertools.product(Topology, Topology)))
def test_no_rule_ever_promotes(old, new):
    stands, change, why = stand(Account(old, "was"), Account(new, "is"))
    assert stands.strength <= old.strength
    assert (change == "demoted") == (stands.strength < old.strength)
    assert change == "demoted" or stands is old
    assert change != "kept" or old is new
    assert why


def test_two_rules_that_disagree_on_the_direction_leave_a_change_without_one():
    stands, change, why = stand(Account(Topology.REDUCED, ""), Account(Topology.INCREASED, "ttgir 1 -> 2"))
    assert (stands, change) == (Topology.MIXED, "demoted")
    assert "published REDUCED, INCREASED under this rule" in why
