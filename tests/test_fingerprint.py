import random
from dataclasses import replace
from pathlib import Path

import pytest

from harness import fingerprint
from harness.records import Fingerprint, Variant
from harness.stages import OPAQUE
from tests.fixtures.ir.compiled import KERNELS, Case, compile_all

STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin")


def variant(id_="v1", code="c", metrics=None, compiled=True, launched=True, **changed):
    """A variant whose stages are all alike, but for those named: variant(ttgir="x")."""
    stages = {stage: changed.get(stage, f"{stage}0") for stage in STAGES[:-1]}
    return Variant(
        id=id_,
        kernel="k",
        signature="x: *fp32",
        options="num_warps=4",
        stages={**stages, "cubin": code},
        code=code,
        metrics=metrics or {"registers": 32, "shared_bytes": 0},
        compiled=compiled,
        launched=launched,
    )


def side(*variants, compile_count=None, cache_hits=0):
    count = sum(item.compiled for item in variants) if compile_count is None else compile_count
    return Fingerprint(tuple(variants), count, cache_hits)


def verdict(a, b):
    found = fingerprint.gate("op", a, b)
    return found.verdict, found.stage


# --- the four verdicts ------------------------------------------------------------------------------------------------


def test_equal_in_every_stage_is_no_code_change():
    found = fingerprint.gate("op", side(variant("v1"), variant("v2")), side(variant("v2"), variant("v1")))
    assert (found.verdict, found.stage, found.variants_compared, found.variants_changed) == ("NO_CODE_CHANGE", "", 2, 0)
    assert found.reason == "all 2 launched variants are equal in every stage"


def test_other_ir_with_the_same_code_names_the_first_stage_that_differs():
    a = side(variant("v1"), variant("v2"), variant("v3"))
    b = side(variant("v1", ptx="x"), variant("v2", ttgir="x", llir="x"), variant("v3"))
    found = fingerprint.gate("op", a, b)
    assert (found.verdict, found.stage, found.variants_changed) == ("IR_DIFF_SAME_CODE", "ttgir", 0)
    assert found.reason == "2 of 3 launched variants differ, first in ttgir, but the code of all 3 is equal"


def test_other_code_names_the_first_stage_that_differs():
    a, b = side(variant("v1"), variant("v2")), side(variant("v1", ptx="x", code="d"), variant("v2"))
    found = fingerprint.gate("op", a, b)
    assert (found.verdict, found.stage, found.variants_compared, found.variants_changed) == (
        "CODE_CHANGED",
        "ptx",
        2,
        1,
    )
    assert found.reason == "1 of 2 launched variants have other code, first in ptx"


def test_a_change_by_the_assembler_alone_is_found():
    assert verdict(side(variant()), side(variant(code="d"))) == ("CODE_CHANGED", "cubin")


def test_other_launched_sets_are_a_change_by_themselves():
    found = fingerprint.gate(
        "op", side(variant("v1"), variant("v2")), side(variant("v1"), variant("v3"), variant("v4"))
    )
    assert (found.verdict, found.stage) == ("CODE_CHANGED", "variants")
    assert (found.only_a, found.only_b, found.variants_compared) == (("v2",), ("v3", "v4"), 1)
    assert found.reason == "1 launched variants are only on side A, 2 only on side B; of the 1 on both, 0 changed"


@pytest.mark.parametrize("name", ["registers", "shared_bytes"])
def test_equal_code_with_other_resources_is_a_change(name):
    metrics = {"registers": 32, "shared_bytes": 0}
    found = fingerprint.gate("op", side(variant(metrics=metrics)), side(variant(metrics={**metrics, name: 64})))
    assert (found.verdict, found.stage, found.variants_changed) == ("CODE_CHANGED", "resources", 1)
    assert found.reason == "1 of 1 launched variants have equal code but other registers or shared_bytes"


def test_a_resource_known_on_one_side_only_proves_nothing():
    assert (
        verdict(side(variant(metrics={"registers": 32})), side(variant(metrics={"code_bytes": 8})))[0]
        == "NO_CODE_CHANGE"
    )


# --- what cannot be proved --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "a,b,reason",
    [
        (None, side(variant()), "side A left no fingerprint"),
        (None, None, "side A left no fingerprint; side B left no fingerprint"),
        (side(variant()), side(), "side B launched no kernel"),
        (side(variant()), side(variant(launched=False)), "side B launched no kernel"),
        (
            side(variant()),
            side(variant(compiled=False), variant("v2"), cache_hits=1),
            "1 of 2 launched variants of side B came from a cache",
        ),
        (
            side(variant(), compile_count=0),
            side(variant()),
            "side A counted no compilation, so its 1 variants came from a cache",
        ),
        (
            side(variant()),
            side(replace(variant(), stages={}, code="")),
            "1 of 1 launched variants of side B left no stage to compare",
        ),
    ],
)
def test_without_proof_the_verdict_is_unknown_and_says_why(a, b, reason):
    found = fingerprint.gate("op", a, b)
    assert (found.verdict, found.stage, found.reason) == ("IR_UNKNOWN", "", reason)


