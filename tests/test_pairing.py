"""Pairing: nothing is intersected silently."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from harness.pairing import PairingError, pair, timer_fault
from harness.records import Outcome, RowKey
from tests.evidence import change, change_status, op_cells, row


def key(shape: str, occurrence: int = 0) -> RowKey:
    return RowKey("softmax", "float16", shape, occurrence, "")


def rows_of(cells, name):
    (found,) = (item.rows for item in cells if item.cell.key.endswith(name))
    return found


CELLS = op_cells({"[8]": [1.0, 2.0], "[9]": [4.0, 5.0]}, {"[8]": [1.5, 2.5], "[9]": [4.5, 5.5]})


def test_rows_are_paired_by_key_and_round_with_distinct_repetitions():
    found = pair(CELLS)
    assert [(p.round, p.a, p.b) for p in found.pairs[key("[8]")]] == [(1, 1.0, 1.5), (2, 2.0, 2.5)]
    assert [(p.round, p.a, p.b) for p in found.pairs[key("[9]")]] == [(1, 4.0, 4.5), (2, 5.0, 5.5)]
    assert found.pairs[key("[8]")][0].delta == pytest.approx(math.log(1.5))
    assert (found.ledger.n_a, found.ledger.n_b, found.ledger.n_paired) == (4, 4, 4)


def test_a_row_without_partner_is_an_orphan_named_by_side_and_round():
    cells = change(CELLS, "r2_A", rows=rows_of(CELLS, "r2_A")[:1])
    found = pair(cells)
    (orphan,) = found.ledger.orphans
    assert (orphan.side, orphan.round, orphan.key, orphan.reason) == ("B", 2, key("[9]"), "only B has it")
    assert [(gap.key, gap.rounds) for gap in found.ledger.gaps] == [(key("[9]"), (1,))]
    assert found.whole() == (key("[8]"),)
    assert (found.ledger.n_a, found.ledger.n_b, found.ledger.n_paired) == (3, 4, 3)


@pytest.mark.parametrize("value", [None, 0.0, -0.5, math.nan, math.inf])
def test_a_value_that_is_no_latency_is_never_paired(value):
    bad = replace(row(1.0, "[8]"), value=value, reason="event read 0")
    found = pair(change(CELLS, "r1_A", rows=(bad, rows_of(CELLS, "r1_A")[1])))
    (invalid,) = found.ledger.invalid
    assert (invalid.side, invalid.round, invalid.key) == ("A", 1, key("[8]"))
    assert "event read 0" in invalid.reason
    assert key("[8]") not in found.whole()
    assert found.ledger.orphans == ()


@pytest.mark.parametrize("changes", [{"timer": "direct"}, {"l2": "flushed"}, {"repeat": 5}])
def test_rows_timed_differently_are_mixed_and_not_a_pair(changes):
    first, second = rows_of(CELLS, "r1_B")
    found = pair(change(CELLS, "r1_B", rows=(replace(first, **changes), second)))
    (mixed,) = found.ledger.mixed
    assert (mixed.round, mixed.key, mixed.a) == (1, key("[8]"), "cuda_graph l2=warm repeat=1")
    assert mixed.b != mixed.a
    assert found.whole() == (key("[9]"),)


def test_a_timer_that_varies_between_rounds_takes_the_key_out():
    cells = CELLS
    for name in ("r2_A", "r2_B"):
        first, second = rows_of(CELLS, name)
        cells = change(cells, name, rows=(replace(first, timer="direct"), second))
    assert pair(cells).whole() == (key("[9]"),)


def test_a_duplicate_key_in_one_cell_is_an_error_that_names_both_rows():
    cells = change(CELLS, "r1_A", rows=(row(1.0, "[8]"), row(3.0, "[9]"), row(1.2, "[8]")))
    with pytest.raises(PairingError, match=r"softmax/r1_A: row 1 \(1.0 ms\) and row 3 \(1.2 ms\) share the key"):
        pair(cells)


def test_numbered_repeats_are_pairs_of_their_own():
    cells = op_cells({"[8]": [1.0]}, {"[8]": [1.0]})
    for name, value in (("r1_A", 2.0), ("r1_B", 3.0)):
        cells = change(cells, name, rows=(*rows_of(cells, name), row(value, "[8]", occurrence=1)))
    assert [p.b for own in pair(cells).pairs.values() for p in own] == [1.0, 3.0]


def test_repeats_whose_number_differs_are_not_guessed_into_pairs():
    cells = op_cells({"[8]": [1.0]}, {"[8]": [1.0]})
    cells = change(cells, "r1_B", rows=(*rows_of(cells, "r1_B"), row(3.0, "[8]", occurrence=1)))
    found = pair(cells)
    assert found.pairs == {}
    assert {(each.side, each.reason) for each in found.ledger.orphans} == {
        ("A", "1 repeats in A, 2 in B"),
        ("B", "1 repeats in A, 2 in B"),
    }


def test_a_round_with_one_measured_side_is_no_round():
    assert pair(change_status(CELLS, "r2_B", outcome=Outcome.OP_FAILED)).rounds == (1,)


def test_the_order_is_the_planned_slot():
    found = pair(op_cells({"[8]": [1.0] * 4}, {"[8]": [1.0] * 4}, orders=[1, -1, -1, 1]))
    assert found.orders == (1, -1, -1, 1)
    assert found.ledger.deviations == ()


def test_a_cell_run_again_later_counts_in_the_order_it_ran_and_is_named():
    cells = change_status(CELLS, "r1_A", started_at="2026-01-01T00:50:00+00:00", seq=9)
    found = pair(cells)
    assert found.orders == (-1, -1)
    assert found.ledger.deviations == (
        "round 1: planned A first, but B started first; the order that ran is used",
        "round 1: 6 other cell(s) started between its two",
        "round 2 started before round 1",
    )


def test_evidence_without_start_times_falls_back_on_the_plan():
    cells = tuple(replace(item, status=replace(item.status, started_at="")) for item in CELLS)
    assert pair(cells).orders == (1, -1)


@pytest.mark.parametrize(
    ("reason", "broken"),
    [
        ("TIMER_INVALID: latency -0.1", True),
        ("TIMER_INVALID: a time of -0.1 ms", True),  # as the timer itself says it
        ("TIMER_INVALID: a time of 0.0 ms", False),
        ("TIMER_RESOLUTION: 2 of 10 replays took no longer than their flushes", False),
    ],
)
def test_only_a_clock_that_runs_backwards_is_a_fault_of_the_whole_cell(reason, broken):
    assert timer_fault(row(None, reason=reason)) is broken
