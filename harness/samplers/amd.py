"""AMD telemetry: rocm-smi, or amd-smi where rocm-smi is gone. The same tool enumerates, so indices agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.backends import Device, RunTool, ToolError
from harness.backends.rocm import cards, entries, identity
from harness.samplers.reading import Reading, Sample, Sampler, SamplerMissing, number

ROCM_SMI = (
    "rocm-smi", "--showuniqueid", "--showbus", "--showclocks", "--showtemp", "--showpower", "--showuse", "--json"
)  # fmt: skip
AMD_SMI = ("amd-smi", "metric", "--json")
#: Average on older ROCm, Current Socket on newer; junction is missing on some boards.
POWER = ("Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)")
TEMPERATURE = ("Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)")


def open_amd(devices: Sequence[Device], run: RunTool) -> Sampler:
    """rocm-smi, else amd-smi with a note why."""
    try:
        run(ROCM_SMI)
    except ToolError as missing:
        try:
            run(AMD_SMI)
        except ToolError as error:
            raise SamplerMissing(f"{missing}, and {error}") from None
        return Sampler("amd-smi", lambda: _sample(parse_amd_smi, run(AMD_SMI)), (str(missing),))
    return Sampler("rocm-smi", lambda: _sample(parse_rocm_smi, run(ROCM_SMI)))


def parse_rocm_smi(text: str) -> tuple[Reading, ...]:
    """One reading per card; all values are texts."""
    return tuple(_from_card(index, card) for index, card in cards(text))


def parse_amd_smi(text: str) -> tuple[Reading, ...]:
    """One reading per GPU object, without UUID: `amd-smi metric` prints none."""
    return tuple(_from_entry(entry) for entry in entries(text))


def _from_card(index: int, card: dict[str, str]) -> Reading:
    return Reading(
        index=index,
        uuid=identity(index, card),
        sm_clock_mhz=number(card.get("sclk clock speed")),
        mem_clock_mhz=number(card.get("mclk clock speed")),
        temp_c=_first(card, TEMPERATURE),
        power_w=_first(card, POWER),
        util_pct=number(card.get("GPU use (%)")),
    )


def _first(card: dict[str, str], names: Sequence[str]) -> float | None:
    return next((value for value in (number(card.get(name)) for name in names) if value is not None), None)


def _from_entry(entry: dict[str, Any]) -> Reading:
    temperature = _value(entry, "temperature", "hotspot")
    power = _value(entry, "power", "socket_power")
    return Reading(
        index=entry["gpu"],
        uuid="",
        sm_clock_mhz=_value(entry, "clock", "gfx_0", "clk"),
        mem_clock_mhz=_value(entry, "clock", "mem_0", "clk"),
        temp_c=_value(entry, "temperature", "edge") if temperature is None else temperature,
        power_w=_value(entry, "power", "average_socket_power") if power is None else power,
        util_pct=_value(entry, "usage", "gfx_activity"),
    )


def _value(entry: Any, *path: str) -> float | None:
    """A bare number, or the "value" of an object; None where the path ends early or says "N/A"."""
    for name in path:
        entry = entry.get(name) if isinstance(entry, dict) else None
    return number(entry.get("value") if isinstance(entry, dict) else entry)


def _sample(parse: Callable[[str], tuple[Reading, ...]], text: str) -> Sample:
    return Sample(parse(text), text)
