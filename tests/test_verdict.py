"""Verdicts: which rule speaks, and that each verdict says why."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from harness import codec
from harness.findings import codes
from harness.records import ExitCode, Marker, Outcome
from harness.verdict import CampaignVerdict, OpVerdict, Verdict, exit_code, judge_campaign, judge_op
from tests.evidence import (
    AOT,
    JUDGE,
    change,
    change_identity,
    change_status,
    each_row,
    fallen,
    gate,
    gated,
    op_cells,
    side_rows,
    steps,
    swapped,
)

CHANGED = gate("CODE_CHANGED")
NOISE = (0.05, -0.04, 0.02, -0.05, 0.03, -0.01)


def op(effect: float, noise=NOISE, shapes: int = 2, name: str = "softmax", **changes):
    """Cells of an op whose B is `effect` per cent slower, with independent deviations of some 0.05 % on each side."""
    a = {f"[{8 + s}]": list(steps(1 + s, noise[s:] + noise[:s])) for s in range(shapes)}
    b = {f"[{8 + s}]": list(steps((1 + s) * (1 + effect / 100), noise[::-1])) for s in range(shapes)}
    return op_cells(a, b, name, **changes)


def noisy(effect: float, sd: float, seed: int, name: str = "softmax"):
    """One shape, B `effect` per cent slower, each cell off by a normal deviate of `sd` per cent."""
    a, b = np.random.default_rng(seed).normal(0, sd, (2, 6))
    return op_cells({"[8]": list(steps(1.0, a))}, {"[8]": list(steps(1 + effect / 100, b))}, name)


def judged(cells, found_gate=CHANGED, judge=JUDGE, **more) -> OpVerdict:
    """The verdict, and with every one the proof that `verdict.json` can hold it."""
    found = judge_op(cells, found_gate, judge, **more)
    assert codec.loads(OpVerdict, codec.dumps(found), "verdict.json") == found
    assert found.reasons
    return found


@pytest.mark.parametrize(
    ("effect", "verdict"), [(3.0, Verdict.SLOWER), (-3.0, Verdict.FASTER), (0.0, Verdict.SAME), (0.2, Verdict.SAME)]
)
def test_a_clear_effect_has_a_direction_and_a_small_one_is_the_same(effect, verdict):
    found = judged(op(effect))
    assert found.verdict is verdict
    assert {shape.verdict for shape in found.shapes} == {verdict}
    assert math.expm1(found.estimate.delta) * 100 == pytest.approx(effect, abs=0.05)


def test_a_verdict_says_its_numbers():
    (effect, code) = judged(op(3.0)).reasons
    assert effect.code == "EFFECT"
    assert effect.message.startswith("B 3.0 % slower, 95 % CI [+2.9")
    assert str(code) == "CODE_CHANGED: 1 of 3 launched variants have other code, first in ttgir"


@pytest.mark.parametrize("seed", range(6))
def test_swapping_the_sides_exchanges_faster_and_slower_and_nothing_else(seed):
    rng = np.random.default_rng(seed)
    cells = op(float(rng.choice([-3, 0, 3])), tuple(rng.normal(0, 0.3, 6)))
    other = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    one, two = judged(cells), judged(swapped(cells))
    assert two.verdict is other.get(one.verdict, one.verdict)
    assert two.estimate.delta == pytest.approx(-one.estimate.delta)
    assert [shape.verdict for shape in two.shapes] == [other.get(s.verdict, s.verdict) for s in one.shapes]


def test_a_significant_effect_below_the_margin_is_no_claim():
    found = judged(op(0.3), judge=replace(JUDGE, margin_pct=0.35))
    assert found.verdict is Verdict.SAME
    found = judged(op(0.3, tuple(4 * n for n in NOISE)), judge=replace(JUDGE, margin_pct=0.31))
    assert found.verdict is Verdict.UNRESOLVED
    assert "BELOW_MARGIN" in codes(found.reasons)


def test_noise_without_direction_is_sign_unstable_and_says_what_would_resolve_it():
    found = judged(noisy(0.0, 2.0, seed=1))
    assert found.verdict is Verdict.SIGN_UNSTABLE
    assert codes(found.reasons)[:2] == ("DIRECTION_NOT_RESOLVED", "POWER")
    assert "with 80 % power" in found.reasons[1].message


def test_a_direction_without_significance_is_unresolved():
    found = judged(op_cells({"[8]": [1.0] * 4}, {"[8]": [1.001, 1.08, 1.002, 1.09]}, orders=[1, 1, -1, -1]))
    assert found.verdict is Verdict.UNRESOLVED
    assert found.estimate.same_sign == 4
    assert codes(found.reasons)[:2] == ("EFFECT", "POWER")


@pytest.mark.parametrize("rounds", [1, 2])
def test_one_or_two_rounds_give_no_verdict_and_say_how_many_are_needed(rounds):
    found = judged(op_cells({"[8]": [100.0] * rounds}, {"[8]": [101.0] * rounds}))
    assert found.verdict is Verdict.UNRESOLVED
    assert codes(found.reasons)[0] == "TOO_FEW_ROUNDS"
    assert "at least 4 are needed" in found.reasons[0].message


def test_a_fixed_order_makes_no_claim_however_large_the_effect():
    found = judged(op(10.0, orders=[1] * 6))
    assert found.verdict is Verdict.UNRESOLVED
    assert found.reasons[0].code == "ORDER_CONFOUNDED"


def test_odd_rounds_are_fitted_and_said():
    found = judged(op(3.0, NOISE[:5]))
    assert found.verdict is Verdict.SLOWER
    assert "ORDER_UNBALANCED" in codes(found.reasons)


def test_a_cell_that_has_not_ended_makes_the_op_incomplete_and_withholds_every_number():
    found = judged(change(op(3.0), "r4_B", status=None))
    assert (found.verdict, found.estimate, found.shapes) == (Verdict.INCOMPLETE, None, ())
    assert found.reasons[0].message == "12 of 13 cells ended; missing: softmax/r4_B"


def test_a_planned_cell_that_is_absent_altogether_is_missing_too():
    cells = tuple(item for item in op(3.0) if item.cell.round != 6)
    assert judged(cells).reasons[0].message == "11 of 13 cells ended; missing: softmax/r6_A, softmax/r6_B"


def test_a_retryable_outcome_is_not_an_end():
    assert judged(change_status(op(3.0), "r4_B", outcome=Outcome.TIMED_OUT)).verdict is Verdict.INCOMPLETE


def test_a_failed_cell_fails_the_op_and_names_the_cell():
    cells = change_status(op(3.0), "r2_A", outcome=Outcome.OP_FAILED, reason="ROW_FAILED: illegal address")
    found = judged(change(cells, "r6_B", status=None))
    assert (found.verdict, found.estimate) == (Verdict.FAILED, None)
    assert str(found.reasons[0]) == "CELL_FAILED: softmax/r2_A: ROW_FAILED: illegal address"


def test_a_failed_recording_fails_the_op():
    assert judged(change_status(op(3.0), "r0_A", outcome=Outcome.OP_FAILED)).verdict is Verdict.FAILED


def test_a_benchmark_that_skipped_itself_is_not_comparable_and_grouped_by_reason():
    cells = op(3.0)
    for key in ("r1_A", "r1_B"):
        cells = change_status(cells, key, outcome=Outcome.SKIPPED, reason="needs 2 GPUs")
    found = judged(cells)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert str(found.reasons[0]) == "CELL_SKIPPED: softmax/r1_A and 1 more: needs 2 GPUs"


def test_a_poisoned_capture_is_not_a_failure_of_the_op():
    cells = fallen(op(3.0), "r1_B", Marker.BENCHMARK_CAPTURE_POISONED)
    found = judged(change_status(cells, "r1_B", outcome=Outcome.OP_FAILED))
    assert found.verdict is Verdict.POISONED
    by_count = change_status(op(3.0), "r1_B", markers={"BENCHMARK_CAPTURE_POISONED": 1})
    assert judged(by_count).verdict is Verdict.POISONED


def test_a_partial_replay_is_not_comparable():
    found = judged(fallen(op(3.0), "r3_A", Marker.AUTOTUNE_REPLAY_FALLBACK))
    assert (found.verdict, found.estimate) == (Verdict.NOT_COMPARABLE, None)
    assert str(found.reasons[0]) == "REPLAY_PARTIAL: softmax/r3_A: 1 key(s) tuned themselves, not replayed"


def test_a_fallback_while_recording_is_no_matter():
    assert judged(fallen(op(3.0), "r0_A", Marker.AUTOTUNE_REPLAY_FALLBACK)).verdict is Verdict.SLOWER


def test_fewer_rows_than_expected_are_incomplete():
    found = judged(change_status(op(3.0), "r3_A", rows_expected=5))
    assert found.verdict is Verdict.INCOMPLETE
    assert str(found.reasons[0]) == "ROWS_MISSING: softmax/r3_A: 2 rows, 5 expected"


@pytest.mark.parametrize("bad", [{"value": -0.5}, {"value": None, "reason": "TIMER_INVALID: latency -0.5"}])
def test_a_negative_latency_is_a_timer_fault_of_the_whole_cell(bad):
    cells = op(3.0)
    (rows,) = (item.rows for item in cells if item.cell.key == "softmax/r3_A")
    found = judged(change(cells, "r3_A", rows=(replace(rows[0], **bad), rows[1])))
    assert (found.verdict, codes(found.reasons)) == (Verdict.NOT_COMPARABLE, ("TIMER_INVALID",))


def test_a_duplicate_row_is_not_comparable():
    cells = op(3.0)
    (rows,) = (item.rows for item in cells if item.cell.key == "softmax/r3_A")
    cells = change_status(change(cells, "r3_A", rows=(*rows, rows[0])), "r3_A", rows_expected=None)
    assert codes(judged(cells).reasons) == ("DUPLICATE_ROW",)


def test_another_caliber_is_refused_and_when_released_still_printed():
    cells = change_identity(op(3.0), "r3_A", timer="direct")
    refused = judged(cells)
    assert (refused.verdict, refused.estimate, codes(refused.reasons)) == (Verdict.NOT_COMPARABLE, None, ("CALIBER",))
    released = judged(cells, judge=replace(JUDGE, allow_caliber_mismatch=True))
    assert released.verdict is Verdict.SLOWER
    (kept,) = (reason for reason in released.reasons if reason.code == "CALIBER_RELEASED")
    assert kept.message == refused.reasons[0].message
    assert kept.message.startswith("!!! [caliber] timer: ")


@pytest.mark.parametrize("word", ["NO_CODE_CHANGE", "IR_DIFF_SAME_CODE"])
def test_unchanged_code_skips_the_rest_and_keeps_round_one_as_noise(word):
    found = judged(gated(op(0.2)), gate(word))
    assert found.verdict is Verdict(word)
    assert codes(found.reasons) == (word, "AA_NOISE")
    assert found.aa_delta == pytest.approx(0.002, abs=0.001)
    assert {shape.verdict for shape in found.shapes} == {Verdict(word)}
    assert found.estimate.p is None


def test_unchanged_code_measured_in_all_rounds_raises_an_alarm_when_it_moves():
    found = judged(op(3.0), gate("NO_CODE_CHANGE"))
    assert found.verdict is Verdict.NO_CODE_CHANGE
    assert "AA_ALARM" in codes(found.reasons)
    assert "AA_ALARM" not in codes(judged(op(0.0), gate("NO_CODE_CHANGE")).reasons)


def test_a_declared_aa_is_judged_on_latency_though_its_code_is_the_same():
    found = judged(op(0.0, declared_aa=True), gate("NO_CODE_CHANGE"))
    assert found.verdict is Verdict.SAME
    assert "AA_CONTROL" in codes(found.reasons)


def test_skipped_rounds_need_a_gate_that_said_so():
    assert judged(gated(op(3.0)), CHANGED).verdict is Verdict.NOT_COMPARABLE
    assert judged(gated(op(3.0)), None).verdict is Verdict.NOT_COMPARABLE


def test_unknown_code_keeps_the_numbers_but_not_the_claim():
    found = judged(op(3.0), gate("IR_UNKNOWN"))
    assert found.verdict is Verdict.IR_UNKNOWN
    assert found.estimate is not None
    assert codes(found.reasons)[:2] == ("IR_UNKNOWN", "LATENCY_ALONE")


def test_a_missing_gate_is_said():
    assert "GATE_MISSING" in codes(judged(op(3.0), None).reasons)


def test_a_shape_timed_differently_by_the_sides_has_no_number_and_leaves_the_op():
    cells = op(3.0)
    (rows,) = (item.rows for item in cells if item.cell.key == "softmax/r3_B")
    found = judged(change(cells, "r3_B", rows=(replace(rows[0], timer="direct", l2="flushed"), rows[1])))
    assert [shape.verdict for shape in found.shapes] == [Verdict.MIXED_TIMER, Verdict.SLOWER]
    assert found.shapes[0].estimate is None
    assert "SHAPES_LEFT_OUT" in codes(found.reasons)


def test_an_op_of_mixed_timers_only_is_mixed():
    found = judged(side_rows(op(3.0), "B", timer="direct"))
    assert (found.verdict, found.estimate, codes(found.reasons)[0]) == (Verdict.MIXED_TIMER, None, "NOTHING_PAIRED")


def test_an_invalid_row_makes_its_shape_incomplete_with_its_count():
    cells = op(3.0)
    (rows,) = (item.rows for item in cells if item.cell.key == "softmax/r3_B")
    found = judged(change(cells, "r3_B", rows=(replace(rows[0], value=None, reason="TIMER_ZERO"), rows[1])))
    assert found.shapes[0].verdict is Verdict.INCOMPLETE
    assert str(found.shapes[0].reasons[0]) == "ROW_INVALID: 5 of 6 rounds paired; round 3 B: TIMER_ZERO"
    assert found.verdict is Verdict.SLOWER


def test_nothing_paired_is_never_a_good_result():
    cells = tuple(change_status([item], item.cell.key.split("/")[1], rows_expected=None)[0] for item in op(3.0))
    found = judged(tuple(replace(item, rows=()) for item in cells))
    assert (found.verdict, codes(found.reasons)) == (Verdict.NOT_COMPARABLE, ("NOTHING_PAIRED",))


def test_an_op_without_cells_is_a_bug():
    with pytest.raises(ValueError, match="no cells"):
        judge_op((), None, JUDGE)


def test_fallback_rows_are_counted_per_side():
    found = judged(fallen(op(3.0), "r3_A", Marker.BENCHMARK_DIRECT_NO_CUDAGRAPH))
    assert "FALLBACK_TIMER: rows timed directly, not by graph: A 1, B 0" in map(str, found.reasons)


def test_the_order_of_a_cell_run_again_is_said():
    found = judged(change_status(op(3.0), "r1_A", started_at="2026-01-02T00:00:00+00:00"))
    assert "ORDER_DEVIATED" in codes(found.reasons)


def test_a_claim_that_vanishes_in_clock_cycles_is_the_clocks():
    cells = op(3.0)
    slow = {item.cell.key: 1000.0 if item.cell.side.name == "A" else 1000.0 / 1.03 for item in cells}
    found = judged(cells, clocks=slow)
    assert (found.verdict, found.reasons[0].code) == (Verdict.CLOCK_CONFOUNDED, "CLOCK")
    assert judged(cells, clocks=dict.fromkeys(slow, 1000.0)).verdict is Verdict.SLOWER
    assert judged(cells, clocks={"softmax/r1_A": 500.0}).verdict is Verdict.SLOWER


def test_spread_beyond_the_sides_own_noise_is_named():
    drift = np.array([0.0, 2.0, 0.5, 3.0, 1.0, 4.0])
    shared = op_cells({"[8]": list(1 + drift / 100)}, {"[8]": list(1 + drift / 100)})
    assert judged(shared).verdict is Verdict.SAME
    opposed = op_cells({"[8]": list(1 + drift / 100)}, {"[8]": list(1 - drift / 100)})
    assert judged(shared).noise.ratio == pytest.approx(0, abs=1e-9)
    assert judged(opposed).noise.ratio > 1


def test_a_coarse_timer_widens_the_margin():
    tick = 1.024e-3
    a = {"[8]": [n * tick for n in (9, 10, 9, 9, 10, 9)], "[9]": [n * tick for n in (900, 901, 903, 900, 902, 901)]}
    b = {"[8]": [10 * tick] * 6, "[9]": a["[9]"]}
    small, large = judged(op_cells(a, b)).shapes
    assert math.expm1(small.margin) > 0.2
    assert math.expm1(large.margin) == pytest.approx(0.005)
    assert not small.verdict.claims


def test_compile_latency_is_called_so_and_metrics_are_compared_exactly():
    cells = each_row(op(0.0, instrument=AOT, timer="compile"), metrics={"convert_layout.ttgir": 2, "registers": 40})
    cells = side_rows(cells, "B", metrics={"convert_layout.ttgir": 3, "registers": 40})
    found = judged(cells)
    assert found.quantity == "compile latency"
    assert [str(total) for total in found.metrics] == ["convert_layout.ttgir 4 -> 6", "registers 80 -> 80"]
    assert [total.rows_changed for total in found.metrics] == [2, 0]
    assert [str(each) for shape in found.shapes for each in shape.metrics] == ["convert_layout.ttgir 2 -> 3"] * 2


def test_a_metric_that_varies_between_rounds_is_no_exact_value():
    cells = each_row(op(0.0), metrics={"spills": 2, "registers": 7})
    cells = change(cells, "r2_A", rows=each_row(cells, metrics={"spills": 9, "registers": 7})[3].rows)
    (key,) = {item.cell.key for item in cells if any(row.metrics.get("spills") == 9 for row in item.rows)}
    found = judged(cells)
    assert key == "softmax/r2_A"
    assert [total.metric for total in found.metrics] == ["registers"]
    (reason,) = (reason for reason in found.reasons if reason.code == "METRIC_UNSTABLE")
    assert reason.message.startswith("spills of softmax float16 [8] is 2 or 9 in the rounds of A")


def test_a_metric_on_one_side_only_is_named():
    cells = side_rows(each_row(op(0.0), metrics={"registers": 7}), "B", metrics={})
    found = judged(cells)
    assert found.metrics == ()
    assert "METRIC_ONE_SIDED" in codes(found.reasons)


def shifted(cells, key, **changes):
    """One row of one cell changed."""
    (rows,) = (item.rows for item in cells if item.cell.key.endswith(f"/{key}"))
    return change(cells, key, rows=(replace(rows[0], **changes), *rows[1:]))


def clocks(cells, ratio):
    return {item.cell.key: 1980.0 / (ratio if item.cell.side.name == "B" else 1.0) for item in cells}


#: One op for each word a verdict can be.
EVERY_VERDICT = {
    Verdict.FASTER: lambda: judged(op(-3.0)),
    Verdict.SLOWER: lambda: judged(op(3.0)),
    Verdict.SAME: lambda: judged(op(0.0)),
    Verdict.UNRESOLVED: lambda: judged(op(10.0, orders=[1] * 6)),
    Verdict.SIGN_UNSTABLE: lambda: judged(noisy(0.0, 2.0, seed=1)),
    Verdict.NO_CODE_CHANGE: lambda: judged(gated(op(0.2)), gate("NO_CODE_CHANGE")),
    Verdict.IR_DIFF_SAME_CODE: lambda: judged(gated(op(0.2)), gate("IR_DIFF_SAME_CODE")),
    Verdict.IR_UNKNOWN: lambda: judged(op(3.0), gate("IR_UNKNOWN")),
    Verdict.NOT_COMPARABLE: lambda: judged(change_identity(op(3.0), "r3_A", timer="direct")),
    Verdict.MIXED_TIMER: lambda: judged(side_rows(op(3.0), "B", timer="direct")),
    Verdict.INCOMPLETE: lambda: judged(change(op(3.0), "r4_B", status=None)),
    Verdict.POISONED: lambda: judged(fallen(op(3.0), "r1_B", Marker.BENCHMARK_CAPTURE_POISONED)),
    Verdict.FAILED: lambda: judged(change_status(op(3.0), "r2_A", outcome=Outcome.OP_FAILED)),
    Verdict.CLOCK_CONFOUNDED: lambda: judged(op(3.0), clocks=clocks(op(3.0), 1.03)),
}


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_can_be_reached_and_says_why_with_numbers(verdict):
    found = EVERY_VERDICT[verdict]()
    assert found.verdict is verdict
    assert found.reasons[0].code.isupper()
    assert any(letter.isdigit() for letter in found.reasons[0].message), found.reasons[0]
    for shape in found.shapes:
        assert any(letter.isdigit() for reason in shape.reasons for letter in reason.message), shape.reasons


#: The words of a single shape; the others concern the cells of an op as a whole.
SHAPE_VERDICTS = (
    (Verdict.MIXED_TIMER, lambda cells: judged(shifted(cells, "r3_B", timer="direct"))),
    (Verdict.INCOMPLETE, lambda cells: judged(shifted(cells, "r3_B", value=None, reason="TIMER_ZERO"))),
    (Verdict.CLOCK_CONFOUNDED, lambda cells: judged(cells, clocks=clocks(cells, 1.03))),
    (Verdict.IR_UNKNOWN, lambda cells: judged(cells, gate("IR_UNKNOWN"))),
    (Verdict.NO_CODE_CHANGE, lambda cells: judged(gated(cells), gate("NO_CODE_CHANGE"))),
)


@pytest.mark.parametrize(("verdict", "judging"), SHAPE_VERDICTS)
def test_a_shape_too_says_what_its_number_is_worth(verdict, judging):
    found = judging(op(3.0))
    assert found.shapes[0].verdict is verdict
    assert found.shapes[0].reasons


def test_a_clock_that_moved_takes_the_claims_of_the_shapes_too():
    found = judged(op(3.0, shapes=12), clocks=clocks(op(3.0), 1.03))
    assert {shape.verdict for shape in found.shapes} == {Verdict.CLOCK_CONFOUNDED}
    assert {codes(shape.reasons) for shape in found.shapes} == {("CLOCK", "EFFECT")}


@pytest.mark.parametrize(
    ("orders", "verdict", "code"),
    [
        ([1], Verdict.UNRESOLVED, "TOO_FEW_ROUNDS"),
        ([1, -1], Verdict.UNRESOLVED, "TOO_FEW_ROUNDS"),
        ([1, 1], Verdict.UNRESOLVED, "ORDER_CONFOUNDED"),
        ([1, -1, 1], Verdict.SLOWER, "EFFECT"),
        ([1, -1, 1, -1], Verdict.SLOWER, "EFFECT"),
        ([1, 1, 1, -1], Verdict.SLOWER, "EFFECT"),
        ([-1] * 5, Verdict.UNRESOLVED, "ORDER_CONFOUNDED"),
        ([1, -1, 1, -1, 1], Verdict.SLOWER, "EFFECT"),
    ],
)
def test_any_number_of_rounds_in_any_order_has_a_defined_answer(orders, verdict, code):
    found = judged(op(3.0, (NOISE + NOISE)[: len(orders)], orders=orders))
    assert (found.verdict, found.reasons[0].code) == (verdict, code)
    assert ("ORDER_UNBALANCED" in codes(found.reasons)) == (verdict is Verdict.SLOWER and sum(orders) != 0)


@pytest.mark.parametrize("seed", range(8))
def test_swapping_the_sides_of_any_op_mirrors_the_whole_verdict(seed):
    """Shapes in family or not, odd and unbalanced rounds, constant and missing rows: only the direction changes."""
    rng = np.random.default_rng(seed)
    shapes, rounds = int(rng.choice([2, 14])), int(rng.integers(3, 9))
    truth, sd = rng.choice([0.0, 2.0, -2.0], shapes), rng.choice([0.0, 0.1, 1.0], shapes)
    a = {f"[{s}]": list(steps(1.0, rng.normal(0, sd[s], rounds))) for s in range(shapes)}
    b = {f"[{s}]": list(steps(1 + truth[s] / 100, rng.normal(0, sd[s], rounds))) for s in range(shapes)}
    if seed % 2:
        b["[0]"][rounds - 1] = None
    cells = op_cells(a, b, orders=[1, -1, *rng.choice([1, -1], rounds - 2)])
    other = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    one, two = judged(cells), judged(swapped(cells))
    assert two.verdict is other.get(one.verdict, one.verdict)
    assert [shape.verdict for shape in two.shapes] == [other.get(s.verdict, s.verdict) for s in one.shapes]
    assert two.family_p == one.family_p
    assert (two.ledger.n_a, two.ledger.n_b) == (one.ledger.n_b, one.ledger.n_a)
    assert two.ledger.n_paired == one.ledger.n_paired
    pairs = [(x.estimate, y.estimate) for x, y in zip(one.shapes, two.shapes, strict=True) if x.estimate]
    assert all(y.delta == pytest.approx(-x.delta, abs=1e-12) and y.p == pytest.approx(x.p, rel=1e-6) for x, y in pairs)


def campaign(*effects: float, noise=NOISE, **changes) -> dict[str, OpVerdict]:
    return {
        f"op{index}": judged(op(effect, noise, name=f"op{index}", **changes)) for index, effect in enumerate(effects)
    }


def test_the_campaign_withdraws_a_claim_that_does_not_survive_all_ops():
    weak = judged(noisy(0.8, 0.3, seed=2, name="weak"))
    assert weak.verdict is Verdict.SLOWER
    assert weak.estimate.p > 0.001
    alone = judge_campaign({"weak": weak}, JUDGE)
    assert alone.ops[0].verdict is Verdict.SLOWER
    nulls = {f"null{i}": judged(noisy(0.0, 0.3, i, f"null{i}")) for i in range(60)}
    line = judge_campaign({"weak": weak, **nulls}, JUDGE).ops[0]
    assert line.verdict is Verdict.UNRESOLVED
    assert codes(line.reasons) == ("ACROSS_OPS",)


def test_the_campaign_describes_its_corpus():
    ops = campaign(3.0, -2.0, 0.0)
    ops["gone"] = judged(gated(op(0.1, name="gone")), gate("NO_CODE_CHANGE", "gone"))
    found = judge_campaign(ops, JUDGE)
    assert codec.loads(CampaignVerdict, codec.dumps(found), "campaign") == found
    assert (found.balance.faster, found.balance.slower) == (1, 1)
    assert (found.geomean.ops, found.geomean.shapes) == (3, 6)
    assert found.geomean.delta == pytest.approx(np.mean([ops[f"op{i}"].estimate.delta for i in range(3)]))
    floor, moved = found.noise_floor, np.abs(ops["gone"].control)
    assert (floor.ops, floor.shapes) == (1, 2)
    assert (floor.p50, floor.p95, floor.largest) == pytest.approx(tuple(np.percentile(moved, [50, 95, 100])))
    assert found.reasons == ()


def test_claims_of_one_sign_only_are_the_fingerprint_of_an_artifact():
    assert codes(judge_campaign(campaign(3.0, 2.0, 4.0, 5.0, 3.0), JUDGE).reasons) == ("ONE_SIDED",)
    assert judge_campaign(campaign(3.0, 2.0, 4.0, 5.0, -3.0), JUDGE).reasons == ()


def test_an_aa_control_counts_its_false_claims():
    (reason,) = judge_campaign(campaign(3.0, 0.0, declared_aa=True), JUDGE).reasons
    assert str(reason) == "AA_CONTROL: 1 of 2 ops of the A/A control claim a difference; accept 5%"


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda cells: cells, ExitCode.DONE),
        (lambda cells: change_identity(cells, "r2_A", level="comprehensive"), ExitCode.CALIBER),
        (lambda cells: change(cells, "r2_A", status=None), ExitCode.INCOMPLETE),
        (lambda cells: change_status(cells, "r2_A", outcome=Outcome.OP_FAILED), ExitCode.FAILED),
    ],
)
def test_the_exit_code_follows_the_gravest_op(spoil, code):
    ops = {**campaign(3.0), "softmax": judged(spoil(op(3.0)))}
    assert exit_code(judge_campaign(ops, JUDGE), ops) is code


def test_a_campaign_of_nothing_is_incomplete():
    assert exit_code(judge_campaign({}, JUDGE), {}) is ExitCode.INCOMPLETE
