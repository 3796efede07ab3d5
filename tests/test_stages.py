import hashlib
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import locations, stages
from tests.fixtures.ir.images import image

IR = Path(__file__).parent / "fixtures" / "ir"
TEXTS = ("ttir", "ttgir", "llir", "ptx", "amdgcn")
CUBIN = image([(".text.k", b"code" * 8), (".nv.info", b"")])


@pytest.fixture
def group(tmp_path):
    """group(ttir="...", cubin=b"..."): a file group as Triton's compiler hands it out, in that order."""

    def write(**contents):
        files = {}
        for stage, content in contents.items():
            path = tmp_path / f"k.{stage}"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            files[path.name] = str(path)
        return files

    return write


@pytest.fixture
def hashed(group):
    """hashed("ttgir", text): the hash of one stage's text."""
    return lambda stage, text: stages.describe(group(**{stage: text})).stages[stage]


def text_of(owner, stage):
    return (IR / owner / f"flip.{stage}").read_text(encoding="utf-8")


# --- what is stripped, and what is not --------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", TEXTS)
def test_another_checkout_hashes_alike_in_every_text_stage(hashed, stage):
    ann, bob = text_of("ann", stage), text_of("bob", stage)
    assert ann != bob
    assert hashed(stage, ann) == hashed(stage, bob)


@pytest.mark.parametrize(
    "stage,old,new",
    [
        ("ttir", "tt.trans %", "tt.trans2 %"),
        ("ttgir", 'ttg.target = "cuda:90"', 'ttg.target = "cuda:80"'),
        ("ttgir", "order = [1, 0]", "order = [0, 1]"),
        ("llir", "getelementptr half", "getelementptr i16"),
        ("llir", '!"nvvm-reflect-ftz", i32 1', '!"nvvm-reflect-ftz", i32 0'),
        ("ptx", "ld.global.b16", "ld.global.nc.b16"),
        ("ptx", ".version 8", ".version 7"),
        ("amdgcn", "v_and_b32_e32 v1, 15, v0", "v_and_b32_e32 v1, 14, v0"),
        ("amdgcn", ".amdhsa_next_free_vgpr 24", ".amdhsa_next_free_vgpr 25"),
    ],
)
def test_anything_but_a_location_is_content(hashed, stage, old, new):
    text = text_of("ann", stage)
    assert old in text
    assert hashed(stage, text) != hashed(stage, text.replace(old, new, 1))


@pytest.mark.parametrize(
    "stage,mark", [("ttir", "    %"), ("ttgir", "    %"), ("llir", "  %"), ("ptx", "\tadd."), ("amdgcn", "\tv_")]
)
def test_the_order_of_operations_is_content(hashed, stage, mark):
    lines = text_of("ann", stage).splitlines(keepends=True)
    first, second = [index for index, line in enumerate(lines) if line.startswith(mark)][:2]
    swapped = list(lines)
    swapped[first], swapped[second] = lines[second], lines[first]
    assert hashed(stage, "".join(lines)) != hashed(stage, "".join(swapped))


@pytest.mark.parametrize(
    "located,plain",
    [
        ('%0 = tt.load %x : f32 loc("x"(#loc1))', "%0 = tt.load %x : f32"),
        ('%0 = tt.load %x : f32 loc("a) b"(callsite(#loc1 at "f(":1:2)))', "%0 = tt.load %x : f32"),
        ('%0 = tt.load %x : f32 loc(fused<{k = "\\")("}>[#loc1, #loc2])', "%0 = tt.load %x : f32"),
        (
            'func @k(%x: f32 {d = 16 : i32} loc("x"(#loc)), %y: f32 loc("y"(#loc)))',
            "func @k(%x: f32 {d = 16 : i32}, %y: f32)",
        ),
        (
            '#loc = loc("/home/ann/k.py":6:0)\n#loc12 = loc(callsite(#loc at #loc))\nmodule {\n} loc(#loc)\n',
            "module {\n}\n",
        ),
        ("#blocked = #ttg.blocked<{}>\n#loc = loc(unknown)\nmodule", "#blocked = #ttg.blocked<{}>\nmodule"),
    ],
)
def test_locations_go_however_they_are_nested(hashed, located, plain):
    assert hashed("ttgir", located) == hashed("ttgir", plain)