def test_a_variant_from_the_sides_own_cache_is_proof_and_one_without_a_compiler_is_none():
    cached = Fingerprint((variant(compiled=False),), compile_count=0, cache_hits=1, own_cache=True)
    assert verdict(cached, cached) == ("NO_CODE_CHANGE", "")
    assert verdict(cached, side(variant(code="d"))) == ("CODE_CHANGED", "cubin")
    assert verdict(replace(cached, own_cache=False), cached) == ("IR_UNKNOWN", "")
    assert verdict(replace(cached, cache_hits=0), cached) == ("IR_UNKNOWN", "")


def test_a_cached_variant_hides_even_a_difference():
    assert verdict(side(variant()), side(variant(code="d", compiled=False)))[0] == "IR_UNKNOWN"


def test_cache_hits_of_variants_that_were_not_launched_do_not_matter():
    a = side(variant(), variant("loser", compiled=False, launched=False), cache_hits=1)
    assert verdict(a, side(variant()))[0] == "NO_CODE_CHANGE"


def textual(llir="l", mubin=None):
    stages = {"ttir": "i", "llir": llir, **({} if mubin is None else {"mubin": OPAQUE + mubin})}
    return side(replace(variant(), stages=stages, code=""))


def test_without_a_known_binary_the_last_text_stage_decides():
    assert verdict(textual(), textual()) == ("NO_CODE_CHANGE", "")
    assert verdict(textual(), textual("m")) == ("CODE_CHANGED", "llir")
    assert verdict(textual(mubin="1"), textual("m", mubin="2")) == ("CODE_CHANGED", "llir")


def test_an_unreadable_binary_that_differs_is_unknown_not_equal():
    found = fingerprint.gate("op", textual(mubin="1"), textual(mubin="2"))
    assert (found.verdict, found.stage) == ("IR_UNKNOWN", "mubin")
    assert found.reason == "1 of 1 binaries differ, of a format whose code caliber cannot find"
    assert verdict(textual(mubin="1"), textual(mubin="1")) == ("NO_CODE_CHANGE", "")


def test_a_stage_that_one_side_lacks_differs():
    without = replace(variant(), stages={"cubin": "c"})
    assert verdict(side(variant()), side(without)) == ("IR_DIFF_SAME_CODE", "ttir")


# --- repeated ids -----------------------------------------------------------------------------------------------------


def test_repeated_ids_are_compared_as_multisets():
    one, other = variant(code="c"), variant(code="d")
    assert verdict(side(one, other), side(other, one)) == ("NO_CODE_CHANGE", "")
    assert verdict(side(one, one), side(one, other)) == ("CODE_CHANGED", "cubin")
    found = fingerprint.gate("op", side(one, other), side(other))
    assert (found.verdict, found.stage, found.only_a, found.only_b) == ("CODE_CHANGED", "variants", ("v1",), ())


# --- skipping and totals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["NO_CODE_CHANGE", "IR_DIFF_SAME_CODE", "CODE_CHANGED", "IR_UNKNOWN"])
def test_only_proof_of_equal_code_skips_and_only_unless_allowed(name):
    found = replace(fingerprint.gate("op", side(variant()), side(variant())), verdict=name)
    assert fingerprint.should_skip(found, allow_no_ir_diff=False) is (name in ("NO_CODE_CHANGE", "IR_DIFF_SAME_CODE"))
    assert fingerprint.should_skip(found, allow_no_ir_diff=True) is False


def test_totals_are_over_launched_variants():
    launched = [variant("a", metrics={"registers": 32}), variant("b", metrics={"registers": 8})]
    assert fingerprint.totals(side(*launched, variant("c", metrics={"registers": 99}, launched=False))) == {
        "registers": 40
    }


def test_a_total_with_a_part_missing_is_no_total():
    found = side(variant("a", metrics={"registers": 32, "spill_bytes": 0}), variant("b", metrics={"registers": 8}))
    assert fingerprint.totals(found) == {"registers": 40}


def test_nothing_launched_has_no_totals():
    assert fingerprint.totals(side(variant(launched=False))) == {}


# --- properties -------------------------------------------------------------------------------------------------------


def some_side(rng):
    """Up to five variants, few ids and few contents, so that repeats, common ones and equal ones are frequent."""

    def one():
        changed = {stage: rng.choice(["", "x"]) for stage in rng.sample(STAGES[:-1], rng.randint(0, 2))}
        metrics = {name: rng.choice([0, 1]) for name in rng.sample(["registers", "shared_bytes", "spill_bytes"], 2)}
        fresh = rng.random() > 0.1
        return variant(f"v{rng.randint(1, 3)}", rng.choice("cd"), metrics, fresh, rng.random() > 0.2, **changed)

    return None if rng.random() < 0.05 else side(*(one() for _ in range(rng.randint(0, 5))))


