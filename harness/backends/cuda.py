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
            # cudaErrorStreamCapture*, 900 to 908, as cudaGetErrorString and cuGetErrorString spell them: a .item() or
            # nonzero() says the first, and leaving the capture then raises the second.
            "operation not permitted when stream is capturing",
            "operation failed due to a previous error during capture",
            "operation would result in a merge of separate capture sequences",
            "capture was not ended in the same stream as it began",
            "capturing stream has unjoined work",
            "dependency created on uncaptured work in another stream",
            "would make the legacy stream depend on a capturing blocking stream",
            "operation not permitted on an event last recorded in a capturing stream",
            "attempt to terminate a thread-local capture sequence from another thread",
            # torch's own checks: copies from unpinned memory (pytorch #172156), seeds and states of generators
            # (assertNotCapturing), a generator the graph does not know, cuDNN's benchmark mode, CUDAGraph::capture_end.
            "during CUDA graph capture",
            "for a CUDA generator not in capture mode",
            "Current cudaStreamCaptureStatus: ",
            "Capture must end on the same stream it began on",
            "Invalid capture.",
            # An earlier capture of the process was never closed in the allocator (torch before 2.12, pytorch #180395).
            "captures_underway.empty() INTERNAL ASSERT FAILED",
        ),
        fatal=(
            "an illegal memory access was encountered",
            "device-side assert triggered",
            "misaligned address",
            "an illegal instruction was encountered",
            "unspecified launch failure",
            "hardware stack error",
            "invalid program counter",
            "operation not supported on global/shared address space",
            "the launch timed out and was terminated",
            "uncorrectable ECC error encountered",
        ),
        # After a failed capture torch's generator stays in capture mode, and every later random call fails so
        # (ACE-Step-1.5 #587).
        poisoned=("Offset increment outside graph capture encountered unexpectedly",),
    ),
    plugins=("harness.plugins.device",),
    sampler="nvml",
    tool="nvidia-smi",
    remedy="install the NVIDIA driver; in a container set NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    find=find,
)
