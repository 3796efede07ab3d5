"""Incidents of judging: what really went wrong elsewhere, and what caliber answers (facts: incidents)."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from harness import codec
from harness.findings import OpVerdict, codes
from harness.records import Event, ExitCode, Marker, Outcome
from harness.report import assemble, markdown
from harness.statistics import percent, words
from harness.verdict import Verdict, exit_code, judge_campaign, judge_op
from tests.evidence import (
    JUDGE,
    change,
    change_identity,
    change_status,
    ended,
    fallen,
    gate,
    gated,
    op_cells,
    row,
    side_rows,
    steps,
    swapped,
)

CHANGED = gate()
NOISE = (0.05, -0.04, 0.02, -0.05, 0.03, -0.01)


def op(effect: float = 0.0, sd: float = 0.05, name: str = "softmax", seed: int = 1, shapes: int = 2, **changes):
    """`effect` per cent between the sides, each cell off by a normal deviate of `sd` per cent."""
    rng = np.random.default_rng(seed)
    a = {f"[{s}]": list(steps(1.0 + s, rng.normal(0, sd, 6))) for s in range(shapes)}
    b = {f"[{s}]": list(steps((1.0 + s) * (1 + effect / 100), rng.normal(0, sd, 6))) for s in range(shapes)}
    return op_cells(a, b, name, **changes)


def judged(cells, found_gate=CHANGED, judge=JUDGE, **more):
    return judge_op(cells, found_gate, judge, **more)


def everywhere(cells, **changes):
    for item in cells[1:]:
        cells = change_identity(cells, item.cell.key.split("/")[1], **changes)
    return cells


def on_side(cells, side, **changes):
    for item in cells[1:]:
        if item.cell.side.name == side:
            cells = change_identity(cells, item.cell.key.split("/")[1], **changes)
    return cells


# The incidents this project was born from


def test_record_against_record_is_refused_by_name():
    """router_gemm "-8.2 %" was the choice of configuration, not the compiler."""
    found = judged(everywhere(op(-8.2), autotune_mode="record"))
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "autotune_mode: record (a measured cell must replay" in found.reasons[0].message


def test_winners_inherited_from_a_shared_tuner_cache_are_another_caliber():
    """mm "945 variants -> 33" was a warm sqlite, not a compiler result."""
    found = judged(on_side(op(-3.0), "B", tuner_cache="shared"))
    assert (found.verdict, found.estimate) == (Verdict.NOT_COMPARABLE, None)
    assert found.reasons[0].message.startswith("!!! [caliber] tuner_cache: ")


def test_two_timers_are_another_caliber():
    """replication_pad3d "+43 %" against "+124.5 %"."""
    found = judged(on_side(op(43.0), "B", timer="direct"))
    assert found.reasons[0].message.startswith("!!! [caliber] timer: cuda_graph -> softmax/r1_A")


def test_a_table_whose_rows_all_fell_back_says_what_timed_it():
    """`timer=cuda_graph` stood over a table where all 15 rows had fallen back."""
    cells = op(3.0)
    for item in cells[1:]:
        key = item.cell.key.split("/")[1]
        rows = tuple(replace(each, timer="direct", l2="flushed") for each in item.rows)
        fallback = (Event(Marker.BENCHMARK_DIRECT_NO_CUDAGRAPH.value, "", {"repeat": "1"}),) * 2
        cells = change(cells, key, rows=rows, events=fallback)
    found = judged(cells)
    assert found.verdict is Verdict.SLOWER  # alike on both sides, so comparable
    assert "FALLBACK_TIMER: rows timed directly, not by graph: A 12, B 12" in map(str, found.reasons)


def test_a_captured_row_against_a_fallen_back_one_is_no_number():
    assert judged(side_rows(op(3.0), "B", timer="direct", l2="flushed")).verdict is Verdict.MIXED_TIMER


def test_a_poisoned_capture_is_not_a_broken_operator():
    cells = fallen(op(), "r1_A", Marker.BENCHMARK_CAPTURE_POISONED)
    assert judged(change_status(cells, "r1_A", outcome=Outcome.OP_FAILED)).verdict is Verdict.POISONED


def test_a_replay_with_holes_is_no_replay():
    """5 of 29 mm shapes were swept; 90 AUTOTUNE_REPLAY_FALLBACK in a run that reported itself as replaying."""
    found = judged(change_status(op(-3.0), "r4_B", markers={"AUTOTUNE_REPLAY_FALLBACK": 90}))
    assert str(found.reasons[0]) == "REPLAY_PARTIAL: softmax/r4_B: 90 key(s) tuned themselves, not replayed"


def test_the_recording_run_is_never_a_measurement():
    """Recording costs 3 %; as round 1 of side A it biased a six-round campaign by -0.5 %."""
    cells = op(0.0)
    dear = ended(cells[0].cell, [row(1.5, "[0]"), row(3.0, "[1]")], Outcome.RECORDED)
    assert judged((dear, *cells[1:])).estimate == judged(cells).estimate


@pytest.mark.parametrize("outcome", [Outcome.OP_FAILED, None])
def test_a_report_over_the_rounds_that_happened_to_succeed_is_withheld(outcome):
    """It reads exactly like a complete one."""
    cells = op(3.0)
    spoiled = change_status(cells, "r6_B", outcome=outcome) if outcome else change(cells, "r6_B", status=None)
    found = judged(spoiled)
    assert found.verdict in (Verdict.FAILED, Verdict.INCOMPLETE)
    assert (found.estimate, found.shapes) == (None, ())
    assert "softmax/r6_B" in found.reasons[0].message


def test_a_switch_that_changed_no_code_is_no_null_result():
    """N-1 rounds measured noise and reported "no difference"."""
    found = judged(gated(op(0.0)), gate("NO_CODE_CHANGE"))
    assert found.verdict is Verdict.NO_CODE_CHANGE
    assert found.aa_delta is not None


def test_a_null_result_needs_proof_that_the_switch_is_live():
    """A switch that no longer exists gives a full table and "no difference"."""
    assert judged(op(0.0), gate("IR_UNKNOWN")).verdict is Verdict.IR_UNKNOWN
    assert "GATE_MISSING" in codes(judged(op(0.0), None).reasons)


def test_shapes_near_zero_change_sign_and_are_told_apart_from_claims():
    """17 of 42 shapes of topk changed sign between two valid runs, inside a 1.7 pp noise floor."""
    runs = [judged(op(0.1, sd=1.7, seed=seed, shapes=42)) for seed in (1, 2)]
    signs = [[math.copysign(1, shape.estimate.delta) for shape in run.shapes] for run in runs]
    assert sum(one != two for one, two in zip(*signs, strict=True)) >= 10
    assert [sum(shape.verdict.claims for shape in run.shapes) for run in runs] == [0, 0]


def test_drift_that_both_sides_share_shows_as_spread_of_neither():
    """A six-round A/B reported 0.01 % side noise while clocks drifted: position and trend are taken out, and said."""
    drift = [0.0, 0.6, 1.2, 1.8, 2.4, 3.0]
    a, b = (list(steps(1.0, np.array(drift) + np.array(n))) for n in (NOISE, NOISE[::-1]))
    found = judged(op_cells({"[8]": a}, {"[8]": b}))
    assert percent(found.noise.a) < 0.1
    assert found.verdict is Verdict.SAME


def test_a_clock_that_moved_with_the_side_is_no_compiler_result():
    cells = op(3.0)
    clocks = {item.cell.key: 1980.0 if item.cell.side.name == "A" else 1980.0 / 1.03 for item in cells}
    assert judged(cells, clocks=clocks).verdict is Verdict.CLOCK_CONFOUNDED


def test_verdicts_are_rederived_from_evidence_without_measuring_again():
    cells = op(0.7)
    assert judged(cells).verdict is Verdict.SLOWER
    assert judged(cells, judge=replace(JUDGE, margin_pct=2.0)).verdict is Verdict.SAME


# Public reports


def test_tritonbench_262_two_sides_of_one_commit_are_refused():
    found = judged(on_side(op(3.0), "B", switch={"X": None}))
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "sides do not differ on any axis; declare A/A?" in found.reasons[0].message


def test_litellm_31738_another_runner_is_refused_with_exit_code_4():
    found = judged(on_side(op(3.0), "B", device_model="H100"))
    assert exit_code(judge_campaign({"softmax": found}, JUDGE), {"softmax": found}) is ExitCode.CALIBER


def test_folo_429_unstable_facts_of_a_machine_are_evidence_not_identity():
    assert judged(on_side(op(3.0), "B", host="other", pid=1, started_at="later")).verdict is Verdict.SLOWER


def test_folo_429_claims_of_one_sign_are_pointed_at():
    ops = {name: judged(op(3.0, name=name)) for name in "abcde"}
    assert codes(judge_campaign(ops, JUDGE).reasons) == ("ONE_SIDED",)


@pytest.mark.parametrize("value", [0.0, None])
def test_tritonbench_214_a_failure_stored_as_zero_is_never_the_fastest(value):
    cells = op(0.0)
    bad = replace(cells[1].rows[0], value=value, reason="out of memory")
    found = judged(change(cells, cells[1].cell.key.split("/")[1], rows=(bad, cells[1].rows[1])))
    assert found.shapes[0].verdict is Verdict.INCOMPLETE
    assert "out of memory" in found.shapes[0].reasons[0].message
    assert found.verdict is Verdict.SAME


def test_google_benchmark_2290_a_zero_does_not_turn_the_geomean_to_zero():
    cells = side_rows(op(0.0, name="zero"), "B", value=0.0)
    ops = {"zero": judged(cells, gate(op="zero")), "mm": judged(op(-50.0, name="mm"), gate(op="mm"))}
    found = judge_campaign(ops, JUDGE).geomean
    assert (found.ops, round(percent(found.delta))) == (1, -50)


def test_nvbench_231_a_cell_without_samples_is_incomplete_not_nan():
    found = judged(change(op(0.0), "r2_A", rows=()))
    assert (found.verdict, codes(found.reasons)) == (Verdict.INCOMPLETE, ("ROWS_MISSING",))


def test_go_57648_a_public_tool_prints_minus_81_percent_where_the_pairs_say_minus_18():
    a = {"[1]": [1.0] * 6, "[2]": [100.0] * 6}
    b = {"[1]": [0.817] * 6, "[3]": [1.0] * 6}
    found = judged(op_cells(a, b))
    assert percent(found.estimate.delta) == pytest.approx(-18.3)
    assert {(orphan.side, orphan.key.shape) for orphan in found.ledger.orphans} == {("A", "[2]"), ("B", "[3]")}


def test_google_benchmark_677_repetition_i_is_compared_with_repetition_i():
    found = judged(op_cells({"[8]": [1.0, 2.0, 4.0, 8.0]}, {"[8]": [1.1, 2.2, 4.4, 8.8]}))
    assert [each.delta for each in found.rounds] == pytest.approx([math.log(1.1)] * 4)


def test_google_benchmark_1482_nothing_compared_is_no_success():
    ops = {"softmax": judged(side_rows(op(0.0), "B", value=None))}
    assert exit_code(judge_campaign(ops, JUDGE), ops) is ExitCode.INCOMPLETE


def test_go_19634_constant_samples_are_kept():
    found = judged(op_cells({"[8]": [115.0] * 5}, {"[8]": [78.8] * 5}))
    assert found.verdict is Verdict.FASTER
    assert percent(found.estimate.delta) == pytest.approx(-31.48, abs=0.01)


def test_ifc_lite_4221_positional_bias_is_not_certified_as_real():
    """A fixed order with a 1 % slot penalty gives false verdicts always; balanced, the slot term takes it."""
    second = {+1: (0.0, 1.0), -1: (1.0, 0.0)}  # per cent on A, on B
    for orders, verdict in (([1] * 6, Verdict.UNRESOLVED), ([1, -1, -1, 1, 1, -1], Verdict.SAME)):
        a = [1 + (second[o][0] + n) / 100 for o, n in zip(orders, NOISE, strict=True)]
        b = [1 + (second[o][1] + n) / 100 for o, n in zip(orders, NOISE[::-1], strict=True)]
        found = judged(op_cells({"[8]": a}, {"[8]": b}, orders=orders))
        assert found.verdict is verdict
    assert percent(found.estimate.slot) == pytest.approx(1.0, abs=0.05)


def test_infomap_943_noise_is_that_between_rounds_not_within_a_call():
    found = judged(op(0.0, sd=8.5))
    assert percent(found.noise.a) > 3
    assert not found.verdict.claims


def test_sightglass_192_absent_significance_is_never_sameness():
    assert judged(op(0.3, sd=3.0)).verdict in (Verdict.UNRESOLVED, Verdict.SIGN_UNSTABLE)


def test_asv_952_the_direction_is_one_and_is_spelt():
    found = judged(op(3.0))
    assert (found.verdict, words(found.estimate.delta)[-6:]) == (Verdict.SLOWER, "slower")
    assert judged(swapped(op(3.0))).verdict is Verdict.FASTER


def test_nvbench_383_the_exit_code_is_no_count_and_a_change_is_no_failure():
    ops = {f"op{i}": judged(op(5.0 if i % 2 else -5.0, name=f"op{i}")) for i in range(4)}
    assert exit_code(judge_campaign(ops, JUDGE), ops) is ExitCode.DONE


def test_pesto_146_survivors_are_not_shown_as_the_whole():
    cells = op(3.0)
    for key in ("r2_B", "r3_B"):
        (rows,) = (item.rows for item in cells if item.cell.key.endswith(key))
        cells = change(cells, key, rows=(replace(rows[0], value=None, reason="lost"), rows[1]))
    found = judged(cells)
    assert found.shapes[0].verdict is Verdict.INCOMPLETE
    assert found.shapes[0].reasons[0].message.startswith("4 of 6 rounds paired")


def test_benchmarks_dashboard_429_rows_of_one_name_are_neither_merged_nor_averaged():
    cells = change_status(op(3.0), "r1_A", rows_expected=None)
    (rows,) = (item.rows for item in cells if item.cell.key.endswith("r1_A"))
    found = judged(change(cells, "r1_A", rows=(*rows, replace(rows[0], value=9.0))))
    assert (found.verdict, codes(found.reasons)) == (Verdict.NOT_COMPARABLE, ("DUPLICATE_ROW",))


def test_rocm_libraries_6379_a_negative_time_condemns_the_timer_and_a_zero_the_row():
    cells = op(0.0)
    (rows,) = (item.rows for item in cells if item.cell.key.endswith("r1_A"))
    negative = replace(rows[0], value=None, reason="TIMER_INVALID: latency -0.0021")
    zero = replace(rows[0], value=None, reason="TIMER_INVALID: latency 0.0")
    assert codes(judged(change(cells, "r1_A", rows=(negative, rows[1]))).reasons) == ("TIMER_INVALID",)
    assert judged(change(cells, "r1_A", rows=(zero, rows[1]))).verdict is Verdict.SAME


def test_rebench_111_a_report_of_loaded_verdicts_is_the_report():
    cells = {"softmax": op(3.0)}
    fresh = {"softmax": judged(cells["softmax"])}
    loaded = {name: codec.loads(OpVerdict, codec.dumps(found), "verdict.json") for name, found in fresh.items()}
    assert markdown(assemble("demo", cells, fresh, JUDGE)) == markdown(assemble("demo", cells, loaded, JUDGE))


def test_no_verdict_file_ever_holds_nan():
    for cells in (op(0.0, sd=0.0), op(3.0, sd=0.0, shapes=12), op_cells({"[8]": [1.0]}, {"[8]": [1.0]})):
        json.loads(codec.dumps(judged(cells)), parse_constant=pytest.fail)


def test_dvc_bench_283_missing_cells_are_the_first_line_of_the_report():
    cells = {"softmax": change(op(0.0), "r2_A", status=None)}
    found = {"softmax": judged(cells["softmax"])}
    assert "12 of 13 cells ended" in markdown(assemble("demo", cells, found, JUDGE)).splitlines()[4]


def test_fast_mail_parser_159_identical_code_is_a_free_noise_floor():
    ops = {name: judged(gated(op(e, name=name)), gate("NO_CODE_CHANGE", name)) for name, e in (("a", 0.1), ("b", 0.4))}
    floor = judge_campaign(ops, JUDGE).noise_floor
    assert (floor.ops, floor.shapes) == (2, 4)
    assert floor.largest == max(abs(delta) for found in ops.values() for delta in found.control)