def cousin(rng, found):
    """The same variants in another order, one in ten with another ptx."""
    if found is None:
        return None
    variants = [replace(v, stages={**v.stages, "ptx": "y"}) if rng.random() < 0.1 else v for v in found.variants]
    rng.shuffle(variants)
    return replace(found, variants=tuple(variants))


def sides(count):
    rng = random.Random(20)
    return [(a, rng.choice([some_side(rng), cousin(rng, a)])) for a in (some_side(rng) for _ in range(count))]


def test_a_side_never_differs_from_itself():
    for found, _ in sides(500):
        seen = fingerprint.gate("op", found, found)
        launched = [item for item in found.variants if item.launched] if found else []
        proved = bool(launched) and all(item.compiled for item in launched)
        assert seen.verdict == ("NO_CODE_CHANGE" if proved else "IR_UNKNOWN"), found


def test_swapping_the_sides_swaps_only_the_lists():
    for a, b in sides(500):
        there, back = fingerprint.gate("op", a, b), fingerprint.gate("op", b, a)
        assert replace(there, only_a=back.only_a, only_b=back.only_b, reason="") == replace(back, reason=""), (a, b)
        assert (there.only_a, there.only_b) == (back.only_b, back.only_a), (a, b)


def test_only_equal_last_stages_and_equal_sets_skip():
    skipped = 0
    for a, b in sides(500):
        if fingerprint.should_skip(fingerprint.gate("op", a, b), allow_no_ir_diff=False):
            codes = [sorted((item.id, item.code) for item in found.variants if item.launched) for found in (a, b)]
            assert codes[0] == codes[1] != [], (a, b)
            skipped += 1
    assert skipped > 20  # else the property was never put to the test


# --- real compilations: what real switches do, stage by stage ---------------------------------------------------------

