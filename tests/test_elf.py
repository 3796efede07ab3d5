import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from harness import elf
from tests.fixtures.ir.compiled import Case, compile_all
from tests.fixtures.ir.images import image


def sized(attribute, *numbers):
    return struct.pack(f"<BBH{len(numbers)}I", 4, attribute, 4 * len(numbers), *numbers)


def parsed(*sections, **changes):
    return elf.parse(image(sections, **changes), "k.cubin")


CODE = (".text.k", bytes(range(32)))


def test_code_is_the_text_sections_and_nothing_else():
    plain = parsed(CODE)
    with_paths = parsed((".debug_line", b"/home/ann/k.py"), CODE, (".nv_debug_ptx_txt", b"add.f32"), (".nv.info", b""))
    assert elf.code_hash(plain) == elf.code_hash(with_paths) != ""
    assert plain.code_bytes == with_paths.code_bytes == 32


def test_one_changed_byte_of_code_changes_the_hash():
    assert elf.code_hash(parsed(CODE)) != elf.code_hash(parsed((".text.k", bytes(range(31)) + b"\0")))


def test_the_kernel_name_is_part_of_the_code():
    assert elf.code_hash(parsed(CODE)) != elf.code_hash(parsed((".text.l", CODE[1])))


def test_bytes_cannot_move_between_sections_unnoticed():
    two = parsed((".text.a", b"1"), (".text.b", b"2"))
    for one in (
        [(".text.a", b"1.text.b2")],
        [(".text.a", b"12"), (".text.b", b"")],
        [(".text.a", b""), (".text.b", b"12")],
    ):
        assert elf.code_hash(parsed(*one)) != elf.code_hash(two)


def test_a_section_without_bytes_in_the_file_may_be_of_any_size():
    shared_memory = (".nv.shared.k", 98304)
    assert elf.code_hash(parsed(CODE, shared_memory)) == elf.code_hash(parsed(CODE))


def test_the_order_of_sections_does_not_matter():
    a, b = (".text.a", b"1"), (".text.b", b"2")
    assert elf.code_hash(parsed(a, b)) == elf.code_hash(parsed(b, a))


def test_an_hsaco_keeps_its_code_in_one_text_section():
    found = parsed((".text", b"\0" * 8), (".rodata", b"x"), machine=224)
    assert (found.code_bytes, found.sm, elf.code_hash(found) != "") == (8, 0, True)


@pytest.mark.parametrize("name", [".nv.capmerc.text.k", ".rela.text.k", ".textual", ".nv.merc.rela.text.k"])
def test_a_section_that_only_sounds_like_code_is_none(name):
    assert elf.code_hash(parsed((name, b"1234"))) == ""


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF", b"\x7fELF\x01\x01" + bytes(90), b"\x7fELF\x02\x02" + bytes(90), b"MZ" * 50]
)
def test_what_is_no_little_endian_elf64_has_no_image(data):
    assert elf.parse(data, "k.bin") is None


@pytest.mark.parametrize("keep", [10, 63, 70, 0.5, 0.9])
def test_a_cut_off_image_is_an_error_that_names_the_file(keep):
    whole = image([CODE])
    short = whole[: keep if keep > 1 else int(len(whole) * keep)]
    with pytest.raises(ValueError, match=r"^/cache/k\.cubin: a broken ELF image of \d+ bytes"):
        elf.parse(short, "/cache/k.cubin")


def info(*attributes):
    return (".nv.info", b"".join(attributes))


REGISTERS, FRAME, NO_FRAME = sized(0x2F, 5, 96), sized(0x12, 5, 560), sized(0x12, 5, 0)
SPILLS = (".nv.info.k", struct.pack("<BBH", 3, 0x1B, 0xFF) + sized(0x55, 1, 0x110, 1, 0x150))


def test_registers_are_read_from_the_info_section():
    assert elf.cuda_metrics(parsed(info(REGISTERS, sized(0x2F, 6, 24))))["registers"] == 96


