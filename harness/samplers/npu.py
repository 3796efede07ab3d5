"""Ascend telemetry: the table of `npu-smi info`. It has no clocks; they stay empty rather than 0."""

from __future__ import annotations

from collections.abc import Sequence

from harness.backends import Device, RunTool
from harness.backends.ascend import COMMAND, chips
from harness.samplers.reading import Reading, Sample, Sampler, number


def open_npu(devices: Sequence[Device], run: RunTool) -> Sampler:
    """One table answers for every chip."""
    return Sampler("npu-smi", lambda: _sample(run(COMMAND)))


def parse(text: str) -> tuple[Reading, ...]:
    """One reading per chip; power and temperature are those of its NPU."""
    return tuple(
        Reading(
            index=chip.index, uuid=chip.uuid, temp_c=number(chip.temp_c), power_w=number(chip.power_w),
            util_pct=number(chip.aicore_pct),
        )
        for chip in chips(text)
    )  # fmt: skip


def _sample(text: str) -> Sample:
    return Sample(parse(text), text)
