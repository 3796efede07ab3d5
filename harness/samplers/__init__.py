"""Telemetry samplers (L1), found by the name a backend declares. Each parser is pure and tested on recorded texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.backends import Device, RunTool, run_tool
from harness.samplers.amd import open_amd
from harness.samplers.mthreads import open_mthreads
from harness.samplers.npu import open_npu
from harness.samplers.nvidia import HARMLESS, open_nvidia
from harness.samplers.reading import Reading, Sample, Sampler, SamplerMissing, align, number

__all__ = [
    "HARMLESS", "SAMPLERS", "Reading", "Sample", "Sampler", "SamplerMissing", "align", "number", "open_sampler"
]  # fmt: skip

SAMPLERS: Mapping[str, Callable[[Sequence[Device], RunTool], Sampler]] = {
    "nvml": open_nvidia,
    "mthreads-gmi": open_mthreads,
    "rocm-smi": open_amd,
    "npu-smi": open_npu,
}


def open_sampler(name: str, devices: Sequence[Device], run: RunTool = run_tool) -> Sampler:
    """The sampler of that name for these devices; SamplerMissing with the reason when there is none."""
    if name not in SAMPLERS:
        raise SamplerMissing(f"no sampler named {name!r}; there is {', '.join(SAMPLERS)}")
    return SAMPLERS[name](devices, run)