def test_no_frame_means_no_spill():
    assert elf.cuda_metrics(parsed(info(NO_FRAME)))["spill_bytes"] == 0


def test_a_frame_with_annotated_spills_is_counted_in_bytes():
    assert elf.cuda_metrics(parsed(info(FRAME), SPILLS))["spill_bytes"] == 560


def test_a_frame_alone_proves_no_spill_so_the_count_is_absent():
    assert "spill_bytes" not in elf.cuda_metrics(parsed(info(FRAME)))


def test_what_the_image_does_not_say_is_absent():
    assert elf.cuda_metrics(parsed(flags=300)) == {}


NOP, MOVE = struct.pack("<QQ", 0x7918, 0xFC000), struct.pack("<QQ", 0x7802, 0xFC000)


@pytest.mark.parametrize("abi,flags", [(7, 0x5A0D5A), (8, 0x9006402), (8, 0x9007802)])
def test_instructions_are_counted_without_the_padding(abi, flags):
    assert elf.cuda_metrics(parsed((".text.k", MOVE * 3 + NOP * 5), abi=abi, flags=flags))["instructions"] == 3


def test_instructions_of_an_unknown_architecture_are_absent():
    assert "instructions" not in elf.cuda_metrics(parsed((".text.k", MOVE), abi=7, flags=61))


# --- against NVIDIA's own tools ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cubins(tmp_path_factory):
    pytest.importorskip("triton")
    cases = {
        "sm_80": Case(("add",), "cuda:80"),
        "sm_90": Case(("add", "mm16", "show"), "cuda:90"),
        "sm_100": Case(("softmax",), "cuda:100"),
        "spilling": Case(("sort",), "cuda:90", options={"maxnreg": 24, "num_warps": 1}),
    }
    found = compile_all(cases, tmp_path_factory.mktemp("cubins"))
    return {f"{case} {name}": one for case, kernels in found.items() for name, one in kernels.items()}


def tool(name):
    triton = pytest.importorskip("triton")
    path = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name
    if not shutil.which(str(path)):
        pytest.skip(f"this triton brings no {name}")
    return str(path)


def run(name, *arguments):
    return subprocess.run([tool(name), *arguments], capture_output=True, text=True, check=True).stdout


def cubin(found):
    return next(path for name, path in found.files.items() if name.endswith(".cubin"))


def metrics(found):
    return found.fingerprint.variants[0].metrics


@pytest.mark.slow
def test_registers_are_those_that_cuobjdump_reports(cubins):
    reported = {
        key: re.search(r"REG:(\d+)", run("cuobjdump", "-res-usage", cubin(found))) for key, found in cubins.items()
    }
    assert {key: metrics(found)["registers"] for key, found in cubins.items()} == {
        key: int(m[1]) for key, m in reported.items()
    }


@pytest.mark.slow
def test_instructions_are_those_that_nvdisasm_lists(cubins):
    def listed(found):
        text = run("nvdisasm", "-c", "-ndf", cubin(found))
        names = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([A-Z][\w.]*)", text, re.MULTILINE)
        return sum(name != "NOP" for name in names)

    assert {key: metrics(found)["instructions"] for key, found in cubins.items()} == {
        key: listed(found) for key, found in cubins.items()
    }


@pytest.mark.slow
def test_a_kernel_short_of_registers_spills_its_stack_frame(cubins):
    found = cubins["spilling sort"]
    stack = int(re.search(r"STACK:(\d+)", run("cuobjdump", "-res-usage", cubin(found)))[1])
    assert metrics(found)["spill_bytes"] == stack > 0
    assert {
        metrics(cubins[key])["spill_bytes"] for key in ("sm_80 add", "sm_90 add", "sm_90 mm16", "sm_100 softmax")
    } == {0}


@pytest.mark.slow
def test_a_printing_kernel_has_a_stack_and_no_claim_of_a_spill(cubins):
    assert "STACK:0 " not in run("cuobjdump", "-res-usage", cubin(cubins["sm_90 show"]))
    assert "spill_bytes" not in metrics(cubins["sm_90 show"])
