"""What a backend is: one frozen value of vendor facts. Declared here, copied into cells by the plan, obeyed by plugins.

Nothing else in caliber asks "is this CUDA": a capability that is not declared does not exist.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.backends import device
from harness.backends.device import Device, DeviceError
from harness.backends.tool import RunTool, ToolError, run_tool
from harness.records import CaptureTexts


@dataclass(frozen=True)
class Backend:
    """One vendor. `runtime` is the torch device module; `find` lists devices by the vendor tool, for a target text.

    `plugins` are planned before the common ones, and the one that sets up the device before all. `sampler` names a
    telemetry sampler, "" = none. `tool` is what is looked for on PATH ("" = nothing), `remedy` the way out when no
    device is found. `renumbering` are variables under which `visible_env` would name other devices than the tool does.
    """

    name: str
    aliases: tuple[str, ...]
    visible_env: tuple[str, ...]
    runtime: str
    capture: bool
    capture_texts: CaptureTexts
    plugins: tuple[str, ...]
    sampler: str
    tool: str
    remedy: str
    find: Callable[[RunTool, str], tuple[Device, ...]]
    renumbering: tuple[str, ...] = ()

    def devices(
        self, target: str = "", *, run: RunTool = run_tool, environ: Mapping[str, str] | None = None
    ) -> tuple[Device, ...]:
        """What this process may use, in the vendor tool's order. DeviceError when neither tool nor fence can say."""
        environ = os.environ if environ is None else environ
        for name in self.renumbering:
            if name in environ:
                observed = f"{name}={environ[name]} renumbers the devices that {self.visible_env[0]} names"
                raise DeviceError(observed, f"unset it, and fence by {self.visible_env[0]} instead")
        try:
            found = self.find(run, target)
        except ToolError as error:
            raise DeviceError(str(error), self.remedy) from None
        return device.fenced(found, self.visible_env, environ)

    def resolve(
        self, token: str, target: str = "", *, run: RunTool = run_tool, environ: Mapping[str, str] | None = None
    ) -> Device:
        """The device that `token` names. DeviceError names the token, what exists, and what hides the others."""
        environ = os.environ if environ is None else environ
        try:
            return device.resolve(token, self.devices(target, run=run, environ=environ))
        except DeviceError as error:
            fence = " ".join(f"{name}={environ[name]}" for name in self.visible_env if name in environ)
            if not fence:
                raise
            raise DeviceError(f"{error.observed} (with {fence})", error.remedy) from None
