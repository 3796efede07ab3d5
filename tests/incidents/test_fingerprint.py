"""What went wrong when "did the code change?" was answered from the wrong evidence (facts/incidents.md)."""

import pytest

from harness import elf, fingerprint, stages
from harness.records import Fingerprint, Variant
from tests.fixtures.ir.images import image


def variant(name="mm", code="c", compiled=True, launched=True, **texts):
    found = {"ttir": "i", "ttgir": "g", "llir": "l", "ptx": "p", **texts, "cubin": code}
    return Variant(name, "mm", "", "", found, code, {}, compiled, launched)


def side(*variants):
    fresh = sum(item.compiled for item in variants)
    return Fingerprint(tuple(variants), compile_count=fresh, cache_hits=len(variants) - fresh)


def test_a_switch_that_changed_no_code_stops_after_round_one_unless_allowed():
    """N-1 rounds measured noise and reported "no difference"."""
    gate = fingerprint.gate("mm", side(variant()), side(variant()))
    assert fingerprint.should_skip(gate, allow_no_ir_diff=False)
    assert not fingerprint.should_skip(gate, allow_no_ir_diff=True)


def test_a_switch_below_ttgir_is_not_skipped_for_equal_ttgir():
    """A fingerprint of ttgir alone skips DISABLE_PTXAS_OPT and its kin, wrongly."""
    gate = fingerprint.gate("mm", side(variant()), side(variant(code="d")))
    assert (gate.verdict, gate.stage) == ("CODE_CHANGED", "cubin")
    assert not fingerprint.should_skip(gate, allow_no_ir_diff=False)


def test_fewer_variants_are_not_reported_as_a_better_compiler():
    """945 variants -> 33, 136 converts -> 10: an inherited tuner database. The sets differ, and the gate says so."""
    many = side(*(variant(f"mm{number}") for number in range(10)))
    gate = fingerprint.gate("mm", many, side(variant("mm0")))
    assert (gate.verdict, gate.stage, len(gate.only_a), gate.variants_changed) == ("CODE_CHANGED", "variants", 9, 0)


def test_a_tuners_losers_do_not_make_the_variant_sets_differ():
    """A recording run compiles every candidate, a replaying one the winner: compare what was launched."""
    recorded = side(variant("winner"), variant("loser", launched=False), variant("loser2", launched=False))
    assert fingerprint.gate("mm", recorded, side(variant("winner"))).verdict == "NO_CODE_CHANGE"


def test_a_switch_outside_the_cache_key_is_not_called_ineffective():
    """intel-xpu-backend-for-triton#6790, triton-ascend#1664: B ran A's stale kernel out of a shared cache."""
    gate = fingerprint.gate("mm", side(variant()), side(variant(compiled=False)))
    assert gate.verdict == "IR_UNKNOWN"
    assert gate.reason == "1 of 1 launched variants of side B came from a cache"
    assert not fingerprint.should_skip(gate, allow_no_ir_diff=False)


def test_a_cell_that_launched_nothing_is_not_called_unchanged():
    """rc 0 and zero rows, as when every test of an op is skipped, must not read as "no difference"."""
    assert fingerprint.gate("fft", side(), side()).verdict == "IR_UNKNOWN"


def test_a_whole_binary_is_never_compared():
    """Whole-cubin hashes lie: TRITON_DEFAULT_FP_FUSION=0 changes all cubins' debug sections, and one kernel's code."""
    code = (".text.k", b"\1" * 16)
    a, b = image([code, (".nv_debug_ptx_txt", b"fma")]), image([code, (".nv_debug_ptx_txt", b"mul add")])
    assert a != b
    assert elf.code_hash(elf.parse(a, "a")) == elf.code_hash(elf.parse(b, "b"))


def test_cache_directories_are_no_identity():
    """The cache hash contains the switch: with it in the identity no variant of A has a partner in B."""
    plain = {"num_warps": 4, "hash": "5a11", "enable_fp_fusion": True}
    switched = {"num_warps": 4, "hash": "a9ab", "enable_fp_fusion": False, "DISABLE_MMA_V3": "1"}
    assert stages.variant_id("mm", {}, {}, {}, plain) == stages.variant_id("mm", {}, {}, {}, switched)


def test_variants_that_differ_in_num_warps_only_are_kept_apart():
    """TRITON_KERNEL_DUMP writes both into one directory, and the last one wins."""
    assert stages.variant_id("mm", {}, {}, {}, {"num_warps": 4}) != stages.variant_id(
        "mm", {}, {}, {}, {"num_warps": 8}
    )


@pytest.mark.parametrize("where", ["/home/bob/checkout", "/cache/run7/code_cache"])
def test_a_generated_kernels_path_is_no_difference(tmp_path, where):
    """triton#11817 and FlagGems' code_cache: the absolute path of a generated kernel is in its IR."""

    def described(directory):
        path = tmp_path / "k.ttgir"
        path.write_text(f'#loc = loc("{directory}/k.py":3:0)\nmodule {{\n  tt.return loc(#loc)\n}} loc(#loc)\n')
        return stages.describe({"k.ttgir": str(path)}).stages

    assert described("/home/ann/checkout") == described(where)
