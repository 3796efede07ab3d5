"""Noise: what an A/A campaign says, whose margin it may widen, and what its false claims mean."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from harness import codec
from harness.margin import bar
from harness.noise import Claims, Noise, NoiseRefused, distil, require_comparable, require_planned, spread, table
from harness.report import assemble, markdown
from harness.summary import summary
from harness.verdict import Verdict, judge_campaign, judge_op
from tests.evidence import JUDGE, change, change_identity, gate, gated, op_cells, steps


def aa(name: str, sd: float, shapes: int, seed: int = 1, effect: float = 0.0, rounds: int = 6, **changes):
    """A declared A/A op whose cells are off by a normal deviate of `sd` per cent."""
    rng = np.random.default_rng(seed)
    changes = {"declared_aa": True, **changes}
    a = {f"[{s}]": list(steps(1.0 + s, rng.normal(0, sd, rounds))) for s in range(shapes)}
    b = {f"[{s}]": list(steps((1.0 + s) * (1 + effect / 100), rng.normal(0, sd, rounds))) for s in range(shapes)}
    return op_cells(a, b, name, **changes)


def noise_of(**cells) -> Noise:
    ops = {name: judge_op(own, gate("NO_CODE_CHANGE", name), JUDGE) for name, own in cells.items()}
    return distil("demo_aa", cells, ops, JUDGE.q)


def judged(cells, noise=None, margin_pct=0.5):
    return judge_op(cells, gate(op=cells[0].cell.op), replace(JUDGE, margin_pct=margin_pct), noise=noise)


def test_the_distribution_is_of_the_shapes_deltas_over_all_rounds():
    noise = noise_of(mm=aa("mm", 1.0, 12), add=aa("add", 1.0, 3, seed=2))
    deltas = [s.estimate.delta for s in judge_op(aa("mm", 1.0, 12), gate("NO_CODE_CHANGE", "mm"), JUDGE).shapes]
    assert noise.by_op["mm"] == spread(deltas)
    assert noise.by_op["mm"].p95 == pytest.approx(np.percentile(np.abs(deltas), 95))
    assert (noise.shapes.number, noise.ops.number, noise.rounds) == (15, 2, 6)
    assert noise.conditions["device_model"] == ("H200",)
    assert codec.loads(Noise, codec.dumps(noise), "noise.json") == noise


def test_an_op_with_ten_shapes_has_its_own_floor_and_others_that_of_all():
    noise = noise_of(mm=aa("mm", 2.0, 12), add=aa("add", 0.1, 3, seed=2))
    assert noise.shape_floor("mm").p95 == noise.by_op["mm"].p95
    assert noise.shape_floor("add").p95 == noise.shape_floor("unseen").p95 == noise.shapes.p95
    assert noise.shape_floor("mm").source == "A/A demo_aa: p95 of 12 shapes of mm"


def test_an_op_is_held_against_ops_where_there_are_ten_of_them():
    few = noise_of(mm=aa("mm", 1.0, 12))
    assert few.op_floor("mm") == few.shape_floor("mm")
    many = noise_of(**{f"op{i}": aa(f"op{i}", 1.0, 2, seed=i) for i in range(10)})
    assert many.op_floor("op1").p95 == many.ops.p95
    assert many.op_floor("op1").source == "A/A demo_aa: p95 of 10 ops"


def test_the_largest_of_user_timer_and_floor_is_the_margin_and_says_so():
    floor = noise_of(mm=aa("mm", 5.0, 12)).shape_floor("mm")
    assert bar(JUDGE, 0.0).source == "judge.margin_pct"
    assert (bar(JUDGE, 0.0, floor).margin, bar(JUDGE, 0.0, floor).source) == (floor.p95, floor.source)
    assert bar(JUDGE, 0.5, floor).source == "2 ticks of the timer"
    assert bar(replace(JUDGE, margin_pct=90.0), 0.0, floor).source == "judge.margin_pct"


def test_a_difference_that_identical_sides_show_too_is_no_claim():
    noise = noise_of(mm=aa("mm", 5.0, 12))
    cells = aa("mm", 0.05, 2, effect=1.0, declared_aa=False)
    without, widened = judged(cells), judged(cells, noise)
    assert (without.verdict, without.margin_source) == (Verdict.SLOWER, "judge.margin_pct")
    assert widened.verdict is Verdict.SAME
    assert widened.margin > math.log(1.02)
    assert {shape.margin_source for shape in widened.shapes} == {"A/A demo_aa: p95 of 12 shapes of mm"}
    for reasons in (widened.reasons, *(shape.reasons for shape in widened.shapes)):
        assert "(A/A demo_aa: p95 of 12 shapes of mm)" in reasons[0].message
    assert "(judge.margin_pct)" in without.reasons[0].message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"device_model": "H100"}, "device_model: H100 here, H200 in demo_aa"),
        ({"timer": "direct"}, "timer: direct here, cuda_graph in demo_aa"),
        ({"backend": "rocm"}, "backend: rocm here, cuda in demo_aa"),
        ({"rep_ms": 7}, "rep_ms: 7 here, 100 in demo_aa"),
    ],
)
def test_noise_of_another_caliber_is_refused_by_axis(changes, message):
    noise, cells = noise_of(mm=aa("mm", 1.0, 2)), aa("mm", 1.0, 2)
    require_comparable(noise, cells)
    for item in cells[1:]:
        cells = change_identity(cells, item.cell.key.split("/")[1], **changes)
    with pytest.raises(NoiseRefused) as refused:
        require_comparable(noise, cells)
    assert str(refused.value).startswith(f"!!! [caliber] judge.noise_campaign: {message}")
    assert refused.value.code == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"measure": {"rounds": 8}}, "has 6 rounds, this campaign 8"),
        ({"measure": {"warmup_ms": 9}}, "warmup_ms: 9 here, 25 in demo_aa"),
        ({"instrument": {"timer": "direct"}}, "timer: direct here, cuda_graph in demo_aa"),
        ({"provider": {"name": "flaggems"}}, "provider: flaggems here, builtin in demo_aa"),
    ],
)
def test_what_a_plan_knows_to_differ_is_refused_before_anything_is_measured(changes, message):
    noise, cells = noise_of(mm=aa("mm", 1.0, 2)), [item.cell for item in aa("mm", 1.0, 2)]
    require_planned(noise, cells)
    ((name, fields),) = changes.items()
    with pytest.raises(NoiseRefused, match=message):
        require_planned(noise, [replace(cell, **{name: replace(getattr(cell, name), **fields)}) for cell in cells])


def test_another_device_of_the_same_model_is_the_same_caliber_of_noise():
    noise, cells = noise_of(mm=aa("mm", 1.0, 2)), aa("mm", 1.0, 2)
    for item in cells[1:]:
        cells = change_identity(cells, item.cell.key.split("/")[1], device_uuid="GPU-2", harness_digest="other")
    require_comparable(noise, cells)


def test_noise_of_another_number_of_rounds_is_refused():
    with pytest.raises(NoiseRefused, match="has 4 rounds, this campaign 6"):
        require_comparable(noise_of(mm=aa("mm", 1.0, 2, rounds=4)), aa("mm", 1.0, 2))


def test_ops_without_a_number_are_in_no_distribution():
    noise = noise_of(mm=aa("mm", 1.0, 2), add=change(aa("add", 1.0, 3), "r2_A", status=None))
    assert tuple(noise.by_op) == ("mm",)
    nothing = noise_of(add=change(aa("add", 1.0, 3), "r2_A", status=None))
    assert (nothing.shapes, nothing.ops, nothing.shape_floor("add")) == (None, None, None)
    assert "0 of 0 ops" in table(nothing)


def test_the_table_is_the_golden_one(golden):
    noise = Noise(
        campaign="demo_aa",
        rounds=6,
        conditions={},
        shapes=spread([0.001, -0.002, 0.003, 0.02]),
        by_op={"mm": spread([0.001, -0.002]), "topk": spread([0.003, 0.02])},
        ops=spread([0.001, 0.011]),
        claims=Claims(0.05, 2, 0, 1, 4, 1),
    )
    golden("noise.txt", table(noise))


def test_more_false_claims_than_chance_allows_are_shouted():
    clean = noise_of(**{f"op{i}": aa(f"op{i}", 0.3, 3, seed=i) for i in range(12)})
    assert clean.claims.shapes_claiming == 0
    assert table(clean).rstrip().endswith("accepted")
    leaking = noise_of(**{f"op{i}": aa(f"op{i}", 0.3, 3, seed=i, effect=2.0) for i in range(12)})
    assert leaking.claims.ops_with_one == 12
    assert "TOO MANY (by chance" in table(leaking)


def test_chance_is_the_binomial_tail():
    assert Claims(0.05, 20, 0, 0, 0, 0).chance == 1.0
    assert Claims(0.05, 20, 0, 1, 0, 0).chance == pytest.approx(1 - 0.95**20)
    assert Claims(0.05, 0, 0, 0, 0, 0).chance == 1.0


def controls(size: float, shapes: int = 12):
    """An op whose code did not change and whose round 1 moved by up to `size` per cent."""
    a = {f"[{s}]": [1.0] * 6 for s in range(shapes)}
    b = {f"[{s}]": [1 + size * (s + 1) / shapes / 100] + [1.0] * 5 for s in range(shapes)}
    return judge_op(gated(op_cells(a, b, "ctl")), gate("NO_CODE_CHANGE", "ctl"), JUDGE)


def test_round_one_of_unchanged_code_is_a_free_control_of_the_campaign():
    found = controls(3.0)
    assert len(found.control) == 12
    floor = judge_campaign({"ctl": found}, JUDGE).noise_floor
    assert (floor.ops, floor.shapes) == (1, 12)
    assert floor.largest == pytest.approx(math.log(1.03))
    assert floor.p50 < floor.p95 < floor.largest


@pytest.mark.parametrize(("size", "noted"), [(3.0, False), (6.0, True)])
def test_a_claim_within_what_n_rounds_of_the_controls_still_reach_gets_a_note(size, noted):
    """A control is one round, a claim the mean of six: its p95 is divided by sqrt(6) before they are compared."""
    claim = judged(aa("mm", 0.05, 2, effect=2.0, declared_aa=False))
    assert claim.verdict is Verdict.SLOWER
    campaign = judge_campaign({"mm": claim, "ctl": controls(size)}, JUDGE)
    line = campaign.ops[0]
    assert line.verdict is Verdict.SLOWER, "a note, no demotion: controls are other operators"
    assert [reason.code for reason in line.reasons] == (["CONTROL_NOISE"] if noted else [])
    if noted:
        reach = math.expm1(campaign.noise_floor.p95 / math.sqrt(6)) * 100
        assert f"3 of 3 claims of this op lie within {reach:.2f} %, which 6 rounds" in line.reasons[0].message


def test_a_handful_of_control_shapes_says_nothing_about_claims():
    claim = judged(aa("mm", 0.05, 2, effect=2.0, declared_aa=False))
    assert judge_campaign({"mm": claim, "ctl": controls(9.0, shapes=9)}, JUDGE).ops[0].reasons == ()


def test_the_controls_are_printed_in_the_summary_and_in_the_report():
    claim, found = judged(aa("mm", 0.05, 2, effect=2.0, declared_aa=False)), controls(3.0)
    report = assemble("demo", {}, {"mm": claim, "ctl": found}, JUDGE)
    floor = report.verdict.noise_floor
    assert str(floor).endswith("over 12 shapes of 1 op")
    assert f"\ncontrols: {floor}\n" in summary(report, "report.md")
    assert f"- in-campaign controls: {floor}\n" in markdown(report)
    without = assemble("demo", {}, {"mm": claim}, JUDGE)
    assert "controls" not in summary(without, "report.md") + markdown(without)
