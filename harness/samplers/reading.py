"""One reading of one device, and the tolerant number parser. Absent is None, never 0. Knows no vendor."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.backends import Device

NUMBER = re.compile(r"\(?\s*(-?\d+(?:\.\d+)?)\s*(?:MHz|Mhz|W|C|%)?\s*\)?")


class SamplerMissing(Exception):
    """Why a device cannot be sampled here. Telemetry is evidence, so this never fails a cell."""


@dataclass(frozen=True)
class Reading:
    """What a device said at one instant, units in the names. `throttle` is reason names, "none", or "" = unknown."""

    index: int
    uuid: str
    sm_clock_mhz: float | None = None
    mem_clock_mhz: float | None = None
    temp_c: float | None = None
    power_w: float | None = None
    util_pct: float | None = None
    throttle: str = ""


@dataclass(frozen=True)
class Sample:
    """One instant: readings in any order, and the raw text that they were read from."""

    readings: tuple[Reading, ...]
    raw: str


@dataclass(frozen=True)
class Sampler:
    """A way to sample the devices it was opened for. `read` raises ToolError when the tool fails."""

    source: str
    read: Callable[[], Sample]
    notes: tuple[str, ...] = ()


def number(value: object) -> float | None:
    """A number with or without its unit ("36C", "(800Mhz)", 142); None for "N/A", "[Not Supported]" and their kin."""
    if isinstance(value, bool) or value is None:
        return None
    match = NUMBER.fullmatch(str(value).strip())
    return float(match[1]) if match else None


def align(devices: Sequence[Device], sample: Sample) -> list[Reading]:
    """One reading per physical device asked for, in that order; one that did not answer is empty, not missing.

    Readings are found by UUID first: indices of two tools need not agree. A MIG instance is sampled as its parent.
    """
    by_uuid = {reading.uuid: reading for reading in sample.readings if reading.uuid}
    by_index = {reading.index: reading for reading in sample.readings if not reading.uuid}
    return [
        replace(by_uuid.get(uuid) or by_index.get(index) or Reading(index, uuid), index=index, uuid=uuid)
        for index, uuid in physical(devices)
    ]


def physical(devices: Sequence[Device]) -> list[tuple[int, str]]:
    """(index, UUID) of each physical device, once; what two MIG instances share is one."""
    return list(dict.fromkeys((device.index, device.parent or device.uuid) for device in devices))
