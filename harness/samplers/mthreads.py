"""Moore Threads telemetry: `mthreads-gmi -q --json`; it has no CSV query on every version, and JSON on all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.backends import Device, RunTool
from harness.backends.musa import COMMAND, as_device, gpus
from harness.samplers.reading import Reading, Sample, Sampler, number


def open_mthreads(devices: Sequence[Device], run: RunTool) -> Sampler:
    """One query answers for every device; those not asked for are dropped later, by UUID."""
    return Sampler("mthreads-gmi", lambda: _sample(run(COMMAND)))


def parse(text: str) -> tuple[Reading, ...]:
    """One reading per GPU object; a missing section is an absent value."""
    return tuple(_reading(gpu) for gpu in gpus(text))


def _reading(gpu: dict[str, Any]) -> Reading:
    device = as_device(gpu)
    clocks = gpu.get("clocks", {})
    return Reading(
        index=device.index,
        uuid=device.uuid,
        sm_clock_mhz=number(clocks.get("graphics")),
        mem_clock_mhz=number(clocks.get("memory")),
        temp_c=number(gpu.get("temperature", {}).get("gpu current temp")),
        power_w=number(gpu.get("power readings", {}).get("power draw")),
        util_pct=number(gpu.get("utilization", {}).get("gpu")),
    )


def _sample(text: str) -> Sample:
    return Sample(parse(text), text)
