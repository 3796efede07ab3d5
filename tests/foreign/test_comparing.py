"""Foreign runs compared: caliber before latencies, nothing intersected silently, the campaign's own verdicts."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from harness import caliber, codec
from harness.findings import Verdict, codes
from harness.foreign import calibration, comparing, rounds
from harness.foreign.comparing import CaliberRefused, Settings, compare
from harness.foreign.entries import ForeignError
from harness.records import ExitCode, Fingerprint
from tests.evidence import JUDGE
from tests.foreign.writing import Bench, bench, console, log, result, run, side_identity, table, write

FREE = Settings(replace(JUDGE, allow_caliber_mismatch=True))
STRICT = Settings(JUDGE)
START = datetime.fromisoformat("2026-01-01T00:00:00+00:00")


def ab(a, b, settings=STRICT):
    return compare([{"A": a, "B": b}], settings)


def two(tmp_path, a, b, **changes):
    """Two runs of one caliber, from benches."""
    return run(tmp_path / "a", a, "A", **changes), run(tmp_path / "b", b, "B", **changes)


def logs(tmp_path, a: str, b: str):
    return write(tmp_path / "a", {"c.log": a}), write(tmp_path / "b", {"c.log": b})


def start(number):
    return (START + timedelta(minutes=number)).isoformat()


def campaign(tmp_path, effect=1.0, n=6, ops=("mm", "cat"), seed=1, sd=0.0005, order="AB" * 10, name="root"):
    """n rounds of runs with identities; B is `effect` times as slow."""
    rng = random.Random(seed)
    for number in range(1, n + 1):
        for slot, side in enumerate("AB" if order[number - 1] == "A" else "BA"):
            factor = effect if side == "B" else 1.0
            benches = [bench(op, latencies=[s * factor * math.exp(rng.gauss(0, sd)) for s in (1, 2, 4)]) for op in ops]
            run(tmp_path / name / f"r{number}_{side}", benches, side, started_at=start(2 * number + slot))
    return tmp_path / name


def judged(root, settings=STRICT):
    return compare(list(rounds.find(root).runs.values()), settings)


# Caliber


def test_caliber_is_refused_before_any_latency_is_parsed(tmp_path):
    """The log of B could not even be read."""
    a = run(tmp_path / "a", [bench()], "A")
    broken = log([bench(latencies=(0.25,))]).replace("0.25", "0,25")
    b = write(tmp_path / "b", {"r.log": broken}, side_identity("B", driver="580", env={"PTXAS": "1"}))
    with pytest.raises(CaliberRefused) as refused:
        ab(a, b)
    assert refused.value.code is ExitCode.CALIBER
    assert refused.value.lines == (
        f"!!! [caliber] driver: 570 -> {a}; 580 -> {b}",
        f"!!! [caliber] env.PTXAS: unset -> {a}; 1 -> {b}",
    )
    with pytest.raises(ForeignError, match="decimal comma"):
        ab(a, b, FREE)


def test_a_missing_identity_is_refused_with_the_runs_that_lack_it(tmp_path):
    a, b = run(tmp_path / "a", [bench()], "A"), write(tmp_path / "b", {"r.log": log([bench()])})
    with pytest.raises(CaliberRefused) as refused:
        ab(a, b)
    assert refused.value.lines == (f"!!! [caliber] identity: missing -> {b}",)


def test_an_identity_that_cannot_be_read_is_none(tmp_path):
    a, b = two(tmp_path, [bench()], [bench()])
    found = json.loads((b / "run_identity.json").read_text())
    del found["driver"]
    (b / "run_identity.json").write_text(json.dumps(found))
    with pytest.raises(CaliberRefused, match=r"identity: unreadable \(.*missing key \['driver'\] in Identity"):
        ab(a, b)


def test_a_release_compares_and_keeps_what_was_refused(tmp_path):
    a, b = write(tmp_path / "a", {"r.log": log([bench()])}), write(tmp_path / "b", {"r.log": log([bench()])})
    found = ab(a, b, FREE)
    assert found.released == (f"!!! [caliber] identity: missing -> {a}, {b}",)
    assert "CALIBER_RELEASED" in codes(found.ops["mm"].reasons)
    assert (found.n_paired, found.code) == (2, ExitCode.DONE)


def test_sides_without_any_difference_are_refused_unless_declared_aa(tmp_path):
    a, b = run(tmp_path / "a", [bench()], "A"), run(tmp_path / "b", [bench()], "A")
    with pytest.raises(CaliberRefused, match=caliber.NO_SWITCH.replace("?", r"\?")):
        ab(a, b)
    assert ab(a, b, replace(STRICT, aa=True)).n_paired == 2


@pytest.mark.parametrize("by", ["identity", "marker"])
def test_record_against_record_is_refused_by_name(tmp_path, by):
    if by == "identity":
        a, b = two(tmp_path, [bench()], [bench()], autotune_mode="record", autotune_digest="")
        expected = 1
    else:
        a, b = logs(tmp_path, *["AUTOTUNE_RECORDED keys=5\n" + console([bench()])] * 2)
        expected = 2  # and no identity
    with pytest.raises(CaliberRefused) as refused:
        ab(a, b)
    assert len(refused.value.lines) == expected
    assert refused.value.lines[-1] == f"!!! [caliber] autotune_mode: {caliber.RECORDED} -> {a}, {b}"


@pytest.mark.parametrize("recorder", ["A", "B"])
def test_a_replay_of_the_other_sides_record_is_normal_and_noted(tmp_path, recorder):
    mode = {recorder: {"autotune_mode": "record", "autotune_digest": ""}}
    paths = [run(tmp_path / side, [bench()], side, **mode.get(side, {})) for side in "AB"]
    found = ab(*paths)
    assert found.warnings[0].startswith(f"{recorder} tuned itself, the other side replays")


def test_one_log_that_recorded_is_not_two(tmp_path):
    a, b = logs(tmp_path, "AUTOTUNE_RECORDED keys=5\n" + console([bench()]), console([bench()]))
    with pytest.raises(CaliberRefused) as refused:
        ab(a, b)
    assert refused.value.lines == (f"!!! [caliber] identity: missing -> {a}, {b}",)


@pytest.mark.parametrize("other", [{"autotune_digest": ""}, {"autotune_mode": "first", "autotune_digest": ""}])
def test_a_record_is_pinned_by_a_replay_and_by_nothing_else(tmp_path, other):
    a = run(tmp_path / "a", [bench()], "A", autotune_mode="record", autotune_digest="")
    with pytest.raises(CaliberRefused, match=f"autotune_mode: record -> {a}; "):
        ab(a, run(tmp_path / "b", [bench()], "B", **other))


def test_replays_of_two_records_are_not_one_caliber(tmp_path):
    a = run(tmp_path / "a", [bench()], "A", autotune_digest="sha256:1")
    b = run(tmp_path / "b", [bench()], "B", autotune_digest="sha256:2")
    with pytest.raises(CaliberRefused, match="autotune_digest: sha256:1"):
        ab(a, b)


def test_a_shared_tuner_cache_and_a_record_is_warned_of(tmp_path):
    """mm "945 variants -> 33" was a warm sqlite."""
    a = run(tmp_path / "a", [bench()], "A", tuner_cache="shared", autotune_mode="record", autotune_digest="")
    b = run(tmp_path / "b", [bench()], "B", tuner_cache="shared")
    assert calibration.SHARED in ab(a, b).warnings
    assert "relative conclusions stand, absolute latencies are unquotable" in calibration.SHARED


@pytest.mark.parametrize(("axis", "value"), [("mode", "cudagraph"), ("level", "comprehensive")])
def test_what_is_printed_over_a_table_is_caliber_too(tmp_path, axis, value):
    a, b = two(tmp_path, [bench()], [bench(**{axis: value})])
    with pytest.raises(CaliberRefused) as refused:
        ab(a, b)
    assert refused.value.lines == (f"!!! [caliber] {axis}: {getattr(bench(), axis)} -> {a}; {value} -> {b}",)


# Pairing


def test_one_pair_is_unresolved_whatever_its_delta(tmp_path):
    found = ab(*two(tmp_path, [bench(latencies=(1.0, 2.0))], [bench(latencies=(1.5, 3.0))]))
    mm = found.ops["mm"]
    assert (mm.verdict, codes(mm.reasons)[0]) == (Verdict.UNRESOLVED, "TOO_FEW_ROUNDS")
    assert math.exp(mm.estimate.delta) == pytest.approx(1.5)
    assert mm.reasons[0].message.startswith("B 50.0 % slower")
    assert (found.n_a, found.n_b, found.n_paired, found.code) == (2, 2, 2, ExitCode.DONE)


def test_the_speedup_and_the_torch_latency_are_never_used(tmp_path):
    """They compare with torch: wildly different here, and nothing follows."""
    a, b = logs(
        tmp_path, console([bench()]), console([bench()]).replace("7.500000", "0.000100").replace("1.234", "99.9")
    )
    assert ab(a, b, FREE).ops["mm"].estimate.delta == 0.0


def test_console_and_record_pair_by_the_same_shapes(tmp_path):
    details = [([(64, 8192), 128], {"dim": -1, "dtype": "torch.float16"}), [(1024,)]]
    rows = Bench("op", "float16", [(detail, 0.5) for detail in details])
    a, b = write(tmp_path / "a", {"c.log": console([rows])}), write(tmp_path / "b", {"r.json": result([rows])})
    assert ab(a, b, FREE).n_paired == 2


def test_rows_without_a_partner_are_named_and_exit_5(tmp_path):
    a, b = two(tmp_path, [bench(latencies=(1, 2, 3)), bench(dtype="float32")], [bench(latencies=(1, 2))])
    found = ab(a, b)
    assert (found.n_a, found.n_b, found.n_paired, found.code) == (5, 2, 2, ExitCode.INCOMPLETE)
    assert found.incomplete == (
        f"only A: mm float16 [[32,32],[32,32]] at {a}/result_mm.log:2 result[2]",
        f"only A: mm float32, all 2 rows at {a}/result_mm.log:3 result[0]",
    )
    assert found.ops["mm"].estimate.delta == 0.0  # over the paired set alone


def test_an_op_that_only_one_side_has_is_incomplete(tmp_path):
    a, b = two(tmp_path, [bench()], [bench(), bench("cat")])
    found = ab(a, b)
    assert found.ops["cat"].verdict is Verdict.INCOMPLETE
    assert found.incomplete == (f"only B: cat float16, all 2 rows at {b}/result_mm.log:3 result[0]",)


def test_nothing_paired_is_no_success(tmp_path):
    found = ab(*two(tmp_path, [bench("mm")], [bench("cat")]))
    assert (found.n_paired, found.code) == (0, ExitCode.INCOMPLETE)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (0.0, "latency 0.0 ms is not positive"),
        (math.nan, "latency nan ms is not positive"),
        (math.inf, "latency inf ms is not positive"),
        (None, "no latency of the operator (null)"),
    ],
)
def test_what_is_no_latency_is_invalid_with_its_reason(tmp_path, value, reason):
    found = ab(*two(tmp_path, [bench(latencies=(1.0, 2.0))], [bench(latencies=(1.0, value))]))
    assert found.n_paired == 1
    assert [reason in line and line.startswith("invalid: mm float16 [[16,16]") for line in found.incomplete] == [True]


def test_a_negative_time_is_a_broken_timer(tmp_path):
    found = ab(*two(tmp_path, [bench(latencies=(1.0, 2.0))], [bench(latencies=(1.0, -2.0))]))
    assert (found.ops["mm"].verdict, codes(found.ops["mm"].reasons)) == (Verdict.NOT_COMPARABLE, ("TIMER_INVALID",))
    assert found.code is ExitCode.INCOMPLETE


def test_failed_rows_pair_with_nothing(tmp_path):
    found = ab(*two(tmp_path, [bench()], [bench(error="out of memory")]))
    assert found.n_paired == 0
    assert "FAILED: out of memory" in found.incomplete[0]


LAYOUTS = Bench("mm", "float16", [([(8, 8)], 1.0), ([(4, 4)], 1.0), ([(8, 8)], 3.0), ([(4, 4)], 3.0)], level="core")


def test_repeated_names_pair_in_order_when_both_sides_have_as_many(tmp_path):
    """BLAS at comprehensive: row- and column-major of a shape have one name."""
    found = ab(*two(tmp_path, [LAYOUTS], [LAYOUTS]))
    assert found.n_paired == 4
    assert any("2 rows of A share a name with an earlier one" in warning for warning in found.warnings)
    assert all(shape.estimate.delta == 0 for shape in found.ops["mm"].shapes)


def test_repeated_names_whose_counts_differ_are_refused_with_their_lines(tmp_path):
    fewer = replace(LAYOUTS, rows=LAYOUTS.rows[:3])
    a, b = two(tmp_path, [LAYOUTS], [fewer])
    with pytest.raises(ForeignError) as refused:
        ab(a, b)
    assert str(refused.value).startswith(
        f"duplicate rows: mm float16 [[4,4]]: 2 in {a} ({a}/result_mm.log:2 result[1], {a}/result_mm.log:2 result[3]); "
        f"1 in {b} ({b}/result_mm.log:2 result[1])"
    )


def test_an_appended_log_is_refused_with_both_lines(tmp_path):
    a, b = logs(tmp_path, console([bench()]) * 2, console([bench()]))
    with pytest.raises(ForeignError, match=r"duplicate rows: mm .*: 2 in .*c\.log:6, .*c\.log:16\); 1 in"):
        ab(a, b, FREE)


def test_a_torn_run_or_a_failed_test_is_never_complete(tmp_path):
    a, b = logs(tmp_path, console([bench()]), console([bench()]) + "FAILED x/test_y.py::test_y - no\n")
    found = ab(a, b, FREE)
    assert (found.n_paired, found.code) == (2, ExitCode.INCOMPLETE)
    assert found.incomplete[0].startswith(f"failed in {b}: x/test_y.py::test_y: no (")
    (b / "c.log").write_text(table(bench()) + table(bench("cat"))[:-9])
    assert "torn last line left out (console)" in ab(a, b, FREE).incomplete[-1]


def test_an_op_that_failed_on_a_side_gets_no_number(tmp_path):
    """`result: failed` beside the rows of the types that came before."""
    a = write(tmp_path / "a", {"r.json": result([bench()])})
    b = write(tmp_path / "b", {"r.json": result([bench()], {"mm": ("failed", "RuntimeError")})})
    found = ab(a, b, FREE)
    assert (found.ops["mm"].verdict, found.ops["mm"].estimate) == (Verdict.FAILED, None)
    assert found.code is ExitCode.INCOMPLETE


def test_the_same_run_twice_is_refused_and_a_copy_is_warned_of(tmp_path):
    a, b = two(tmp_path, [bench()], [bench()])
    with pytest.raises(ForeignError, match="are one run; name two"):
        ab(a, tmp_path / "b" / ".." / "a")
    assert any("every latency of B equals A's" in warning for warning in ab(a, b).warnings)


# Markers

FALLBACK = "BENCHMARK_DIRECT_NO_CUDAGRAPH repeat=1 reason=x\n"


def test_a_fallback_on_one_side_is_two_timers(tmp_path):
    a, b = logs(tmp_path, console([bench(), bench("cat")]), console([bench(), bench("cat")], before=FALLBACK))
    found = ab(a, b, FREE)
    assert [found.ops[op].verdict for op in ("mm", "cat")] == [Verdict.MIXED_TIMER, Verdict.UNRESOLVED]
    assert found.incomplete[0] == (
        "two timers: mm float16 [[8,8],[8,8]]: A by cuda_graph l2=warm repeat=1, B by direct l2=flushed repeat=1"
    )
    assert (found.runs[1].markers, found.n_paired) == ({"BENCHMARK_DIRECT_NO_CUDAGRAPH": 1}, 2)


def test_as_many_fallbacks_on_both_sides_are_one_timer_and_more_on_one_are_two(tmp_path):
    def found(a, b):
        sides = (console([bench()], before=FALLBACK * count) for count in (a, b))
        return ab(*logs(tmp_path, *sides), FREE).ops["mm"].verdict

    assert found(2, 2) is Verdict.UNRESOLVED
    assert found(1, 2) is found(2, 1) is Verdict.MIXED_TIMER


def test_fallbacks_of_other_repeat_counts_are_two_timers(tmp_path):
    a, b = (console([bench()], before=f"BENCHMARK_DIRECT_NO_CUDAGRAPH repeat={count}\n") for count in (1, 5))
    found = ab(*logs(tmp_path, a, b), FREE)
    assert found.incomplete[0].endswith("A by direct l2=flushed repeat=1, B by direct l2=flushed repeat=5")


def test_a_replay_with_holes_and_a_poisoned_capture_get_no_number(tmp_path):
    text = table(bench()) + "AUTOTUNE_REPLAY_FALLBACK reason=key_missing\n" + table(bench("cat"))
    found = ab(*logs(tmp_path, console([bench(), bench("cat")]), text), FREE)
    assert found.ops["mm"].verdict is Verdict.UNRESOLVED
    assert codes(found.ops["cat"].reasons) == ("REPLAY_PARTIAL",)
    poisoned = "BENCHMARK_CAPTURE_POISONED reason=x\n" + table(bench())
    assert ab(*logs(tmp_path, table(bench()), poisoned), FREE).ops["mm"].verdict is Verdict.POISONED


# Rounds


@pytest.mark.parametrize(
    ("effect", "verdict"), [(1.05, Verdict.SLOWER), (1 / 1.05, Verdict.FASTER), (1.0, Verdict.SAME)]
)
def test_rounds_are_judged_as_a_campaign_is(tmp_path, effect, verdict):
    found = judged(campaign(tmp_path, effect))
    assert [line.verdict for line in found.campaign.ops] == [verdict] * 2
    assert (found.rounds, found.n_paired, found.code) == (6, 36, ExitCode.DONE)
    assert found.ops["mm"].estimate.a_first == 3


@pytest.mark.parametrize("seed", range(12))
def test_swapping_the_sides_flips_every_sign(tmp_path, seed):
    rng = random.Random(seed)
    n, effect = rng.choice([1, 2, 3, 4, 6, 7]), math.exp(rng.gauss(0, 0.02))
    order = "".join(rng.choice("AB") for _ in range(n))
    root = campaign(tmp_path, effect, n, seed=seed, sd=rng.choice([0.0, 0.001, 0.02]), order=order)
    there = list(rounds.find(root).runs.values())
    found, swapped = compare(there, STRICT), compare([{"A": each["B"], "B": each["A"]} for each in there], STRICT)
    other = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert (found.n_a, found.n_b, found.n_paired) == (swapped.n_b, swapped.n_a, swapped.n_paired)
    for op, one in found.ops.items():
        two = swapped.ops[op]
        assert two.verdict is other.get(one.verdict, one.verdict)
        assert two.estimate.delta == pytest.approx(-one.estimate.delta, abs=1e-15)
        for shape, mirrored in zip(one.shapes, two.shapes, strict=True):
            assert mirrored.verdict is other.get(shape.verdict, shape.verdict)
            assert mirrored.estimate.delta == pytest.approx(-shape.estimate.delta, abs=1e-15)
            assert (mirrored.a_ms, mirrored.b_ms) == (shape.b_ms, shape.a_ms)


def test_without_identities_the_order_must_be_told(tmp_path):
    root = campaign(tmp_path, 1.05)
    for path in root.glob("*/run_identity.json"):
        path.unlink()
    blind = judged(root, FREE)
    assert codes(blind.ops["mm"].reasons)[0] == "ORDER_UNKNOWN"
    assert {line.verdict for line in blind.campaign.ops} == {Verdict.UNRESOLVED}
    assert "ORDER_CONFOUNDED" not in codec.dumps(blind)
    told = judged(root, replace(FREE, order="ABABAB"))
    assert {line.verdict for line in told.campaign.ops} == {Verdict.SLOWER}
    with pytest.raises(ForeignError, match="--order AB names 2 rounds, there are 6"):
        judged(root, replace(FREE, order="AB"))


def test_an_order_that_the_identities_contradict_is_warned_of(tmp_path):
    found = judged(campaign(tmp_path, n=4), replace(STRICT, order="AABB"))
    assert found.warnings[0].endswith("by their identities the other side started first in round 2, 3")
    assert [each.order for each in found.ops["mm"].rounds] == [1, 1, -1, -1]


@pytest.mark.parametrize("start", ["", "2026-01-01T00:00:00", "yesterday"])
def test_a_start_that_is_no_time_is_unknown(tmp_path, start):
    a = run(tmp_path / "a", [bench()], "A", started_at=start)
    assert ab(a, run(tmp_path / "b", [bench()], "B")).n_paired == 2


def test_a_row_that_some_rounds_lack_is_in_no_number(tmp_path):
    root = campaign(tmp_path, 1.05, ops=("mm",))
    path = root / "r3_B" / "result_mm.log"
    path.write_text(log([bench(latencies=(1.05, 2.1))]))
    found = judged(root)
    assert found.code is ExitCode.INCOMPLETE
    assert (
        found.incomplete[0]
        == f"only A (round 3): mm float16 [[32,32],[32,32]] at {root}/r3_A/result_mm.log:2 result[2]"
    )
    assert found.incomplete[1] == "in some rounds only: mm float16 [[32,32],[32,32]]: 1, 2, 4, 5, 6"
    assert sum(shape.estimate is not None for shape in found.ops["mm"].shapes) == 2


def test_identities_must_agree_over_all_rounds(tmp_path):
    root = campaign(tmp_path)
    codec.write(root / "r4_A" / "run_identity.json", side_identity("A", device_uuid="GPU-2"))
    with pytest.raises(CaliberRefused) as refused:
        judged(root)
    assert refused.value.lines[0].endswith(f"; GPU-2 -> {root}/r4_A")


# The rest


def test_caliber_cells_bring_their_fingerprints(tmp_path):
    a, b = two(tmp_path, [bench()], [bench()])
    for path in (a, b):
        codec.write(path / "fingerprint.json", Fingerprint((), 0, 0))
    found = ab(a, b)
    assert found.ops["mm"].gate.verdict == "IR_UNKNOWN"
    assert not any("no fingerprints" in warning for warning in found.warnings)


DAMAGE = (b"\n", b",", b"\r\n", b'"', b"NaN", b"-", b"[", b"{", b"null", b"1e999", b"\x1b[0m", b"\xff", b"\0")


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_file_is_read_or_refused_and_never_crashes(tmp_path, seed):
    rng = random.Random(seed)
    benches = [bench("mm", columns=(1.5,)), Bench("op", "int8", [(([(4, 4), -1], {"dim": -1, "p": 1e-5}), 0.25)])]
    a = write(tmp_path / "a", {"r.log": log(benches)})
    for whole in (console(benches), log(benches), result(benches)):
        for _ in range(5):
            data = bytearray(whole.encode())
            place = rng.randrange(len(data))
            data[place : place + rng.choice((0, 1, 40))] = rng.choice(DAMAGE)
            b = write(tmp_path / "b", {"x": bytes(data[: rng.choice((len(data), place + 1))])})
            try:
                found = ab(a, b, FREE)
            except ForeignError as refusal:
                assert str(b) in str(refusal)
            else:
                assert codec.loads(comparing.Comparison, codec.dumps(found), "x") == found


def test_a_detail_that_negates_a_list_is_its_own_text(tmp_path):
    a, b = logs(tmp_path, *[table(bench()).replace("torch.Size([8, 8])]", "torch.Size(-[8, 8])]")] * 2)
    assert "torch.Size(-[8, 8])" in ab(a, b, FREE).ops["mm"].shapes[0].key.shape


def test_a_comparison_is_whole_in_json(tmp_path):
    found = ab(*two(tmp_path, [bench(latencies=(1, 2, math.nan))], [bench(latencies=(1, 2))]))
    assert codec.loads(comparing.Comparison, codec.dumps(found), "x") == found
