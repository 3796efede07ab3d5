"""AMD: the facts, and the devices as rocm-smi lists them, or amd-smi where rocm-smi is gone."""

from __future__ import annotations

import json
import re
from typing import Any

from harness.backends.backend import Backend
from harness.backends.device import Device
from harness.backends.tool import RunTool, ToolError
from harness.records import CaptureTexts

ROCM_SMI = ("rocm-smi", "--showuniqueid", "--showproductname", "--showbus", "--json")
AMD_SMI = ("amd-smi", "list", "--json")


def find(run: RunTool, target: str) -> tuple[Device, ...]:
    """Every GPU of this machine."""
    try:
        return tuple(_from_card(index, card) for index, card in cards(run(ROCM_SMI)))
    except ToolError as first:
        try:
            return tuple(_from_entry(entry) for entry in entries(run(AMD_SMI)))
        except ToolError as second:
            raise ToolError(f"{first}, and {second}") from None


def cards(text: str) -> list[tuple[int, dict[str, str]]]:
    """(index, values) of each `cardN` of `rocm-smi --json`, keys without trailing colon; "system" is no card."""
    data = _json(text, "rocm-smi")
    found = [(re.fullmatch(r"card(\d+)", key), card) for key, card in data.items()] if isinstance(data, dict) else []
    clean = [(int(key[1]), {name.rstrip(": "): value for name, value in card.items()}) for key, card in found if key]
    return sorted(clean, key=lambda item: item[0])


def entries(text: str) -> list[dict[str, Any]]:
    """The GPU objects of `amd-smi ... --json`: a list (ROCm 6), or under "gpu_data" (ROCm 7)."""
    data = _json(text, "amd-smi")
    found = data.get("gpu_data", []) if isinstance(data, dict) else data
    return [entry for entry in found if isinstance(entry, dict) and isinstance(entry.get("gpu"), int)]


def identity(index: int, card: dict[str, str]) -> str:
    """GPU-<unique id> as ROCR spells it; some boards have none, then the bus address stands in for it."""
    unique = card.get("Unique ID", "N/A")
    if unique != "N/A":
        return f"GPU-{unique.removeprefix('0x')}"
    return f"pci-{card['PCI Bus']}" if "PCI Bus" in card else f"rocm-card-{index}"


def _from_card(index: int, card: dict[str, str]) -> Device:
    names = ("Card Series", "Card series", "Card model", "Card Model", "GPU ID")
    model = next((card[name] for name in names if card.get(name, "N/A") != "N/A"), "unknown")
    return Device(index, identity(index, card), model, visible=str(index))


def _from_entry(entry: dict[str, Any]) -> Device:
    uuid = str(entry.get("uuid") or f"pci-{entry.get('bdf', 'N/A')}")
    return Device(entry["gpu"], uuid, "AMD GPU", visible=str(entry["gpu"]))


def _json(text: str, tool: str) -> Any:
    """The JSON value in `text`, past WARNING lines that both tools print before it."""
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if line.lstrip()[:1] in ("{", "[")), 0)
    try:
        return json.loads("\n".join(lines[first:]))
    except ValueError:
        raise ToolError(f"{tool} printed no JSON: {' '.join(text.split())[:120]!r}") from None


ROCM = Backend(
    name="rocm",
    aliases=("amd", "hip"),
    visible_env=("HIP_VISIBLE_DEVICES",),  # takes indices only
    # HIP_VISIBLE_DEVICES counts within it: card 0 of the tool would be leased and sampled, and another one measured.
    renumbering=("ROCR_VISIBLE_DEVICES",),
    runtime="cuda",  # torch on ROCm answers to torch.cuda
    # HIP graphs come through the same torch.cuda.CUDAGraph. Not tried on hardware by this project: a row that cannot
    # be captured falls back with its marker, as everywhere.
    capture=True,
    capture_texts=CaptureTexts(
        # hipGetErrorString (ROCm's clr). torch puts "HIP error: " before it, newer ones "CUDA error: " (TheRock #4476).
        recoverable=(
            "operation not permitted when stream is capturing",
            "operation failed due to a previous error during capture",
            "operation would result in a merge of separate capture sequences",
            "capture was not ended in the same stream as it began",
            "capturing stream has unjoined work",
            "dependency created on uncaptured work in another stream",
            "would make the legacy stream depend on a capturing blocking stream",
            "operation not permitted on an event last recorded in a capturing stream",
            "attempt to terminate a thread-local capture sequence from another thread",
            # torch's own check, the same text in its ROCm build
            "during CUDA graph capture",
        ),
        fatal=(
            "an illegal memory access was encountered",
            "device-side assert triggered",
            "unspecified launch failure",
        ),
        poisoned=("Offset increment outside graph capture encountered unexpectedly",),
    ),
    plugins=("harness.plugins.device",),
    sampler="rocm-smi",
    tool="rocm-smi",
    remedy="install ROCm with rocm-smi or amd-smi, and join the groups render and video",
    find=find,
)
