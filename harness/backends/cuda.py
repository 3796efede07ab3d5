"""NVIDIA: the facts, and the devices as `nvidia-smi -L` lists them."""

from __future__ import annotations

import re

from harness.backends.backend import Backend
from harness.backends.device import Device
from harness.backends.tool import RunTool
from harness.records import CaptureTexts

GPU = re.compile(r"^GPU (\d+): (.+) \(UUID: ([^)]+)\)")
#: Drivers before R470 print MIG-GPU-<uuid>/<gi>/<ci>, later ones MIG-<uuid>.
MIG = re.compile(r"^\s+MIG (\S+)\s+Device\s+\d+: \(UUID: ([^)]+)\)")


def find(run: RunTool, target: str) -> tuple[Device, ...]:
    """Every GPU and MIG instance of this machine."""
    return parse(run(["nvidia-smi", "-L"]))


def parse(text: str) -> tuple[Device, ...]:
    """The text of `nvidia-smi -L`; an instance carries its GPU's index and UUID."""
    found: list[Device] = []
    gpu: Device | None = None
    for line in text.splitlines():
        if match := GPU.match(line):
            gpu = Device(int(match[1]), match[3], match[2], visible=match[3])
            found.append(gpu)
        elif gpu and (match := MIG.match(line)):
            found.append(Device(gpu.index, match[2], f"{gpu.model} MIG {match[1]}", match[2], gpu.uuid))
    return tuple(found)


CUDA = Backend(
    name="cuda",
    aliases=("nvidia",),
    visible_env=("CUDA_VISIBLE_DEVICES",),
    runtime="cuda",
    capture=True,
    capture_texts=CaptureTexts(
        recoverable=(
            "operation not permitted when stream is capturing",
            "operation failed due to a previous error during capture",
            "would make the legacy stream depend on a capturing blocking stream",
        ),
        fatal=(
            "an illegal memory access was encountered",
            "device-side assert triggered",
            "misaligned address",
            "an illegal instruction was encountered",
            "unspecified launch failure",
        ),
        # After a failed capture torch's generator stays in capture mode, and every later random call fails so
        # (ACE-Step-1.5 #587).
        poisoned=("Offset increment outside graph capture encountered unexpectedly",),
    ),
    plugins=(),
    sampler="nvml",
    tool="nvidia-smi",
    remedy="install the NVIDIA driver; in a container set NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    find=find,
)
