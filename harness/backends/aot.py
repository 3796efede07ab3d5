"""No device at all: real Triton compiles the real kernels for a named target. Lanes are places to compile in.

Two campaigns on one machine disturb each other's compile latency, so a lane has a UUID and is leased like a device.
"""

from __future__ import annotations

import re

from harness.backends.backend import Backend
from harness.backends.device import Device
from harness.backends.tool import RunTool
from harness.records import CaptureTexts, Refusal

TARGET = re.compile(r"cuda:\d{2,3}|hip:gfx[0-9a-f]{3,4}")
LANES = 256  # more than any machine can compile on side by side


class TargetError(Refusal):
    """A target that Triton cannot compile for without a device."""


def check_target(target: str) -> str:
    """`target` when it is `cuda:<arch>` or `hip:gfx<...>`; TargetError otherwise."""
    if not TARGET.fullmatch(target):
        raise TargetError(f"target {target!r} is none that aot compiles for; use cuda:90 or hip:gfx942, say")
    return target


def find(run: RunTool, target: str) -> tuple[Device, ...]:
    """Lanes 0..255, the same on every machine; the model is the target."""
    return tuple(Device(index, f"aot-lane-{index}", target or "aot", str(index)) for index in range(LANES))


AOT = Backend(
    name="aot",
    aliases=(),
    visible_env=(),
    runtime="meta",
    capture=False,  # nothing is launched
    capture_texts=CaptureTexts(),
    plugins=("harness.plugins.aot",),
    sampler="",
    tool="",
    remedy="use lane 0",
    find=find,
)
