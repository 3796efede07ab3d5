"""Moore Threads: the facts, and the devices as `mthreads-gmi -q --json` lists them.

Its keys carry stray spaces ("Power Draw "), every value is a string, any value may be "N/A", sections may be missing.
"""

from __future__ import annotations

import json
from typing import Any

from harness.backends.backend import Backend
from harness.backends.device import Device
from harness.backends.tool import RunTool, ToolError
from harness.records import CaptureTexts

COMMAND = ("mthreads-gmi", "-q", "--json")


def find(run: RunTool, target: str) -> tuple[Device, ...]:
    """Every GPU of this machine."""
    return tuple(as_device(gpu) for gpu in gpus(run(COMMAND)))


def gpus(text: str) -> list[dict[str, Any]]:
    """The GPU objects, keys stripped and in lower case. ToolError when the text is not that JSON."""
    try:
        found = _clean(json.loads(text))["gpu"]
    except (ValueError, KeyError, TypeError):
        raise ToolError(f"`{' '.join(COMMAND)}` printed no GPU list: {' '.join(text.split())[:120]!r}") from None
    return [gpu for gpu in found if isinstance(gpu, dict) and str(gpu.get("index", "")).strip().isdecimal()]


def as_device(gpu: dict[str, Any]) -> Device:
    """One GPU object; a UUID that is "N/A" may repeat, so the bus address stands in for it."""
    index = int(str(gpu["index"]).strip())
    uuid = str(gpu.get("gpu uuid", "N/A")).strip()
    bus = str(gpu.get("pci", {}).get("bus id", "N/A")).strip()
    if uuid == "N/A":
        uuid = f"mthreads-index-{index}" if bus == "N/A" else f"pci-{bus}"
    return Device(index, uuid, str(gpu.get("product name", "unknown")).strip(), visible=str(index))


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key.strip().lower(): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


MUSA = Backend(
    name="musa",
    aliases=("mthreads",),
    visible_env=("MUSA_VISIBLE_DEVICES",),
    runtime="musa",
    # It was pinned off long after it worked: batch_norm 0.0758 -> 0.0089 ms, so campaigns had measured launches.
    capture=True,
    capture_texts=CaptureTexts(
        recoverable=(
            "operation not permitted when stream is capturing",
            # leaving the capture raises it over the error above (FlagGems #6124)
            "operation failed due to a previous error during capture",
            "current_seed is not callable during capture",
        ),
        # No wording of a kernel failure is established here; an unknown one is fatal anyway.
        poisoned=("MUSA error: unknown error",),
    ),
    plugins=("harness.plugins.device", "harness.plugins.compat_musa"),
    sampler="mthreads-gmi",
    tool="mthreads-gmi",
    remedy="install the MUSA driver; in a container set MTHREADS_VISIBLE_DEVICES",
    find=find,
)
