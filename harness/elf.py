"""The code of a GPU binary, and what its ELF64 image says of the registers and stack it needs.

Owns the reading of cubin (NVIDIA) and hsaco (AMD) images with `struct`. It must not know Triton, stages or tools: which
file is read, and what its numbers are called, is `stages`' business. L0: standard library only, Python 3.10.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

CUDA = 190  # e_machine of a cubin; an hsaco has 224
#: Architectures whose every instruction is 16 bytes, with NOP as opcode 0x918 in the low 12 bits (checked against
#: nvdisasm from sm_75 to sm_120 in the tests; nvdisasm itself takes 0.5-0.8 s a cubin, longer than many a compile).
WIDE_SASS = range(70, 130)
_NOP = 0x918
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NO_DATA = 8  # SHT_NOBITS: occupies memory, not the file
# .nv.info attributes (cuobjdump -elf names them EIATTR_...)
_REGCOUNT, _MIN_STACK_SIZE, _ANNOTATIONS = 0x2F, 0x12, 0x55
_SIZED = 4  # the attribute format with a payload; all others are four bytes in all
_SPILL_REFILL = 1


@dataclass(frozen=True)
class Section:
    """A named section and its bytes (none where the file holds none)."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Image:
    """An ELF64 file: the machine it is for, `sm` (90 for sm_90a, 0 when not NVIDIA's), its sections in file order."""

    machine: int
    sm: int
    sections: tuple[Section, ...]

    @property
    def code(self) -> tuple[Section, ...]:
        """The sections that hold instructions: `.text` (hsaco) and `.text.<kernel>` (cubin), by name.

        Never the whole file: debug sections hold paths and the PTX text, so whole-cubin hashes change when code
        does not (TRITON_DEFAULT_FP_FUSION=0 changes every cubin and the code of one kernel in seven).
        """
        named = (section for section in self.sections if section.name == ".text" or section.name.startswith(".text."))
        return tuple(sorted(named, key=lambda section: section.name))

    @property
    def code_bytes(self) -> int:
        """Size of the code in bytes, padding included."""
        return sum(len(section.data) for section in self.code)


def parse(data: bytes, where: str) -> Optional[Image]:
    """The image in `data`, None when that is no little-endian ELF64. ValueError, headed by `where`, when cut short."""
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    try:
        return _parse(data)
    except (struct.error, IndexError, ValueError) as error:
        raise ValueError(f"{where}: a broken ELF image of {len(data)} bytes ({error}); compile it again") from None


def code_hash(image: Image) -> str:
    """SHA-256 over name, size and bytes of every code section; "" when there is no code."""
    total = hashlib.sha256()
    for section in image.code:
        total.update(f"{section.name}\0{len(section.data)}\0".encode() + section.data)
    return total.hexdigest() if image.code_bytes else ""


def cuda_metrics(image: Image) -> dict[str, int]:
    """A cubin's registers and spill_bytes (per thread) and instructions (no NOPs); what it does not say is absent.

    spill_bytes is the stack frame of a kernel whose code is annotated as spilling (other stack objects included), 0
    without a frame. A frame without such annotations is no proof of a spill (device_print has one): then it is absent.
    """
    found = [item for section in image.sections if _is_info(section) for item in _attributes(section.data)]
    registers = [_second(value) for attribute, value in found if attribute == _REGCOUNT]
    frames = [_second(value) for attribute, value in found if attribute == _MIN_STACK_SIZE]
    spills = any(_notes_a_spill(value) for attribute, value in found if attribute == _ANNOTATIONS)
    metrics = {"instructions": _instructions(image)} if image.sm in WIDE_SASS else {}
    if registers:
        metrics["registers"] = max(registers)  # one entry per function; the kernel's covers its callees
    if frames and (spills or not any(frames)):
        metrics["spill_bytes"] = max(frames)
    return metrics


def _parse(data: bytes) -> Image:
    ident, _, machine, _, _, _, table, flags, _, _, _, _, count, names = _HEADER.unpack_from(data)
    rows = [_SECTION.unpack_from(data, table + _SECTION.size * index) for index in range(count)]
    strings = _data(data, rows[names]) if rows else b""
    # The architecture is the low byte of e_flags; since ABI version 8 (sm_100 on) the byte above it.
    sm = (flags >> 8 if ident[8] >= 8 else flags) & 0xFF
    sections = tuple(Section(_name(strings, row[0]), _data(data, row)) for row in rows)
    return Image(machine, sm if machine == CUDA else 0, sections)


def _instructions(image: Image) -> int:
    words = (low for section in image.code for low, _ in struct.iter_unpack("<QQ", section.data))
    return sum(low & 0xFFF != _NOP for low in words)


def _data(data: bytes, row: tuple[int, ...]) -> bytes:
    kind, start, size = row[1], row[4], row[5]
    if kind == _NO_DATA:
        return b""
    if start + size > len(data):
        raise ValueError(f"a section ends at byte {start + size}")
    return data[start : start + size]


def _name(strings: bytes, at: int) -> str:
    return strings[at : strings.index(b"\0", at)].decode() if strings else ""


def _is_info(section: Section) -> bool:
    return section.name == ".nv.info" or section.name.startswith(".nv.info.")


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _SIZED:
            yield attribute, data[at : at + size]
            at += size


def _second(value: bytes) -> int:
    """(symbol, number) -> number."""
    return int(struct.unpack_from("<II", value)[1])


def _notes_a_spill(value: bytes) -> bool:
    """A list of (kind, code offset); offsets are multiples of 16, so none of them reads as a kind."""
    whole = value[: len(value) // 8 * 8]
    return any(kind == _SPILL_REFILL for kind, _ in struct.iter_unpack("<II", whole))