@pytest.mark.parametrize(
    "text,other",
    [
        ('tt.assert %0, "at loc(#loc1)" : i1', 'tt.assert %0, "at" : i1'),
        ('tt.print "#loc1 = loc(a)" : i1', 'tt.print "" : i1'),
        ("%0 = foo.loc(%a)", "%0 = foo.loc(%b)"),
        ("%loc(1)", "%loc(2)"),
        ('tt.inline "a // b" ', 'tt.inline "a // c" '),
    ],
)
def test_a_string_or_name_that_looks_like_a_location_is_content(hashed, text, other):
    assert hashed("ttgir", text) != hashed("ttgir", other)


LOOP = """define void @k() !dbg !4 {{
  br label %1, !dbg !9, !llvm.loop !{loop}
}}
!llvm.dbg.cu = !{{!0}}
!llvm.module.flags = !{{!2}}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1)
!1 = !DIFile(filename: "k.py", directory: "{where}")
!2 = !{{i32 2, !"Debug Info Version", i32 3}}
!4 = distinct !DISubprogram(name: "k", file: !1, line: 6, unit: !0)
{filler}!9 = !DILocation(line: 7, column: 1, scope: !4)
!{loop} = distinct !{{!{loop}, {start}!{hint}}}
!{hint} = !{{!"llvm.loop.unroll.{unroll}"}}
"""


def test_loop_metadata_is_content_and_its_number_and_place_are_not(hashed):
    plain = LOOP.format(loop=10, hint=11, where="/a", filler="", start="", unroll="disable")
    moved = LOOP.format(
        loop=20,
        hint=30,
        where="/b",
        filler="!5 = !DILocation(line: 9, scope: !4)\n",
        start="!9, !5, ",
        unroll="disable",
    )
    unrolled = LOOP.format(loop=10, hint=11, where="/a", filler="", start="", unroll="enable")
    assert hashed("llir", plain) == hashed("llir", moved)
    assert hashed("llir", plain) != hashed("llir", unrolled)


def test_debug_records_and_the_source_name_are_no_code(hashed):
    bare = "define void @k() {\n  ret void\n}\n"
    debug = (
        "; ModuleID = 'k'\nsource_filename = \"/home/ann/k.py\"\ndefine void @k() !dbg !1 {\n"
        "    #dbg_value(i32 0, !3, !DIExpression(), !4)\n  call void @llvm.dbg.value(metadata i32 0)\n"
        "  ret void, !dbg !4\n}\ndeclare void @llvm.dbg.value(metadata)\n!4 = !DILocation(line: 1, scope: !1)\n"
    )
    assert hashed("llir", bare) == hashed("llir", debug)


def test_a_string_with_a_comment_sign_survives_the_comments(hashed):
    assert hashed("amdgcn", '\t.asciz "a;b" ; at k.py:3\n') == hashed("amdgcn", '\t.asciz "a;b"\n')
    assert hashed("amdgcn", '\t.asciz "a;b"\n') != hashed("amdgcn", '\t.asciz "a;c"\n')
    assert hashed("ptx", '.pragma "a//b"; // k.py:3\n') != hashed("ptx", '.pragma "a//c"; // k.py:3\n')


@pytest.mark.parametrize("stage", TEXTS)
def test_no_path_is_left_in_what_is_hashed(stage):
    stripped = locations.strip(stage, text_of("ann", stage))
    assert "/home/ann" in text_of("ann", stage)
    assert "/home/ann" not in stripped
    assert "47, 104, 111, 109, 101" not in stripped  # the same path, as the bytes of a PTX string


# --- stages, code and files -------------------------------------------------------------------------------------------


def test_stages_are_in_compile_order_whatever_the_order_of_files(group):
    found = stages.describe(group(cubin=CUBIN, json="{}", ptx="p", ttgir="g", llir="l", source="s", ttir="i"))
    assert list(found.stages) == ["ttir", "ttgir", "llir", "ptx", "cubin"]


def test_a_vendor_stage_stays_behind_the_one_it_follows(group):
    found = stages.describe(group(source="s", ttir="i", ttxir="x", llir="l", xpubin=CUBIN, json="{}"))
    assert list(found.stages) == ["ttir", "ttxir", "llir", "xpubin"]


def test_the_binary_stage_is_its_code(group):
    found = stages.describe(group(ptx="p", cubin=CUBIN))
    rebuilt = stages.describe(
        group(ptx="p", cubin=image([(".nv.info", b""), (".text.k", b"code" * 8), (".debug", b"/x")]))
    )
    assert found.stages["cubin"] == found.code == rebuilt.code != ""


