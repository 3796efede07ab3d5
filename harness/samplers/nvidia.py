"""NVIDIA telemetry: NVML where nvidia-ml-py is installed (27 us a sample), else nvidia-smi (28 ms)."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from types import ModuleType

from harness.backends import Device, RunTool, ToolError
from harness.samplers.reading import Reading, Sample, Sampler, SamplerMissing, number, physical

FIELDS = "index,uuid,clocks.sm,clocks.mem,temperature.gpu,power.draw,utilization.gpu"
#: The second name is the alias before R535. One unknown field fails the whole query, so each is tried.
REASONS_FIELDS = (",clocks_event_reasons.active", ",clocks_throttle_reasons.active", "")
REASONS = {
    0x1: "gpu_idle", 0x2: "applications_clocks_setting", 0x4: "sw_power_cap", 0x8: "hw_slowdown", 0x10: "sync_boost",
    0x20: "sw_thermal_slowdown", 0x40: "hw_thermal_slowdown", 0x80: "hw_power_brake_slowdown",
    0x100: "display_clocks_setting",
}  # fmt: skip
#: Reasons why a clock is low that are nobody's trouble.
HARMLESS = frozenset({"none", "gpu_idle", "applications_clocks_setting", "display_clocks_setting"})


def open_nvidia(devices: Sequence[Device], run: RunTool) -> Sampler:
    """NVML, else nvidia-smi with a note why."""
    try:
        return open_nvml(devices)
    except SamplerMissing as missing:
        return open_smi(devices, run, str(missing))


def open_nvml(devices: Sequence[Device]) -> Sampler:
    """Sample through the driver's library, by UUID."""
    try:
        import pynvml
    except ImportError:
        raise SamplerMissing("NVML is not used: nvidia-ml-py is not installed in this interpreter") from None
    try:
        pynvml.nvmlInit()
        handles = [(index, uuid, pynvml.nvmlDeviceGetHandleByUUID(uuid)) for index, uuid in physical(devices)]
    except pynvml.NVMLError as error:
        raise SamplerMissing(f"NVML is not used: {error}") from None
    return Sampler("NVML", lambda: _sample_nvml(pynvml, handles))


def open_smi(devices: Sequence[Device], run: RunTool, note: str) -> Sampler:
    """Sample through the command line tool, with the reason field that this driver has."""
    uuids = ",".join(uuid for _, uuid in physical(devices))
    for reasons in REASONS_FIELDS:
        command = ["nvidia-smi", f"--query-gpu={FIELDS}{reasons}", "--format=csv,noheader,nounits", "-i", uuids]
        try:
            run(command)
        except ToolError as error:
            last = error
            continue
        return Sampler("nvidia-smi", lambda command=command: _sample_smi(run(command)), (note,))  # type: ignore[misc]
    raise SamplerMissing(f"{note}; {last}")


def parse(text: str) -> tuple[Reading, ...]:
    """Rows of `nvidia-smi --query-gpu`, with or without header, units and reasons. ToolError names a broken row."""
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]
    return tuple(_reading(row) for row in rows if row[0] != "index")


def reason_names(mask: int) -> str:
    """The names of the bits of a reasons mask, joined with "|"; bits without a name stay as numbers."""
    names = [name for bit, name in REASONS.items() if mask & bit]
    unknown = mask & ~sum(REASONS)
    return "|".join(names + [hex(unknown)] * bool(unknown)) or "none"


def _reading(row: list[str]) -> Reading:
    if len(row) not in (7, 8) or not row[0].isdecimal():
        raise ToolError(f"nvidia-smi row is not `{FIELDS}[,reasons]`: {', '.join(row)!r}")
    mask = row[7] if len(row) == 8 else ""
    sm, memory, temperature, power, load = (number(cell) for cell in row[2:7])
    throttle = reason_names(int(mask, 16)) if mask.startswith("0x") else ""
    return Reading(int(row[0]), row[1], sm, memory, temperature, power, load, throttle)


def _sample_smi(text: str) -> Sample:
    return Sample(parse(text), text)


def _sample_nvml(nvml: ModuleType, handles: Sequence[tuple[int, str, object]]) -> Sample:
    values = [(index, uuid, _values(nvml, handle)) for index, uuid, handle in handles]
    readings = []
    for index, uuid, found in values:
        sm, memory, temperature, milliwatts, load, mask = found.values()
        power = None if milliwatts is None else milliwatts / 1000
        throttle = "" if mask is None else reason_names(mask)
        readings.append(Reading(index, uuid, sm, memory, temperature, power, load, throttle))
    return Sample(tuple(readings), json.dumps(values))


def _values(nvml: ModuleType, handle: object) -> dict[str, int | None]:
    """Each quantity by itself: on MIG some are not supported, and one must not take the others with it."""
    calls: dict[str, Callable[[], int]] = {
        "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        "mem_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
        "temp_c": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "power_mw": lambda: nvml.nvmlDeviceGetPowerUsage(handle),
        "util_pct": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
        # The name that every driver has; newer ones call the same mask "event reasons".
        "reasons_mask": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
    }
    found: dict[str, int | None] = {}
    for name, call in calls.items():
        try:
            found[name] = call()
        except nvml.NVMLError:
            found[name] = None
    return found