ALL = ("add", "softmax", "mm16")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    pytest.importorskip("triton")
    root = tmp_path_factory.mktemp("compiled")
    elsewhere, commented = root / "other" / "checkout" / "kernels.py", root / "commented" / "kernels.py"
    for path, text in ((elsewhere, ""), (commented, "# one\n# two\n\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text + KERNELS.read_text(encoding="utf-8"), encoding="utf-8")
    cases = {
        "plain": Case(),
        "again": Case(),
        "elsewhere": Case(kernels=elsewhere),
        "commented": Case(kernels=commented),
        "no line info": Case(env={"TRITON_DISABLE_LINE_INFO": "1"}),
        "no mma v3": Case(env={"DISABLE_MMA_V3": "1"}),
        "no fp fusion": Case(env={"TRITON_DEFAULT_FP_FUSION": "0"}),
        "no ptxas opt": Case(env={"DISABLE_PTXAS_OPT": "1"}),
        "ieee": Case(("mm16",), env={"TRITON_F32_DEFAULT": "ieee"}),
        "sm80": Case(("add",), env={"TRITON_OVERRIDE_ARCH": "sm80"}),
        "unknown switch": Case(env={"FLAGTREE_RLC_ENHANCE": "1"}),
        "cached": Case(env={"FLAGTREE_RLC_ENHANCE": "1"}, cache="plain"),
        "eight warps": Case(("add",), options={"num_warps": 8}),
        "amd": Case(target="hip:gfx942"),
        "amd elsewhere": Case(target="hip:gfx942", kernels=elsewhere),
        "amd no line info": Case(target="hip:gfx942", env={"TRITON_DISABLE_LINE_INFO": "1"}),
        "function": Case(("apply",)),
        "function elsewhere": Case(("apply",), kernels=elsewhere),
    }
    return compile_all(cases, root)


def gates(found, a, b):
    """kernel -> (verdict, stage) of the switch from case `a` to case `b`."""
    return {
        kernel: verdict(found[a][kernel].fingerprint, one.fingerprint)
        for kernel, one in found[b].items()
        if kernel in found[a]
    }


def stages_that_differ(found, a, b):
    """kernel -> the stages whose hashes differ between the cases."""

    def stages(case, kernel):
        return found[case][kernel].fingerprint.variants[0].stages

    return {
        kernel: [stage for stage, hash_ in stages(a, kernel).items() if hash_ != stages(b, kernel)[stage]]
        for kernel in found[b]
    }


NOTHING = ("NO_CODE_CHANGE", "")


@pytest.mark.slow
def test_compiling_twice_changes_nothing(found):
    assert gates(found, "plain", "again") == dict.fromkeys(ALL, NOTHING)


@pytest.mark.slow
@pytest.mark.parametrize("a,b", [("plain", "elsewhere"), ("plain", "commented"), ("amd", "amd elsewhere")])
def test_another_checkout_or_a_comment_changes_nothing(found, a, b):
    assert gates(found, a, b) == dict.fromkeys(ALL, NOTHING)


@pytest.mark.slow
def test_the_raw_texts_of_another_checkout_do_differ(found):
    """Else the test above would prove nothing."""
    for stage in ("ttir", "ttgir", "llir", "ptx", "cubin"):
        a, b = (Path(found[case]["add"].files[f"add.{stage}"]).read_bytes() for case in ("plain", "elsewhere"))
        assert a != b


@pytest.mark.slow
@pytest.mark.parametrize("a,b", [("plain", "no line info"), ("amd", "amd no line info")])
def test_line_info_renames_mlir_values_and_changes_nothing_after(found, a, b):
    assert stages_that_differ(found, a, b) == dict.fromkeys(ALL, ["ttir", "ttgir"])
    assert gates(found, a, b) == dict.fromkeys(ALL, ("IR_DIFF_SAME_CODE", "ttir"))


@pytest.mark.slow
def test_without_mma_v3_only_the_matmul_changes_from_ttgir_on(found):
    expected = {"add": NOTHING, "softmax": NOTHING, "mm16": ("CODE_CHANGED", "ttgir")}
    assert gates(found, "plain", "no mma v3") == expected
    assert stages_that_differ(found, "plain", "no mma v3")["mm16"] == ["ttgir", "llir", "ptx", "cubin"]


@pytest.mark.slow
def test_without_fp_fusion_three_kernels_get_three_verdicts(found):
    assert gates(found, "plain", "no fp fusion") == {
        "add": ("CODE_CHANGED", "ptx"),
        "softmax": ("IR_DIFF_SAME_CODE", "ptx"),
        "mm16": NOTHING,
    }


@pytest.mark.slow
def test_without_ptxas_optimization_only_the_binary_changes(found):
    assert gates(found, "plain", "no ptxas opt") == dict.fromkeys(ALL, ("CODE_CHANGED", "cubin"))
    assert stages_that_differ(found, "plain", "no ptxas opt") == dict.fromkeys(ALL, ["cubin"])


@pytest.mark.slow
def test_a_difference_in_ir_can_be_vacuous(found):
    assert gates(found, "plain", "ieee") == {"mm16": ("IR_DIFF_SAME_CODE", "ttir")}
    assert gates(found, "plain", "sm80") == {"add": ("IR_DIFF_SAME_CODE", "ttgir")}


@pytest.mark.slow
def test_a_switch_the_build_does_not_know_changes_nothing(found):
    assert gates(found, "plain", "unknown switch") == dict.fromkeys(ALL, NOTHING)


@pytest.mark.slow
def test_a_switch_outside_the_cache_key_is_unknown_not_equal(found):
    assert gates(found, "plain", "cached") == dict.fromkeys(ALL, ("IR_UNKNOWN", ""))


@pytest.mark.slow
def test_num_warps_makes_another_variant(found):
    four, eight = (found[case]["add"].fingerprint.variants[0] for case in ("plain", "eight warps"))
    assert (four.options, eight.options) == ("num_warps=4 num_stages=3", "num_warps=8 num_stages=3")
    assert gates(found, "plain", "eight warps") == {"add": ("CODE_CHANGED", "variants")}


@pytest.mark.slow
def test_a_function_as_constant_has_one_identity_everywhere(found):
    here, there = (found[case]["apply"].fingerprint.variants[0] for case in ("function", "function elsewhere"))
    assert here.id == there.id
    assert "F: constexpr=twice#" in here.signature and "TYPE: constexpr=fp16" in here.signature


@pytest.mark.slow
def test_real_stages_are_in_compile_order_and_end_in_the_code(found):
    for case, last in (("plain", ("ptx", "cubin")), ("amd", ("amdgcn", "hsaco"))):
        variant = found[case]["add"].fingerprint.variants[0]
        assert tuple(variant.stages) == ("ttir", "ttgir", "llir", *last)
        assert variant.stages[last[1]] == variant.code != ""


@pytest.mark.slow
def test_real_metrics_are_complete(found):
    cuda = found["plain"]["mm16"].fingerprint.variants[0].metrics
    amd = found["amd"]["mm16"].fingerprint.variants[0].metrics
    common = {"convert_layout.ttgir", "shared_bytes", "registers", "spill_bytes", "code_bytes", "instructions"}
    assert set(cuda) == common
    assert set(amd) == common | {"sgprs", "sgpr_spills"}
    assert cuda["code_bytes"] >= 16 * cuda["instructions"] > 0
    assert cuda["shared_bytes"] > 0 and amd["shared_bytes"] > 0