def test_a_binary_of_unknown_format_has_no_code_and_says_so(group):
    found = stages.describe(group(llir="l", mubin=b"MUSA\0\1\2"))
    assert found.code == ""
    assert found.stages["mubin"] == stages.OPAQUE + hashlib.sha256(b"MUSA\0\1\2").hexdigest()


def test_without_a_binary_there_is_no_code(group):
    assert stages.describe(group(ttir="i", ttgir="g")).code == ""


def test_a_file_that_is_gone_is_named(group):
    files = group(ttir="i")
    Path(files["k.ttir"]).unlink()
    with pytest.raises(FileNotFoundError, match=r"k\.ttir"):
        stages.describe(files)


def test_a_cut_off_binary_is_named(group):
    with pytest.raises(ValueError, match=r"k\.cubin: a broken ELF image"):
        stages.describe(group(cubin=CUBIN[:100]))


# --- counts -----------------------------------------------------------------------------------------------------------


def test_a_metric_that_cannot_be_known_is_absent(group):
    assert stages.describe(group(ttir="i", llir="l", ptx="p", mubin=b"\0")).metrics == {}


def test_convert_layout_is_counted_as_an_operation_only(group):
    text = """
    %1 = ttg.convert_layout %0 : tensor<1xf32> -> tensor<1xf32>
    %2:2 = triton_gpu.convert_layout %0 {attr = "ttg.convert_layout %x"} : tensor<1xf32>
    %3 = "ttg.convert_layout"(%2) : (f32) -> f32
      ttg.convert_layout %3 : f32 -> f32
    // %4 = ttg.convert_layout %0
    tt.print "ttg.convert_layout %0" : f32
    %5 = tt.load %0 {ttg.convert_layout = 1} : f32
    %6 = ttg.convert_layout_hint %0
"""
    assert stages.describe(group(ttgir=text)).metrics == {"convert_layout.ttgir": 4}


def test_no_convert_layout_in_ttgir_is_a_count_of_zero(group):
    assert stages.describe(group(ttir="i", ttgir="g")).metrics == {"convert_layout.ttgir": 0}


def test_convert_layout_is_counted_in_a_vendor_stage_where_it_occurs(group):
    assert stages.describe(group(ttxir="%1 = ttg.convert_layout %0")).metrics == {"convert_layout.ttxir": 1}


def test_shared_memory_comes_from_the_options_file(group):
    assert stages.describe(group(json=json.dumps({"shared": 98304}))).metrics == {"shared_bytes": 98304}
    assert stages.describe(group(json=json.dumps({"shared": None}))).metrics == {}


def test_amd_counts_are_those_of_the_kernels_metadata(group):
    found = stages.describe(group(amdgcn=text_of("ann", "amdgcn"))).metrics
    opcodes = re.findall(r"^\t(?:s|v|ds|global|buffer)_\w+", text_of("ann", "amdgcn"), re.MULTILINE)
    expected = dict(registers=24, spill_bytes=0, sgprs=18, sgpr_spills=0, shared_bytes=0, instructions=len(opcodes))
    assert found == expected


def test_a_spilled_vector_register_is_four_bytes(group):
    text = text_of("ann", "amdgcn").replace(".vgpr_spill_count: 0", ".vgpr_spill_count: 148")
    assert stages.describe(group(amdgcn=text)).metrics["spill_bytes"] == 592


# --- identity ---------------------------------------------------------------------------------------------------------

SIGNATURE = {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}
CONSTANTS = {(2,): 1024}
ATTRS = {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}
OPTIONS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None, "launch_pdl": False}


def identity(kernel="k", signature=SIGNATURE, constants=CONSTANTS, attrs=ATTRS, options=OPTIONS):
    return stages.variant_id(kernel, signature, constants, attrs, options)


def test_an_identity_is_readable():
    name, signature, options = identity()
    assert re.fullmatch(r"[0-9a-f]{16}", name)
    assert signature == "x: *fp32 %16, n: i32 %16, BLOCK: constexpr=1024"
    assert options == "num_warps=4 num_stages=3"


@pytest.mark.parametrize(
    "switched",
    [
        {"enable_fp_fusion": False},
        {"debug": True, "sanitize_overflow": True},
        {"arch": "sm80"},
        {"default_dot_input_precision": "ieee"},
        {"extern_libs": (("libdevice", "/b/libdevice.bc"),)},
        {"hash": "5a11", "ptx_options": "-O1", "instrumentation_mode": "consan", "DISABLE_MMA_V3": "1"},
        {"triton_version": "3.9.0", "shared": 4096, "warp_size": 64},
    ],
)
def test_what_a_switch_or_a_build_changes_leaves_the_identity_alone(switched):
    assert identity(options={**OPTIONS, **switched}) == identity()


