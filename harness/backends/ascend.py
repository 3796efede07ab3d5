"""Huawei Ascend: the facts, and the chips as the table of `npu-smi info` lists them (it has no JSON)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from harness.backends.backend import Backend
from harness.backends.device import Device
from harness.backends.tool import RunTool
from harness.records import CaptureTexts

COMMAND = ("npu-smi", "info")
BUS = re.compile(r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")


@dataclass(frozen=True)
class Chip:
    """One chip: its NPU's first row (name, power, temperature) and its own (bus, load). Texts as printed."""

    index: int
    uuid: str
    name: str
    power_w: str
    temp_c: str
    aicore_pct: str


def find(run: RunTool, target: str) -> tuple[Device, ...]:
    """Every chip of this machine."""
    return tuple(Device(c.index, c.uuid, f"Ascend {c.name}", visible=str(c.index)) for c in chips(run(COMMAND)))


def chips(text: str) -> tuple[Chip, ...]:
    """The chips of the table. Alarm and process rows have no bus address and are passed over."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    found: list[Chip] = []
    npu: list[str] = []
    for row in rows:
        if len(row) == 3 and BUS.fullmatch(row[1]) and npu:
            found.append(_chip(npu, row))
        elif len(row) == 3 and re.match(r"\d+\s+\S*[A-Za-z]", row[0]):
            npu = row
    if len({chip.index for chip in found}) < len(found):
        return tuple(replace(chip, index=index) for index, chip in enumerate(found))
    return tuple(found)


def _chip(npu: list[str], row: list[str]) -> Chip:
    """One chip of its two rows. npu-smi knows no UUID: bus address and chip number stand in for it.

    The index is the printed device number, else the NPU's; where that is not unique, chips are counted instead.
    """
    number, name = npu[0].split()[:2]
    power, temperature = (npu[2].split() + ["NA", "NA"])[:2]
    chip, *device = row[0].split()
    index = int(device[0] if device else number)
    return Chip(index, f"pci-{row[1]}-chip-{chip}", name, power, temperature, (row[2].split() + ["NA"])[0])


ASCEND = Backend(
    name="ascend",
    aliases=("npu",),
    visible_env=("ASCEND_RT_VISIBLE_DEVICES", "NPU_VISIBLE_DEVICES"),
    runtime="npu",
    capture=False,  # FlagGems times it by do_bench_npu; no captured timer is known to work
    capture_texts=CaptureTexts(),
    plugins=("harness.plugins.device",),
    sampler="npu-smi",
    tool="npu-smi",
    remedy="install the Ascend driver and add its tools directory to PATH",
    find=find,
)