@pytest.mark.parametrize(
    "chosen",
    [
        {"num_warps": 8},
        {"num_stages": 2},
        {"num_ctas": 2},
        {"maxnreg": 64},
        {"waves_per_eu": 2},
        {"matrix_instr_nonkdim": 16},
        {"kpack": 2},
        {"cluster_dims": (2, 1, 1)},
        {"launch_pdl": True},
        {"launch_cooperative_grid": True},
    ],
)
def test_what_a_launch_chooses_is_another_variant(chosen):
    assert identity(options={**OPTIONS, **chosen})[0] != identity()[0]


def test_an_option_at_its_default_matches_a_build_that_lacks_it():
    defaults = {"waves_per_eu": 0, "matrix_instr_nonkdim": 0, "kpack": 1, "cluster_dims": [1, 1, 1]}
    assert identity(options={"num_warps": 4, "num_stages": 3}) == identity(options={**OPTIONS, **defaults})


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel": "other"},
        {"signature": {**SIGNATURE, "x": "*fp16"}},
        {"constants": {(2,): 512}},
        {"constants": {(2,): True}},
        {"attrs": {(0,): [["tt.divisibility", 16]]}},
        {"attrs": {(0, 1): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}},
        {"constants": {(2, 0): 1024}},
    ],
)
def test_another_specialization_is_another_variant(changes):
    assert identity(**changes)[0] != identity()[0]


def test_pointer_range_is_no_identity_because_a_switch_decides_it():
    with_range = {**ATTRS, (0,): [["tt.divisibility", 16], ["tt.pointer_range", 32]]}
    assert identity(attrs=with_range) == identity()


def test_lists_from_a_cached_json_and_tuples_from_a_compile_are_one():
    assert identity(constants={(2,): [1, (2, 3)]}, options={"cluster_dims": [2, 1, 1]}) == identity(
        constants={(2,): (1, [2, 3])}, options={"cluster_dims": (2, 1, 1)}
    )


@dataclass
class constexpr:
    value: object


class Function:
    def __init__(self, src):
        self.src, self.__name__ = src, "twice"

    def __repr__(self):
        return f"JITFunction({id(self)} at /somewhere/else.py)"


class Layout:
    """Its repr has an address and a path, as that of any object may."""

    def __init__(self, path):
        self.path = path

    def __repr__(self):
        return f"<Layout order=[1, 0] at {hex(id(self))} from '{self.path}'>"


def test_a_constexpr_is_its_value():
    assert identity(constants={(2,): constexpr(1024)}) == identity()


def test_a_function_is_its_name_and_source_wherever_it_lives():
    first, again = (
        identity(constants={(2,): Function("def f(): 1")}),
        identity(constants={(2,): Function("def f(): 1")}),
    )
    assert first == again
    assert first[0] != identity(constants={(2,): Function("def f(): 2")})[0]


def test_an_object_is_its_text_without_address_and_path():
    ann, bob = identity(constants={(2,): Layout("/home/ann/l.py")}), identity(constants={(2,): Layout("/b/src/l.py")})
    assert ann == bob
    assert "order=[1, 0]" in ann[1] and "/" not in ann[1]


def test_values_within_tuple_arguments_have_their_path():
    found = stages.variant_id("k", {"t": ("*fp32", "constexpr")}, {(0, 1): 7}, {(0, 0): [["tt.divisibility", 16]]}, {})
    assert found[1] == "t: ('*fp32', 'constexpr'), 0.0 %16, 0.1=7"


def bare(program, **env):
    """What `program` prints in an interpreter without site-packages."""
    command = [sys.executable, "-S", "-c", program]
    return subprocess.run(command, env=env, cwd=IR.parents[2], capture_output=True, check=True, text=True).stdout


def test_identity_is_equal_in_every_process():
    call = "stages.variant_id('k', {'x': 'i32', 'f': 'constexpr'}, {(1,): object()}, {}, {'num_warps': 4})"
    assert len({bare(f"from harness import stages; print({call})", PYTHONHASHSEED=seed) for seed in ("1", "2")}) == 1


def test_it_loads_in_a_bare_interpreter():
    """L0: nothing but the standard library, no triton, no torch."""
    program = "import sys; import harness.stages; print(sorted({'torch', 'triton', 'numpy'} & set(sys.modules)))"
    assert bare(program) == "[]\n"
